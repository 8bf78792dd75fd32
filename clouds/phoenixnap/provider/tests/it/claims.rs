//! The claim to buy: of several processes only one buys, and a purchase that nobody can see is waited for.

use std::time::Duration;

use bowline_phoenixnap_sim::kit::Fault;
use bowline_phoenixnap_sim::kit::faults::{Canned, FaultBuilder};

use bowline_kit::Outcome;

use crate::world::{Interruption, World};

const KEY: &str = "shop/checkout";

fn purchases(world: &World) -> usize {
    world.sim.journal().count_operation("ip-blocks.create")
}

/// A block that was bought although the answer says otherwise, or none came, and that lists show much later; and somebody who takes
/// the claim off the Service, once or whenever it is there.
#[tokio::test(start_paused = true)]
async fn a_purchase_whose_answer_was_lost_is_remembered_although_its_claim_is_stripped() {
    type Fail = fn(FaultBuilder) -> Fault;
    let table: [Fail; 4] = [
        FaultBuilder::lose_answer,
        FaultBuilder::hang_after,
        |it| it.status_after(500),
        |it| it.status_after(504),
    ];
    for fail in table {
        for strips in [0, 1, usize::MAX] {
            let fault = || fail(Fault::operation("ip-blocks.create").nth(1));
            let what = format!("{:?}, stripped {strips} times", fault());
            let world = World::with_service();
            world
                .sim
                .set_behaviour(|it| it.list_lag = Duration::from_secs(100));
            world.sim.faults().add(fault());
            assert!(
                matches!(world.run(KEY).await.outcome, Outcome::Failed(_)),
                "{what}"
            );
            for _ in 0..strips.min(20) {
                world.edit(KEY, |service| {
                    service.metadata.annotations.take();
                });
                // Whatever the run would wait for, the next one comes first.
                let next = tokio::time::timeout(Duration::from_secs(1), world.run(KEY));
                assert!(next.await.is_err(), "{what}: it waits for its block");
            }
            let run = world.run(KEY).await.settled();
            assert!(run.has_note("IPBlockPurchasePending"), "{what}: {run:#?}");
            assert_eq!((purchases(&world), world.sim.blocks().len()), (1, 1), "{what}");
            assert_eq!(world.claim(KEY), None, "{what}");
            world.check(&what);
        }
    }
}

