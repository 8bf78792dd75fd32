//! The claim to buy: of several processes only one buys, and a purchase that nobody can see is waited for.

use std::time::Duration;

use bowline_phoenixnap_sim::kit::Fault;

use crate::world::{Outcome, World};

const KEY: &str = "shop/checkout";

fn purchases(world: &World) -> usize {
    world.sim.journal().count_operation("ip-blocks.create")
}

// A21
#[tokio::test(start_paused = true)]
async fn a_purchase_whose_answer_was_lost_is_found_and_not_made_again() {
    let world = World::with_service();
    world
        .sim
        .faults()
        .add(Fault::operation("ip-blocks.create").nth(1).lose_answer());
    assert!(matches!(world.run(KEY).await.outcome, Outcome::Failed(_)));
    assert!(world.claim(KEY).is_some(), "it may have been bought");
    let run = world.run(KEY).await.settled();
    assert_eq!(run.waited, Duration::ZERO, "it is there");
    assert_eq!((purchases(&world), world.sim.blocks().len()), (1, 1));
    assert_eq!(world.claim(KEY), None);
}

#[tokio::test(start_paused = true)]
async fn a_purchase_that_may_have_been_made_is_looked_for_two_minutes_before_another_one() {
    for restarts in [false, true] {
        let mut world = World::with_service();
        world
            .sim
            .faults()
            .add(Fault::operation("ip-blocks.create").nth(1).drop_before());
        let begun = tokio::time::Instant::now();
        assert!(matches!(world.run(KEY).await.outcome, Outcome::Failed(_)));
        if restarts {
            world.restart();
        }
        let run = world.run(KEY).await.settled();
        assert!(
            run.notes
                .iter()
                .any(|note| note.reason == "IPBlockPurchasePending"),
            "{run:#?}"
        );
        let second = &world
            .sim
            .journal()
            .filter(|entry| entry.operation == "ip-blocks.create")[1];
        assert!(begun.elapsed() >= Duration::from_secs(120), "{second:?}");
        assert!(
            begun.elapsed() < Duration::from_secs(135),
            "{:?}",
            begun.elapsed()
        );
        assert_eq!((purchases(&world), world.sim.blocks().len()), (2, 1));
    }
}

#[tokio::test(start_paused = true)]
async fn of_two_processes_at_once_one_buys() {
    for latency in [0, 1, 7, 400] {
        let one = World::with_service();
        one.sim.service().set_latency(Duration::from_millis(latency));
        let two = one.other_process("two");
        let (first, second) = tokio::join!(one.run(KEY), two.run(KEY));
        let settled = [&first, &second].map(|run| matches!(run.outcome, Outcome::Settled(_)));
        assert!(settled.contains(&true), "{first:#?} {second:#?}");
        one.run(KEY).await.settled();
        two.run(KEY).await.settled();
        assert_eq!((purchases(&one), one.sim.blocks().len()), (1, 1), "{latency} ms");
        one.check("two processes");
    }
}

#[tokio::test(start_paused = true)]
async fn a_process_that_was_stopped_for_a_minute_does_not_begin_what_it_claimed() {
    let world = World::with_service();
    // Claimed, and then everything stands still: the list before the purchase does not come back.
    let claimed = world.run_steps(KEY, 6).await;
    assert_eq!(claimed.outcome, Outcome::Stopped);
    assert!(world.claim(KEY).is_some());
    assert_eq!(purchases(&world), 0);
    // The same process again: it cannot know that it was not the one that bought.
    let begun = tokio::time::Instant::now();
    let run = world.run(KEY).await.settled();
    assert!(run.waited >= Duration::from_secs(110), "{:?}", run.waited);
    assert!(begun.elapsed() < Duration::from_secs(135));
    assert_eq!((purchases(&world), world.sim.blocks().len()), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_purchase_that_hangs_is_given_up_and_bars_every_other_one_meanwhile() {
    let world = World::with_service();
    world
        .sim
        .faults()
        .add(Fault::operation("ip-blocks.create").nth(1).hang_after());
    assert!(matches!(world.run(KEY).await.outcome, Outcome::Failed(_)));
    let two = world.other_process("two");
    two.run(KEY).await.settled();
    assert_eq!((purchases(&world), world.sim.blocks().len()), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_refused_purchase_frees_the_claim_for_everybody() {
    let world = World::with_service();
    world
        .sim
        .faults()
        .add(Fault::operation("ip-blocks.create").nth(1).status(403));
    assert!(world.run(KEY).await.complaint().contains("403"));
    assert_eq!(world.claim(KEY), None);
    let two = world.other_process("two");
    assert_eq!(two.run(KEY).await.settled().waited, Duration::ZERO);
}
