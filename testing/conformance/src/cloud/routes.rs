//! The pod networks of Nodes get their routes, and Nodes say whether they have them.

use std::collections::BTreeSet;
use std::time::Duration;

use bowline_cloud_kit::Fault;
use bowline_controllers::route::RouteTiming;
use bowline_manager::config::RouteSettings;
use serde_json::json;

use super::outages::ILLNESSES;
use super::under_test::{CloudUnderTest, Instance, StrayRoute};
use super::world::{SECOND, Start, World, tainted_node};

/// The default mode: a period, and changes of Nodes.
const PERIODIC: RouteTiming = RouteTiming::Periodic(Duration::from_secs(10));
/// A period, and the second that a pass may take.
const SOON: Duration = Duration::from_secs(11);

const ROUTED: &str = "False RouteCreated RouteController created a route";

/// A manager that keeps routes for these pod networks.
fn keeping(timing: RouteTiming) -> Start {
    let mut start = Start::default();
    start.config.settings.routes = RouteSettings::new(true, "10.200.0.0/16,fd00:200::/48", timing);
    start
}

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

fn routes(routes: &[&str]) -> BTreeSet<String> {
    routes.iter().map(|it| (*it).to_owned()).collect()
}

/// `status reason message` of a Node's condition.
fn condition<C: CloudUnderTest>(world: &World<C>, name: &str) -> Option<String> {
    let node = world.node(name)?;
    let conditions = node["status"]["conditions"].as_array()?;
    let found = conditions.iter().find(|it| it["type"] == "NetworkUnavailable")?;
    let part = |key: &str| found[key].as_str().unwrap_or_default();
    Some(format!(
        "{} {} {}",
        part("status"),
        part("reason"),
        part("message")
    ))
}

/// What is said of a Node's routes.
fn events<C: CloudUnderTest>(world: &World<C>, name: &str) -> Vec<String> {
    let mut events = world.events(name);
    events.retain(|event| !event.starts_with("Synced: "));
    events
}

fn is_routed<C: CloudUnderTest>(world: &World<C>, name: &str) -> bool {
    condition(world, name).as_deref() == Some(ROUTED)
}

/// How often all routes were listed.
fn lists<C: CloudUnderTest>(world: &World<C>, since: super::world::Since) -> usize {
    let calls = world.calls(since);
    calls.iter().filter(|call| world.sim.lists_routes(call)).count()
}

pub(super) async fn a_pod_network_gets_its_route_and_its_node_the_condition<C: CloudUnderTest>() {
    for timing in [PERIODIC, RouteTiming::WatchBased] {
        let world = started::<C>(timing).await;
        let begun = world.since();
        add(&world, "n1", &["10.200.1.0/24"]);
        let took = world.until("routed", |w| is_routed(w, "n1")).await;
        assert!(took <= SOON, "{timing:?}: {took:?}");
        assert_eq!(world.sim.routes(), routes(&["10.200.1.0/24 -> n1"]));
        let writes = world.writes(begun);
        assert_eq!(writes.len(), C::WRITES_OF_A_ROUTE, "{writes:?}");
        assert_eq!(events(&world, "n1"), Vec::<String>::new());
        // What is there is left as it is.
        world.pass(SECOND * 30).await;
        let begun = world.since();
        world.pass(SECOND * 700).await;
        assert!(lists(&world, begun) > 0, "it never looked");
        assert_eq!(world.writes(begun), Vec::<String>::new());
        assert_eq!(world.kube_writes(begun), Vec::<String>::new());
        world.assert_sound();
    }
}

pub(super) async fn the_route_goes_with_its_node<C: CloudUnderTest>() {
    for timing in [PERIODIC, RouteTiming::WatchBased] {
        let world = started::<C>(timing).await;
        add_many(&world, 3);
        world
            .until("routed", |w| (1..=3).all(|it| is_routed(w, &format!("n{it}"))))
            .await;
        world.pass(SECOND * 30).await;
        assert!(world.api.delete("Node", "", "n3"));
        let took = world
            .until("its route is gone", |w| w.sim.routes() == of_many(2))
            .await;
        assert!(took <= SOON, "{timing:?}: {took:?}");
        // The instance goes first, and what becomes of its route is the cloud's business until its Node is gone.
        world.break_instance("n2");
        world.until("its Node is gone", |w| w.node("n2").is_none()).await;
        let took = world
            .until("its route is gone", |w| w.sim.routes() == of_many(1))
            .await;
        assert!(took <= SOON, "{timing:?}: {took:?}");
    }
}

