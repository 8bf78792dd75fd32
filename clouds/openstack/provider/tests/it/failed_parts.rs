//! Parts that Octavia failed to make or to change, of a load balancer that works. It has noted what was asked for by then, and shows that.
//! Pools of that kind take neither members nor a monitor.

use std::time::Duration;

use crate::world::{World, in_short};

/// Octavia fails the next so many changes of parts.
fn fail(world: &World, changes: u32) {
    world
        .sim
        .set_behaviour(|behaviour| behaviour.failing_part_changes = changes);
}

fn members(world: &World) -> usize {
    world.sim.members().len()
}

/// The look that first sees that a part failed, and the time after which Bowline does something about it: Octavia may repair the load
/// balancer meanwhile, and cannot while a change is under way.
async fn let_a_minute_pass(world: &World) {
    let (_, writes) = world.writes_of(world.run("web")).await;
    assert_eq!(in_short(&writes), [""; 0]);
    tokio::time::advance(Duration::from_secs(60)).await;
}

/// It shows only when the members are refused.
#[tokio::test(start_paused = true)]
async fn one_that_failed_to_be_made_is_made_anew() {
    let world = World::with_nodes(1);
    world.run("web").await.settled();
    world.set_ports("web", &[("TCP", 80, 30080), ("TCP", 443, 30443)]);
    let run = world.run("web");
    let failure = async {
        while world.sim.listeners().len() < 2 {
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        }
        fail(&world, 1);
    };
    let (run, ()) = tokio::join!(run, failure);
    assert!(
        run.complaint().contains("in provisioning status ERROR, in which"),
        "{run:#?}"
    );
    assert_eq!(members(&world), 1);
    let_a_minute_pass(&world).await;
    assert!(!world.run("web").await.settled().reasons().is_empty());
    assert_eq!(members(&world), 2);
    world.assert_settled("web").await;
}
