//! Ports of an ACL list that several Services share, and openings that are there twice.

use std::time::Duration;

use bowline_cloudstack_sim::kit::Fault;
use bowline_cloudstack_sim::kit::faults::Canned;
use bowline_cloudstack_sim::{AclItemSpec, AddressSpec, FirewallSpec, NetworkSpec, RuleSpec};
use serde_json::{Value, json};

use crate::world::{UID, WEB, World};

const OTHER: &str = "shop/other";
const OTHER_UID: &str = "8c9e6679-7425-40de-944b-e07fc1f90ae7";

const RANGED: &str = "tier-acl tcp 443 192.0.2.0/24";
const EVERYBODY: &str = "tier-acl tcp 443 0.0.0.0/0";

fn restrict(world: &World, key: &str, ranges: &Value) {
    world.spec(key, |spec| spec["loadBalancerSourceRanges"] = ranges.clone());
}

fn items(world: &World) -> Vec<String> {
    let mut items = world.acl_items();
    items.sort();
    items
}

/// Two Services with the same port in one tier: one for everybody, and one for a range that is not in force yet.
async fn two() -> World {
    let world = World::vpc("tier-acl").await;
    for (key, uid) in [(WEB, UID), (OTHER, OTHER_UID)] {
        world.add(key, uid, &[("TCP", 443, 31443)]);
        world.run(key).await.settled();
    }
    restrict(&world, OTHER, &json!(["192.0.2.0/24"]));
    world
}

/// The same, in force.
async fn two_in_force() -> World {
    let world = two().await;
    world.run(OTHER).await.settled();
    assert_eq!(items(&world), [EVERYBODY, RANGED]);
    world
}

