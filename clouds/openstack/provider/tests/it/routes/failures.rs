//! A change that fails leaves nothing behind, and the others of its call as they are wished for.

use bowline_cloud_provider::{AddressType, ErrorKind, NodeAddress, Route, RouteChange};
use bowline_openstack_sim::kit::Fault;

use super::world::{MODES, ROUTER_WRITES, World, count, destinations, pods};

/// Gives the Node of a creation another address.
fn move_to(address: &str, change: &mut RouteChange) {
    if let RouteChange::Create { route, .. } = change {
        route.target_addresses = vec![NodeAddress::new(AddressType::InternalIp, address)];
    }
}

#[tokio::test(start_paused = true)]
async fn a_route_whose_pair_cannot_be_written_is_taken_back() {
    for mode in MODES {
        let world = World::in_mode(3, mode);
        world.list().await;
        let path = format!("/network/v2.0/ports/{}", world.port(2));
        let fault = world.sim.faults().add(Fault::path(&*path).always().status(403));
        let (results, calls) = world.calls_of(world.change(&world.creations())).await;
        let made: Vec<bool> = results.iter().map(Result::is_ok).collect();
        assert_eq!(made, [true, false, true], "{mode:?}");
        let error = results[1].as_ref().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Denied);
        let told = format!("address pairs of port {} may not be written", world.port(2));
        assert!(error.message().starts_with(&told), "{error}");
        assert!(
            error.message().contains("update_port:allowed_address_pairs"),
            "{error}"
        );
        assert_eq!(count(&calls, &ROUTER_WRITES), 2, "one for all, one back");
        assert_eq!(destinations(&world.list().await), [pods(1), pods(3)]);
        // From then on the pair is tried first.
        let open = [world.creation(2, &pods(2))];
        for _ in 0..2 {
            let (results, calls) = world.calls_of(world.change(&open)).await;
            assert!(results[0].is_err(), "{mode:?}");
            assert_eq!(count(&calls, &ROUTER_WRITES), 0, "{mode:?}");
        }
        world.sim.faults().remove(fault);
        world.make(&open).await;
        assert_eq!(world.pairs(2), [pods(2)]);
        assert_eq!(destinations(&world.list().await).len(), 3);
    }
}

#[tokio::test(start_paused = true)]
async fn a_node_without_a_port_of_its_address_gets_no_route() {
    let world = World::new(2);
    let mut changes = world.creations();
    move_to("10.0.0.77", &mut changes[0]);
    let results = world.change(&changes).await;
    let error = results[0].as_ref().unwrap_err();
    assert!(
        error
            .message()
            .contains("no single port has the address 10.0.0.77"),
        "{error}"
    );
    assert!(results[1].is_ok());
    assert_eq!(destinations(&world.list().await), [pods(2)]);
}

#[tokio::test(start_paused = true)]
async fn one_route_that_is_refused_fails_alone() {
    for mode in MODES {
        let world = World::in_mode(40, mode);
        world.list().await;
        let mut changes = world.creations();
        move_to("192.0.2.5", &mut changes[16]);
        let (results, calls) = world.calls_of(world.change(&changes)).await;
        let failed: Vec<usize> = (0..40).filter(|place| results[*place].is_err()).collect();
        assert_eq!(failed, [16], "{mode:?}");
        let error = results[16].as_ref().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(error.message().contains("not connected with router"), "{error}");
        assert!(!error.message().contains("destination"), "all routes: {error}");
        assert!(
            count(&calls, &ROUTER_WRITES) <= 13,
            "{}",
            count(&calls, &ROUTER_WRITES)
        );
        assert_eq!(world.router().len(), 39);
    }
}

/// In the order in which the controller asks, and asks again for what failed.
#[tokio::test(start_paused = true)]
async fn a_route_on_which_neutron_breaks_keeps_no_other_from_being_made() {
    for mode in MODES {
        for broken in [1, 4, 8] {
            let world = World::in_mode(8, mode);
            world.set_behaviour(|behaviour| behaviour.breaks_on_route = Some(pods(broken)));
            let mut open = world.creations();
            let (mut calls, mut writes) = (0, 0);
            while open.len() > 1 {
                calls += 1;
                assert!(calls <= 6, "{mode:?}, {broken}: {} are left", open.len());
                let (results, made) = world.calls_of(world.change(&open)).await;
                writes += count(&made, &ROUTER_WRITES);
                let mut results = results.into_iter();
                open.retain(|_| results.next().unwrap().is_err());
            }
            assert_eq!(world.router().len(), 7, "{mode:?}");
            assert!(writes <= 12, "{mode:?}, {broken}: {writes}");
            // It is tried once in each pass from then on, and all others in one write when it is mended.
            let (_, made) = world.calls_of(world.change(&open)).await;
            assert_eq!(count(&made, &ROUTER_WRITES), 1, "{mode:?}");
            world.set_behaviour(|behaviour| behaviour.breaks_on_route = None);
            world.make(&open).await;
        }
    }
}

