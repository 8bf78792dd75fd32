//! Whatever goes wrong at whichever write, the next run ends in the same state.

use bowline_paper_sim::kit::Fault;
use bowline_paper_sim::kit::faults::FaultBuilder;
use serde_json::Value;

use crate::world::{Outcome, World};

/// Something that changes a settled world; the creation begins with nothing.
type Change = fn(&mut World);

const CHANGES: &[(&str, Change)] = &[
    ("create", |_| {}),
    ("rebuild", |world| {
        world.remove_node("n1");
        world.add_node("n3");
        world.set_ports(&[("TCP", 80, 31080), ("TCP", 443, 30443)]);
    }),
    ("removal", |world| world.delete()),
];

async fn before(name: &str, change: Change) -> World {
    let mut world = World::new(2);
    if name != "create" {
        world.run().await.settled();
        change(&mut world);
    }
    world
}

async fn undisturbed(name: &str, change: Change) -> (Value, u64) {
    let world = before(name, change).await;
    let writes = world.writes_of_a_run().await;
    (world.sim.snapshot(), writes)
}

// guide: faults
async fn disturbed_at_every_write(what: &str, fault: impl Fn(FaultBuilder) -> Fault) {
    for (name, change) in CHANGES {
        let (expected, writes) = undisturbed(name, *change).await;
        assert!(writes > 0);
        for k in 1..=writes {
            let mut world = before(name, *change).await;
            let id = world.sim.faults().add(fault(Fault::write().nth(k)));
            // The run may fail, or may not notice at all.
            let first = world.run().await;
            assert_eq!(world.sim.faults().struck(id), 1, "{name}: {what} at {k}");
            world.restart();
            world.run().await.settled();
            assert_eq!(
                world.sim.snapshot(),
                expected,
                "{name}: {what} at {k}: {first:#?}"
            );
            assert_eq!(
                world.sim.check_invariants(),
                Vec::<String>::new(),
                "{name}: {what} at {k}"
            );
            assert_eq!(world.writes_of_a_run().await, 0, "{name}: {what} at {k}");
        }
    }
}
// guide: end

#[tokio::test(start_paused = true)]
async fn a_write_that_fails_is_made_by_the_next_run() {
    disturbed_at_every_write("500", |fault| fault.status(500)).await;
}

#[tokio::test(start_paused = true)]
async fn a_write_whose_answer_is_lost_is_not_made_twice() {
    disturbed_at_every_write("lost", FaultBuilder::lose_answer).await;
}

#[tokio::test(start_paused = true)]
async fn a_process_that_stops_between_any_two_steps_is_taken_over() {
    for (name, change) in CHANGES {
        let (expected, _) = undisturbed(name, *change).await;
        for k in 0.. {
            let mut world = before(name, *change).await;
            let is_done = matches!(world.run_steps(k).await.outcome, Outcome::Settled(_));
            world.restart();
            world.run().await.settled();
            assert_eq!(world.sim.snapshot(), expected, "{name}: stopped after {k}");
            if is_done {
                break;
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn of_several_that_bear_the_mark_the_oldest_stays() {
    let mut world = World::new(1);
    world.run().await.settled();
    let first = world.sim.balancers()[0].id;
    tokio::time::advance(std::time::Duration::from_secs(1)).await;
    // A second one, as a lost answer and a listing that was late would leave behind.
    let hidden = world.sim.balancers()[0].clone();
    world.sim.change_balancer(first, |balancer| balancer.owner = None);
    world.run().await.settled();
    world
        .sim
        .change_balancer(first, |balancer| balancer.owner = hidden.owner);
    world.restart();
    let run = world.run().await.settled();
    assert_eq!(run.kinds_of_steps(), ["delete-balancer"]);
    let left: Vec<_> = world.sim.balancers().iter().map(|balancer| balancer.id).collect();
    assert_eq!(left, [first]);
}
