//! Whatever goes wrong at whichever write: one block for each Service that lives, none for the others.

use std::time::Duration;

use bowline_phoenixnap_sim::Snapshot;
use bowline_phoenixnap_sim::kit::Fault;
use bowline_phoenixnap_sim::kit::faults::Canned;

use crate::world::{Outcome, World};

const KEY: &str = "shop/checkout";

/// A world before the Service is created, or before it is deleted.
async fn before(is_removal: bool) -> World {
    let world = World::with_service();
    if is_removal {
        world.run(KEY).await.settled();
        world.delete(KEY);
    }
    world
}

async fn finish(world: &World, is_removal: bool, what: &str) -> Snapshot {
    let run = world.run(KEY).await;
    assert!(matches!(run.outcome, Outcome::Settled(_)), "{what}: {run:#?}");
    if is_removal {
        world.forget(KEY);
    }
    world.sweep().await;
    world.check(what);
    world.sim.snapshot()
}

/// The writes to the cloud of an undisturbed run.
async fn writes_of(is_removal: bool) -> u64 {
    let world = before(is_removal).await;
    let mark = world.sim.journal().mark();
    world.run(KEY).await.settled();
    let entries = world.sim.journal().since(mark);
    entries
        .iter()
        .filter(|entry| entry.write && entry.operation != "token")
        .count() as u64
}

#[tokio::test(start_paused = true)]
async fn a_write_that_fails_or_whose_answer_is_lost_is_made_good_by_the_next_process() {
    type Make = fn(u64) -> Fault;
    let kinds: [(&str, Make); 4] = [
        ("500", |k| Fault::write().nth(k).status(500)),
        ("500 after", |k| Fault::write().nth(k).status_after(500)),
        ("lost before", |k| Fault::write().nth(k).drop_before()),
        ("lost answer", |k| Fault::write().nth(k).lose_answer()),
    ];
    for is_removal in [false, true] {
        let world = before(is_removal).await;
        let expected = finish(&world, is_removal, "undisturbed").await;
        assert_eq!(expected.blocks.len(), usize::from(!is_removal));
        let writes = writes_of(is_removal).await;
        assert!(writes > 0);
        for (kind, fault) in kinds {
            for k in 1..=writes {
                for restarts in [false, true] {
                    let what = format!("removal {is_removal}: {kind} at {k}, restarts {restarts}");
                    let mut world = before(is_removal).await;
                    let id = world.sim.faults().add(fault(k));
                    world.run(KEY).await;
                    assert_eq!(world.sim.faults().struck(id), 1, "{what}");
                    if restarts {
                        world.restart();
                    }
                    assert_eq!(finish(&world, is_removal, &what).await, expected, "{what}");
                }
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_process_that_stops_between_any_two_steps_is_taken_over() {
    for is_removal in [false, true] {
        let world = before(is_removal).await;
        let expected = finish(&world, is_removal, "undisturbed").await;
        for k in 0.. {
            let what = format!("removal {is_removal}: stopped after {k}");
            let mut world = before(is_removal).await;
            let stopped = world.run_steps(KEY, k).await;
            world.restart();
            assert_eq!(finish(&world, is_removal, &what).await, expected, "{what}");
            if matches!(stopped.outcome, Outcome::Settled(_)) {
                break;
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_sweep_that_fails_anywhere_is_made_good_by_the_next_one() {
    for k in 1..=2 {
        for fault in [
            Fault::write().nth(k).status(500),
            Fault::write().nth(k).lose_answer(),
        ] {
            let mut world = before(true).await;
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
