//! OpenStack with a whole manager: what work costs. What every cloud must do is in the conformance suite; load balancers,
//! floating IPs, security groups and routes are tested beside the provider.

use std::collections::BTreeSet;
use std::time::Duration;

use bowline_conformance::cloud::{
    CloudUnderTest as _, Instance, SECOND, Since, Start, Wish, tainted_node, web,
};
use bowline_conformance::clouds::{KeptNodes, OpenStack};
use bowline_controllers::route::RouteTiming;
use bowline_manager::config::RouteSettings;
use bowline_openstack_sim::Provisioning;
use serde_json::json;

type World = bowline_conformance::cloud::World<OpenStack>;

/// A cloud as quick as real ones are.
fn quick(world: &World) {
    world.sim.set_behaviour(|it| {
        it.lb_create_time = Duration::from_millis(3_600);
        it.lb_change_time = Duration::from_millis(800);
        it.lb_delete_time = Duration::from_millis(500);
    });
}

/// How often an operation was asked for.
fn count(world: &World, since: Since, operation: &str) -> usize {
    world.tally(since).get(operation).copied().unwrap_or_default()
}

#[tokio::test(start_paused = true)]
async fn a_service_of_two_ports_on_fifty_nodes_is_one_request_and_a_dozen_reads() {
    let world = World::with_nodes(50).await;
    quick(&world);
    let begun = world.since();
    world.ask(web(), Wish::Plain);
    world.settled("web").await;
    world.assert_served();
    let (reads, writes) = world.counts(begun);
    assert_eq!(count(&world, begun, "octavia.loadbalancers.create"), 1);
    // The other one is the floating IP.
    assert_eq!(writes, 2, "{:?}", world.tally(begun));
    assert!(reads <= 12, "{reads}: {:#?}", world.tally(begun));
}

#[tokio::test(start_paused = true)]
async fn a_service_that_is_there_before_the_first_node_is_initialised_raises_no_warning() {
    let mut world = World::new();
    quick(&world);
    world.sim.add_instance(&Instance::plain("n0"));
    world.apply(tainted_node("n0"));
    world.ask(web(), Wish::Plain);
    world.start_with(Start::default());
    world.settled("web").await;
    world.assert_served();
    assert_eq!(
        world.reasons("web"),
        ["EnsuringLoadBalancer", "EnsuredLoadBalancer"]
    );
}

#[tokio::test(start_paused = true)]
async fn a_hundred_routes_are_a_handful_of_writes_of_the_router() {
    const NODES: usize = 100;
    let mut world = World::new();
    for index in 0..NODES {
        let name = format!("n{index}");
        world.sim.add_instance(&Instance::plain(&name));
        let mut node = tainted_node(&name);
        let network = format!("10.200.{index}.0/24");
        node["spec"]["providerID"] = json!(world.provider_id(&name));
        node["spec"]["podCIDR"] = json!(network);
        node["spec"]["podCIDRs"] = json!([network]);
        world.apply(node);
    }
    let mut start = Start::default();
    let timing = RouteTiming::Periodic(SECOND * 10);
    start.config.settings.routes = RouteSettings::new(true, "10.200.0.0/16", timing);
    let begun = world.since();
    world.start_with(start);
    world
        .until("every node has its route", |w| w.sim.routes().len() == NODES)
        .await;
    world.rest().await;
    let writes = world.writes(begun);
    let of_router = writes
        .iter()
        .filter(|it| it.starts_with("neutron.routers."))
        .count();
    assert!((1..=8).contains(&of_router), "{:#?}", world.tally(begun));
    // And each Node's port lets its pods through.
    assert_eq!(count(&world, begun, "neutron.ports.update"), NODES);
    assert_eq!(writes.len(), of_router + NODES, "{:#?}", world.tally(begun));
}

#[tokio::test(start_paused = true)]
async fn with_two_things_on_a_page_everything_is_as_with_a_thousand() {
    let mut ends = Vec::new();
    for page_size in [1_000, 2] {
        let world = World::with_nodes(5).await;
        world.sim.set_behaviour(|it| {
            it.nova_page_size = page_size;
            it.neutron_page_size = Some(page_size);
            it.octavia_page_size = Some(page_size);
        });
        world.ask(web(), Wish::Rich);
        world.settled("web").await;
        world.assert_served();
        world.join("n6");
        world.until("it is initialised", |w| w.is_initialized("n6")).await;
        world.rest().await;
        world.assert_served();
        assert_eq!(world.unlike(), Vec::<String>::new());
        ends.push(world.sim.state());
        world.delete_service("web");
        world.gone("web").await;
        assert_eq!(world.sim.leftovers(), Vec::<String>::new());
    }
    assert_eq!(ends[0], ends[1]);
}

/// The variable is a distributor's.
#[tokio::test(start_paused = true)]
async fn a_node_whose_server_is_gone_goes_unless_the_variable_keeps_it() {
    let world = World::with_nodes(3).await;
    world.break_instance("n1");
    world.until("it is deleted", |w| w.node("n1").is_none()).await;

    let world = bowline_conformance::cloud::World::<OpenStack<KeptNodes>>::with_nodes(3).await;
    world.break_instance("n1");
    world.pass(SECOND * 3_600).await;
    assert!(world.node("n1").is_some());
    assert!(!world.reasons("n1").contains(&"DeletingNode".to_owned()));
}

/// Somebody else changes it again and again: Octavia takes no other change then, and each look finds another one of theirs.
#[tokio::test(start_paused = true)]
async fn a_load_balancer_that_others_keep_changing_does_not_change_the_condition_each_time() {
    let world = World::with_nodes(2).await;
    quick(&world);
    world.ask(web(), Wish::Plain);
    world.settled("web").await;
    world.rest().await;
    let id = world.sim.load_balancers()[0].part.id;
    let begun = world.since();
    world.change("web");
    let mut told = BTreeSet::new();
    for second in 0..900 {
        // A change of four seconds, and at most one second until the next.
        let status = match second % 5 {
            0 => Provisioning::Active,
            _ => Provisioning::PendingUpdate,
        };
        world.sim.set_provisioning(id, status);
        world.pass(SECOND).await;
        let service = world.service("web").unwrap_or_default();
        let conditions = service["status"]["conditions"].as_array();
        let conditions = conditions.into_iter().flatten();
        told.extend(conditions.map(|it| format!("{}: {}", it["reason"], it["message"])));
    }
    let of_condition = |write: &&String| write.starts_with("patch services/status");
    let writes = world.kube_writes(begun);
    let count = writes.iter().filter(of_condition).count();
    // That it waits, and then that it waited for too long.
    assert_eq!(
        (told.len(), count),
        (2, 2),
        "{told:#?}, {:#?}",
        world.events("web")
    );
}
