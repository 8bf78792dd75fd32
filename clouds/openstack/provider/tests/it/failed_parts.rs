//! Parts that Octavia failed to make or to change, of a load balancer that works. It has noted what was asked for by then, and shows that.
//! Pools of that kind take neither members nor a monitor.

use std::time::Duration;

use bowline_openstack_sim::Provisioning;

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

#[tokio::test(start_paused = true)]
async fn one_that_failed_to_change_is_mended_and_gets_its_members() {
    let mut world = World::with_nodes(1);
    world.set_ports("web", &[("TCP", 80, 30080), ("TCP", 443, 30443)]);
    world.run("web").await.settled();
    let pool = world.sim.pools()[0].part.id;
    world
        .sim
        .edit_pool(pool, |pool| pool.part.status = Provisioning::Error);
    let_a_minute_pass(&world).await;
    world.add_node("node-2");
    let (run, writes) = world.writes_of(world.run("web")).await;
    run.settled();
    assert_eq!(
        in_short(&writes),
        [
            "octavia.pools.update",
            "octavia.members.replace",
            "octavia.members.replace"
        ]
    );
    assert_eq!(members(&world), 4);
    world.assert_settled("web").await;
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

#[tokio::test(start_paused = true)]
async fn one_that_cannot_be_mended_holds_up_no_other_port() {
    let mut world = World::with_nodes(1);
    world.set_ports("web", &[("TCP", 80, 30080), ("TCP", 443, 30443)]);
    world.run("web").await.settled();
    let pool = world.sim.pools()[0].part.id;
    world
        .sim
        .edit_pool(pool, |pool| pool.part.status = Provisioning::Error);
    let_a_minute_pass(&world).await;
    world.add_node("node-2");
    fail(&world, 1);
    let (run, writes) = world.writes_of(world.run("web")).await;
    assert!(
        run.complaint().contains("in provisioning status ERROR, in which"),
        "{run:#?}"
    );
    assert_eq!(
        in_short(&writes),
        [
            "octavia.pools.update",
            "octavia.members.replace",
            "octavia.members.replace"
        ],
        "the first list is refused, and tells"
    );
    assert_eq!(members(&world), 3);
    let_a_minute_pass(&world).await;
    world.run("web").await.settled();
    assert_eq!(members(&world), 4);
    world.assert_settled("web").await;
}

/// The list of members is as it shall be in Octavia's books, and the amphora has another one.
#[tokio::test(start_paused = true)]
async fn a_change_that_failed_is_told_of_and_made_again_after_a_minute() {
    for (what, operation) in [
        ("member node-2 (10.0.0.", "octavia.members.replace"),
        ("listener listener_0_", "octavia.listeners.update"),
        ("health monitor monitor_0_", "octavia.healthmonitors.update"),
    ] {
        let mut world = World::with_nodes(1);
        world.annotate("web", "enable-health-monitor", "true");
        world.run("web").await.settled();
        fail(&world, 1);
        match what {
            what if what.starts_with("member") => drop(world.add_node("node-2")),
            what if what.starts_with("listener") => world.annotate("web", "connection-limit", "5"),
            _ => world.annotate("web", "health-monitor-delay", "20"),
        }
        world.run("web").await;
        // It fails once more.
        fail(&world, 1);
        let told = async |writes_expected: &[&str]| {
            let (run, writes) = world.writes_of(world.run("web")).await;
            let run = run.settled();
            assert_eq!(run.reasons(), ["LoadBalancerInError"], "{what}");
            assert!(run.notes[0].text.contains(what), "{run:#?}");
            assert_eq!(in_short(&writes), writes_expected, "{what}");
        };
        for _ in 0..2 {
            told(&[]).await;
            tokio::time::advance(Duration::from_secs(60)).await;
            told(&[operation]).await;
        }
        world.assert_settled("web").await;
    }
}

/// Some releases of Octavia mark another object in its place when the change of a monitor fails.
#[tokio::test(start_paused = true)]
async fn a_monitor_that_stays_pending_is_written_again() {
    let world = World::with_nodes(1);
    world.annotate("web", "enable-health-monitor", "true");
    world.run("web").await.settled();
    let monitor = world.sim.health_monitors()[0].part.id;
    world
        .sim
        .edit_health_monitor(monitor, |it| it.part.status = Provisioning::PendingUpdate);
    let_a_minute_pass(&world).await;
    let (run, writes) = world.writes_of(world.run("web")).await;
    let run = run.settled();
    assert_eq!(run.reasons(), ["LoadBalancerInError"]);
    assert!(run.notes[0].text.contains("(PENDING_UPDATE)"), "{run:#?}");
    assert_eq!(in_short(&writes), ["octavia.healthmonitors.update"]);
    world.assert_settled("web").await;
}

#[tokio::test(start_paused = true)]
async fn a_pool_that_stays_pending_is_named_in_what_is_told() {
    let mut world = World::with_nodes(1);
    world.run("web").await.settled();
    let pool = world.sim.pools()[0].part.id;
    world
        .sim
        .edit_pool(pool, |it| it.part.status = Provisioning::PendingUpdate);
    world.add_node("node-2");
    let run = world.run("web").await;
    assert!(run.complaint().starts_with("a pool of load balancer"), "{run:#?}");
}
