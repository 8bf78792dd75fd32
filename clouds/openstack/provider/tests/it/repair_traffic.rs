//! Which load balancers that Octavia gave up still carry traffic: what their listeners and pools tell.

use std::time::Duration;

use bowline_openstack_sim::model::balancing::Forwarder;

use crate::world::World;

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
