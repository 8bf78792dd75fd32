//! The number of calls is part of the contract: exact, so that a change shows.

use futures::future::join_all;
use std::time::Duration;

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
