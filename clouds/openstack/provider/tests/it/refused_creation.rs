//! Creations that Octavia refuses after it has made the port: the port stays, and has the address.

use std::time::Duration;

use bowline_base::log::Log;
use bowline_openstack_sim::kit::Entry;
use bowline_openstack_sim::model::network::Port;
use tokio::time::advance;
use tracing::Level;

use crate::world::{World, in_short, service};

/// The ports that Octavia made for load balancers that are not there.
fn leaked(world: &World) -> Vec<Port> {
    let balancers = world.sim.load_balancers();
    let is_vip = |port: &Port| balancers.iter().any(|it| it.vip.port == port.id);
    let mut ports = world.sim.ports();
    ports.retain(|port| port.device.starts_with("lb-") && !is_vip(port));
    ports
}

/// What Octavia makes the port before.
fn limit_members(world: &World, most: Option<usize>) {
    world
        .sim
        .set_behaviour(|behaviour| behaviour.quota.members = most);
}

#[tokio::test(start_paused = true)]
async fn ports_that_are_left_go_after_their_services_too_and_each_load_balancer_is_asked_for_once() {
    let world = World::with_nodes(1);
    world.put(service("stays", &[("TCP", 90, 30090)]));
    world.run("stays").await.settled();
    limit_members(&world, Some(1));
    world.put(service("b", &[("TCP", 81, 30081)]));
    for name in ["web", "b"] {
        world.run(name).await;
    }
    assert_eq!(leaked(&world).len(), 2);
    let asked = |calls: &[Entry]| {
        let all = in_short(calls).into_iter();
        all.filter(|it| *it == "octavia.loadbalancers.get").count()
    };
    // Nothing is asked for meanwhile, and the deletion of one takes no port of another one.
    let (_, calls) = world
        .calls_of(async {
            world.reap().await;
            world.delete("web");
            world.run("web").await.settled();
            world.run_again("b").await;
        })
        .await;
    assert!(asked(&calls) <= 1, "{:?}", in_short(&calls));
    assert_eq!(leaked(&world).len(), 2);
    advance(Duration::from_secs(601)).await;
    let (_, calls) = world.calls_of(world.reap()).await;
    assert_eq!(asked(&calls), 2, "{:?}", in_short(&calls));
    assert_eq!(leaked(&world).len(), 0);
    let (_, calls) = world.calls_of(world.reap()).await;
    assert!(calls.is_empty(), "{:?}", in_short(&calls));
}

/// The time of a Service that is older than any process here.
fn make_older(world: &World, name: &str) {
    world.edit(name, |service| {
        service.metadata.creation_timestamp = Some("1970-01-01T00:00:00Z".parse().unwrap());
    });
}

#[tokio::test(start_paused = true)]
async fn a_port_that_came_after_the_start_of_a_process_is_no_sign_of_an_earlier_try() {
    let world = World::with_nodes(1);
    world.run("web").await.settled();
    limit_members(&world, Some(0));
    let other = world.another_cluster();
    other.put_as("another-c", service("c", &[("TCP", 82, 31082)]));
    other.run("c").await;
    assert_eq!(leaked(&world).len(), 1);
    limit_members(&world, None);
    world.put(service("b", &[("TCP", 81, 30081)]));
    make_older(&world, "b");
    let (run, writes) = world.writes_of(world.run("b")).await;
    assert!(!run.settled().has_note("LoadBalancerPortLeft"));
    assert_eq!(writes.len(), 2, "{:?}", in_short(&writes));
}

/// Both came while either one was refused, and nothing at a port says whose it is.
#[tokio::test(start_paused = true)]
async fn a_port_that_may_be_another_clusters_stays() {
    let world = World::with_nodes(1);
    let other = world.another_cluster();
    limit_members(&world, Some(0));
    tokio::join!(world.run("web"), other.run("web"));
    assert_eq!(leaked(&world).len(), 2);
    advance(Duration::from_secs(601)).await;
    let (log, _guards) = Log::listen(Level::WARN);
    world.reap().await;
    assert_eq!(leaked(&world).len(), 2);
    for port in leaked(&world) {
        assert_eq!(log.count(&port.id.to_string()), 1, "{}", log.text());
    }
}
