//! A Node goes only when its instance is proved gone.

use std::time::Duration;

use super::under_test::CloudUnderTest;
use super::world::{SECOND, World};

pub(super) async fn a_pass_costs_the_same_for_many_nodes<C: CloudUnderTest>() {
    let cost = async |nodes: usize| {
        let world = World::<C>::with_nodes(nodes).await;
        world.cloud().set_latency(Duration::from_millis(100));
        for index in 2..=nodes {
            world.set_ready(&format!("n{index}"), "Unknown");
        }
        world.pass(SECOND * 10).await;
        let begun = world.since();
        world.pass(SECOND * 60).await;
        world.counts(begun).0
    };
    let (few, many) = (cost(4).await, cost(60).await);
    // The periods begin at the end of a pass, so that a minute may hold one more or less.
    assert!(many.abs_diff(few) <= 2, "{few} calls for 3, {many} for 59");
}
