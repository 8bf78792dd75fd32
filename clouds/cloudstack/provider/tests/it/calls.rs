//! How many calls it takes.

use std::time::Duration;

use bowline_cloudstack_sim::kit::Fault;
use bowline_cloudstack_sim::kit::faults::Canned;
use bowline_cloudstack_sim::{AddressSpec, RuleSpec};

use crate::world::{WEB, World};

#[tokio::test(start_paused = true)]
async fn an_unchanged_balancer_costs_four_calls_however_many_ports_it_has() {
    for is_vpc in [false, true] {
        let world = if is_vpc {
            World::vpc("tier-acl").await
        } else {
            World::new().await
        };
        let ports: Vec<(&str, u16, u16)> = (0..12).map(|port| ("TCP", 8000 + port, 31000 + port)).collect();
        world.add(WEB, crate::world::UID, &ports);
        world.run(WEB).await.settled();
        let (run, calls) = world.calls_of(world.run(WEB)).await;
        run.settled();
        assert!(calls.len() <= 4, "{calls:?}");
        assert_eq!(calls[0], "listLoadBalancerRules");
    }
}

#[tokio::test(start_paused = true)]
async fn it_costs_four_calls_long_after_a_look_and_where_nodes_name_no_machine() {
    for is_vpc in [false, true] {
        for is_named in [false, true] {
            let world = World::of(crate::site::Site::new(), is_vpc).await;
            if !is_named {
                for name in crate::world::MACHINES {
                    world.remove_node(name);
                    world.add_node(name, None);
                }
            }
            let ports: Vec<(&str, u16, u16)> =
                (0..5).map(|port| ("TCP", 8000 + port, 31000 + port)).collect();
            world.add(WEB, crate::world::UID, &ports);
            world.run(WEB).await.settled();
            for seconds in [1, 60, 100] {
                tokio::time::sleep(Duration::from_secs(seconds)).await;
                let (run, calls) = world.calls_of(world.run(WEB)).await;
                run.settled();
                let what = format!("VPC {is_vpc}, named {is_named}, after {seconds} s: {calls:?}");
                assert!(calls.len() <= 4, "{what}");
                assert!(
                    calls.contains(&"listLoadBalancerRuleInstances".to_owned()),
                    "{what}"
                );
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn it_costs_four_calls_with_a_node_that_has_no_machine_too() {
    let world = World::new().await;
    world.add_node("ghost", None);
    let ports: Vec<(&str, u16, u16)> = (0..5).map(|port| ("TCP", 8000 + port, 31000 + port)).collect();
    world.add(WEB, crate::world::UID, &ports);
    world.run(WEB).await.settled();
    let (run, calls) = world.calls_of(world.run(WEB)).await;
    run.settled();
    assert!(calls.len() <= 4, "{calls:?}");
    // Its virtual machine comes to light after a while.
    world.sim.add_vm(bowline_cloudstack_sim::VmSpec::new("ghost"));
    tokio::time::sleep(Duration::from_secs(61)).await;
    world.run(WEB).await.settled();
    assert_eq!(world.members("tcp-8000").len(), 4);
}

#[tokio::test(start_paused = true)]
async fn members_are_read_anew_after_a_start_and_after_a_while() {
    let mut world = World::new().await;
    let ports: Vec<(&str, u16, u16)> = (0..5).map(|port| ("TCP", 8000 + port, 31000 + port)).collect();
    world.add(WEB, crate::world::UID, &ports);
    world.run(WEB).await.settled();
    let members_read =
        |calls: Vec<String>| calls.iter().filter(|call| call.contains("RuleInstances")).count();
    world.restart().await;
    let (_, calls) = world.calls_of(world.run(WEB)).await;
    assert_eq!(members_read(calls), 5);
    let (_, calls) = world.calls_of(world.run(WEB)).await;
    assert_eq!(members_read(calls), 2);
    tokio::time::sleep(Duration::from_secs(600)).await;
    let (_, calls) = world.calls_of(world.run(WEB)).await;
    assert_eq!(members_read(calls), 5);
}

#[tokio::test(start_paused = true)]
async fn a_new_node_costs_one_listing_for_all_services() {
    let world = World::new().await;
    let keys: Vec<String> = (0..6).map(|number| format!("shop/web-{number}")).collect();
    for (number, key) in keys.iter().enumerate() {
        world.add(
            key,
            &format!("0000000{number}-0000-4000-8000-000000000000"),
            &[("TCP", 443, 31443)],
        );
        world.run(key).await.settled();
    }
    tokio::time::sleep(Duration::from_secs(5)).await;
    let id = world.sim.add_vm(bowline_cloudstack_sim::VmSpec::new("pool-a-9"));
    world.add_node("pool-a-9", Some(&id));
    let (runs, calls) = world
        .calls_of(futures::future::join_all(keys.iter().map(|key| world.run(key))))
        .await;
    for run in runs {
        run.settled();
    }
    let count = |name: &str| calls.iter().filter(|call| *call == name).count();
    assert_eq!(
        (count("listVirtualMachines"), count("assignToLoadBalancerRule")),
        (1, 6),
        "{calls:?}"
    );
    // One before, one after.
    assert_eq!(count("listLoadBalancerRules"), 2, "{calls:?}");
}

#[tokio::test(start_paused = true)]
async fn a_node_that_goes_costs_one_listing_however_long_each_service_takes_to_ask() {
    let world = World::new().await;
    let keys: Vec<String> = (0..6).map(|number| format!("shop/web-{number}")).collect();
    for (number, key) in keys.iter().enumerate() {
        let uid = format!("0000000{number}-0000-4000-8000-000000000000");
        world.add(key, &uid, &[("TCP", 443, 31443)]);
        world.run(key).await.settled();
    }
    tokio::time::sleep(Duration::from_secs(5)).await;
    for nth in 1..=6 {
        let members = Fault::operation("listLoadBalancerRuleInstances");
        let delay = Duration::from_millis(6 * nth);
        world.sim.faults().add(members.nth(nth).delay(delay));
    }
    world.remove_node("pool-a-8");
    let (runs, calls) = world
        .calls_of(futures::future::join_all(keys.iter().map(|key| world.run(key))))
        .await;
    for run in runs {
        run.settled();
    }
    let listings = calls.iter().filter(|call| *call == "listVirtualMachines");
    assert_eq!(listings.count(), 1, "{calls:?}");
}

#[tokio::test(start_paused = true)]
async fn a_new_balancer_of_two_ports_costs_few_calls() {
    let world = World::with_service().await;
    let (run, calls) = world.calls_of(world.run(WEB)).await;
    run.settled();
    // Upstream takes 21 with jobs that end at once, polls included; ours has 7 writes, the reads before and one look after.
    assert!(calls.len() <= 16, "{} {calls:#?}", calls.len());
}

#[tokio::test(start_paused = true)]
async fn services_that_ask_together_share_a_list_of_rules_only_if_it_is_whole() {
    for is_short in [false, true] {
        let world = World::new().await;
        let keys = ["shop/one", "shop/two", "shop/three"];
        for (number, key) in keys.iter().enumerate() {
            let uid = format!("0000000{number}-0000-4000-8000-000000000000");
            world.add(key, &uid, &[("TCP", 443, 31443)]);
            world.run(key).await.settled();
        }
        if is_short {
            // It counts what it does not list, also when it is asked again.
            let body = r#"{"listloadbalancerrulesresponse":{"count":3}}"#;
            let short = Canned::json(200, body);
            let faults = world.sim.faults();
            faults.add(Fault::operation("listLoadBalancerRules").times(3).answer(short));
        }
        let (runs, calls) = world
            .calls_of(futures::future::join_all(keys.iter().map(|key| world.run(key))))
            .await;
        for run in runs {
            assert!(run.settled().waves.is_empty());
        }
        let lists = calls
            .iter()
            .filter(|call| *call == "listLoadBalancerRules")
            .count();
        // Then each asks for its own.
        assert_eq!(lists, if is_short { 3 + 3 } else { 1 }, "{calls:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn where_there_are_too_many_rules_services_ask_for_their_own() {
    let world = World::new().await;
    let theirs = world.sim.take_address(AddressSpec::default());
    for port in 1..=1_100 {
        world
            .sim
            .add_rule(RuleSpec::new(format!("theirs-{port}"), &theirs, port, port));
    }
    let keys = ["shop/one", "shop/two"];
    for (number, key) in keys.iter().enumerate() {
        let uid = format!("0000000{number}-0000-4000-8000-000000000000");
        world.add(key, &uid, &[("TCP", 443, 31443)]);
        world.run(key).await.settled();
    }
    let mut counts = Vec::new();
    for _ in 0..2 {
        let (runs, calls) = world
            .calls_of(futures::future::join_all(keys.iter().map(|key| world.run(key))))
            .await;
        for run in runs {
            assert!(run.settled().waves.is_empty());
        }
        counts.push(
            calls
                .iter()
                .filter(|call| *call == "listLoadBalancerRules")
                .count(),
        );
    }
    assert_eq!(counts, [3, 2]);
}

#[tokio::test(start_paused = true)]
async fn services_that_begin_together_read_their_network_once() {
    for is_vpc in [false, true] {
        let mut world = World::of(crate::site::Site::new(), is_vpc).await;
        let keys: Vec<String> = (10..50).map(|number| format!("shop/web-{number}")).collect();
        for (number, key) in keys.iter().enumerate() {
            let uid = format!("000000{:02}-0000-4000-8000-000000000000", number + 10);
            world.add(key, &uid, &[("TCP", 443, 31443)]);
            world.run(key).await.settled();
        }
        world.restart().await;
        let begin = || async {
            let runs = futures::future::join_all(keys.iter().map(|key| world.run(key)));
            let (runs, calls) = world.calls_of(runs).await;
            let count = calls.iter().filter(|call| *call == "listNetworks").count();
            (runs, count)
        };
        world
            .sim
            .faults()
            .add(Fault::operation("listNetworks").status(530));
        let (runs, count) = begin().await;
        assert!(runs.iter().all(|run| run.complaint().contains("530")));
        assert_eq!(count, 1, "VPC {is_vpc}, it fails");
        let (runs, count) = begin().await;
        for run in runs {
            assert!(run.settled().waves.is_empty());
        }
        assert_eq!(count, 1, "VPC {is_vpc}");
    }
}
