//! What Octavia takes and does not do: deletions and creations that end in `ERROR`.

use std::time::Duration;

use bowline_openstack_sim::Provisioning;
use tokio::time::{Instant, advance};

use crate::world::World;

/// A part that fails shows in no answer to the writes after it.
#[tokio::test(start_paused = true)]
async fn a_part_whose_creation_ends_in_error_is_told_and_the_service_is_not_settled() {
    for is_listener in [true, false] {
        let world = World::with_nodes(1);
        world.run("web").await.settled();
        world.set_ports("web", &[("TCP", 80, 30080), ("TCP", 81, 30081)]);
        let run = world.run("web");
        let failure = async {
            while world.sim.members().len() < 2 {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            let failed = (Provisioning::Error, false);
            match is_listener {
                true => world.sim.edit_listener(world.sim.listeners()[1].part.id, |it| {
                    (it.part.status, it.part.is_made) = failed;
                }),
                false => world.sim.edit_pool(world.sim.pools()[1].part.id, |it| {
                    (it.part.status, it.part.is_made) = failed;
                }),
            }
        };
        let (run, ()) = tokio::join!(run, failure);
        assert!(run.complaint().contains("provisioning status ERROR"), "{run:#?}");
        assert!(run.published_although_refused.is_some(), "{run:#?}");
    }
}

/// Octavia takes the deletion, and its workers are lost.
#[tokio::test(start_paused = true)]
async fn of_load_balancers_that_fail_and_stay_pending_delete_one_is_replaced() {
    let world = World::with_nodes(1);
    let set = |creates, delete_time| {
        world.sim.set_behaviour(|behaviour| {
            (behaviour.failing_creates, behaviour.lb_delete_time) = (creates, delete_time);
        });
    };
    set(99, Duration::from_secs(1_000_000));
    let begun = Instant::now();
    let mut last = String::new();
    while begun.elapsed() < Duration::from_secs(1_800) {
        last = world.run("web").await.complaint().to_owned();
        advance(Duration::from_secs(20)).await;
    }
    assert!(last.contains("stay PENDING_DELETE"), "{last}");
    let stuck = world.sim.load_balancers();
    assert_eq!(stuck.len(), 2);
    for balancer in stuck {
        assert!(last.contains(&balancer.part.id.to_string()), "{last}");
        world.sim.edit_load_balancer(balancer.part.id, |it| {
            if let Some(change) = &mut it.change {
                change.fails = false;
            }
        });
        world.sim.end_change(balancer.part.id);
    }
    set(0, Duration::ZERO);
    world.run("web").await.settled();
    world.assert_settled("web").await;
}
