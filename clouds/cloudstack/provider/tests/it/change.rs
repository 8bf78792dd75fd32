//! Changing a balancer.

use std::time::Duration;

use bowline_cloudstack_sim::kit::Fault;
use bowline_cloudstack_sim::{
    AclItemSpec, AddressSpec, FirewallSpec, NetworkSpec, NicSpec, RuleSpec, VmSpec,
};
use serde_json::{Value, json};

use crate::world::{MACHINES, NAME, WEB, World};

async fn settled() -> World {
    let world = World::with_service().await;
    world.run(WEB).await.settled();
    world
}

#[tokio::test(start_paused = true)]
async fn affinity_is_changed_by_one_update_of_each_rule() {
    let world = settled().await;
    let before = (
        world.rule("tcp-443").id,
        world.rule("udp-4500").id,
        world.address().id,
    );
    world.spec(WEB, |spec| spec["sessionAffinity"] = json!("ClientIP"));
    let (run, writes) = world.writes_of(world.run(WEB)).await;
    run.settled();
    assert_eq!(writes, ["updateLoadBalancerRule", "updateLoadBalancerRule"]);
    assert_eq!(world.rule("tcp-443").algorithm, "source");
    assert_eq!(
        before,
        (
            world.rule("tcp-443").id,
            world.rule("udp-4500").id,
            world.address().id
        )
    );
}

#[tokio::test(start_paused = true)]
async fn another_node_port_makes_its_rule_anew() {
    let world = settled().await;
    let (tcp, udp, address) = (
        world.rule("tcp-443").id,
        world.rule("udp-4500").id,
        world.address().id,
    );
    world.spec(WEB, |spec| spec["ports"][0]["nodePort"] = json!(32000));
    world.run(WEB).await.settled();
    assert_ne!(world.rule("tcp-443").id, tcp);
    assert_eq!(world.rule("tcp-443").private_port, 32000);
    assert_eq!(world.members("tcp-443"), MACHINES);
    assert_eq!((world.rule("udp-4500").id, world.address().id), (udp, address));
}

#[tokio::test(start_paused = true)]
async fn source_ranges_narrow_the_firewall_and_not_the_rules() {
    let world = settled().await;
    world.spec(WEB, |spec| {
        spec["loadBalancerSourceRanges"] = json!(["192.0.2.0/24", "198.51.100.0/24"])
    });
    world.run(WEB).await.settled();
    let list = "192.0.2.0/24,198.51.100.0/24";
    assert_eq!(
        world.openings(),
        [format!("tcp 443 {list}"), format!("udp 4500 {list}")]
    );
    assert_eq!(world.rule("tcp-443").cidrs.as_deref(), Some("0.0.0.0/0"));
    // A network in both lists: by way of a stand-in.
    world.spec(WEB, |spec| {
        spec["loadBalancerSourceRanges"] = json!(["192.0.2.0/24"])
    });
    world.run(WEB).await.settled();
    assert_eq!(
        world.openings(),
        ["tcp 443 192.0.2.0/24", "udp 4500 192.0.2.0/24"]
    );
    world.spec(WEB, |spec| spec["loadBalancerSourceRanges"] = Value::Null);
    world.run(WEB).await.settled();
    assert_eq!(world.openings(), ["tcp 443 0.0.0.0/0", "udp 4500 0.0.0.0/0"]);
}