/// Each call costs two writes, whatever is waiting.
#[tokio::test(start_paused = true)]
async fn where_every_write_fails_no_call_tries_all_routes_one_by_one() {
    for mode in MODES {
        let world = World::in_mode(20, mode);
        for write in ROUTER_WRITES {
            world
                .sim
                .faults()
                .add(Fault::operation(write).always().status(500));
        }
        for _ in 0..8 {
            let (results, made) = world.calls_of(world.change(&world.creations())).await;
            assert!(results.iter().all(Result::is_err));
            assert!(count(&made, &ROUTER_WRITES) <= 2, "{mode:?}");
        }
        world.sim.faults().clear();
        world.make(&world.creations()).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_router_takes_as_many_routes_as_it_may_have() {
    for mode in MODES {
        let world = World::in_mode(40, mode);
        world.set_behaviour(|behaviour| behaviour.max_routes = 30);
        let (results, calls) = world.calls_of(world.change(&world.creations())).await;
        let made = results.iter().filter(|result| result.is_ok()).count();
        assert_eq!((made, world.router().len()), (30, 30), "{mode:?}");
        let error = results[39].as_ref().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Exhausted);
        assert!(error.message().contains("raise `quota_router_route`"), "{error}");
        assert_eq!(
            count(&calls, &["neutron.routers.remove_extraroutes"]),
            0,
            "nothing is removed"
        );
        assert!(
            count(&calls, &ROUTER_WRITES) <= 13,
            "{}",
            count(&calls, &ROUTER_WRITES)
        );
        // As long as it is full, each pass finds that out with one write.
        let open: Vec<RouteChange> = (31..=40).map(|node| world.creation(node, &pods(node))).collect();
        for _ in 0..2 {
            let (results, calls) = world.calls_of(world.change(&open)).await;
            assert!(results.iter().all(Result::is_err));
            assert_eq!(count(&calls, &ROUTER_WRITES), 1, "{mode:?}");
        }
        world.set_behaviour(|behaviour| behaviour.max_routes = 37);
        let results = world.change(&open).await;
        assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 7);
        assert_eq!(world.router().len(), 37);
    }
}

