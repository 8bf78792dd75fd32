//! The security group of a Service that was deleted without its finalizer and made again.

use bowline_kit::Interruption;

use crate::marks::put_cluster;
use crate::world::{Outcome, World, service};

/// A Service that was served with a group on the ports of two nodes, and is another one by now, with these ports.
async fn made_again(ports: &[(&str, i32, i32)]) -> World {
    let mut world = World::with_nodes(2);
    world.configure(|options| options.manages_security_groups = true);
    put_cluster(&world, "a-cluster");
    world.run("web").await.settled();
    world.services.forget("web");
    world.put_as("anew", service("web", ports));
    world.restart();
    world
}

fn names(world: &World) -> Vec<String> {
    let groups = world.sim.security_groups().into_iter();
    let mut names: Vec<String> = groups.map(|group| group.name).collect();
    names.retain(|name| name.starts_with("lb-sg-"));
    names
}

#[tokio::test(start_paused = true)]
async fn a_process_that_stops_at_any_step_leaves_no_group() {
    for step in 1.. {
        let mut world = made_again(&[("TCP", 81, 30080)]).await;
        let run = world.run_with("web", Interruption::AfterStep(step)).await;
        world.restart();
        world.run("web").await.settled();
        assert_eq!(names(&world), ["lb-sg-anew-default-web"], "{step}");
        if matches!(run.outcome, Outcome::Settled(_)) {
            assert!(step > 10, "{step}");
            break;
        }
    }
}
