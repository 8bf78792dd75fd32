//! Ports that the server refuses, as a virtual router's UDP: the others are served, and nothing is bought for them in vain.

use std::time::Duration;

use bowline_cloudstack_sim::JobFault;
use bowline_cloudstack_sim::kit::Fault;
use bowline_cloudstack_sim::kit::faults::Canned;
use serde_json::json;

use crate::site::Site;
use crate::world::{MACHINES, Outcome, UID, WEB, World};

/// What the virtual router says of a port that it cannot carry.
const CANNOT: &str = "LB service provider cannot support this rule";

/// The writes of the tries of half an hour, at the controller's pace.
async fn for_half_an_hour(world: &World) -> Vec<String> {
    let (mut all, mut pause, mut passed) = (Vec::new(), 5, 0);
    while passed < 1_800 {
        let (run, writes) = world.writes_of(world.run(WEB)).await;
        assert!(!matches!(run.outcome, Outcome::Settled(_)), "{run:#?}");
        all.extend(writes);
        tokio::time::sleep(Duration::from_secs(pause)).await;
        passed += pause;
        pause = (2 * pause).min(300);
    }
    all
}

fn opened(world: &World) -> Vec<String> {
    let mut opened = [world.openings(), world.acl_items()].concat();
    opened.sort();
    opened
}

