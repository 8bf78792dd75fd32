//! Whatever goes wrong at whichever write, the next run ends in the same state.

use bowline_cloudscale_sim::kit::faults::FaultBuilder;
use bowline_cloudscale_sim::{FloatingSpec, PoolDelete};
use bowline_kit::faults::{Disturbed, at_every_stop, at_every_write};
use bowline_kit::{Interruption, Run};
use serde_json::Value;

use crate::world::{World, service_port};

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