/// A Service with which an earlier process has begun has its finalizer. What that one remembered of its purchase is gone.
#[tokio::test(start_paused = true)]
async fn a_new_process_looks_for_a_block_whose_claim_was_stripped() {
    for (has_begun, waited, blocks) in [(true, 20, 1), (false, 0, 2)] {
        let mut world = World::with_service();
        world
            .sim
            .set_behaviour(|it| it.list_lag = Duration::from_secs(15));
        world
            .sim
            .faults()
            .add(Fault::operation("ip-blocks.create").nth(1).lose_answer());
        assert!(matches!(world.run(KEY).await.outcome, Outcome::Failed(_)));
        world.edit(KEY, |service| {
            service.metadata.annotations.take();
            let finalizer = bowline_cloud_provider::keys::FINALIZER_LOAD_BALANCER.to_owned();
            service.metadata.finalizers = has_begun.then(|| vec![finalizer]);
        });
        world.restart();
        let run = world.run(KEY).await.settled();
        assert!(run.waited.as_secs() <= waited, "{run:#?}");
        assert_eq!(world.sim.blocks().len(), blocks, "{run:#?}");
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

// The claim and the purchase are steps 6 and 7 of a first Service.
#[tokio::test(start_paused = true)]
async fn a_process_that_stood_still_buys_nothing_that_another_one_may_have_bought() {
    for step in 0..=8 {
        for seconds in [30, 59, 61, 90, 130, 4_000] {
            let one = World::with_service();
            let two = one.other_process("two");
            let paused = one.run_with(KEY, Interruption::Pause(step, Duration::from_secs(seconds)));
            let other = async {
                tokio::time::sleep(Duration::from_secs(1)).await;
                two.run(KEY).await
            };
            let (woken, _) = tokio::join!(paused, other);
            let what = format!("{seconds} s before step {step}: {woken:#?}");
            assert_eq!((purchases(&one), one.sim.blocks().len()), (1, 1), "{what}");
            one.run(KEY).await.settled();
            assert_eq!((purchases(&one), one.sim.blocks().len()), (1, 1), "{what}");
            one.check(&what);
        }
    }
}

// Whoever wakes while the other one's purchase is on its way cannot see it, and is kept back by its own claim's age.
#[tokio::test(start_paused = true)]
async fn a_process_that_wakes_during_a_purchase_that_it_cannot_see_buys_nothing() {
    for seconds in [119, 121, 123, 125, 127, 129, 131] {
        let one = World::with_service();
        let two = one.other_process("two");
        one.sim.faults().add(
            Fault::operation("ip-blocks.create")
                .nth(1)
                .delay(Duration::from_secs(10)),
        );
        let paused = one.run_with(KEY, Interruption::Pause(6, Duration::from_secs(seconds)));
        let other = async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            two.run(KEY).await.settled()
        };
        let (woken, _) = tokio::join!(paused, other);
        let what = format!("after {seconds} s: {woken:#?}");
        assert_eq!((purchases(&one), one.sim.blocks().len()), (1, 1), "{what}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_service_is_not_let_go_while_its_purchase_may_still_come_true() {
    let world = World::with_service();
    // The request takes its time, and the process that made it is gone.
    world.sim.faults().add(
        Fault::operation("ip-blocks.create")
            .nth(1)
            .delay(Duration::from_secs(70)),
    );
    let purchase = tokio::time::timeout(Duration::from_secs(1), world.run(KEY));
    assert!(purchase.await.is_err(), "it is under way");
    let two = world.other_process("two");
    world.delete(KEY);
    let late = async {
        tokio::time::sleep(Duration::from_secs(40)).await;
        world.sim.add_block(bowline_phoenixnap_sim::BlockSpec::of_service(
            crate::world::CLUSTER,
            "shop",
            "checkout",
        ));
    };
    let (run, ()) = tokio::join!(two.run(KEY), late);
    let run = run.settled();
    assert!(
        run.notes
            .iter()
            .any(|note| note.reason == "IPBlockPurchasePending")
    );
    assert!(
        run.waited <= Duration::from_secs(60),
        "it is found and released: {run:#?}"
    );
    world.forget(KEY);
    two.sweep().await;
    assert!(world.sim.blocks().is_empty());
}

/// A list that does not show the block yet.
fn behind(world: &World, lists: u64) {
    let lists = Fault::operation("ip-blocks.list").times(lists);
    world.sim.faults().add(lists.answer(Canned::json(200, "[]")));
}

#[tokio::test(start_paused = true)]
async fn a_purchase_that_the_api_never_looked_at_is_a_failure_and_its_process_need_not_wait() {
    let stated = Some(Duration::from_secs(20));
    let later = || Canned::empty(503).header("retry-after", "20");
    let token = || Fault::operation("token").nth(2).times(100);
    let revoked = Fault::operation("ip-blocks.create").nth(1).status(401);
    let too_many = Fault::operation("ip-blocks.create").times(100);
    for (faults, word, after) in [
        (vec![revoked.clone(), token().status(500)], "token", None),
        (vec![revoked.clone(), token().answer(later())], "token", stated),
        (vec![revoked, token().status(401)], "credentials", None),
        (
            vec![too_many.too_many_requests(Duration::from_secs(20))],
            "429",
            stated,
        ),
    ] {
        let world = World::with_service();
        for fault in faults {
            world.sim.faults().add(fault);
        }
        let run = world.run(KEY).await;
        assert!(matches!(run.outcome, Outcome::Failed(_)), "{run:#?}");
        assert!(run.complaint().contains(word), "{run:#?}");
        assert_eq!(run.stated, after, "{run:#?}");
        // Another process cannot know that nothing was bought.
        assert!(world.claim(KEY).is_some(), "{word}");
        world.sim.faults().clear();
        tokio::time::sleep(Duration::from_secs(20)).await;
        assert_eq!(world.run(KEY).await.settled().waited, Duration::ZERO, "{word}");
        assert_eq!((world.claim(KEY), world.sim.blocks().len()), (None, 1), "{word}");
    }
}

/// Whatever became of the purchase, a Service that is deleted then is kept as long as its block could still appear.
#[tokio::test(start_paused = true)]
async fn a_service_that_is_deleted_after_a_failed_purchase_waits_only_if_a_block_could_still_come() {
    type Fail = fn(FaultBuilder) -> Fault;
    let refused = 0..1;
    let unknown = 110..136;
    let table: [(Fail, std::ops::Range<u64>); 14] = [
        (|it| it.status(400), refused.clone()),
        (|it| it.status(401), refused.clone()),
        (|it| it.status(403), refused.clone()),
        (|it| it.status(404), refused.clone()),
        (|it| it.status(406), refused.clone()),
        (|it| it.status(409), refused.clone()),
        (|it| it.status(429), refused.clone()),
        (|it| it.status(500), unknown.clone()),
        (|it| it.html(500), unknown.clone()),
        (|it| it.status(503), unknown.clone()),
        (|it| it.html(503), unknown.clone()),
        (|it| it.status(408), unknown.clone()),
        (|it| it.html(502), unknown.clone()),
        (|it| it.html(504), unknown),
    ];
    for (fail, expected) in table {
        let fault = || fail(Fault::operation("ip-blocks.create").always());
        let what = format!("{:?}", fault());
        let world = World::with_service();
        world.sim.faults().add(fault());
        assert!(!world.run(KEY).await.complaint().is_empty(), "{what}");
        let is_refused = expected == refused && !["401", "429"].iter().any(|code| what.contains(code));
        assert_eq!(world.claim(KEY).is_none(), is_refused, "{what}");
        // The next try is as soon as the outcome is certain.
        let asked = purchases(&world);
        world.sim.faults().clear();
        if is_refused {
            // Until then it is held back.
            tokio::time::sleep(Duration::from_secs(5)).await;
        }
        let waited = world.run(KEY).await.settled().waited.as_secs();
        assert!(expected.contains(&waited), "{what}: {waited} s to buy again");
        assert_eq!(purchases(&world), asked + 1, "{what}");
        // And so is the end of a Service that is deleted instead.
        let other = World::with_service();
        other.sim.faults().add(fault());
        other.run(KEY).await;
        other.delete(KEY);
        let waited = other.run(KEY).await.settled().waited.as_secs();
        assert!(expected.contains(&waited), "{what}: {waited} s to go");
        assert!(other.sim.blocks().is_empty(), "{what}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_block_that_appears_after_a_failed_purchase_goes_with_its_deleted_service() {
    for (fail, seconds) in [(500, 5), (504, 60)] {
        let world = World::with_service();
        world
            .sim
            .faults()
            .add(Fault::operation("ip-blocks.create").nth(1).status(fail));
        assert!(!world.run(KEY).await.complaint().is_empty());
        world.delete(KEY);
        let appears = async {
            tokio::time::sleep(Duration::from_secs(seconds)).await;
            world.sim.add_block(bowline_phoenixnap_sim::BlockSpec::of_service(
                crate::world::CLUSTER,
                "shop",
                "checkout",
            ));
        };
        let (run, ()) = tokio::join!(world.run(KEY), appears);
        assert!(run.settled().has_note("IPBlockPurchasePending"), "{fail}");
        assert!(world.sim.blocks()[0].has_tag("delete", Some("true")), "{fail}");
    }
}

/// Five Services, each at another point of its creation when the process is killed, come back at once.
#[tokio::test(start_paused = true)]
async fn five_services_that_come_back_at_once_after_a_death_get_one_block_each() {
    for (lists_behind, latency) in [(0, 0), (0, 300), (1, 0), (3, 20)] {
        let mut world = World::new();
        // So that the account knows the names of the tags.
        world.add("shop/warm");
        world.run("shop/warm").await.settled();
        let keys = ["shop/s0", "shop/s1", "shop/s2", "shop/s3", "shop/s4"];
        for (steps, key) in keys.iter().enumerate() {
            world.add(key);
            // Nothing; claimed; bought; attached.
            if steps < 4 {
                let run = world.run_steps(key, steps).await;
                assert_eq!(run.outcome, Outcome::Stopped, "{run:#?}");
            }
        }
        // And one whose purchase is under way.
        world.sim.faults().add(
            Fault::operation("ip-blocks.create")
                .nth(1)
                .delay(Duration::from_secs(3_600)),
        );
        let purchase = tokio::time::timeout(Duration::from_secs(1), world.run(keys[4]));
        assert!(purchase.await.is_err(), "it is under way");
        let claimed = keys.map(|key| world.claim(key).is_some());
        assert_eq!(claimed, [false, true, true, true, true]);

        world.restart();
        world.sim.service().set_latency(Duration::from_millis(latency));
        if lists_behind > 0 {
            behind(&world, lists_behind);
        }
        let comes_true = async {
            tokio::time::sleep(Duration::from_secs(40)).await;
            let spec = bowline_phoenixnap_sim::BlockSpec::of_service(crate::world::CLUSTER, "shop", "s4");
            world.sim.add_block(spec);
        };
        let all = futures::future::join_all(keys.map(|key| world.run(key)));
        let (runs, ()) = tokio::join!(all, comes_true);
        let what = format!("{lists_behind} lists behind, {latency} ms");
        for (key, run) in keys.iter().zip(runs) {
            run.settled();
            let (_, name) = key.split_once('/').unwrap();
            let blocks = world.sim.blocks();
            let own = blocks
                .iter()
                .filter(|block| block.has_tag("serviceName", Some(name)));
            assert_eq!(own.count(), 1, "{key}, {what}");
            assert_eq!(world.claim(key), None, "{key}, {what}");
        }
        assert_eq!(world.sim.blocks().len(), 6, "{what}");
        world.check(&what);
    }
}