/// Neutron looks at all routes of the router at each write.
#[tokio::test(start_paused = true)]
async fn a_router_that_takes_no_change_is_told_of_and_no_route_is_tried_by_itself() {
    for mode in MODES {
        let world = World::in_mode(20, mode);
        world
            .make(&[world.creation(19, &pods(19)), world.creation(20, &pods(20))])
            .await;
        let listed = world.list().await;
        world.set_behaviour(|behaviour| behaviour.max_routes = 0);
        let mut changes: Vec<RouteChange> = world.creations();
        changes.truncate(18);
        changes.push(RouteChange::Delete(listed[0].clone()));
        let (results, calls) = world.calls_of(world.change(&changes)).await;
        assert!(count(&calls, &ROUTER_WRITES) <= 3, "{mode:?}: {calls:?}");
        let error = results[0].as_ref().unwrap_err();
        assert!(
            error.message().contains("takes no change of its routes"),
            "{error}"
        );
        // What leaves as few as there may be is taken.
        let all: Vec<RouteChange> = listed.into_iter().map(RouteChange::Delete).collect();
        world.make(&all).await;
        assert!(world.router().is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn a_pair_that_cannot_be_removed_keeps_its_route() {
    let world = World::new(1);
    world.make(&world.creations()).await;
    let listed = world.list().await;
    let path = format!("/network/v2.0/ports/{}", world.port(1));
    let fault = world.sim.faults().add(Fault::path(&*path).always().status(403));
    let deletion = [RouteChange::Delete(listed[0].clone())];
    assert!(world.change(&deletion).await[0].is_err());
    assert_eq!(world.router().len(), 1);
    world.sim.faults().remove(fault);
    world.make(&deletion).await;
    assert!(world.router().is_empty() && world.pairs(1).is_empty());
}

/// What the controller does: creates what is missing and deletes what is too much, in some passes of processes that die after
/// each if they `die`, then in some of one process. In some passes nothing is due.
async fn settle(world: &mut World, wanted: &[usize], dies: bool) {
    for pass in 0..12 {
        if dies && pass < 4 {
            world.restart();
        }
        let Ok(listed) = world.routes.list_routes("kubernetes").await else {
            continue;
        };
        if pass % 3 == 1 {
            continue;
        }
        let complete: Vec<Route> = listed
            .iter()
            .filter(|route| !route.is_incomplete)
            .cloned()
            .collect();
        let there = destinations(&complete);
        let surplus = listed.into_iter().filter(|route| {
            let is_wanted = |node: &usize| pods(*node) == route.destination.to_string();
            !wanted.iter().any(is_wanted)
        });
        let missing = wanted.iter().filter(|node| !there.contains(&pods(**node)));
        let changes: Vec<RouteChange> = missing
            .map(|node| world.creation(*node, &pods(*node)))
            .chain(surplus.map(RouteChange::Delete))
            .collect();
        let (_, calls) = world.calls_of(world.change(&changes)).await;
        assert!(pass < 11 || calls.is_empty(), "it does not settle: {calls:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn whatever_is_lost_or_fails_the_end_is_the_same() {
    for mode in MODES {
        for dies in [true, false] {
            for kind in ["lost", "failed"] {
                for nth in 1.. {
                    let mut world = World::in_mode(3, mode);
                    world.make(&[world.creation(1, &pods(1))]).await;
                    let fault = Fault::write().nth(nth);
                    let fault = match kind {
                        "lost" => fault.lose_answer(),
                        _ => fault.status(500),
                    };
                    let fault = world.sim.faults().add(fault);
                    settle(&mut world, &[2, 3], dies).await;
                    let what = format!("{mode:?} {kind} {nth} {dies}");
                    let mut router = world.router();
                    router.sort();
                    let via = |node| format!("{} via {}", pods(node), world.hop(node));
                    assert_eq!(router, [via(2), via(3)], "{what}");
                    let pairs: Vec<Vec<String>> = (1..=3).map(|node| world.pairs(node)).collect();
                    assert_eq!(pairs, [vec![], vec![pods(2)], vec![pods(3)]], "{what}");
                    if world.sim.faults().struck(fault) == 0 {
                        assert!(nth > 3, "{what}");
                        break;
                    }
                }
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_port_that_has_room_for_one_more_pair_takes_one_more() {
    for mode in MODES {
        let world = World::in_mode(1, mode);
        world.set_behaviour(|behaviour| behaviour.max_address_pairs = 1);
        let both = [world.creation(1, &pods(1)), world.creation(1, "fd00:1::/64")];
        for _ in 0..2 {
            let results = world.change(&both).await;
            assert!(results[0].is_ok(), "{results:?}");
            let error = results[1].as_ref().unwrap_err();
            assert!(
                error.message().contains("as many address pairs as it may have"),
                "{error}"
            );
            assert_eq!(destinations(&world.list().await), [pods(1)], "{mode:?}");
            assert_eq!(world.pairs(1), [pods(1)]);
        }
        world.set_behaviour(|behaviour| behaviour.max_address_pairs = 2);
        world.make(&both).await;
        assert_eq!(world.pairs(1), [pods(1), "fd00:1::/64".to_owned()]);
    }
}

/// Neutron refuses all pairs of a write that has one too many, and no other refusal says that fewer would do.
#[tokio::test(start_paused = true)]
async fn the_routes_of_a_port_are_taken_one_by_one_only_if_it_has_no_room_for_all() {
    let of_port = |calls: &[String]| {
        (
            count(calls, &["neutron.ports.get"]),
            count(calls, &["neutron.ports.update"]),
        )
    };
    for mode in MODES {
        for refusal in [None, Some(403), Some(409), Some(400), Some(500)] {
            let world = World::in_mode(2, mode);
            world.list().await;
            world.set_behaviour(|behaviour| behaviour.max_address_pairs = 2);
            let own = ["10.244.1.0/24", "10.245.1.0/24", "10.246.1.0/24"];
            let mut changes: Vec<RouteChange> = own.iter().map(|range| world.creation(1, range)).collect();
            changes.push(world.creation(2, &pods(2)));
            if let Some(status) = refusal {
                let path = format!("/network/v2.0/ports/{}", world.port(1));
                world
                    .sim
                    .faults()
                    .add(Fault::path(&*path).always().status(status));
            }
            let (results, calls) = world.calls_of(world.change(&changes)).await;
            let made = results.iter().filter(|result| result.is_ok()).count();
            let what = format!("{mode:?} {refusal:?}: {calls:#?}");
            // The other port is written once in any case.
            let expected = match refusal {
                None => (3, (3, 1 + 3 + 1)),
                Some(_) => (1, (0, 1 + 1)),
            };
            assert_eq!((made, of_port(&calls)), expected, "{what}");
        }
    }
}
