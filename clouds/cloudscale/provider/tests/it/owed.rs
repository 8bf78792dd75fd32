//! What was begun and not brought to an end: the balancer was busy, the Service changed, or the process ended in between.

use std::time::Duration;

use bowline_cloudscale_sim::PoolDelete;
use bowline_cloudscale_sim::kit::Fault;
use bowline_cloudscale_sim::kit::journal::Entry;
use bowline_kit::Outcome;

use crate::change::{set_ports, settled};
use crate::world::{World, in_short};

/// A settled world whose API refuses writes to a load balancer for a moment after each one.
async fn busy(nodes: usize) -> World {
    let world = settled(nodes).await;
    world.speaks_plainly();
    world.sim.set_behaviour(|behaviour| {
        behaviour.lb_change_time = Duration::from_millis(100);
        behaviour.refuse_writes_while_changing = Some(409);
    });
    world
}

/// The same, changed, and stopped as soon as something of it is missing.
async fn stopped(suffix: &str, value: &str, is_missing: impl Fn(&World) -> bool) -> World {
    for steps in 1..60 {
        let world = busy(2).await;
        world.annotate("web", suffix, value);
        world.run_steps("web", steps).await;
        if is_missing(&world) {
            return world;
        }
    }
    panic!("nothing made way")
}

fn taken(writes: &[Entry]) -> Vec<String> {
    let taken = writes
        .iter()
        .filter(|it| it.status().is_some_and(|status| status < 300));
    in_short(&taken.cloned().collect::<Vec<_>>())
}

#[tokio::test(start_paused = true)]
async fn a_port_whose_listener_made_way_is_opened_before_anything_else() {
    for is_restarted in [false, true] {
        let mut world = stopped("pool-algorithm", "least_connections", |world| {
            world.sim.listeners().len() < 2
        })
        .await;
        if is_restarted {
            world.restart();
        }
        world.annotate("web", "pool-algorithm", "source_ip");
        world.add_node("n3");
        let (run, writes) = world.writes_of(world.run("web")).await;
        run.settled();
        assert_eq!(taken(&writes)[0], "POST listeners", "{is_restarted}: {writes:#?}");
        assert_eq!(world.sim.check_invariants(), Vec::<String>::new());
        assert!(world.writes_of(world.run("web")).await.1.is_empty());
    }
}

/// What makes the rest of the plan refused does not keep a port closed.
#[tokio::test(start_paused = true)]
async fn a_port_whose_listener_made_way_is_opened_also_where_the_next_change_is_refused() {
    let world = stopped("pool-algorithm", "least_connections", |world| {
        world.sim.listeners().len() < 2
    })
    .await;
    world.annotate("web", "flavor", "lb-large");
    let run = world.run("web").await;
    assert!(matches!(run.outcome, Outcome::Refused(_)), "{run:?}");
    assert_eq!(world.sim.listeners().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_pool_whose_monitor_made_way_gets_one_before_anything_else() {
    let world = stopped("health-monitor-type", "http", |world| {
        world.sim.health_monitors().len() < 2
    })
    .await;
    set_ports(
        &world,
        &[("web", "TCP", 8080, 31300), ("admin", "TCP", 9000, 31301)],
    );
    let (run, writes) = world.writes_of(world.run("web")).await;
    run.settled();
    assert_eq!(taken(&writes)[0], "POST health-monitors", "{writes:#?}");
    assert!(world.writes_of(world.run("web")).await.1.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_pool_that_has_to_be_emptied_costs_one_deletion_per_part() {
    let world = busy(10).await;
    world
        .sim
        .set_behaviour(|behaviour| behaviour.pool_delete = PoolDelete::RefuseIfUsed);
    set_ports(&world, &[("admin", "TCP", 9000, 31201)]);
    let (run, writes) = world.writes_of(world.run("web")).await;
    let run = run.settled();
    let of_status = |status| writes.iter().filter(|it| it.status() == Some(status)).count();
    assert_eq!(of_status(404), 0, "{writes:#?}");
    assert_eq!(of_status(400), 1, "{writes:#?}");
    // A listener, ten members, a monitor and the pool; a busy balancer refuses the first hurried write, and then none.
    assert_eq!(taken(&writes).len(), 13, "{writes:#?}");
    assert!(of_status(409) <= 2, "{writes:#?}");
    assert!(run.waited < Duration::from_secs(5), "{:?}", run.waited);
}

#[tokio::test(start_paused = true)]
async fn a_new_process_looks_for_what_the_one_before_may_have_created() {
    let mut world = World::with_nodes(1);
    world
        .sim
        .set_behaviour(|it| it.list_lag = Duration::from_secs(12));
    world.sim.faults().add(Fault::write().nth(1).lose_answer());
    assert!(matches!(world.run("web").await.outcome, Outcome::Failed(_)));
    world.restart();
    world.edit("web", |service| {
        service.metadata.finalizers = Some(vec!["service.kubernetes.io/load-balancer-cleanup".to_owned()]);
    });
    world.run_after(0, "web").await.settled();
    assert_eq!(world.sim.load_balancers().len(), 1);
    let created = world.sim.journal().filter(|entry| entry.write);
    let created = in_short(&created)
        .into_iter()
        .filter(|it| it == "POST load-balancers");
    assert_eq!(created.count(), 1);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_said_of_a_list_that_shows_late_what_was_created() {
    let world = World::with_nodes(1);
    world
        .sim
        .set_behaviour(|it| it.list_lag = Duration::from_secs(12));
    let run = world.run("web").await.settled();
    assert!(run.waited < Duration::from_secs(20), "{:?}", run.waited);
}

#[tokio::test(start_paused = true)]
async fn a_pool_that_does_not_go_when_it_is_empty_either_is_told_of() {
    let world = settled(2).await;
    let pools = Fault::on(http::Method::DELETE, "/v1/load-balancers/pools/*");
    world.sim.faults().add(pools.always().status(400));
    set_ports(&world, &[("admin", "TCP", 9000, 31201)]);
    let (run, writes) = world.writes_of(world.run("web")).await;
    assert!(run.complaint().contains("delete-resource("), "{run:?}");
    let of_pools = in_short(&writes).into_iter().filter(|it| it == "DELETE pools");
    assert_eq!(of_pools.count(), 2, "{writes:#?}");
}
