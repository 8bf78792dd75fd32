//! Whatever goes wrong at whichever write, the next run ends in the same state.

use std::time::Duration;

use bowline_cloudscale_sim::kit::Fault;
use bowline_cloudscale_sim::kit::faults::FaultBuilder;
use bowline_cloudscale_sim::{FloatingSpec, PoolDelete};
use bowline_kit::faults::{Disturbed, at_every_stop, at_every_write};
use bowline_kit::{Interruption, Run};

use bowline_kit::Outcome;
use serde_json::Value;

use crate::world::{World, in_short, service_port};

fn rebuild(world: &mut World) {
    world.remove_node("n1");
    world.add_node("n9");
    world.annotate("web", "pool-algorithm", "source_ip");
    world.annotate("web", "name", "edge");
}

fn policy(world: &mut World) {
    world.edit("web", |service| {
        let spec = service.spec.as_mut().unwrap();
        (spec.external_traffic_policy, spec.health_check_node_port) = (Some("Local".into()), Some(32500));
    });
}

fn ports(world: &mut World) {
    world.edit("web", |service| {
        let ports = [
            ("web", "TCP", 9000, 31200),
            ("new", "TCP", 8080, 31333),
            ("dns", "UDP", 53, 31300),
        ];
        service.spec.as_mut().unwrap().ports = Some(ports.map(service_port).into());
    });
    world.annotate("web", "listener-allowed-cidrs", r#"["192.0.2.0/24"]"#);
    world.annotate("web", "health-monitor-delay-s", "9");
}

fn removal(world: &mut World) {
    world.delete("web");
}

impl Disturbed for World {
    /// Something that changes a settled world; none is the creation.
    type Change = Option<fn(&mut World)>;
    type State = Value;

    fn changes() -> Vec<(String, Self::Change)> {
        let changes: [(&str, Self::Change); 5] = [
            ("create", None),
            ("rebuild", Some(rebuild)),
            ("policy", Some(policy)),
            ("ports", Some(ports)),
            ("removal", Some(removal)),
        ];
        changes.map(|(name, change)| (name.to_owned(), change)).into()
    }

    async fn before(change: Self::Change) -> Self {
        let mut world = World::with_nodes(2);
        let address = world.sim.add_floating_ip(FloatingSpec::default());
        world.annotate("web", "floating-ips", &format!("[\"{address}\"]"));
        world.sim.set_behaviour(|behaviour| {
            behaviour.pool_delete = PoolDelete::RefuseIfUsed;
            behaviour.duplicate_members = false;
        });
        if let Some(change) = change {
            world.run("web").await.settled();
            change(&mut world);
        }
        world
    }

    async fn reconcile(&self, interruption: Interruption) -> Run {
        self.run_with("web", interruption).await
    }

    async fn start_anew(&mut self) {
        self.restart();
    }

    bowline_kit::disturbed!();
}

#[tokio::test(start_paused = true)]
async fn a_write_that_fails_is_made_by_the_next_run() {
    at_every_write::<World>("500", |fault| fault.status(500)).await;
}

#[tokio::test(start_paused = true)]
async fn a_write_whose_answer_is_lost_is_not_made_twice() {
    at_every_write::<World>("lost", FaultBuilder::lose_answer).await;
}

#[tokio::test(start_paused = true)]
async fn a_process_that_stops_between_any_two_steps_is_taken_over() {
    at_every_stop::<World>(Interruption::AfterStep, |_| ()).await;
}

/// Runs by a schedule of five seconds until it settles.
async fn settle(world: &World) {
    for _ in 0..20 {
        if let Outcome::Settled(_) = world.run_after(0, "web").await.outcome {
            return;
        }
        tokio::time::sleep(Duration::from_secs(5)).await;
    }
    panic!("it never settles");
}

/// Load balancers cost money, and twins of the rest serve until somebody finds them.
#[tokio::test(start_paused = true)]
async fn what_was_created_is_looked_for_in_late_lists_before_it_is_created_again() {
    type Fail = fn(FaultBuilder) -> Fault;
    // A cloud that says that it failed is believed sooner.
    let table: [(Fail, u64); 3] = [
        (FaultBuilder::lose_answer, 8),
        (|it| it.status_after(500), 4),
        (|it| it.status_after(504), 8),
    ];
    let (_, writes) = async {
        let world = World::with_nodes(1);
        world.writes_of(world.run("web")).await
    }
    .await;
    for (fail, lag) in table {
        for k in 0..=writes.len() {
            let world = World::with_nodes(1);
            world
                .sim
                .set_behaviour(|it| it.list_lag = Duration::from_secs(lag));
            // Without a fault, too.
            if let Ok(nth @ 1..) = u64::try_from(k) {
                world.sim.faults().add(fail(Fault::write().nth(nth)));
            }
            let (_, made) = world.writes_of(settle(&world)).await;
            let sorted = |writes| {
                let mut kinds = in_short(writes);
                kinds.sort();
                kinds
            };
            assert_eq!(
                sorted(&made),
                sorted(&writes),
                "{:?}",
                fail(Fault::write().nth(k as u64))
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_was_not_created_is_created_after_waits_that_grow() {
    let world = World::with_nodes(1);
    world.sim.faults().add(Fault::write().times(3).status(500));
    let begun = tokio::time::Instant::now();
    for waited in [0, 5, 10] {
        let run = world.run_after(0, "web").await;
        assert!(matches!(run.outcome, Outcome::Failed(_)), "{run:#?}");
        assert_eq!(run.waited.as_secs(), waited);
    }
    world.run_after(0, "web").await.settled();
    // Lists start some time apart, too.
    assert!((35..45).contains(&begun.elapsed().as_secs()));
    assert_eq!(world.sim.load_balancers().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_service_that_goes_takes_along_a_load_balancer_that_is_listed_late() {
    let fails: [fn(FaultBuilder) -> Fault; 2] = [FaultBuilder::lose_answer, |it| it.status_after(500)];
    for fail in fails {
        let world = World::with_nodes(1);
        world
            .sim
            .set_behaviour(|it| it.list_lag = Duration::from_secs(10));
        world.sim.faults().add(fail(Fault::write().nth(1)));
        assert!(matches!(world.run("web").await.outcome, Outcome::Failed(_)));
        world.delete("web");
        world.run_after(1, "web").await.settled();
        assert!(world.sim.load_balancers().is_empty());
    }
}
