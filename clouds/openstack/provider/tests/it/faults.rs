//! Whatever goes wrong at whichever write, the next run ends in the same state.

use std::time::Duration;

use bowline_openstack_sim::Snapshot;
use bowline_openstack_sim::kit::Fault;
use bowline_provider_kit::Interruption;
use tokio::time::advance;

use crate::world::{Outcome, World, service};

/// Something that changes a settled world; the first one also creates the load balancer.
pub(crate) type Change = fn(&mut World);

fn nothing(_: &mut World) {}

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

pub(crate) const CHANGES: &[(&str, Change)] = &[
    ("create", nothing),
    ("rebuild", rebuild),
    ("protocol", protocol),
    ("inwards", inwards),
    ("failure", failure),
    ("removal", removal),
];

/// A world before the change; the creation begins with nothing.
pub(crate) async fn before(name: &str, change: Change) -> World {
    let mut world = World::with_nodes(2);
    world.configure(|options| {
        options.monitor.is_wanted = true;
        options.manages_security_groups = true;
    });
    world.put(service("web", &[("TCP", 80, 30080)]));
    if name != "create" {
        world.run("web").await.settled();
        change(&mut world);
    }
    world
}

async fn undisturbed(name: &str, change: Change) -> (Snapshot, u64) {
    let world = before(name, change).await;
    let (run, writes) = world.writes_of(world.run("web")).await;
    run.settled();
    (world.sim.snapshot(), writes.len() as u64)
}

async fn disturbed(name: &str, change: Change, expected: &Snapshot, what: &str, fault: Fault) {
    let mut world = before(name, change).await;
    let id = world.sim.faults().add(fault);
    // The run may fail, or may not notice at all.
    let first = world.run("web").await;
    assert_eq!(world.sim.faults().struck(id), 1, "{name}: {what}");
    world.restart();
    let again = world.run("web").await;
    assert!(
        matches!(again.outcome, Outcome::Settled(_)),
        "{name}: {what}: {first:#?} {again:#?}"
    );
    assert_eq!(&world.sim.snapshot(), expected, "{name}: {what}");
    world.assert_settled("web").await;
}

#[tokio::test(start_paused = true)]
async fn a_write_that_fails_is_made_by_the_next_run() {
    for (name, change) in CHANGES {
        let (expected, writes) = undisturbed(name, *change).await;
        assert!(writes > 0);
        for k in 1..=writes {
            let fault = Fault::write().nth(k).status(500);
            disturbed(name, *change, &expected, &format!("500 at {k}"), fault).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_write_whose_answer_is_lost_is_not_made_twice() {
    for (name, change) in CHANGES {
        let (expected, writes) = undisturbed(name, *change).await;
        for k in 1..=writes {
            let fault = Fault::write().nth(k).lose_answer();
            disturbed(name, *change, &expected, &format!("lost at {k}"), fault).await;
        }
    }
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

#[tokio::test(start_paused = true)]
async fn a_process_that_stops_between_any_two_steps_is_taken_over() {
    for (name, change) in CHANGES {
        let (expected, _) = undisturbed(name, *change).await;
        for k in 0.. {
            let mut world = before(name, *change).await;
            let stopped = world.run_with("web", Interruption::AfterStep(k)).await;
            let is_done = matches!(stopped.outcome, Outcome::Settled(_));
            world.restart();
            world.run("web").await.settled();
            assert_eq!(world.sim.snapshot(), expected, "{name}: stopped after {k}");
            world.assert_settled("web").await;
            if is_done {
                break;
            }
        }
    }
}
