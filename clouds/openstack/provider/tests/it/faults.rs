//! Whatever goes wrong at whichever write, the next run ends in the same state.

use std::time::Duration;

use bowline_kit::Interruption;
use bowline_kit::faults::{Disturbed, at_every_stop, at_every_write};
use bowline_openstack_sim::kit::Fault;
use bowline_openstack_sim::kit::faults::FaultBuilder;
use serde_json::Value;
use tokio::time::advance;

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

/// An overloaded Octavia may make it a while after everybody gave up.
#[tokio::test(start_paused = true)]
async fn a_creation_that_is_not_answered_in_time_is_waited_for() {
    let world = World::with_nodes(1);
    let creation = || Fault::operation("octavia.loadbalancers.create");
    let complaint = "Octavia did not answer in time: it may still come";
    for is_wanted in [true, false] {
        world.sim.faults().add(creation().hang_before());
        let first = world.run("web").await;
        assert!(!first.complaint().is_empty(), "{first:?}");
        if !is_wanted {
            world.delete("web");
        }
        let (run, writes) = world.writes_of(world.run("web")).await;
        assert!(run.complaint().contains(complaint), "{run:?}");
        assert!(writes.is_empty());
        advance(Duration::from_secs(61)).await;
        world.run("web").await.settled();
        assert_eq!(world.sim.load_balancers().len(), usize::from(is_wanted));
        if is_wanted {
            world.delete("web");
            world.run("web").await.settled();
            world.put(service("web", &[("TCP", 80, 30080)]));
        }
    }
    // It came.
    for is_wanted in [true, false] {
        world.put(service("web", &[("TCP", 80, 30080)]));
        world.sim.faults().add(creation().hang_after());
        world.run("web").await;
        if !is_wanted {
            world.delete("web");
        }
        world.run("web").await.settled();
        assert_eq!(world.sim.load_balancers().len(), usize::from(is_wanted));
        world.delete("web");
        world.run("web").await.settled();
    }
}

/// As from a proxy before Octavia, which tells nothing of what comes of the request.
#[tokio::test(start_paused = true)]
async fn a_creation_that_may_have_been_made_is_looked_for_longer_and_longer_before_the_next_one() {
    let world = World::with_nodes(1);
    let broken = Fault::operation("octavia.loadbalancers.create").always();
    world.sim.faults().add(broken.status(502));
    for wait in [5, 10, 20, 40, 60, 60] {
        let (_, writes) = world.writes_of(world.run("web")).await;
        assert_eq!(writes.len(), 1, "{wait}");
        advance(Duration::from_secs(wait - 1)).await;
        let (run, writes) = world.writes_of(world.run("web")).await;
        assert!(run.complaint().contains("it may still come"), "{run:?}");
        assert!(writes.is_empty(), "{wait}");
        advance(Duration::from_secs(2)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_process_that_stops_between_any_two_steps_is_taken_over() {
    at_every_stop::<World>(Interruption::AfterStep, |_| ()).await;
}
