//! Removal.

use std::time::Duration;

use bowline_kit::Interruption;
use bowline_openstack_sim::Provisioning;

use crate::world::{World, in_short};

#[tokio::test(start_paused = true)]
async fn a_removal_takes_the_floating_ip_and_then_the_load_balancer_with_all_its_parts() {
    let world = World::with_nodes(2);
    world.run("web").await.settled();
    world.delete("web");
    let (run, writes) = world.writes_of(world.run("web")).await;
    run.settled();
    assert_eq!(
        in_short(&writes),
        ["neutron.floatingips.delete", "octavia.loadbalancers.delete"]
    );
    assert_eq!(world.sim.leftovers(), Vec::<String>::new());
    world.assert_settled("web").await;
}

#[tokio::test(start_paused = true)]
async fn parts_are_deleted_one_by_one_where_cascades_are_off() {
    let mut world = World::with_nodes(1);
    world.configure(|options| {
        options.deletes_by_cascade = false;
        options.monitor.is_wanted = true;
    });
    world.run("web").await.settled();
    world.delete("web");
    let (run, writes) = world.writes_of(world.run("web")).await;
    run.settled();
    assert_eq!(
        in_short(&writes),
        [
            "neutron.floatingips.delete",
            "octavia.healthmonitors.delete",
            "octavia.pools.delete",
            "octavia.listeners.delete",
            "octavia.loadbalancers.delete",
        ]
    );
    assert_eq!(writes.last().unwrap().query, []);
}

/// Octavia deletes no monitor of such a pool, but the pool with its monitor.
#[tokio::test(start_paused = true)]
async fn a_pool_that_failed_goes_with_its_monitor() {
    let mut world = World::with_nodes(1);
    world.configure(|options| {
        options.deletes_by_cascade = false;
        options.monitor.is_wanted = true;
    });
    world.run("web").await.settled();
    let pool = world.sim.pools()[0].part.id;
    world
        .sim
        .edit_pool(pool, |pool| pool.part.status = Provisioning::Error);
    world.delete("web");
    world.run("web").await.settled();
    assert_eq!(world.sim.leftovers(), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn what_is_pending_is_not_deleted() {
    let world = World::with_nodes(1);
    world.run("web").await.settled();
    let id = world.sim.load_balancers()[0].part.id;
    world.sim.set_provisioning(id, Provisioning::PendingUpdate);
    let told = format!("load balancer {id} is not ACTIVE, current provisioning status: PENDING_UPDATE; ");
    is_told_soon(&world, &told).await;
    world.delete("web");
    let told =
        format!("load balancer {id} is in immutable status, current provisioning status: PENDING_UPDATE; ");
    is_told_soon(&world, &told).await;
}

/// Somebody else changes the load balancer: nothing is written, and what is waited for is told within half a minute.
async fn is_told_soon(world: &World, told: &str) {
    let begun = tokio::time::Instant::now();
    let (run, writes) = world.writes_of(world.run("web")).await;
    assert!(run.complaint().starts_with(told), "{run:#?}");
    assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", begun.elapsed());
    assert!(writes.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_failed_load_balancer_goes_with_its_service() {
    let world = World::with_nodes(1);
    world.run("web").await.settled();
    let id = world.sim.load_balancers()[0].part.id;
    world.sim.break_load_balancer(id);
    world.delete("web");
    world.run("web").await.settled();
    assert_eq!(world.sim.leftovers(), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn a_load_balancer_that_is_gone_leaves_nothing_behind() {
    let mut world = World::with_nodes(2);
    world.configure(|options| options.manages_security_groups = true);
    world.run("web").await.settled();
    world
        .sim
        .delete_load_balancer(world.sim.load_balancers()[0].part.id);
    world.delete("web");
    world.run("web").await.settled();
    assert_eq!(world.sim.leftovers(), Vec::<String>::new());
    assert!(world.sim.ports().iter().all(|port| port.groups.len() < 2));
}

#[tokio::test(start_paused = true)]
async fn a_typo_does_not_block_a_removal() {
    let world = World::with_nodes(1);
    world.run("web").await.settled();
    world.annotate("web", "class", "no-such-class");
    world.delete("web");
    world.run("web").await.settled();
    assert!(world.sim.load_balancers().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_service_deleted_while_its_load_balancer_is_being_made_leaves_nothing() {
    let world = World::with_nodes(1);
    world.run_with("web", Interruption::AfterStep(1)).await;
    assert_eq!(
        world.sim.load_balancers()[0].part.status,
        Provisioning::PendingCreate
    );
    world.delete("web");
    world.run("web").await.settled();
    assert_eq!(world.sim.leftovers(), Vec::<String>::new());
}

/// The project has as many load balancers as it may.
#[tokio::test(start_paused = true)]
async fn a_creation_that_is_refused_leaves_nothing() {
    let world = World::with_nodes(1);
    world
        .sim
        .set_behaviour(|behaviour| behaviour.quota.load_balancers = Some(0));
    let run = world.run("web").await;
    assert!(
        run.complaint().starts_with("error during create-lb("),
        "{}",
        run.complaint()
    );
    assert_eq!(world.annotation("web", "load-balancer-id"), None);
    assert_eq!(world.sim.leftovers(), Vec::<String>::new());
}
