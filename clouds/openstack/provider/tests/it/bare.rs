//! Octavia's API as another implementation may have it: with fields left out, and without a list.

use bowline_openstack_sim::kit::Fault;

use crate::shared::join;
use crate::world::{World, in_short};

/// A Service and a guest, of a cloud whose Octavia leaves a field out.
async fn two_without(field: &str) -> World {
    let world = World::with_nodes(1);
    let omitted = vec![field.to_owned()];
    world
        .sim
        .set_behaviour(|behaviour| behaviour.octavia_omits = omitted);
    world.run("web").await.settled();
    join(&world, "b", 81);
    world.run("b").await.settled();
    world
}

/// Listeners and pools do not say whose they are, or load balancers and pools not which listeners they have.
#[tokio::test(start_paused = true)]
async fn one_side_of_a_reference_is_enough() {
    for field in ["loadbalancers", "listeners"] {
        let mut world = two_without(field).await;
        for name in ["web", "b"] {
            world.assert_settled(name).await;
        }
        world.add_node("node-2");
        for name in ["web", "b"] {
            world.run(name).await.settled();
            world.assert_settled(name).await;
        }
        assert_eq!(world.sim.members().len(), 4, "{field}");
        world.delete("b");
        world.run("b").await.settled();
        assert_eq!(world.sim.listeners().len(), 1, "{field}");
        assert_eq!(world.sim.pools().len(), 1, "{field}");
        world.assert_settled("web").await;
        world.delete("web");
        world.run("web").await.settled();
        assert_eq!(world.sim.leftovers(), Vec::<String>::new(), "{field}");
    }
}

#[tokio::test(start_paused = true)]
async fn one_that_failed_has_the_listeners_that_are_listed() {
    let mut world = World::with_nodes(1);
    let omitted = vec!["listeners".to_owned()];
    world
        .sim
        .set_behaviour(|behaviour| behaviour.octavia_omits = omitted);
    world.run("web").await.settled();
    world
        .sim
        .lose_load_balancer(world.sim.load_balancers()[0].part.id);
    world.restart();
    let (run, writes) = world.writes_of(world.run("web")).await;
    assert!(run.complaint().contains("may still carry traffic"), "{run:#?}");
    assert_eq!(in_short(&writes), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn health_monitors_that_cannot_be_listed_are_read_one_by_one() {
    for status in [404, 405] {
        let world = World::with_nodes(1);
        let list = Fault::operation("octavia.healthmonitors.list");
        world.sim.faults().add(list.always().status(status));
        world.annotate("web", "enable-health-monitor", "true");
        world.run("web").await.settled();
        world.assert_settled("web").await;
        world.annotate("web", "health-monitor-delay", "20");
        let (run, writes) = world.writes_of(world.run("web")).await;
        run.settled();
        assert_eq!(in_short(&writes), ["octavia.healthmonitors.update"], "{status}");
        world.assert_settled("web").await;
    }
}
