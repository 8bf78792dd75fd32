//! Whatever goes wrong at whichever write, the next run ends in the same state.

use bowline_kit::faults::{Disturbed, at_every_stop, at_every_write};
use bowline_kit::{Interruption, Run};
use bowline_paper_sim::kit::faults::FaultBuilder;
use serde_json::Value;

use crate::world::World;

impl Disturbed for World {
    /// Something that changes a settled world; none is the creation.
    type Change = Option<fn(&mut World)>;
    type State = Value;

    /// What failed is held back for a while.
    const RUNS: usize = 2;

    fn changes() -> Vec<(String, Self::Change)> {
        let rebuild = |world: &mut World| {
            world.remove_node("n1");
            world.add_node("n3");
            world.set_ports(&[("TCP", 80, 31080), ("TCP", 443, 30443)]);
        };
        vec![
            ("create".to_owned(), None),
            ("rebuild".to_owned(), Some(rebuild)),
            ("removal".to_owned(), Some(|world| world.delete())),
        ]
    }

    async fn before(change: Self::Change) -> Self {
        let mut world = World::new(2);
        if let Some(change) = change {
            world.run().await.settled();
            change(&mut world);
        }
        world
    }

    async fn reconcile(&self, interruption: Interruption) -> Run {
        self.run_with(interruption).await
    }

    async fn start_anew(&mut self) {
        self.restart();
    }

    bowline_kit::disturbed!();
}

// guide: faults
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
// guide: end

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
