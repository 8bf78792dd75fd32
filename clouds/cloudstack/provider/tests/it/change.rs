//! Changing a balancer.

use std::time::Duration;

use bowline_cloud_provider::facts;
use bowline_cloudstack_sim::kit::Fault;
use serde_json::{Value, json};

use crate::world::{WEB, World};

async fn settled() -> World {
    let world = World::with_service().await;
    world.run(WEB).await.settled();
    world
}

#[tokio::test(start_paused = true)]
async fn an_upgrade_of_the_server_is_noticed_within_an_hour_and_a_failed_question_harms_nothing() {
    let world = World::built(|builder| builder.version("4.20.1.0"), "").await;
    world.add_web();
    world.run(WEB).await.settled();
    world
        .sim
        .set_behaviour(|behaviour| behaviour.version = "4.22.0.0".to_owned());
    for (minutes, is_answered, cidrs, in_place) in [
        (0, true, "10.9.0.0/16", false),
        (61, false, "10.8.0.0/16", false),
        (61, true, "10.7.0.0/16", true),
    ] {
        tokio::time::advance(Duration::from_secs(60 * minutes)).await;
        if !is_answered {
            let question = Fault::operation("listCapabilities").always().status(530);
            world.sim.faults().add(question);
        }
        let before = world.rule("tcp-443").id;
        world.annotate(WEB, "source-cidrs", Some(cidrs));
        world.run(WEB).await.settled();
        assert_eq!(
            world.rule("tcp-443").id == before,
            in_place,
            "{minutes} min, {cidrs}"
        );
        assert_eq!(world.rule("tcp-443").cidrs.as_deref(), Some(cidrs));
        world.sim.faults().clear();
    }
}

#[tokio::test(start_paused = true)]
async fn a_move_that_is_taken_back_half_way_leaves_the_balancer_where_it_is() {
    for steps in 0..12 {
        let mut world = settled().await;
        let ip = world.address().address.to_string();
        world.edit(WEB, |service| {
            let status = json!({ "loadBalancer": { "ingress": [{ "ip": ip }] } });
            service.status = Some(serde_json::from_value(status).unwrap());
        });
        world.spec(WEB, |spec| spec["loadBalancerIP"] = json!("203.0.113.77"));
        world.run_steps(WEB, steps).await;
        world.restart().await;
        // It is where the status shows it, which tells the new address as soon as that serves.
        let shown = facts::published_addresses(&world.service(WEB)).remove(0);
        let is_there = world.sim.rules().iter().any(|rule| {
            world
                .sim
                .addresses()
                .iter()
                .any(|it| it.id == rule.address && it.address.to_string() == shown)
        });
        world.spec(WEB, |spec| spec["loadBalancerIP"] = Value::Null);
        let run = world.run(WEB).await;
        assert_eq!(run.published() == [shown], is_there, "after {steps}: {run:#?}");
        assert_eq!(
            (world.sim.addresses().len(), world.rules().len()),
            (1, 2),
            "after {steps}"
        );
        world.check("taken back");
    }
}

#[tokio::test(start_paused = true)]
async fn an_opening_that_is_on_its_way_out_is_none() {
    use bowline_cloudstack_sim::JobFault;
    for is_vpc in [false, true] {
        for range in ["192.0.2.0/24", "192.0.2.7/32"] {
            for comes_at_last in [false, true] {
                let what = format!("VPC {is_vpc}, {range}, its job ends {comes_at_last}");
                let mut world = World::of(crate::site::Site::new(), is_vpc).await;
                world.add(WEB, crate::world::UID, &[("TCP", 443, 31443)]);
                let ranges = |world: &World, ranges: &[&str]| {
                    world.spec(WEB, |spec| spec["loadBalancerSourceRanges"] = json!(ranges));
                };
                ranges(&world, &[range]);
                world.run(WEB).await.settled();
                ranges(&world, &["198.51.100.0/24"]);
                let command = match is_vpc {
                    true => "deleteNetworkACL",
                    false => "deleteFirewallRule",
                };
                if comes_at_last {
                    let slow = std::time::Duration::from_secs(5);
                    world.sim.set_behaviour(|behaviour| behaviour.job_time = slow);
                } else {
                    world.sim.fail_jobs(JobFault::of(command).stuck());
                }
                // A second opening is made, and then the process is killed when the end of the first one was accepted.
                world.run_killed(WEB, if is_vpc { 3 } else { 2 }).await;
                let going = |world: &World| {
                    let rules = world.sim.firewall_rules().into_iter().map(|rule| rule.state);
                    let items = world.sim.acl_items().into_iter().map(|item| item.state);
                    let mut states = rules.chain(items);
                    states.any(|state| state == bowline_cloudstack_sim::RuleState::Revoke)
                };
                assert!(
                    going(&world),
                    "{what}: {:?} {:?}",
                    world.openings(),
                    world.acl_items()
                );
                ranges(&world, &[range]);
                world.restart().await;
                let mut tries = 0;
                while !matches!(world.run(WEB).await.outcome, crate::world::Outcome::Settled(_)) {
                    tries += 1;
                    assert!(tries < 3, "{what}");
                }
                tokio::time::sleep(std::time::Duration::from_secs(60)).await;
                assert!(!going(&world), "{what}");
                let open: Vec<String> = world.openings().into_iter().chain(world.acl_items()).collect();
                assert_eq!(open.len(), 1, "{what}: {open:?}");
                assert!(open[0].ends_with(range), "{what}: {open:?}");
            }
        }
    }
}
