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

#[tokio::test(start_paused = true)]
async fn a_server_that_is_gone_is_asked_for_once_a_minute_however_many_services_look() {
    let services = 5;
    let mut world = many(services, 2);
    let gone = world.add_node("gone");
    assert!(world.sim.remove_server(gone));
    let path = format!("/v1/servers/{gone}");
    let asked = |world: &World| {
        let calls = world.sim.journal().entries();
        calls.iter().filter(|it| it.path == path).count()
    };
    for seconds in [10, 10, 40] {
        run_all(&world, services).await;
        assert_eq!(asked(&world), 1);
        tokio::time::advance(Duration::from_secs(seconds)).await;
    }
    run_all(&world, services).await;
    assert_eq!(asked(&world), 2);
}
