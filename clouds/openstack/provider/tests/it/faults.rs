//! Whatever goes wrong at whichever write, the next run ends in the same state.

use bowline_kit::Interruption;
use bowline_kit::faults::{Disturbed, at_every_stop, at_every_write};
use bowline_openstack_sim::kit::faults::FaultBuilder;
use serde_json::Value;

use crate::world::{Run, World, service};

fn rebuild(world: &mut World) {
    world.remove_node("node-1");
    world.add_node("node-9");
    world.annotate("web", "proxy-protocol", "true");
    world.set_ports("web", &[("TCP", 80, 30080), ("UDP", 53, 30053)]);
}

fn protocol(world: &mut World) {
    world.annotate("web", "x-forwarded-for", "true");
    world.annotate("web", "enable-health-monitor", "false");
}

fn inwards(world: &mut World) {
    world.annotate("web", "internal", "true");
}

fn failure(world: &mut World) {
    let id = world.sim.load_balancers()[0].part.id;
    world.sim.break_load_balancer(id);
}

fn removal(world: &mut World) {
    world.delete("web");
}

impl Disturbed for World {
    /// Something that changes a settled world; none is the creation.
    type Change = Option<fn(&mut World)>;
    type State = Value;

    fn changes() -> Vec<(String, Self::Change)> {
        let changes: [(&str, Self::Change); 6] = [
            ("create", None),
            ("rebuild", Some(rebuild)),
            ("protocol", Some(protocol)),
            ("inwards", Some(inwards)),
            ("failure", Some(failure)),
            ("removal", Some(removal)),
        ];
        changes.map(|(name, change)| (name.to_owned(), change)).into()
    }

    async fn before(change: Self::Change) -> Self {
        let mut world = World::with_nodes(2);
        world.configure(|options| {
            options.monitor.is_wanted = true;
            options.manages_security_groups = true;
        });
        world.put(service("web", &[("TCP", 80, 30080)]));
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
