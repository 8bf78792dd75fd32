//! Which load balancers that Octavia gave up still carry traffic: what their listeners and pools tell.

use std::time::Duration;

use bowline_kit::Interruption;
use bowline_openstack_sim::model::balancing::Forwarder;
use bowline_openstack_sim::{Id, Provisioning};

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

/// As where the failover of a second amphora fails, and a Service whose traffic stays at the Node has no endpoints for a while: the first
/// amphora takes connections all the time, and the members come back.
#[tokio::test(start_paused = true)]
async fn one_whose_members_do_not_answer_is_left() {
    let mut world = two_ports().await;
    answer(&world, &[30080, 30443], false);
    let id = world.sim.load_balancers()[0].part.id;
    world.sim.set_provisioning(id, Provisioning::Error);
    world.restart();
    let (run, writes) = world.writes_of(world.run("web")).await;
    assert!(run.complaint().contains("may still carry traffic"), "{run:#?}");
    assert_eq!(in_short(&writes), [""; 0]);
    assert_eq!(world.sim.load_balancers()[0].part.id, id);
}

/// It reports nothing any more, so what it reported last stands, and nothing tells a project that it is gone.
#[tokio::test(start_paused = true)]
async fn one_whose_amphora_died_is_left_until_the_operator_orders_a_failover() {
    let mut world = two_ports().await;
    let id = world.sim.load_balancers()[0].part.id;
    world.sim.lose_load_balancer(id);
    world.add_node("node-2");
    let (run, writes) = world.writes_of(world.run("web")).await;
    assert_eq!(run.reasons(), ["LoadBalancerInError"]);
    assert!(run.notes[0].text.contains("loadbalancer failover"), "{run:#?}");
    assert_eq!(in_short(&writes), [""; 0]);
    world.sim.fail_over_load_balancer(id);
    world.run("web").await.settled();
    assert_eq!(world.sim.load_balancers()[0].part.id, id);
    assert_eq!(world.sim.members().len(), 4);
    world.assert_settled("web").await;
}

/// Within one reconcile: what was read of the parts before the change is old when it has failed.
#[tokio::test(start_paused = true)]
async fn parts_are_looked_at_when_it_has_failed() {
    let world = two_ports().await;
    answer(&world, &[30080, 30443], false);
    let id = world.sim.load_balancers()[0].part.id;
    let report = |forwarder| world.sim.edit_load_balancer(id, |it| it.forwarder = forwarder);
    report(Forwarder::KnownLost);
    world.sim.set_behaviour(|behaviour| behaviour.failing_changes = 1);
    world.annotate("web", "connection-limit", "5");
    let run = async {
        let run = world.run("web").await;
        assert!(run.complaint().contains("may still carry traffic"), "{run:#?}");
    };
    let recovery = async {
        tokio::time::sleep(Duration::from_millis(700)).await;
        report(Forwarder::Working); // and no member answers
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
    // A worker that was lost leaves parts as they are for ever.
    for part in world.sim.pools() {
        world
            .sim
            .edit_pool(part.part.id, |it| it.part.status = Provisioning::PendingUpdate);
    }
    for part in world.sim.listeners() {
        world
            .sim
            .edit_listener(part.part.id, |it| it.part.status = Provisioning::PendingUpdate);
    }
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