#[tokio::test(start_paused = true)]
async fn a_port_that_the_router_cannot_carry_costs_the_others_nothing() {
    for is_vpc in [false, true] {
        for refused in [("UDP", 4500, 31500), ("TCP", 8081, 31081), ("UDP", 443, 31444)] {
            let what = format!("VPC {is_vpc}, {refused:?}");
            let mut world = World::of(Site::new(), is_vpc).await;
            world.add(WEB, UID, &[("TCP", 443, 31443), refused]);
            let run = world.run(WEB).await;
            let complaint = run.complaint();
            let (protocol, port) = (refused.0.to_lowercase(), refused.1);
            assert!(
                complaint.contains(CANNOT) && complaint.contains(&format!("{protocol}-{port}")),
                "{what}: {complaint}"
            );
            let (address, rule) = (world.rule("tcp-443").address, world.rule("tcp-443").id);
            let published = run.published_although_refused.unwrap();
            let ip = published.ingress[0].ip.clone();
            assert_eq!(
                (published.ingress.len(), world.rules()),
                (1, vec!["tcp-443".to_owned()]),
                "{what}"
            );
            assert_eq!(opened(&world).len(), 1, "{what}: {:?}", opened(&world));
            // The same is asked from time to time, and that is all.
            let writes = for_half_an_hour(&world).await;
            assert!(
                writes.iter().all(|write| write == "createLoadBalancerRule"),
                "{what}: {writes:?}"
            );
            assert!(writes.len() <= 12, "{what}: {writes:?}");
            // What is served follows the Nodes, and a new process disturbs nothing.
            world.remove_node("pool-a-8");
            world.run(WEB).await;
            assert_eq!(world.members("tcp-443"), ["cp-a", "pool-a-7"], "{what}");
            world.restart().await;
            let (run, writes) = world.writes_of(world.run(WEB)).await;
            assert_eq!(writes, ["createLoadBalancerRule"], "{what}");
            assert_eq!(
                run.published_although_refused.unwrap().ingress[0].ip,
                ip,
                "{what}"
            );
            assert_eq!(
                (world.rule("tcp-443").address, world.rule("tcp-443").id),
                (address, rule),
                "{what}"
            );
            // Without the port it settles.
            world.spec(WEB, |spec| drop(spec["ports"].as_array_mut().unwrap().pop()));
            let (run, writes) = world.writes_of(world.run(WEB)).await;
            assert_eq!(run.published(), [ip.unwrap()], "{what}");
            assert_eq!(writes, Vec::<String>::new(), "{what}");
            world.check(&what);
            world.delete(WEB);
            world.run(WEB).await.settled();
            assert!(world.rules().is_empty() && opened(&world).is_empty(), "{what}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_port_that_becomes_one_that_the_router_cannot_carry_keeps_the_rule_that_it_has() {
    for is_vpc in [false, true] {
        let mut world = World::of(Site::new(), is_vpc).await;
        world.add(WEB, UID, &[("TCP", 443, 31443), ("TCP", 80, 31080)]);
        world.run(WEB).await.settled();
        let rule = world.rule("tcp-443").id;
        world.spec(WEB, |spec| spec["ports"][0]["protocol"] = json!("UDP"));
        let writes = for_half_an_hour(&world).await;
        assert!(
            writes.iter().all(|write| write == "createLoadBalancerRule"),
            "{writes:?}"
        );
        world.restart().await;
        world.remove_node("pool-a-8");
        let run = world.run(WEB).await;
        let complaint = run.complaint();
        assert!(
            complaint.contains(CANNOT) && complaint.contains("stays as it is"),
            "{complaint}"
        );
        assert_eq!(
            (world.rule("tcp-443").id, world.members("tcp-443").len()),
            (rule, 2)
        );
        world.check("kept");
    }
}

#[tokio::test(start_paused = true)]
async fn of_several_ports_that_are_refused_all_are_told() {
    let world = World::of(Site::new(), false).await;
    world.add(
        WEB,
        UID,
        &[("UDP", 4500, 31500), ("TCP", 443, 31443), ("TCP", 8081, 31081)],
    );
    for _ in 0..3 {
        let run = world.run(WEB).await;
        let complaint = run.complaint();
        assert!(
            complaint.contains("udp-4500") && complaint.contains("tcp-8081"),
            "{complaint}"
        );
        assert_eq!(
            complaint.matches("a virtual router balances no UDP").count(),
            1,
            "{complaint}"
        );
        tokio::time::sleep(Duration::from_secs(4)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn for_a_service_all_of_whose_ports_are_refused_one_address_is_acquired_and_kept() {
    for is_vpc in [false, true] {
        let mut world = World::of(Site::new(), is_vpc).await;
        world.add(WEB, UID, &[("UDP", 4500, 31500), ("TCP", 8081, 31081)]);
        let mut writes = for_half_an_hour(&world).await;
        world.restart().await;
        writes.extend(for_half_an_hour(&world).await);
        assert_eq!(
            writes
                .iter()
                .filter(|write| *write == "associateIpAddress")
                .count(),
            1,
            "{writes:?}"
        );
        writes.retain(|write| !["associateIpAddress", "createLoadBalancerRule"].contains(&write.as_str()));
        assert_eq!(writes, Vec::<String>::new(), "VPC {is_vpc}");
        let claimed = world.annotation(WEB, "ip-ids").unwrap();
        // It serves what can be served.
        world.spec(
            WEB,
            |spec| {
                spec["ports"] = json!([{ "name": "a", "protocol": "TCP", "port": 443, "nodePort": 31443 }])
            },
        );
        world.run(WEB).await.settled();
        assert_eq!(
            (world.members("tcp-443"), world.rule("tcp-443").address),
            (MACHINES.map(str::to_owned).to_vec(), claimed)
        );
        world.delete(WEB);
        world.run(WEB).await.settled();
        assert!(world.rules().is_empty() && opened(&world).is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn a_part_of_a_port_that_is_refused_costs_the_other_port_nothing() {
    let refusal = |command: &str, code: u16| {
        let envelope = format!("{}response", command.to_lowercase());
        let body = json!({ envelope: { "errorcode": code, "errortext": "not that one" } });
        Canned::json(code, &body.to_string())
    };
    for is_vpc in [false, true] {
        let opening = if is_vpc {
            "createNetworkACL"
        } else {
            "createFirewallRule"
        };
        for command in ["createLoadBalancerRule", "assignToLoadBalancerRule", opening] {
            for code in [431, 432, 535, 0] {
                let what = format!("VPC {is_vpc}, {command}, {code}");
                let world = World::of(Site::new(), is_vpc).await;
                world.add(WEB, UID, &[("TCP", 443, 31443), ("TCP", 80, 31080)]);
                // The second of its kind, and whatever follows.
                match code {
                    0 => world
                        .sim
                        .fail_jobs(JobFault::of(command).nth(2).always().saying(431, "not that one")),
                    _ => drop(
                        world.sim.faults().add(
                            Fault::operation(command)
                                .nth(2)
                                .always()
                                .answer(refusal(command, code)),
                        ),
                    ),
                }
                let run = world.run(WEB).await;
                assert!(
                    run.complaint().contains("not that one"),
                    "{what}: {}",
                    run.complaint()
                );
                let address = world.address_of_rules();
                let served = world.served();
                assert_eq!(served.len(), 1, "{what}: {served:?}");
                assert!(run.published_although_refused.is_some(), "{what}");
                let mut writes = for_half_an_hour(&world).await;
                // Each member is tried by itself.
                let is_by_member = command == "assignToLoadBalancerRule" && matches!(code, 431 | 0);
                let most = if is_by_member { 12 * MACHINES.len() } else { 12 };
                assert!(writes.len() <= most, "{what}: {writes:?}");
                writes.retain(|write| write != command);
                assert_eq!(writes, Vec::<String>::new(), "{what}");
                assert_eq!(
                    (world.served(), world.address_of_rules()),
                    (served, address.clone()),
                    "{what}"
                );
                world.sim.faults().clear();
                world.sim.clear_job_faults();
                tokio::time::sleep(Duration::from_secs(1_800)).await;
                world.run(WEB).await.settled();
                assert_eq!(
                    (world.served().len(), world.address_of_rules()),
                    (2, address),
                    "{what}"
                );
                world.check(&what);
            }
        }
    }
}
