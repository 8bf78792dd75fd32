//! What the API stores is not what the router of a network does: lists with commas, protocols that are only stored, and
//! one port for TCP and UDP.

use bowline_cloudstack_sim::{AclItemSpec, AddressSpec, FirewallSpec, ProtocolUpdates, RuleSpec};
use serde_json::json;

use crate::world::{MACHINES, NAME, Outcome, UID, WEB, World};

const OTHER: &str = "shop/other";
const OTHER_UID: &str = "8c9e6679-7425-40de-944b-e07fc1f90ae7";
const LIST: &str = "10.9.0.0/16,192.0.2.0/24";

/// Both rules of `shop/web` as an update by the Go manager left them: in force with the list before.
async fn left_with_commas(world: &World) {
    let address = world.sim.take_address(AddressSpec::default());
    let ids = MACHINES.map(|name| world.sim.vm_named(name).unwrap().id);
    for (protocol, port, node_port) in [("tcp", 443, 31443), ("udp", 4500, 31500)] {
        let spec = RuleSpec {
            protocol: Some(protocol.to_owned()),
            cidrs: Some("0.0.0.0/0".into()),
            members: ids.to_vec(),
            ..RuleSpec::new(format!("{NAME}-{protocol}-{port}"), &address, port, node_port)
        };
        world.sim.add_rule(spec);
        world
            .sim
            .add_firewall_rule(FirewallSpec::new(&address, protocol, port));
    }
    world.break_router(|sim| {
        for rule in sim.rules() {
            sim.edit_rule(&rule.id, |rule| rule.cidrs = Some(LIST.to_owned()));
        }
    });
    world.add_web();
    world.annotate(WEB, "source-cidrs", Some(LIST));
    world.publish_at(WEB, &world.address().address.to_string());
}

fn broken(run: &bowline_kit::Run) -> Vec<&str> {
    let notes = run.notes.iter();
    notes
        .filter(|note| note.reason == "RouterConfigBroken")
        .map(|note| note.text.as_str())
        .collect()
}