pub(super) async fn what_leads_nowhere_goes_and_what_is_not_the_cluster_s_stays<C: CloudUnderTest>() {
    for timing in [PERIODIC, RouteTiming::WatchBased] {
        let mut world = World::<C>::new();
        add_many(&world, 1);
        for (destination, stray) in [
            ("192.168.0.0/24", StrayRoute::Nowhere),
            ("192.168.1.0/24", StrayRoute::Blackhole),
            ("10.200.7.0/24", StrayRoute::OfOthers),
            ("10.200.8.0/24", StrayRoute::Nowhere),
            ("10.200.9.0/24", StrayRoute::Blackhole),
        ] {
            world.sim.add_stray_route(destination, stray);
        }
        let before = world.sim.routes();
        world.start_with(keeping(timing));
        world.until("routed", |w| is_routed(w, "n1")).await;
        world.rest().await;
        let mut left = before.clone();
        left.retain(|route| !route.starts_with("10.200.8.0/24 ") && !route.starts_with("10.200.9.0/24 "));
        assert_eq!(left.len(), 3, "{before:?}");
        left.extend(of_many(1));
        assert_eq!(world.sim.routes(), left, "{timing:?}");
        world.pass(SECOND * 700).await;
        assert_eq!(world.sim.routes(), left, "{timing:?}");
    }
}

/// As it is in a copy of the API server's data from before the Node joined.
pub(super) async fn a_route_of_a_node_that_this_process_never_saw_goes_with_its_instance<
    C: CloudUnderTest,
>() {
    let mut world = started::<C>(PERIODIC).await;
    add_many(&world, 2);
    world
        .until("routed", |w| is_routed(w, "n1") && is_routed(w, "n2"))
        .await;
    world.kill().await;
    assert!(world.api.delete("Node", "", "n2"));
    world.start_with(keeping(PERIODIC));
    world.pass(SECOND * 700).await;
    assert_eq!(world.sim.routes(), of_many(2));
    world.sim.remove_instance("n2");
    world
        .until("its route is gone", |w| w.sim.routes() == of_many(1))
        .await;
    world.assert_sound();
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

pub(super) async fn a_creation_whose_answer_is_lost_makes_one_route<C: CloudUnderTest>() {
    for nth in 1..=3 {
        let world = started::<C>(PERIODIC).await;
        let fault = world.cloud().faults().add(Fault::write().nth(nth).lose_answer());
        add_many(&world, 3);
        world
            .until("routed", |w| (1..=3).all(|it| is_routed(w, &format!("n{it}"))))
            .await;
        world.pass(SECOND * 60).await;
        assert_eq!(world.cloud().faults().struck(fault), 1);
        assert_eq!(world.sim.routes(), of_many(3));
        world.assert_sound();
    }
}

pub(super) async fn no_illness_of_the_cloud_takes_a_route_away<C: CloudUnderTest>() {
    for (name, ill) in ILLNESSES {
        let world = started::<C>(PERIODIC).await;
        add_many(&world, 2);
        world
            .until("routed", |w| is_routed(w, "n1") && is_routed(w, "n2"))
            .await;
        let before = world.sim.state();
        world.cloud().faults().add(ill(Fault::any().always()));
        world.pass(SECOND * 60).await;
        assert_eq!(world.sim.state(), before, "{name}");
        assert!(is_routed(&world, "n1") && is_routed(&world, "n2"), "{name}");
        world.cloud().faults().clear();
        add(&world, "late", &["10.200.9.0/24"]);
        world.until("it heals", |w| is_routed(w, "late")).await;
        let mut all = of_many(2);
        all.insert("10.200.9.0/24 -> late".to_owned());
        assert_eq!(world.sim.routes(), all, "{name}");
    }
}
