//! The number of calls is part of the contract: exact, so that a change shows.

use futures::future::join_all;
use std::time::Duration;

use bowline_cloudscale_sim::FloatingSpec;

use crate::world::{World, service};

/// A world with many Services of one port on some nodes.
fn many(services: usize, nodes: usize) -> World {
    let mut world = World::new();
    for index in 0..nodes {
        world.add_node(&format!("n{index}"));
    }
    for index in 0..services {
        world.put(service(
            &format!("s{index}"),
            &[("web", "TCP", 80, 30_000 + i32::try_from(index).unwrap())],
        ));
    }
    world
}

async fn run_all(world: &World, services: usize) {
    let names: Vec<String> = (0..services).map(|index| format!("s{index}")).collect();
    for run in join_all(names.iter().map(|name| world.run(name))).await {
        run.settled();
    }
}

#[tokio::test(start_paused = true)]
async fn a_creation_costs_what_it_creates_and_few_reads() {
    let (p, m) = (2, 3);
    let world = World::with_nodes(m);
    let (_, reads, writes) = world.calls_of(async { world.run("web").await.settled() }).await;
    assert_eq!(writes, 1 + p + p * m + p + p);
    let polls = world
        .sim
        .journal()
        .count(http::Method::GET, "/v1/load-balancers/*");
    // Servers and balancers at first; balancers and their parts at the end.
    assert_eq!(reads - (polls - 3), 2 + 4);
    assert!(reads + writes <= 10 + 4 * p + p * m + (polls - 3));
}

#[tokio::test(start_paused = true)]
async fn floating_ips_are_listed_only_if_some_are_wanted() {
    let world = World::with_nodes(1);
    let address = world.sim.add_floating_ip(FloatingSpec::default());
    world.run("web").await.settled();
    assert_eq!(
        world.sim.journal().count(http::Method::GET, "/v1/floating-ips"),
        0
    );
    world.annotate("web", "floating-ips", &format!("[\"{address}\"]"));
    world.run("web").await.settled();
    assert_eq!(
        world.sim.journal().count(http::Method::GET, "/v1/floating-ips"),
        2
    );
}

#[tokio::test(start_paused = true)]
async fn a_sync_without_change_reads_five_lists_and_the_members_of_each_pool() {
    let world = World::with_nodes(3);
    world.run("web").await.settled();
    let (_, reads, writes) = world.calls_of(async { world.run("web").await.settled() }).await;
    assert_eq!((reads, writes), (5 + 2, 0));
}

#[tokio::test(start_paused = true)]
async fn a_deletion_costs_four_calls() {
    let world = World::with_nodes(3);
    world.run("web").await.settled();
    world.delete("web");
    let (_, reads, writes) = world.calls_of(async { world.run("web").await.settled() }).await;
    assert_eq!((reads, writes), (3, 1)); // the list, the confirmation, the list at the end
}

#[tokio::test(start_paused = true)]
async fn a_node_more_costs_a_hundred_services_ten_reads_and_one_per_pool() {
    let (services, nodes) = (100, 20);
    let mut world = many(services, nodes);
    let (_, reads, writes) = world.calls_of(run_all(&world, services)).await;
    assert_eq!(writes, services * (1 + 1 + nodes + 1 + 1));
    assert!(reads + writes <= 2_700, "{reads} reads");
    tokio::time::advance(Duration::from_secs(60)).await;
    world
        .sim
        .set_behaviour(|behaviour| behaviour.lb_write_time = Duration::from_millis(20));
    world.add_node("late");
    let (_, reads, writes) = world.calls_of(run_all(&world, services)).await;
    assert_eq!(writes, services);
    assert!(reads <= 10 + services, "{reads} reads");
}