#[tokio::test(start_paused = true)]
async fn a_list_with_commas_is_told_of_once_and_left_until_the_service_is_changed() {
    let mut world = World::new().await;
    left_with_commas(&world).await;
    let before = world.sim.snapshot();
    for is_restarted in [false, true] {
        if is_restarted {
            world.restart().await;
        }
        for _ in 0..2 {
            let (run, writes) = world.writes_of(world.run(WEB)).await;
            let run = run.settled();
            assert!(run.waves.is_empty() && writes.is_empty(), "{writes:?}");
            let told = broken(&run);
            assert_eq!(told.len(), 1, "{told:?}");
            for part in ["tcp-443", "udp-4500", "network k8s", "next change of the service"] {
                assert!(told[0].contains(part), "{part}: {told:?}");
            }
            assert!(run.notes[0].is_said_at_start);
        }
    }
    assert_eq!(world.sim.snapshot(), before);
    // Any change will do.
    world.annotate(WEB, "hostname", Some("edge.example.org"));
    world.expect_in_force();
    let run = world.run(WEB).await.settled();
    assert_eq!(broken(&run).len(), 1, "it was the case when the run began");
    for end in ["tcp-443", "udp-4500"] {
        assert_eq!(world.rule(end).cidrs, Some(LIST.replace(',', " ")));
        assert_eq!(world.members(end), MACHINES);
    }
    let (run, writes) = world.writes_of(world.run(WEB)).await;
    assert!(broken(&run.settled()).is_empty() && writes.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_change_takes_effect_although_a_list_had_commas() {
    type Change = fn(&World);
    let changes: [Change; 4] = [
        |world| world.spec(WEB, |spec| spec["sessionAffinity"] = json!("ClientIP")),
        |world| world.remove_node("pool-a-8"),
        |world| world.spec(WEB, |spec| spec["ports"][1]["nodePort"] = json!(32000)),
        |world| world.annotate(WEB, "source-cidrs", Some("10.8.0.0/16")),
    ];
    for change in changes {
        for restarts in [false, true] {
            let mut world = World::new().await;
            left_with_commas(&world).await;
            world.run(WEB).await.settled();
            if restarts {
                world.restart().await;
            }
            let address = world.address().id;
            change(&world);
            world.expect_in_force();
            world.run(WEB).await.settled();
            world.check("in the end");
            assert_eq!(world.address().id, address);
            assert!(world.run(WEB).await.settled().waves.is_empty());
        }
    }
}

#[tokio::test(start_paused = true)]
async fn wherever_the_process_stops_while_lists_with_commas_go_the_next_one_finishes() {
    for k in 0.. {
        let mut world = World::new().await;
        left_with_commas(&world).await;
        world.run(WEB).await.settled();
        world.spec(WEB, |spec| spec["ports"][0]["nodePort"] = json!(32000));
        let stopped = world.run_steps(WEB, k).await;
        world.restart().await;
        world.expect_in_force();
        world.run(WEB).await.settled();
        assert_eq!(world.rules(), ["tcp-443", "udp-4500"], "stopped after {k}");
        world.check("in the end");
        if matches!(stopped.outcome, Outcome::Settled(_)) {
            break;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_changes_of_others_take_effect_when_the_list_with_commas_is_gone() {
    let world = World::new().await;
    left_with_commas(&world).await;
    world.add(OTHER, OTHER_UID, &[("TCP", 8443, 30443)]);
    world.run(OTHER).await.settled();
    let theirs = world.sim.rules().pop().unwrap();
    assert_eq!(
        world.sim.carried_rule(&theirs.id),
        None,
        "the API said that all is well"
    );
    world.delete(WEB);
    world.run(WEB).await.settled();
    assert_eq!(world.sim.carried_rule(&theirs.id), Some(theirs));
    assert_eq!(world.out_of_force(), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn no_update_ever_stores_a_comma_or_sends_a_list_that_does_not_change() {
    let world = World::with_service().await;
    world.run(WEB).await.settled();
    let mark = world.sim.journal().mark();
    let lists = [
        "10.9.0.0/16",
        "10.8.0.0/16",
        LIST,
        "2001:db8::/32",
        "10.8.0.0/16",
        "",
    ];
    for (round, list) in lists.into_iter().enumerate() {
        let before = world.rule("tcp-443");
        world.annotate(WEB, "source-cidrs", Some(list));
        world.run(WEB).await.settled();
        let after = world.rule("tcp-443");
        let is_one = !list.contains([',', ':']);
        assert_eq!(after.id == before.id, is_one, "{list}");
        assert_eq!(after.cidrs, Some(list.replace(',', " ")));
        let affinity = ["ClientIP", "None"][round % 2];
        world.spec(WEB, |spec| spec["sessionAffinity"] = json!(affinity));
        world.run(WEB).await.settled();
        assert_eq!(world.rule("tcp-443").id, after.id, "{list}");
    }
    let calls = world.sim.journal().since(mark);
    let updates = calls.iter().filter(|it| it.operation == "updateLoadBalancerRule");
    let bodies: Vec<String> = updates.map(|it| format!("{:?}", it.body)).collect();
    let lists = bodies.iter().filter(|body| body.contains("cidrlist"));
    assert_eq!((lists.count(), bodies.len()), (8, 20), "{bodies:#?}");
    for body in &bodies {
        assert!(body.contains("algorithm") && body.contains("protocol"), "{body}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_proxy_protocol_reaches_the_router_whatever_the_server_makes_of_updates() {
    for updates in [
        ProtocolUpdates::Stored,
        ProtocolUpdates::Ignored,
        ProtocolUpdates::Applied,
    ] {
        for version in ["4.20.1.0", "4.22.0.0"] {
            let world = World::built(|builder| builder.version(version), "").await;
            world
                .sim
                .set_behaviour(|behaviour| behaviour.protocol_updates = updates);
            world.add_web();
            world.run(WEB).await.settled();
            let (address, udp) = (world.address().id, world.rule("udp-4500"));
            for (value, end, protocol) in [
                ("true", "tcp-proxy-443", "tcp-proxy"),
                ("enabled", "tcp-443", "tcp"),
            ] {
                world.annotate(WEB, "proxy-protocol", Some(value));
                let (run, writes) = world.writes_of(world.run(WEB)).await;
                run.settled();
                let anew = [
                    "createLoadBalancerRule", // beside it
                    "deleteLoadBalancerRule",
                    "createLoadBalancerRule",
                    "assignToLoadBalancerRule",
                ];
                assert_eq!(writes, anew);
                let carried = world.sim.carried_rule(&world.rule(end).id).unwrap();
                assert_eq!(carried.protocol.as_deref(), Some(protocol), "{updates:?}");
                assert_eq!(carried.members.len(), MACHINES.len());
                assert_eq!(
                    (world.address().id, world.rule("udp-4500")),
                    (address.clone(), udp.clone())
                );
                assert_eq!(world.openings(), ["tcp 443 0.0.0.0/0", "udp 4500 0.0.0.0/0"]);
            }
        }
    }
}

/// TCP 443 with UDP 443, and TCP 80, where UDP is carried, and a port taken for one rule only if `conflicts`.
fn add_both(world: &World, conflicts: bool) {
    world.sim.set_behaviour(|behaviour| {
        behaviour.carry_everything();
        behaviour.protocols_conflict = conflicts;
    });
    world.add(
        WEB,
        UID,
        &[("TCP", 443, 31443), ("UDP", 443, 31444), ("TCP", 80, 31080)],
    );
}

#[tokio::test(start_paused = true)]
async fn tcp_and_udp_on_one_port_are_served_by_a_server_that_takes_both() {
    for is_vpc in [false, true] {
        let world = World::of(crate::site::Site::new(), is_vpc).await;
        add_both(&world, false);
        world.run(WEB).await.settled();
        assert_eq!(world.rules(), ["tcp-443", "tcp-80", "udp-443"]);
        for end in ["tcp-443", "udp-443"] {
            assert_eq!(world.members(end), MACHINES);
        }
        let openings = if is_vpc {
            world.acl_items()
        } else {
            world.openings()
        };
        assert_eq!(openings.len(), 3, "{openings:?}");
        world.check("both");
        assert!(world.run(WEB).await.settled().waves.is_empty());
        world.delete(WEB);
        world.run(WEB).await.settled();
        world.check_nothing_left("both");
    }
}

const REMEDY: &str = "put the ports for UDP into a service of their own, with another address";

#[tokio::test(start_paused = true)]
async fn of_tcp_and_udp_on_one_port_one_is_served_and_the_other_asked_for_less_and_less_often() {
    let world = World::new().await;
    add_both(&world, true);
    let run = world.run(WEB).await;
    let complaint = run.complaint();
    assert!(
        complaint.starts_with("error creating load balancer rule ") && complaint.contains("udp-443"),
        "{complaint}"
    );
    assert!(
        complaint.contains("537") && complaint.contains(REMEDY),
        "{complaint}"
    );
    assert_eq!(world.rules(), ["tcp-443", "tcp-80"]);
    assert!(run.published_although_refused.is_some());
    let (run, writes) = world.writes_of(world.run(WEB)).await;
    assert!(run.complaint().contains(REMEDY), "{}", run.complaint());
    assert_eq!(writes, Vec::<String>::new());
    tokio::time::sleep(std::time::Duration::from_secs(6)).await;
    let (_, writes) = world.writes_of(world.run(WEB)).await;
    assert_eq!(writes, ["createLoadBalancerRule"]);
    // The server was mended, and the Service is changed.
    world
        .sim
        .set_behaviour(|behaviour| behaviour.protocols_conflict = false);
    world.annotate(WEB, "hostname", Some("edge.example.org"));
    world.run(WEB).await.settled();
    assert_eq!(world.rules(), ["tcp-443", "tcp-80", "udp-443"]);
}

#[tokio::test(start_paused = true)]
async fn a_second_protocol_that_is_refused_disturbs_no_port_that_serves() {
    let world = World::new().await;
    world.add(WEB, UID, &[("TCP", 443, 31443)]);
    world.run(WEB).await.settled();
    let (tcp, address) = (world.rule("tcp-443"), world.address().id);
    world.publish_at(WEB, &world.address().address.to_string());
    add_both(&world, true);
    world.publish_at(WEB, &world.address().address.to_string());
    for _ in 0..5 {
        let run = world.run(WEB).await;
        assert!(run.complaint().contains(REMEDY), "{}", run.complaint());
        assert_eq!(
            (world.rule("tcp-443"), world.address().id),
            (tcp.clone(), address.clone())
        );
    }
    // What can be served is served, and follows what is asked for.
    assert_eq!(world.rules(), ["tcp-443", "tcp-80"]);
    assert_eq!(world.members("tcp-80"), MACHINES);
    world.spec(WEB, |spec| spec["ports"][0]["nodePort"] = json!(32000));
    world.remove_node("pool-a-8");
    for _ in 0..3 {
        world.run(WEB).await;
    }
    assert_eq!(world.rule("tcp-443").private_port, 32000);
    for end in ["tcp-443", "tcp-80"] {
        assert_eq!(world.members(end), ["cp-a", "pool-a-7"]);
    }
    assert_eq!(world.out_of_force(), Vec::<String>::new());
    world.spec(WEB, |spec| {
        spec["ports"].as_array_mut().unwrap().remove(1);
    });
    world.run(WEB).await.settled();
    assert_eq!(world.annotation(WEB, "replaced-rules"), None);
    world.check("without UDP");
}

#[tokio::test(start_paused = true)]
async fn an_acl_item_that_says_what_it_is_for_is_a_person_s_and_stays() {
    let world = World::vpc("tier-acl").await;
    let list = world.sim.acl_list("tier-acl").unwrap();
    let everybody = AclItemSpec {
        reason: Some("the office".into()),
        ..AclItemSpec::new(&list, "tcp", 443)
    };
    let theirs = world.sim.add_acl_item(everybody);
    let ranged = AclItemSpec {
        reason: Some("a test".into()),
        ..AclItemSpec::new(&list, "tcp", 443).cidrs(["192.0.2.0/24"])
    };
    let ranged = world.sim.add_acl_item(ranged);
    let stays = |what: &str| {
        let items = world.sim.acl_items();
        for id in [&theirs, &ranged] {
            assert!(items.iter().any(|item| item.id == *id), "{what}: {items:#?}");
        }
        items.len()
    };
    world.add(WEB, UID, &[("TCP", 443, 31443)]);
    world.run(WEB).await.settled();
    assert_eq!(stays("an item that fits is taken as it is"), 2);
    for range in ["198.51.100.0/24", "192.0.2.0/24"] {
        world.spec(WEB, |spec| spec["loadBalancerSourceRanges"] = json!([range]));
        world.run(WEB).await.settled();
        assert_eq!(stays(range), if range == "192.0.2.0/24" { 2 } else { 3 });
        assert!(world.run(WEB).await.settled().waves.is_empty());
    }
    // One like the Service's own makes neither surplus.
    let own = AclItemSpec::new(&list, "tcp", 443).cidrs(["192.0.2.0/24"]);
    let own = world.sim.add_acl_item(own);
    assert!(world.run(WEB).await.settled().waves.is_empty());
    world.delete(WEB);
    world.run(WEB).await.settled();
    assert_eq!(stays("deleted"), 2);
    assert!(world.sim.acl_items().iter().all(|item| item.id != own));
}
