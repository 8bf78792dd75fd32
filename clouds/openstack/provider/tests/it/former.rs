//! The security group of a Service that was deleted without its finalizer and made again.

use bowline_kit::Interruption;
use bowline_openstack_sim::Id;

use crate::marks::put_cluster;
use crate::world::{Outcome, World, in_short, service};

const FORMER: &str = "lb-sg-uid-web-default-web";

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

/// How many ports have a group.
fn users(world: &World, group: Id) -> usize {
    let ports = world.sim.ports();
    ports.iter().filter(|port| port.groups.contains(&group)).count()
}

#[tokio::test(start_paused = true)]
async fn the_group_goes_when_the_one_in_its_place_is_on_the_ports() {
    // The pool is kept, or goes for another one: it is all that tells whose the group was.
    for port in [80, 81] {
        let world = made_again(&[("TCP", port, 30080)]).await;
        let (run, writes) = world.writes_of(world.run("web")).await;
        run.settled();
        assert_eq!(names(&world), ["lb-sg-anew-default-web"], "{port}");
        let mut groups = world.sim.security_groups().into_iter();
        let own = groups.find(|group| group.name == "lb-sg-anew-default-web");
        assert_eq!(users(&world, own.unwrap().id), 2);
        let of_network: Vec<&str> = in_short(&writes);
        let of_network = of_network.into_iter().filter(|name| name.starts_with("neutron."));
        assert_eq!(
            of_network.collect::<Vec<_>>(),
            [
                "neutron.security-groups.create",
                "neutron.security-group-rules.create",
                "neutron.ports.update",
                "neutron.ports.update",
                "neutron.ports.update",
                "neutron.ports.update",
                "neutron.security-groups.delete",
            ],
            "{port}"
        );
        world.assert_settled("web").await;
        world.delete("web");
        world.run("web").await.settled();
        assert_eq!(world.sim.leftovers(), Vec::<String>::new());
    }
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

#[tokio::test(start_paused = true)]
async fn it_goes_too_where_groups_are_not_managed_any_more() {
    let mut world = made_again(&[("TCP", 81, 30080)]).await;
    world.configure(|options| options.manages_security_groups = false);
    world.run("web").await.settled();
    assert_eq!(names(&world), Vec::<String>::new());
    world.assert_settled("web").await;
}

/// A person made it, or nothing tells in which cluster its Service was.
#[tokio::test(start_paused = true)]
async fn a_group_that_may_be_somebody_elses_stays() {
    for knows_cluster in [true, false] {
        let mut world = World::with_nodes(1);
        world.configure(|options| options.manages_security_groups = true);
        if knows_cluster {
            put_cluster(&world, "a-cluster");
        }
        world.run("web").await.settled();
        let id = world.annotation("web", "load-balancer-id").unwrap();
        let mut groups = world.sim.security_groups().into_iter();
        let group = groups.find(|group| group.name == FORMER).unwrap().id;
        if knows_cluster {
            world
                .sim
                .edit_security_group(group, |group| group.meta.description = "by hand".to_owned());
        }
        world.services.forget("web");
        world.put_as("anew", service("web", &[("TCP", 81, 30080)]));
        world.annotate("web", "load-balancer-id", &id);
        world.restart();
        world.run("web").await.settled();
        assert_eq!(names(&world).len(), 2);
        assert_eq!(users(&world, group), 1);
    }
}
