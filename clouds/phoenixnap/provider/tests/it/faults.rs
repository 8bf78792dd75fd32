//! Whatever goes wrong at whichever write: one block for each Service that lives, none for the others.

use std::time::Duration;

use bowline_kit::Run;
use bowline_kit::faults::{Disturbed, at_every_stop, at_every_write};
use bowline_phoenixnap_sim::kit::Fault;
use bowline_phoenixnap_sim::kit::faults::{Canned, FaultBuilder};
use serde_json::Value;

use crate::world::{Interruption, World};

const KEY: &str = "shop/checkout";

impl Disturbed for World {
    /// Whether it is the removal; else it is the creation.
    type Change = bool;
    type State = Value;

    fn changes() -> Vec<(String, bool)> {
        vec![("creation".to_owned(), false), ("removal".to_owned(), true)]
    }

    async fn before(is_removal: bool) -> Self {
        let world = World::with_service();
        if is_removal {
            world.run(KEY).await.settled();
            world.delete(KEY);
        }
        world
    }

    async fn reconcile(&self, interruption: Interruption) -> Run {
        self.run_with(KEY, interruption).await
    }

    async fn start_anew(&mut self) {
        self.restart();
    }

    async fn tidy_up(&self) {
        if self.is_there(KEY) == Some(false) {
            self.forget(KEY);
        }
        self.sweep().await;
        let blocks = self.sim.blocks().len();
        assert_eq!(blocks, usize::from(self.is_there(KEY).is_some()));
    }

    bowline_kit::disturbed!();
}

#[tokio::test(start_paused = true)]
async fn a_write_that_fails_or_whose_answer_is_lost_is_made_good_by_the_next_run() {
    at_every_write::<World>("500", |fault| fault.status(500)).await;
    at_every_write::<World>("500 after", |fault| fault.status_after(500)).await;
    at_every_write::<World>("lost before", FaultBuilder::drop_before).await;
    at_every_write::<World>("lost answer", FaultBuilder::lose_answer).await;
}

#[tokio::test(start_paused = true)]
async fn a_process_that_stops_between_any_two_steps_is_taken_over() {
    at_every_stop::<World>(Interruption::BeforeStep, |_| ()).await;
}

#[tokio::test(start_paused = true)]
async fn a_sweep_that_fails_anywhere_is_made_good_by_the_next_one() {
    for k in 1..=2 {
        for fault in [
            Fault::write().nth(k).status(500),
            Fault::write().nth(k).lose_answer(),
        ] {
            let mut world = World::before(true).await;
            world.run(KEY).await.settled();
            world.forget(KEY);
            let id = world.sim.faults().add(fault);
            world.sweep().await;
            assert_eq!(world.sim.faults().struck(id), 1, "at {k}");
            world.restart();
            world.sweep().await;
            assert!(world.sim.blocks().is_empty(), "at {k}");
        }
    }
}

/// Both the loop's queue and a Node's back-off wait as long as the error says.
#[tokio::test(start_paused = true)]
async fn an_api_that_asks_for_more_than_half_a_minute_is_asked_again_after_half_a_minute() {
    for (stated, expected) in [(7, 7), (31, 30), (120, 30), (86_400, 30)] {
        for status in [429, 503] {
            let world = World::new();
            let later = Canned::empty(status).header("retry-after", &format!("{stated}"));
            world.sim.faults().add(Fault::path("/**").always().answer(later));
            let error = world.try_sweep().await.unwrap_err();
            let expected = Some(Duration::from_secs(expected));
            assert_eq!(error.retry_after(), expected, "{status}, {stated} s: {error}");
        }
    }
}