#[tokio::test(start_paused = true)]
async fn the_item_for_everybody_goes_with_the_last_service_that_is_open_for_them() {
    for restarts in [false, true] {
        let mut world = two_in_force().await;
        if restarts {
            world.restart().await;
        }
        world.delete(WEB);
        world.run(WEB).await.settled();
        assert_eq!(items(&world), [RANGED]);
        assert!(world.run(OTHER).await.settled().waves.is_empty());
    }
    // The same where it is restricted, or gives up the port.
    type Change = fn(&World);
    let changes: [Change; 2] = [
        |world| restrict(world, WEB, &json!(["198.51.100.0/24"])),
        |world| world.spec(WEB, |spec| spec["ports"][0]["port"] = json!(80)),
    ];
    for change in changes {
        let world = two_in_force().await;
        change(&world);
        world.run(WEB).await.settled();
        let items = items(&world);
        assert!(
            items.len() == 2 && !items.contains(&EVERYBODY.to_owned()),
            "{items:?}"
        );
        assert!(world.run(OTHER).await.settled().waves.is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn a_service_that_was_restricted_a_moment_ago_is_never_cut_off() {
    let world = two().await;
    world.delete(WEB);
    world.run(WEB).await.settled();
    assert_eq!(items(&world), [EVERYBODY]);
    world.run(OTHER).await.settled();
    assert_eq!(items(&world), [RANGED]);
}

#[tokio::test(start_paused = true)]
async fn a_service_that_comes_to_be_open_for_everybody_meanwhile_is_never_cut_off() {
    let world = two_in_force().await;
    world.delete(WEB);
    // The removal is decided, then the other Service finds the port open, then the removal goes on.
    let removal = world.run_paused(WEB, 0, Duration::from_secs(60));
    let change = async {
        tokio::time::sleep(Duration::from_secs(10)).await;
        restrict(&world, OTHER, &Value::Null);
        world.run(OTHER).await.settled();
    };
    let (removed, ()) = tokio::join!(removal, change);
    let removed = removed.settled();
    assert!(removed.waves[0][0].starts_with("close-acl("), "{removed:#?}");
    assert_eq!(items(&world), [EVERYBODY]);
}

#[tokio::test(start_paused = true)]
async fn a_rule_of_nobody_we_know_needs_what_is_open_for_everybody() {
    let world = two_in_force().await;
    let address = world.sim.addresses().remove(0);
    let tier = world.rule("tcp-443").network;
    world.delete(WEB);
    world.sim.add_rule(RuleSpec {
        network: Some(tier.clone()),
        ..RuleSpec::new("theirs", &address.id, 8443, 8443)
    });
    world.run(WEB).await.settled();
    assert_eq!(items(&world), [RANGED]); // on another port

    let world = two_in_force().await;
    let vpc = world.sim.vpcs().remove(0).id;
    let list = world.sim.add_acl_list("another", &vpc);
    let other_tier = world.sim.add_network(NetworkSpec::tier("another", &vpc, list));
    let theirs = world.sim.take_address(AddressSpec::in_vpc(vpc));
    world.sim.add_rule(RuleSpec {
        network: Some(other_tier.clone()),
        ..RuleSpec::new("theirs", &theirs, 443, 8443)
    });
    world.delete(WEB);
    world.run(WEB).await.settled();
    assert_eq!(items(&world), [RANGED]); // behind another list

    let world = two_in_force().await;
    let theirs = world
        .sim
        .take_address(AddressSpec::in_vpc(world.sim.vpcs().remove(0).id));
    world.sim.add_rule(RuleSpec {
        network: Some(tier.clone()),
        ..RuleSpec::new("theirs", &theirs, 443, 8443)
    });
    world.delete(WEB);
    world.run(WEB).await.settled();
    assert_eq!(items(&world), [EVERYBODY, RANGED]);
}

#[tokio::test(start_paused = true)]
async fn an_item_that_is_there_twice_is_reduced_to_one_while_the_service_lives() {
    for ranges in [Value::Null, json!(["192.0.2.0/24"])] {
        let world = World::vpc("tier-acl").await;
        for (key, uid) in [(WEB, UID), (OTHER, OTHER_UID)] {
            world.add(key, uid, &[("TCP", 443, 31443)]);
            restrict(&world, key, &ranges);
            world.run(key).await.settled();
        }
        let (list, first) = (world.sim.acl_list("tier-acl").unwrap(), items(&world));
        let cidr = ranges[0].as_str().unwrap_or("0.0.0.0/0");
        for _ in 0..2 {
            world
                .sim
                .add_acl_item(AclItemSpec::new(&list, "tcp", 443).cidrs([cidr]));
        }
        // Another Service needs the port, and misses nothing.
        let (run, writes) = world.writes_of(world.run(WEB)).await;
        run.settled();
        assert_eq!(writes, ["deleteNetworkACL", "deleteNetworkACL"]);
        assert_eq!(items(&world), first);
        for key in [WEB, OTHER] {
            assert!(world.run(key).await.settled().waves.is_empty());
        }
    }
}

#[tokio::test(start_paused = true)]
async fn of_two_that_take_away_the_same_surplus_at_once_neither_takes_the_last() {
    let world = World::vpc("tier-acl").await;
    for (key, uid) in [(WEB, UID), (OTHER, OTHER_UID)] {
        world.add(key, uid, &[("TCP", 443, 31443)]);
        world.run(key).await.settled();
    }
    let list = world.sim.acl_list("tier-acl").unwrap();
    world.sim.add_acl_item(AclItemSpec::new(&list, "tcp", 443));
    let kept = world.sim.acl_items()[0].id.clone();
    let late = world.run_paused(WEB, 0, Duration::from_secs(60));
    let first = async {
        tokio::time::sleep(Duration::from_secs(10)).await;
        world.sim.remove_acl_item(&kept); // by hand
        world.run(OTHER).await.settled();
    };
    let both = async { tokio::join!(late, first) };
    let ((late, ()), writes) = world.writes_of(Box::pin(both)).await;
    assert!(late.settled().waves[0][0].starts_with("close-acl("));
    assert_eq!(items(&world), [EVERYBODY]);
    assert_eq!(writes, Vec::<String>::new(), "and it was there all the time");
}

#[tokio::test(start_paused = true)]
async fn a_person_s_items_are_not_counted() {
    let world = World::vpc("tier-acl").await;
    let list = world.sim.acl_list("tier-acl").unwrap();
    for _ in 0..2 {
        world
            .sim
            .add_acl_item(AclItemSpec::new(&list, "tcp", 443).cidrs(["192.0.2.0/24"]));
    }
    world.add(WEB, UID, &[("TCP", 443, 31443)]);
    restrict(&world, WEB, &json!(["192.0.2.0/24"]));
    for _ in 0..2 {
        world.run(WEB).await.settled();
        assert_eq!(items(&world), [RANGED, RANGED]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_firewall_rule_that_is_there_twice_is_reduced_to_one_while_the_service_lives() {
    let world = World::with_service().await;
    world.run(WEB).await.settled();
    let (address, first) = (world.address().id, world.openings());
    world
        .sim
        .add_firewall_rule(FirewallSpec::new(&address, "tcp", 443));
    // A range of ports is a person's.
    world.sim.add_firewall_rule(FirewallSpec {
        ports: Some((400, 500)),
        ..FirewallSpec::new(&address, "tcp", 400)
    });
    let (run, writes) = world.writes_of(world.run(WEB)).await;
    run.settled();
    assert_eq!(writes, ["deleteFirewallRule"]);
    assert_eq!(world.openings().len(), first.len() + 1);
    assert!(world.run(WEB).await.settled().waves.is_empty());
}

#[tokio::test(start_paused = true)]
async fn what_a_list_does_not_show_yet_is_not_made_twice() {
    for (is_vpc, command, write) in [
        (true, "listNetworkACLs", "createNetworkACL"),
        (false, "listFirewallRules", "createFirewallRule"),
    ] {
        let world = World::of(crate::site::Site::new(), is_vpc).await;
        world.add(WEB, UID, &[("TCP", 443, 31443)]);
        let body = json!({ format!("{}response", command.to_lowercase()): {} });
        world.sim.faults().add(
            Fault::operation(command)
                .always()
                .answer(Canned::json(200, &body.to_string())),
        );
        let (run, writes) = world.writes_of(world.run(WEB)).await;
        run.settled();
        let made = writes.iter().filter(|call| *call == write).count();
        assert_eq!(made, 1, "{writes:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_rule_that_tells_no_protocol_or_a_strange_one_needs_what_is_open_on_its_port() {
    type Change = fn(&World);
    let changes: [Change; 3] = [
        |world| world.delete(WEB),
        |world| world.spec(WEB, |spec| spec["ports"][0]["port"] = json!(80)),
        |world| restrict(world, WEB, &json!(["198.51.100.0/24"])),
    ];
    for change in changes {
        for word in [None, Some("ssl"), Some("TCP"), Some("UDP")] {
            let world = World::vpc("tier-acl").await;
            world.add(WEB, UID, &[("TCP", 443, 31443)]);
            world.run(WEB).await.settled();
            let (vpc, tier) = (world.sim.vpcs().remove(0).id, world.rule("tcp-443").network);
            let address = world.sim.take_address(AddressSpec::in_vpc(vpc));
            world.sim.add_rule(RuleSpec {
                network: Some(tier),
                protocol: word.map(str::to_owned),
                ..RuleSpec::new("theirs", &address, 443, 8443)
            });
            change(&world);
            world.run(WEB).await.settled();
            let is_open = items(&world).contains(&EVERYBODY.to_owned());
            assert_eq!(is_open, word != Some("UDP"), "{word:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_there_too_often_is_deleted_once_whoever_notices() {
    for (is_obsolete, job_time) in [(false, 0), (false, 5), (true, 5)] {
        let world = two().await;
        let list = world.sim.acl_list("tier-acl").unwrap();
        if is_obsolete {
            restrict(&world, WEB, &json!(["192.0.2.0/24"]));
            for key in [WEB, OTHER] {
                world.run(key).await.settled();
            }
        } else {
            restrict(&world, OTHER, &Value::Null);
        }
        for _ in 0..3 {
            world.sim.add_acl_item(AclItemSpec::new(&list, "tcp", 443));
        }
        world
            .sim
            .set_behaviour(|behaviour| behaviour.job_time = Duration::from_secs(job_time));
        let both = async { tokio::join!(world.run(WEB), world.run(OTHER)) };
        let ((first, second), writes) = world.writes_of(both).await;
        first.settled();
        second.settled();
        assert_eq!(writes, ["deleteNetworkACL"; 3], "{is_obsolete} {job_time}");
        let left = if is_obsolete { RANGED } else { EVERYBODY };
        assert_eq!(items(&world), [left]);
    }
}

#[tokio::test(start_paused = true)]
async fn an_item_for_everybody_that_a_forwarding_or_a_static_nat_may_need_stays() {
    for (nat, port, is_needed) in [(true, 0, true), (false, 443, true), (false, 22, false)] {
        for restricts in [false, true] {
            let what = format!("static NAT {nat}, port {port}, restricts {restricts}");
            let world = World::vpc("tier-acl").await;
            world.add(WEB, UID, &[("TCP", 443, 31443)]);
            world.run(WEB).await.settled();
            let vm = world.sim.vm_named("cp-a").unwrap().id;
            let address = world.sim.take_address(AddressSpec {
                network: Some(world.rule("tcp-443").network),
                ..AddressSpec::in_vpc(world.sim.vpcs().remove(0).id)
            });
            match nat {
                true => world.sim.set_static_nat(&address, Some(&vm)),
                false => drop(world.sim.add_port_forwarding(&address, port, &vm)),
            }
            match restricts {
                true => restrict(&world, WEB, &json!(["192.0.2.0/24"])),
                false => world.delete(WEB),
            }
            let run = world.run(WEB).await.settled();
            assert_eq!(items(&world).contains(&EVERYBODY.to_owned()), is_needed, "{what}");
            assert_eq!(
                run.has_note("NetworkACLItemKept"),
                is_needed && restricts,
                "{what}: {:#?}",
                run.notes
            );
            if restricts {
                assert!(items(&world).contains(&RANGED.to_owned()), "{what}");
                assert!(world.run(WEB).await.settled().waves.is_empty(), "{what}");
            }
        }
    }
}
