//! Routes come and go with the address pairs of their ports.

use bowline_cloud_provider::{AddressType, NodeAddress, Route, RouteChange};
use bowline_openstack_sim::model::network::Route as RouterRoute;

use super::world::{MODES, ROUTER_WRITES, World, count, destinations, pods};
use crate::world::in_one_page;

#[tokio::test(start_paused = true)]
async fn a_route_and_the_pair_of_its_port_come_and_go_together() {
    let world = World::new(2);
    in_one_page(&world.sim);
    let (_, calls) = world.calls_of(world.make(&[world.creation(1, &pods(1))])).await;
    assert_eq!(world.router(), [format!("10.244.1.0/24 via {}", world.hop(1))]);
    assert_eq!(world.pairs(1), [pods(1)]);
    assert_eq!(
        calls,
        [
            "neutron.extensions.list",
            "neutron.routers.add_extraroutes",
            "neutron.ports.list",
            "neutron.ports.list",
            "neutron.ports.update"
        ],
        "what is not known yet: the extensions, and the networks of the router"
    );
    let (listed, calls) = world.calls_of(world.list()).await;
    assert_eq!(destinations(&listed), [pods(1)]);
    assert_eq!(listed[0].next_hop.unwrap().to_string(), world.hop(1));
    assert_eq!(count(&calls, &["neutron.routers.get"]), 1);
    let (_, mut calls) = world.calls_of(world.list()).await;
    calls.sort();
    assert_eq!(
        calls,
        ["neutron.ports.list", "neutron.routers.get"],
        "a quiet period"
    );

    let deletion = [RouteChange::Delete(listed[0].clone())];
    let (_, calls) = world.calls_of(world.make(&deletion)).await;
    assert!(world.router().is_empty() && world.pairs(1).is_empty());
    // The pair goes first, so that what is half done still shows as a route.
    assert_eq!(
        calls,
        [
            "neutron.ports.list",
            "neutron.ports.update",
            "neutron.routers.remove_extraroutes"
        ]
    );
    // Gone is gone.
    world.make(&deletion).await;
}

