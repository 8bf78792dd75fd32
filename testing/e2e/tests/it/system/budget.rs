//! How many calls many Services cost together. The bounds are the project's own budgets; what is counted is what reached
//! the cloud. What one Service costs is tested beside the provider.

use std::time::Duration;

use bowline_cloudscale_sim::CloudscaleSim;

use super::objects::service;
use super::world::{Cloudscale, SECOND, World};

#[tokio::test(start_paused = true)]
async fn five_services_of_two_ports_on_fifty_nodes_cost_six_hundred() {
    // A cloud that takes its time, so that reads and writes of many Services mix as they do in life.
    let sim = CloudscaleSim::builder()
        .seed(7)
        .latency(Duration::from_millis(20));
    let mut world = World::over(Cloudscale(sim.build()), 7);
    world.add_nodes(50);
    world.start();
    world.rest().await;
    let begun = world.since();
    for index in 0..5_u16 {
        let ports = [("a", 80, 30000 + 2 * index), ("b", 81, 30001 + 2 * index)];
        world.apply(service(&format!("s{index}"), &ports));
    }
    for index in 0..5 {
        world.settled(&format!("s{index}")).await;
    }
    let (reads, writes) = world.counts(begun);
    assert_eq!(writes, 535);
    assert!(reads + writes <= 600, "{:#?}", world.tally(begun));
    world.assert_sound();
}

#[tokio::test(start_paused = true)]
async fn thirty_nodes_that_join_within_a_second_are_few_updates() {
    let mut world = World::new();
    world.add_nodes(1);
    world.start();
    world.rest().await;
    for index in 0..20_u16 {
        world.apply(service(&format!("s{index}"), &[("", 80, 30000 + index)]));
    }
    world
        .until("all", |w| {
            (0..20).all(|i| !w.addresses(&format!("s{i}")).is_empty())
        })
        .await;
    world.rest().await;
    let begun = world.since();
    for index in 0..30 {
        world.add_node(&format!("late{index}"));
        world.pass(SECOND / 25).await;
    }
    world
        .until("their members", |w| w.sim.members().len() == 20 * 31)
        .await;
    world.rest().await;
    // One listing of each kind and one read per pool for each round; two rounds at most.
    let (reads, writes) = world.counts(begun);
    assert_eq!(writes, 20 * 30);
    assert!(reads <= 2 * (10 + 20), "{:#?}", world.tally(begun));
}
