//! The pod networks of Nodes get their routes, and Nodes say whether they have them.

use std::collections::BTreeSet;
use std::time::Duration;

use bowline_controllers::route::RouteTiming;
use serde_json::json;

use super::stage::keeping;
use super::under_test::{CloudUnderTest, Instance};
use super::world::{SECOND, World, tainted_node};

/// The default mode: a period, and changes of Nodes.
const PERIODIC: RouteTiming = RouteTiming::Periodic(Duration::from_secs(10));
/// A period, and the second that a pass may take.
const SOON: Duration = Duration::from_secs(11);

const ROUTED: &str = "False RouteCreated RouteController created a route";

/// A world with that manager, at rest.
async fn started<C: CloudUnderTest>(timing: RouteTiming) -> World<C> {
    let mut world = World::new();
    world.start_with(keeping(timing));
    world.rest().await;
    world
}

/// An instance and its Node with these pod networks.
fn add<C: CloudUnderTest>(world: &World<C>, name: &str, networks: &[&str]) {
    world.sim.add_instance(&Instance::plain(name));
    let mut node = tainted_node(name);
    node["spec"]["providerID"] = json!(world.provider_id(name));
    if let Some(first) = networks.first() {
        node["spec"]["podCIDR"] = json!(first);
        node["spec"]["podCIDRs"] = json!(networks);
    }
    world.apply(node);
}

/// So many Nodes `n1`, `n2`, ..., each with a network of its own.
fn add_many<C: CloudUnderTest>(world: &World<C>, count: usize) {
    for index in 1..=count {
        add(world, &format!("n{index}"), &[&format!("10.200.{index}.0/24")]);
    }
}

/// What `add_many` leads to.
fn of_many(count: usize) -> BTreeSet<String> {
    let route = |index: usize| format!("10.200.{index}.0/24 -> n{index}");
    (1..=count).map(route).collect()
}

fn is_routed<C: CloudUnderTest>(world: &World<C>, name: &str) -> bool {
    world.network(name).as_deref() == Some(ROUTED)
}

/// How often all routes were listed.
fn lists<C: CloudUnderTest>(world: &World<C>, since: super::world::Since) -> usize {
    let calls = world.calls(since);
    calls.iter().filter(|call| world.sim.lists_routes(call)).count()
}

pub(super) async fn new_addresses_of_a_node_make_its_route_anew<C: CloudUnderTest>() {
    let mut world = World::<C>::new();
    world.sim.route_by_address();
    add_many(&world, 2);
    world.start_with(keeping(PERIODIC));
    world.until("routed", |w| is_routed(w, "n1")).await;
    world.pass(SECOND * 310).await;
    let (routes, before, begun) = (world.sim.routes(), world.sim.state(), world.since());
    assert_eq!(routes, of_many(2));
    world.sim.renumber("n1");
    world.until("its Node has them", |w| w.unlike().is_empty()).await;
    let took = world
        .until("the route has them", |w| {
            w.writes(begun).len() >= 2 && w.sim.routes() == routes
        })
        .await;
    assert!(took <= SOON, "{took:?}");
    world.rest().await;
    // Taken away, then made: two routes to one destination are one too many.
    let written = world.calls(begun);
    let written: Vec<_> = written.iter().filter(|call| call.write).collect();
    assert_eq!(written.len(), 2, "{written:#?}");
    assert!(written[0].in_flight_with.is_empty() && written[1].in_flight_with.is_empty());
    assert_eq!(world.sim.routes(), routes);
    assert_ne!(world.sim.state(), before, "the route has the old addresses");
    assert!(is_routed(&world, "n1"));
}

pub(super) async fn a_period_costs_the_same_for_many_nodes<C: CloudUnderTest>() {
    let cost = async |nodes: usize| {
        let world = started::<C>(PERIODIC).await;
        add_many(&world, nodes);
        world
            .until("routed", |w| {
                (1..=nodes).all(|it| is_routed(w, &format!("n{it}")))
            })
            .await;
        world.pass(SECOND * 30).await;
        let begun = world.since();
        world.pass(SECOND * 100).await;
        assert_eq!(world.writes(begun), Vec::<String>::new());
        lists(&world, begun)
    };
    let (few, many) = (cost(3).await, cost(60).await);
    assert!(
        few.abs_diff(10) <= 1 && many.abs_diff(10) <= 1,
        "{few} lists for 3, {many} for 60"
    );
}