#[tokio::test(start_paused = true)]
async fn a_hundred_routes_cost_two_writes_of_the_router() {
    for mode in MODES {
        let world = World::in_mode(100, mode);
        in_one_page(&world.sim);
        world.list().await;
        let (_, calls) = world.calls_of(world.make(&world.creations())).await;
        assert_eq!(count(&calls, &ROUTER_WRITES), 2, "{mode:?}");
        assert!(count(&calls, &["neutron.routers.get"]) <= 2);
        assert_eq!(
            count(&calls, &["neutron.ports.list"]),
            2,
            "one per call and network"
        );
        assert_eq!(
            count(&calls, &["neutron.ports.update"]),
            100,
            "each Node has a port"
        );
        assert_eq!(world.router().len(), 100);
        assert!((1..=100).all(|node| world.pairs(node) == [pods(node)]));

        // The same once more is nothing but a question.
        let (_, calls) = world.calls_of(world.make(&world.creations())).await;
        assert_eq!(
            count(&calls, &["neutron.ports.update", "neutron.routers.update"]),
            0
        );

        let listed = world.list().await;
        let deletions: Vec<RouteChange> = listed.into_iter().map(RouteChange::Delete).collect();
        let (_, calls) = world.calls_of(world.make(&deletions)).await;
        assert_eq!(count(&calls, &ROUTER_WRITES), 2, "{mode:?}");
        assert!(world.router().is_empty());
        assert!((1..=100).all(|node| world.pairs(node).is_empty()));
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_may_add_and_remove() {
    for mode in MODES {
        let world = World::in_mode(2, mode);
        world.make(&[world.creation(1, &pods(1))]).await;
        let listed = world.list().await;
        let changes = [
            world.creation(2, &pods(2)),
            RouteChange::Delete(listed[0].clone()),
        ];
        world.make(&changes).await;
        assert_eq!(world.router(), [format!("10.244.2.0/24 via {}", world.hop(2))]);
        assert!(world.pairs(1).is_empty());
        assert_eq!(world.pairs(2), [pods(2)]);
    }
}

#[tokio::test(start_paused = true)]
async fn both_families_lead_through_addresses_of_their_own() {
    let world = World::new(1);
    let both = [world.creation(1, &pods(1)), world.creation(1, "fd00:1::/64")];
    let (_, calls) = world.calls_of(world.make(&both)).await;
    let addresses = world.addresses(1);
    let v6 = addresses
        .iter()
        .find(|address| address.address.contains(':'))
        .unwrap();
    assert_eq!(
        world.router(),
        [
            format!("10.244.1.0/24 via {}", world.hop(1)),
            format!("fd00:1::/64 via {}", v6.address)
        ]
    );
    assert_eq!(world.pairs(1), [pods(1), "fd00:1::/64".to_owned()]);
    assert_eq!(count(&calls, &["neutron.ports.update"]), 1, "it is one port");

    // A Node without an address of the family has no route of it, and its other routes do not suffer.
    let RouteChange::Create { name_hint, route } = world.creation(1, "fd00:2::/64") else {
        panic!("a creation");
    };
    let target_addresses = vec![NodeAddress::new(AddressType::InternalIp, world.hop(1))];
    let route = Route {
        target_addresses,
        ..route
    };
    let changes = [
        RouteChange::Create { name_hint, route },
        world.creation(1, "10.244.9.0/24"),
    ];
    let results = world.change(&changes).await;
    let error = results[0].as_ref().unwrap_err();
    assert!(
        error.message().starts_with("no address found for host"),
        "{error}"
    );
    assert!(results[1].is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_blackhole_goes_without_a_look_at_ports() {
    for mode in MODES {
        let world = World::in_mode(1, mode);
        let router = world.sim.home().router;
        let nexthop = "10.0.0.200".parse().unwrap();
        world.sim.set_routes(
            router,
            vec![RouterRoute {
                destination: pods(9),
                nexthop,
            }],
        );
        let listed = world.list().await;
        assert_eq!(
            (listed[0].next_hop, listed[0].target_node.is_none()),
            (Some(nexthop), true)
        );
        let gone = Route {
            is_blackhole: true,
            ..listed[0].clone()
        };
        let (_, calls) = world.calls_of(world.make(&[RouteChange::Delete(gone)])).await;
        assert!(world.router().is_empty());
        assert!(
            !calls.iter().any(|call| call.starts_with("neutron.ports")),
            "{calls:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_port_without_security_needs_no_pair() {
    let world = World::new(1);
    world.sim.edit_port(world.port(1), |port| {
        port.port_security = false;
        port.groups.clear();
    });
    world.make(&[world.creation(1, &pods(1))]).await;
    assert_eq!(world.router().len(), 1);
    assert!(world.pairs(1).is_empty());
    let listed = world.list().await;
    world.make(&[RouteChange::Delete(listed[0].clone())]).await;
    assert!(world.router().is_empty());
}

#[tokio::test(start_paused = true)]
async fn where_ports_know_no_pairs_the_route_is_all() {
    let world = World::new(1);
    world.set_behaviour(|behaviour| {
        behaviour
            .extensions
            .retain(|alias| alias != "allowed-address-pairs")
    });
    let (_, calls) = world.calls_of(world.make(&[world.creation(1, &pods(1))])).await;
    assert!(
        !calls.iter().any(|call| call.starts_with("neutron.ports")),
        "{calls:?}"
    );
    assert_eq!(destinations(&world.list().await), [pods(1)]);
}

/// The first interface of the Node is in a network that the router does not join.
#[tokio::test(start_paused = true)]
async fn of_several_addresses_a_route_leads_through_the_one_that_the_router_reaches() {
    let world = World::new(1);
    let mut creation = world.creation(1, &pods(1));
    if let RouteChange::Create { route, .. } = &mut creation {
        let elsewhere = NodeAddress::new(AddressType::InternalIp, "192.168.7.11");
        route.target_addresses.insert(0, elsewhere);
    }
    world.make(&[creation]).await;
    assert_eq!(world.router(), [format!("10.244.1.0/24 via {}", world.hop(1))]);
    assert_eq!(world.pairs(1), [pods(1)]);
}