#[tokio::test(start_paused = true)]
async fn source_ranges_change_where_a_port_has_one_firewall_rule_only() {
    let world = settled().await;
    world
        .sim
        .set_behaviour(|behaviour| behaviour.firewall_ports_conflict = true);
    for ranges in [
        vec!["192.0.2.0/24", "198.51.100.0/24"],
        vec!["192.0.2.0/24"],
        vec!["192.0.2.7/32"],
        vec!["0.0.0.0/0"],
    ] {
        world.spec(WEB, |spec| spec["loadBalancerSourceRanges"] = json!(ranges));
        world.run(WEB).await.settled();
        let list = ranges.join(",");
        assert_eq!(
            world.openings(),
            [format!("tcp 443 {list}"), format!("udp 4500 {list}")]
        );
        assert!(world.run(WEB).await.settled().waves.is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn source_cidrs_are_sent_as_they_are_written_and_compared_by_what_they_mean() {
    let world = World::new().await;
    world.add_web();
    let list = "10.1.2.3/8,192.0.2.0/24,10.1.2.3/8";
    world.annotate(WEB, "source-cidrs", Some(&list.replace(',', " , ")));
    world.run(WEB).await.settled();
    assert_eq!(world.rule("tcp-443").cidrs.clone(), Some(list.replace(',', " ")));
    assert!(world.run(WEB).await.settled().waves.is_empty());
    world.annotate(WEB, "source-cidrs", Some("192.0.2.0/24,10.0.0.0/8"));
    assert!(world.run(WEB).await.settled().waves.is_empty());
}

#[tokio::test(start_paused = true)]
async fn source_ranges_narrow_an_acl_list_and_open_it_again() {
    let world = World::vpc("tier-acl").await;
    world.add_web();
    world.run(WEB).await.settled();
    // A person's own item for the same port is none of ours, whatever becomes of the Service.
    let list = world.sim.acl_list("tier-acl").unwrap();
    world
        .sim
        .add_acl_item(AclItemSpec::new(&list, "tcp", 443).cidrs(["10.0.0.0/8"]));
    let theirs = "tier-acl tcp 443 10.0.0.0/8".to_owned();
    for ranges in [
        json!(["192.0.2.0/24"]),
        json!(["198.51.100.0/24", "192.0.2.0/24"]),
        Value::Null,
    ] {
        world.spec(WEB, |spec| spec["loadBalancerSourceRanges"] = ranges.clone());
        world.run(WEB).await.settled();
        let mut cidrs: Vec<&str> = ranges.as_array().map_or(vec!["0.0.0.0/0"], |ranges| {
            ranges.iter().map(|range| range.as_str().unwrap()).collect()
        });
        cidrs.sort_unstable();
        let cidrs = cidrs.join(",");
        let mut expected = [
            theirs.clone(),
            format!("tier-acl tcp 443 {cidrs}"),
            format!("tier-acl udp 4500 {cidrs}"),
        ];
        expected.sort();
        assert_eq!(world.acl_items(), expected);
        assert_eq!(world.annotation(WEB, "acl-sources").is_some(), !ranges.is_null());
        assert!(world.run(WEB).await.settled().waves.is_empty());
    }
    world.spec(WEB, |spec| {
        spec["loadBalancerSourceRanges"] = json!(["192.0.2.0/24"])
    });
    world.run_steps(WEB, 4).await;
    world.spec(WEB, |spec| spec["loadBalancerSourceRanges"] = Value::Null);
    world.delete(WEB);
    world.run(WEB).await.settled();
    assert_eq!(world.acl_items(), [theirs]);
    assert!(world.rules().is_empty() && world.sim.addresses().is_empty());
}

#[tokio::test(start_paused = true)]
async fn one_source_cidr_is_changed_in_place_from_4_22_on_and_several_make_the_rule_anew() {
    let several = "10.9.0.0/16 , 2001:db8::/32";
    for (version, list, in_place) in [
        ("4.22.0.0", "10.9.0.0/16", true),
        ("4.22.0.0", several, false),
        ("4.20.1.0", "10.9.0.0/16", false),
        ("4.20.1.0", several, false),
    ] {
        let world = World::built(|builder| builder.version(version), "").await;
        world.add_web();
        world.run(WEB).await.settled();
        let before = world.rule("tcp-443").id;
        world.annotate(WEB, "source-cidrs", Some(list));
        world.run(WEB).await.settled();
        assert_eq!(world.rule("tcp-443").id == before, in_place, "{version}, {list}");
        assert_eq!(world.rule("tcp-443").cidrs, Some(list.replace(" , ", " ")));
        assert_eq!(world.members("tcp-443"), MACHINES);
        let (run, writes) = world.writes_of(world.run(WEB)).await;
        assert!(
            run.settled().waves.is_empty() && writes.is_empty(),
            "{version}: {writes:?}"
        );
    }
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
async fn a_removed_port_goes_with_its_opening() {
    let world = settled().await;
    let tcp = world.rule("tcp-443").id;
    world.spec(WEB, |spec| {
        spec["ports"].as_array_mut().unwrap().pop();
    });
    let (run, writes) = world.writes_of(world.run(WEB)).await;
    run.settled();
    assert_eq!(writes, ["deleteFirewallRule", "deleteLoadBalancerRule"]);
    assert_eq!(
        (world.rules(), world.openings()),
        (vec!["tcp-443".to_owned()], vec!["tcp 443 0.0.0.0/0".to_owned()])
    );
    assert_eq!(world.rule("tcp-443").id, tcp);
}

#[tokio::test(start_paused = true)]
async fn only_true_switches_the_proxy_protocol_on() {
    let world = settled().await;
    let tcp = world.rule("tcp-443").id;
    for value in ["True", "enabled", "1", ""] {
        world.annotate(WEB, "proxy-protocol", Some(value));
        let run = world.run(WEB).await.settled();
        assert!(run.waves.is_empty(), "{value}");
        assert_eq!(world.rule("tcp-443").id, tcp, "{value}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_port_that_becomes_udp_is_freed_first() {
    let world = settled().await;
    world.spec(WEB, |spec| spec["ports"][0]["protocol"] = json!("UDP"));
    world.run(WEB).await.settled();
    assert_eq!(world.rules(), ["udp-443", "udp-4500"]);
    assert_eq!(world.members("udp-443"), MACHINES);
    assert_eq!(world.openings(), ["udp 443 0.0.0.0/0", "udp 4500 0.0.0.0/0"]);
}

#[tokio::test(start_paused = true)]
async fn members_follow_the_nodes_by_one_call_for_each_rule() {
    let world = settled().await;
    world.remove_node("pool-a-8");
    let (run, writes) = world.writes_of(world.run(WEB)).await;
    run.settled();
    assert_eq!(
        writes,
        ["removeFromLoadBalancerRule", "removeFromLoadBalancerRule"]
    );
    assert_eq!(world.members("udp-4500"), ["cp-a", "pool-a-7"]);
    let id = world.sim.vm_named("pool-a-8").unwrap().id;
    world.add_node("pool-a-8", Some(&id));
    let (run, writes) = world.writes_of(world.run(WEB)).await;
    run.settled();
    assert_eq!(writes, ["assignToLoadBalancerRule", "assignToLoadBalancerRule"]);
    for name in MACHINES {
        world.remove_node(name);
    }
    let (run, writes) = world.writes_of(world.run(WEB)).await;
    run.settled();
    assert_eq!(writes, Vec::<String>::new());
    assert_eq!(world.members("tcp-443"), MACHINES);
}

#[tokio::test(start_paused = true)]
async fn the_members_of_every_rule_follow_the_nodes_however_many_there_are() {
    let world = World::new().await;
    let ports: Vec<(&str, u16, u16)> = (0..6).map(|port| ("TCP", 8000 + port, 31000 + port)).collect();
    world.add(WEB, crate::world::UID, &ports);
    world.run(WEB).await.settled();
    world.run(WEB).await.settled();
    world.remove_node("pool-a-8");
    world.run(WEB).await.settled();
    for (_, port, _) in ports {
        assert_eq!(world.members(&format!("tcp-{port}")), ["cp-a", "pool-a-7"]);
    }
}

#[tokio::test(start_paused = true)]
async fn nodes_are_followed_while_what_the_service_asks_for_cannot_be() {
    type Change = fn(&World);
    let changes: [(&str, Change); 3] = [
        ("unsupported load balancer protocol: SCTP", |world| {
            world.spec(WEB, |spec| spec["ports"][1]["protocol"] = json!("SCTP"));
        }),
        ("could not find IP address 198.51.100.99", |world| {
            world.spec(WEB, |spec| spec["loadBalancerIP"] = json!("198.51.100.99"));
        }),
        ("invalid CIDR 10.9.0.0/33", |world| {
            world.annotate(WEB, "source-cidrs", Some("10.9.0.0/33"))
        }),
    ];
    for (text, change) in changes {
        let world = settled().await;
        world.publish(WEB);
        change(&world);
        world.remove_node("pool-a-8");
        let (run, writes) = world.writes_of(world.run(WEB)).await;
        assert!(run.complaint().starts_with(text), "{}", run.complaint());
        assert_eq!(
            writes,
            ["removeFromLoadBalancerRule", "removeFromLoadBalancerRule"],
            "{text}"
        );
        assert_eq!(world.members("udp-4500"), ["cp-a", "pool-a-7"]);
        let (run, writes) = world.writes_of(world.run(WEB)).await;
        assert!(
            run.complaint().starts_with(text) && writes.is_empty(),
            "{text}: {writes:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn lost_members_are_brought_back() {
    let mut world = settled().await;
    let rule = world.rule("tcp-443").id;
    for name in MACHINES {
        world
            .sim
            .remove_member(&rule, &world.sim.vm_named(name).unwrap().id);
    }
    world.restart().await;
    world.run(WEB).await.settled();
    assert_eq!(world.members("tcp-443"), MACHINES);
}

#[tokio::test(start_paused = true)]
async fn a_change_of_a_rule_that_is_refused_keeps_no_traffic_on_nodes_that_left() {
    let world = settled().await;
    world.spec(WEB, |spec| spec["sessionAffinity"] = json!("ClientIP"));
    world
        .sim
        .faults()
        .add(Fault::operation("updateLoadBalancerRule").always().status(431));
    world.run(WEB).await;
    world.remove_node("pool-a-8");
    world.run(WEB).await;
    for end in ["tcp-443", "udp-4500"] {
        assert_eq!(world.members(end), ["cp-a", "pool-a-7"], "{end}");
    }
    world.check("refused");
}

#[tokio::test(start_paused = true)]
async fn a_member_that_somebody_else_assigned_meanwhile_is_no_failure() {
    let world = settled().await;
    let id = world.sim.vm_named("pool-a-8").unwrap().id;
    world.remove_node("pool-a-8");
    world.run(WEB).await.settled();
    world.add_node("pool-a-8", Some(&id));
    // Between the look and the write.
    let (tcp, sim) = (world.rule("tcp-443").id, world.sim.clone());
    sim.fail_jobs(
        bowline_cloudstack_sim::JobFault::of("assignToLoadBalancerRule")
            .saying(431, "VM 12 with 10.1.1.48 is already mapped to load balancer.")
            .kept(),
    );
    let run = world.run(WEB).await.settled();
    assert_eq!(world.sim.member_names(&tcp).len(), 3, "{run:#?}");
    world.check("assigned twice");
}

#[tokio::test(start_paused = true)]
async fn a_balancer_moves_to_the_address_that_is_asked_for() {
    for is_own in [false, true] {
        let world = settled().await;
        let old = world.address();
        let ip = "203.0.113.77";
        if !is_own {
            world.sim.take_address(AddressSpec::at(ip.parse().unwrap()));
        }
        world.spec(WEB, |spec| spec["loadBalancerIP"] = json!(ip));
        let run = world.run(WEB).await.settled();
        assert_eq!(run.published(), [ip]);
        assert_eq!(world.address().address.to_string(), ip);
        assert_ne!(world.address().id, old.id);
        assert_eq!(world.members("tcp-443"), MACHINES);
        assert_eq!(world.openings(), ["tcp 443 0.0.0.0/0", "udp 4500 0.0.0.0/0"]);
        world.check("moved");
        // The address is the user's, or it goes with the Service.
        world.delete(WEB);
        world.run(WEB).await.settled();
        assert_eq!(world.sim.addresses().len(), usize::from(!is_own));
        assert_eq!((world.rules(), world.openings()), (Vec::new(), Vec::new()));
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
        let is_there = world.sim.rules().iter().any(|rule| {
            world
                .sim
                .addresses()
                .iter()
                .any(|it| it.id == rule.address && it.address.to_string() == ip)
        });
        world.spec(WEB, |spec| spec["loadBalancerIP"] = Value::Null);
        let run = world.run(WEB).await;
        assert_eq!(run.published() == [ip], is_there, "after {steps}: {run:#?}");
        assert_eq!(
            (world.sim.addresses().len(), world.rules().len()),
            (1, 2),
            "after {steps}"
        );
        world.check("taken back");
    }
}

#[tokio::test(start_paused = true)]
async fn an_address_of_an_earlier_manager_is_kept_when_the_balancer_moves() {
    let world = settled().await;
    world.edit(WEB, |service| service.metadata.annotations = None);
    world.spec(WEB, |spec| spec["loadBalancerIP"] = json!("203.0.113.77"));
    let run = world.run(WEB).await.settled();
    assert!(run.has_note("PublicIPKept"), "{:#?}", run.notes);
    assert_eq!(world.sim.addresses().len(), 2);
    assert_eq!((world.rules().len(), world.openings().len()), (2, 2));
}

#[tokio::test(start_paused = true)]
async fn openings_made_by_hand_give_way_to_what_the_service_says() {
    let world = settled().await;
    let address = world.address().id;
    world
        .sim
        .add_firewall_rule(FirewallSpec::new(&address, "tcp", 443).cidrs(["10.0.0.0/8"]));
    world.sim.add_firewall_rule(FirewallSpec {
        ports: Some((400, 500)),
        ..FirewallSpec::new(&address, "tcp", 443).cidrs(["10.0.0.0/8"])
    });
    world
        .sim
        .add_firewall_rule(FirewallSpec::new(&address, "tcp", 22));
    world.run(WEB).await.settled();
    let left = world.openings();
    assert_eq!(
        left,
        [
            "tcp 22 0.0.0.0/0",
            "tcp 400 10.0.0.0/8",
            "tcp 443 0.0.0.0/0",
            "udp 4500 0.0.0.0/0"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn rules_that_only_look_like_ours_are_left_alone() {
    let world = settled().await;
    let address = world.address().id;
    let foreign = [
        RuleSpec::new(format!("{NAME}-tcp-443x"), &address, 8443, 31443),
        RuleSpec {
            description: Some(format!("instead of {NAME}-tcp-443")),
            ..RuleSpec::new("theirs", &address, 8444, 31443)
        },
    ];
    let ids: Vec<String> = foreign.into_iter().map(|spec| world.sim.add_rule(spec)).collect();
    world.spec(WEB, |spec| {
        spec["ports"].as_array_mut().unwrap().pop();
    });
    world.run(WEB).await.settled();
    world.delete(WEB);
    world.run(WEB).await.settled();
    let left: Vec<String> = world.sim.rules().into_iter().map(|rule| rule.id).collect();
    assert_eq!(left, ids);
    // With them on it, the address is not ours to give back.
    world.address();
}

#[tokio::test(start_paused = true)]
async fn nodes_in_reach_are_followed_while_others_are_in_another_network() {
    let world = settled().await;
    let elsewhere = world.sim.add_network(NetworkSpec::new("elsewhere"));
    let far = world
        .sim
        .add_vm(VmSpec::with_nics("pool-b-1", [NicSpec::on(&elsewhere)]));
    world.add_node("pool-b-1", Some(&far));
    world.remove_node("pool-a-8");
    let near = world.sim.add_vm(VmSpec::new("pool-a-9"));
    world.add_node("pool-a-9", Some(&near));
    let run = world.run(WEB).await;
    assert!(
        run.complaint().contains("different networks"),
        "{}",
        run.complaint()
    );
    for rule in ["tcp-443", "udp-4500"] {
        assert_eq!(world.members(rule), ["cp-a", "pool-a-7", "pool-a-9"]);
    }
    // Nobody in reach is left: who is there is better than nobody.
    for name in ["cp-a", "pool-a-7", "pool-a-9"] {
        world.remove_node(name);
    }
    let (run, writes) = world.writes_of(world.run(WEB)).await;
    assert!(!matches!(run.outcome, crate::world::Outcome::Settled(_)) && writes.is_empty());
    assert_eq!(world.members("tcp-443").len(), 3);
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
