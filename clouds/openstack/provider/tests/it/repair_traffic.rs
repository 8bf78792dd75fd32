//! Which load balancers that Octavia gave up still carry traffic: what their pools tell.

use std::time::Duration;

use bowline_openstack_sim::Id;
use bowline_provider_kit::Interruption;

use crate::world::{World, in_short};

/// A Service with two ports whose members are watched and answer.
async fn two_ports() -> World {
    let world = World::with_nodes(1);
    world.set_ports("web", &[("TCP", 80, 30080), ("TCP", 443, 30443)]);
    world.annotate("web", "enable-health-monitor", "true");
    world.run("web").await.settled();
    answer(&world, &[30080, 30443], true);
    world
}

/// Members with these ports answer probes, or do not.
fn answer(world: &World, ports: &[u16], does: bool) {
    let members = world.sim.members().into_iter();
    for member in members.filter(|member| ports.contains(&member.port)) {
        world
            .sim
            .edit_member(member.part.id, |it| it.healthy = Some(does));
    }
}

/// A change that Octavia fails to make.
async fn fail_a_change(world: &mut World) -> Id {
    let id = world.sim.load_balancers()[0].part.id;
    world.sim.set_behaviour(|behaviour| behaviour.failing_changes = 1);
    world.annotate("web", "connection-limit", "5");
    assert!(!world.run("web").await.complaint().is_empty());
    world.restart();
    id
}

/// Octavia calls it `ERROR` as soon as one of its pools is down.
#[tokio::test(start_paused = true)]
async fn one_with_a_dead_pool_beside_a_live_one_is_left() {
    for dead in [30080, 30443] {
        let mut world = two_ports().await;
        answer(&world, &[dead], false);
        let id = fail_a_change(&mut world).await;
        let (run, writes) = world.writes_of(world.run("web")).await;
        assert!(run.complaint().contains("may still carry traffic"), "{run:#?}");
        assert_eq!(run.reasons(), ["LoadBalancerInError"]);
        assert!(writes.is_empty(), "{dead}: {writes:#?}");
        assert_eq!(world.sim.load_balancers()[0].part.id, id);
    }
}

#[tokio::test(start_paused = true)]
async fn one_whose_pools_are_all_dead_is_made_anew() {
    let world = two_ports().await;
    let before = world.run("web").await.settled().published();
    let id = world.sim.load_balancers()[0].part.id;
    answer(&world, &[30080, 30443], false);
    world.sim.set_behaviour(|behaviour| behaviour.failing_changes = 1);
    world.annotate("web", "connection-limit", "5");
    assert_eq!(world.run("web").await.settled().published(), before);
    assert_eq!(world.sim.load_balancers().len(), 1);
    assert_ne!(world.sim.load_balancers()[0].part.id, id);
}

/// Within one reconcile: what was read of the pools before the change is old when it has failed.
#[tokio::test(start_paused = true)]
async fn pools_are_looked_at_when_it_has_failed() {
    let world = two_ports().await;
    answer(&world, &[30080, 30443], false);
    let id = world.sim.load_balancers()[0].part.id;
    world.sim.set_behaviour(|behaviour| behaviour.failing_changes = 1);
    world.annotate("web", "connection-limit", "5");
    let run = async {
        let run = world.run("web").await;
        assert!(run.complaint().contains("may still carry traffic"), "{run:#?}");
    };
    let recovery = async {
        tokio::time::sleep(Duration::from_millis(700)).await;
        answer(&world, &[30443], true);
    };
    tokio::join!(run, recovery);
    assert_eq!(world.sim.load_balancers()[0].part.id, id);
}

/// Where Octavia hears of no amphora, everything is `OFFLINE`, and works.
#[tokio::test(start_paused = true)]
async fn one_of_which_nothing_was_ever_reported_is_left() {
    let mut world = World::with_nodes(1);
    world
        .sim
        .set_behaviour(|behaviour| behaviour.hears_of_health = false);
    world.set_ports("web", &[("TCP", 80, 30080), ("TCP", 443, 30443)]);
    world.run("web").await.settled();
    let id = fail_a_change(&mut world).await;
    let (run, writes) = world.writes_of(world.run("web")).await;
    assert!(run.complaint().contains("may still carry traffic"), "{run:#?}");
    assert!(writes.is_empty(), "{writes:#?}");
    assert_eq!(world.sim.load_balancers()[0].part.id, id);
}

/// One that failed to be made has nothing that could work, whoever finds it.
#[tokio::test(start_paused = true)]
async fn one_that_never_came_to_life_is_made_anew_by_another_process() {
    for stop in 3..5 {
        let mut world = two_ports().await;
        let before = world.run("web").await.settled().published();
        world
            .sim
            .break_load_balancer(world.sim.load_balancers()[0].part.id);
        world.sim.set_behaviour(|behaviour| behaviour.failing_creates = 1);
        world.run_with("web", Interruption::AfterStep(stop)).await;
        tokio::time::advance(Duration::from_secs(10)).await;
        assert_eq!(world.sim.load_balancers().len(), 1, "{stop}");
        world.restart();
        assert_eq!(world.run("web").await.settled().published(), before, "{stop}");
        world.assert_settled("web").await;
    }
}

/// What a person put on it is not Bowline's to cut off, whatever state it is in.
#[tokio::test(start_paused = true)]
async fn one_with_a_listener_of_somebody_else_is_left() {
    let mut world = two_ports().await;
    let theirs = world.sim.listeners().pop().unwrap().part.id;
    world
        .sim
        .edit_listener(theirs, |it| it.part.meta.tags = vec!["theirs".to_owned()]);
    world.set_ports("web", &[("TCP", 80, 30080)]);
    world.run("web").await.settled();
    world
        .sim
        .break_load_balancer(world.sim.load_balancers()[0].part.id);
    world.restart();
    let (run, writes) = world.writes_of(world.run("web")).await;
    assert!(run.complaint().contains("may still carry traffic"), "{run:#?}");
    assert_eq!(in_short(&writes), [""; 0]);
}
