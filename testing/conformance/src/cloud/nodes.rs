//! A Node gets what its instance tells, and keeps it.

use super::under_test::CloudUnderTest;
use super::world::{SECOND, World};

pub(super) async fn the_calls_for_many_nodes_are_those_for_a_few<C: CloudUnderTest>() {
    let cost = async |nodes: usize| {
        let mut world = World::<C>::new();
        for index in 0..nodes {
            world.join(&format!("n{index}"));
        }
        let begun = world.since();
        world.start();
        world
            .until("all initialised", |w| {
                (0..nodes).all(|index| w.is_initialized(&format!("n{index}")))
            })
            .await;
        world.rest().await;
        assert_eq!(world.unlike(), Vec::<String>::new());
        let of_initialisation = world.counts(begun).0;
        let begun = world.since();
        world.pass(SECOND * 310).await;
        (of_initialisation, world.counts(begun).0)
    };
    let (few, many) = (cost(3).await, cost(60).await);
    assert!(many.0 <= few.0 + 3, "{} calls for 3, {} for 60", few.0, many.0);
    assert_eq!(many.1, few.1, "one pass over addresses");
}
