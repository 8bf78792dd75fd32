//! Services that leave a load balancer which several use.

use bowline_cloud_provider::facts;
use bowline_kit::Interruption;
use bowline_openstack_sim::model::balancing::Listener;

use crate::world::two;
use crate::world::{Run, World};

/// However often the process is restarted meanwhile.
#[tokio::test(start_paused = true)]
async fn that_a_guest_has_left_is_told_once_with_the_write_that_ends_it() {
    for stop in 1..9 {
        let mut world = two(81).await;
        world.run("b").await.settled();
        world.remove_annotation("b", "load-balancer-id");
        let stopped = world.run_with("b", Interruption::BeforeStep(stop)).await;
        world.restart();
        let run = world.run("b").await.settled();
        let told = |run: &Run| {
            run.notes
                .iter()
                .filter(|note| note.reason == "LoadBalancerLeft")
                .count()
        };
        // Stopped right before the write that ends it, the first process has told it, too.
        let expected = match run.waves.len() {
            0 => (1, 0),
            1 => (1, 1),
            _ => (0, 1),
        };
        assert_eq!(
            (told(&stopped), told(&run)),
            expected,
            "{stop}: {stopped:#?} {run:#?}"
        );
    }
}

/// Whenever the process stops: the address that the status shows is still given out, and its load balancer still has the port.
#[tokio::test(start_paused = true)]
async fn what_serves_at_the_shown_address_stays_until_the_status_shows_another_one() {
    let shown = |world: &World| facts::published_addresses(&world.facts("b").service);
    for becomes_internal in [false, true] {
        for stop in 1..9 {
            let world = two(81).await;
            let shared = world.sim.load_balancers()[0].part.id;
            let before = match becomes_internal {
                // The owner of the load balancer itself, at its floating IP.
                true => {
                    world.remove_annotation("b", "load-balancer-id");
                    world.run("b").await.settled();
                    world.annotate("b", "internal", "true");
                    shown(&world)
                }
                false => {
                    world.run("b").await.settled();
                    world.remove_annotation("b", "load-balancer-id");
                    shown(&world)
                }
            };
            assert_eq!(before.len(), 1);
            world.run_with("b", Interruption::BeforeStep(stop)).await;
            if shown(&world) == before {
                let floating_ips = world.sim.floating_ips();
                let mut used = floating_ips.iter().filter(|it| it.target.is_some());
                assert!(
                    used.any(|it| it.address.address.to_string() == before[0]),
                    "{stop}: {before:?} was given back"
                );
                let listeners = world.sim.listeners();
                let mut there = listeners.iter().filter(|it| it.port == 81);
                let is_left = |it: &Listener| it.load_balancer == shared;
                assert!(
                    becomes_internal || there.any(is_left),
                    "{stop}: nothing serves at {before:?}"
                );
            }
        }
    }
}
