//! What the public network says: nothing is bought for one that is not known to have a place. Nothing else waits for it.

use std::net::IpAddr;
use std::time::Duration;

use bowline_cloud_provider::CloudProvider as _;
use bowline_phoenixnap_sim::kit::Fault;
use bowline_phoenixnap_sim::kit::faults::{Canned, FaultBuilder};
use bowline_phoenixnap_sim::{BlockSpec, NetworkStatus, ServerSpec};
use tokio::time::Instant;

use bowline_kit::Outcome;

use crate::world::{NETWORK, USUAL, World};

const KEY: &str = "shop/checkout";
const LONG: Duration = Duration::from_secs(25);

fn reading() -> FaultBuilder {
    Fault::operation("public-networks.read")
}

/// What a read of the network answers where it does not say which blocks it has.
const WITHOUT_BLOCKS: &str =
    r#"{"id":"6598f7c2d2a94b6e0f1c1234","name":"vips","location":"NLD","status":"READY"}"#;

#[tokio::test(start_paused = true)]
async fn nothing_is_bought_before_it_is_known_whether_the_network_has_a_place() {
    let faults = [
        reading().always().status(500),
        reading().always().html(503),
        reading().always().drop_before(),
        reading().always().hang_before(),
        reading().always().delay(LONG),
        reading().always().answer(Canned::json(200, WITHOUT_BLOCKS)),
    ];
    for fault in faults {
        let world = World::with_service();
        let what = format!("{fault:?}");
        world.sim.faults().add(fault);
        let first = tokio::time::timeout(Duration::from_secs(9), world.run(KEY));
        assert!(first.await.is_err(), "{what}: it waits");
        assert!(world.sim.journal().writes().is_empty(), "{what}");
        // The sweeper needs nothing of it.
        let begun = Instant::now();
        world.sweep().await;
        assert_eq!(begun.elapsed(), Duration::ZERO, "{what}");
        let is_mended = async {
            tokio::time::sleep(Duration::from_secs(15)).await;
            world.sim.faults().clear();
        };
        let (run, ()) = tokio::join!(world.run(KEY), is_mended);
        let run = run.settled();
        assert!(run.has_note("PublicNetworkUnknown"), "{what}: {run:#?}");
        assert!(run.waited <= Duration::from_secs(50), "{what}: {:?}", run.waited);
        assert_eq!(world.sim.blocks().len(), 1, "{what}");
        world.check(&what);
    }
    // The wait has an end, and a purchase is none of it.
    let world = World::with_service();
    world.sim.faults().add(reading().always().status(500));
    let run = world.run(KEY).await;
    assert!(run.complaint().contains("has a place"), "{run:#?}");
    assert_eq!(run.waited, Duration::from_secs(300));
    assert!(world.sim.journal().writes().is_empty());
}

#[tokio::test(start_paused = true)]
async fn nothing_is_bought_for_a_network_that_goes_or_has_failed() {
    for (status, word) in [
        (NetworkStatus::Deleting, "DELETING"),
        (NetworkStatus::Error, "ERROR"),
    ] {
        let world = World::with_service();
        world.sim.set_network_status(NETWORK, Some(status));
        let run = world.run(KEY).await;
        assert!(run.complaint().contains(word), "{run:#?}");
        assert!(world.sim.journal().writes().is_empty(), "{word}");
        world.sim.set_network_status(NETWORK, None);
        world.run(KEY).await.settled();
    }
}

/// The limit may be another one than the documented, or others take places that the network does not show.
#[tokio::test(start_paused = true)]
async fn while_the_network_refuses_a_block_no_other_one_is_bought() {
    let full = Canned::json(409, r#"{"message":"Public network already has 10 IPv4 blocks."}"#);
    let denied = Canned::json(403, r#"{"message":"Not authorized."}"#);
    for (answer, read, is_taken_in_the_end) in [(full, 200, true), (denied, 404, false)] {
        let world = World::with_service();
        if read != 200 {
            // Nor does an API that does not know that call.
            world.sim.faults().add(reading().always().status(read));
        }
        let attachments = Fault::operation("public-networks.attach").always();
        let refusal = world.sim.faults().add(attachments.answer(answer));
        // It is tried again and again.
        let first = tokio::time::timeout(Duration::from_secs(15), world.run(KEY));
        drop(first.await);
        let block = world.sim.blocks()[0].id.clone();
        for key in ["shop/search", "shop/cart"] {
            world.add(key);
            for _ in 0..3 {
                let run = world.run(key).await;
                assert!(run.complaint().contains("takes no more"), "{run:#?}");
                assert!(run.complaint().contains(&block), "{run:#?}");
                assert_eq!(world.claim(key), None);
            }
        }
        world.sweep().await;
        tokio::time::sleep(Duration::from_secs(300)).await;
        world.sweep().await;
        assert!(world.run("shop/cart").await.complaint().contains("takes no more"));
        assert_eq!(world.sim.blocks().len(), 1);
        // It is over when the network takes the block, or the block goes.
        assert!(world.sim.faults().remove(refusal));
        if !is_taken_in_the_end {
            world.delete(KEY);
        }
        world.run(KEY).await.settled();
        world.run("shop/search").await.settled();
        assert_eq!(world.sim.blocks().len(), 2);
    }
}

/// What is known of a refusal goes with the process. A block that waits for the network is evidence of one.
#[tokio::test(start_paused = true)]
async fn a_new_process_buys_nothing_before_the_network_has_taken_what_an_earlier_one_bought() {
    for is_refused_still in [true, false] {
        let mut world = World::with_service();
        let attachments = Fault::operation("public-networks.attach").always();
        let full = Canned::json(409, r#"{"message":"Public network already has 10 IPv4 blocks."}"#);
        let refusal = world.sim.faults().add(attachments.answer(full));
        drop(tokio::time::timeout(Duration::from_secs(15), world.run(KEY)).await);
        assert!(is_refused_still || world.sim.faults().remove(refusal));
        world.restart();
        world.add("shop/search");
        let first = async {
            tokio::time::sleep(Duration::from_secs(20)).await;
            world.run(KEY).await
        };
        let both = async { tokio::join!(world.run("shop/search"), first) };
        let (search, first) = tokio::time::timeout(Duration::from_secs(60), both).await.unwrap();
        if is_refused_still {
            assert!(search.complaint().contains("takes no more"), "{search:#?}");
            assert!(first.complaint().contains("again and again"), "{first:#?}");
        }
        assert_eq!(world.sim.blocks().len(), if is_refused_still { 1 } else { 2 });
        world.check("an earlier block");
    }
}

#[tokio::test(start_paused = true)]
async fn of_services_that_come_together_to_a_network_that_is_full_unseen_one_buys() {
    for (takes, is_full) in [(0, true), (30, true), (30, false)] {
        let world = World::new();
        world.sim.service().set_latency(Duration::from_millis(200));
        for _ in 0..4 {
            world.sim.add_block(BlockSpec::default().network(NETWORK));
        }
        world.sim.set_behaviour(|it| {
            it.quota.blocks_per_network = if is_full { 4 } else { 10 };
            it.block_create_time = Duration::from_secs(takes);
        });
        let keys = ["shop/a", "shop/b", "shop/c"];
        keys.iter().for_each(|key| world.add(key));
        let all = futures::future::join_all(keys.map(|key| world.run(key)));
        let ended = tokio::time::timeout(Duration::from_secs(90), all).await;
        if !is_full {
            ended.unwrap().into_iter().for_each(|run| drop(run.settled()));
        }
        assert_eq!(world.sim.blocks().len(), if is_full { 5 } else { 7 }, "{takes} s");
        let claimed = keys.iter().filter(|key| world.claim(key).is_some());
        assert!(claimed.count() <= 1, "who may not buy claims nothing");
    }
}

#[tokio::test(start_paused = true)]
async fn services_that_come_together_wait_for_no_purchase_that_hangs() {
    let world = World::new();
    let purchase = Fault::operation("ip-blocks.create").nth(1);
    world.sim.faults().add(purchase.hang_before());
    let keys = ["shop/a", "shop/b", "shop/c"];
    keys.iter().for_each(|key| world.add(key));
    let all = futures::future::join_all(keys.map(|key| world.run(key)));
    drop(tokio::time::timeout(Duration::from_secs(12), all).await);
    assert_eq!(world.sim.blocks().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_network_that_is_busy_is_not_taken_for_full() {
    let world = World::with_service();
    world.sim.set_network_status(NETWORK, Some(NetworkStatus::Busy));
    let first = tokio::time::timeout(Duration::from_secs(15), world.run(KEY));
    assert!(first.await.is_err(), "it waits for the network");
    world.add("shop/search");
    let second = tokio::time::timeout(Duration::from_secs(15), world.run("shop/search"));
    assert!(second.await.is_err(), "so does this one");
    assert_eq!(world.sim.blocks().len(), 2);
    world.sim.set_network_status(NETWORK, None);
    world.run("shop/search").await.settled();
    world.run(KEY).await.settled();
}

#[tokio::test(start_paused = true)]
async fn services_that_came_and_went_leave_no_place_reserved() {
    let world = World::new();
    for _ in 0..4 {
        world.sim.add_block(BlockSpec::default().network(NETWORK));
    }
    let keys: Vec<String> = (1..=6).map(|number| format!("shop/s{number}")).collect();
    for key in &keys {
        world.add(key);
        world.run(key).await.settled();
    }
    // The eleventh is told what stands there, and what is only on its way.
    world
        .sim
        .set_behaviour(|it| it.attach_time = Duration::from_secs(300));
    world.delete("shop/s1");
    world.run("shop/s1").await.settled();
    world.forget("shop/s1");
    world.sweep().await;
    let coming = async {
        world.add("shop/coming");
        // Bought, and not attached.
        world.run_steps("shop/coming", 2).await
    };
    assert_eq!(coming.await.outcome, Outcome::Stopped);
    world.add("shop/late");
    let run = world.run("shop/late").await;
    let told = "has 9 IP blocks on it, 1 more is reserved for another service, and takes no more";
    assert!(run.complaint().contains(told), "{run:#?}");
    world.sim.set_behaviour(|it| it.attach_time = Duration::ZERO);
    // All of them go, and their blocks with them.
    for key in keys[1..].iter().map(String::as_str).chain(["shop/coming"]) {
        world.delete(key);
        world.run(key).await.settled();
        world.forget(key);
    }
    world.sweep().await;
    assert_eq!(world.sim.blocks().len(), 4);
    for key in keys {
        world.add(&key);
        world.run(&key).await.settled();
    }
}

/// A block that could not be attached would cost money for nothing.
#[tokio::test(start_paused = true)]
async fn nothing_is_bought_for_a_network_that_the_account_does_not_see() {
    let world = World::with_service();
    world.sim.faults().add(reading().always().status(403));
    let run = world.run(KEY).await;
    let complaint = run.complaint();
    for words in [
        "nothing could be attached to public network",
        NETWORK,
        "403",
        "no IP block is bought",
    ] {
        assert!(complaint.contains(words), "{words}: {complaint}");
    }
    assert!(world.sim.blocks().is_empty());
    assert!(world.sim.journal().writes().is_empty());

    // An API that does not know this path says nothing about the network.
    world.sim.faults().clear();
    world.sim.faults().add(reading().always().status(404));
    world.run(KEY).await.settled();
    assert_eq!(world.sim.blocks().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn with_other_credentials_nothing_is_bought_before_they_are_known_to_see_the_network() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("credentials");
    std::fs::write(&file, "ours").unwrap();
    let mut world = World::with_service();
    world.restart_following(&file);
    world.run(KEY).await.settled();
    world.watch().await;
    std::fs::write(&file, "theirs").unwrap();
    let not_theirs = world.sim.faults().add(reading().always().status(403));
    world.add("shop/search");
    tokio::time::sleep(Duration::from_secs(11)).await;
    let run = world.run("shop/search").await;
    assert!(run.complaint().contains("no IP block is bought"), "{run:#?}");
    assert_eq!(world.sim.blocks().len(), 1);
    // The way back as well: what the others could not see is read anew.
    std::fs::write(&file, "ours").unwrap();
    world.sim.faults().remove(not_theirs);
    tokio::time::sleep(Duration::from_secs(11)).await;
    world.run("shop/search").await.settled();
    assert_eq!(world.sim.blocks().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn what_a_slow_network_says_counts_from_when_it_is_there() {
    let world = World::with(&[USUAL[1], ("PNAP_LOCATION", "SEA")]);
    world.sim.faults().add(reading().nth(1).delay(LONG));
    world.add(KEY);
    let (run, ()) = tokio::join!(world.run(KEY), world.watch());
    assert!(run.complaint().contains("which is in NLD"), "{run:#?}");
    let remedy = "whoever runs the manager corrects the variable PNAP_LOCATION, which is SEA, to NLD";
    assert!(run.complaint().contains(remedy), "{run:#?}");
    assert_eq!(
        run.waited,
        Duration::from_secs(30),
        "the read that was not waited for went on"
    );
    assert!(world.sim.blocks().is_empty());
}

#[tokio::test(start_paused = true)]
async fn the_network_is_read_at_the_start_until_it_is_known_and_then_once_an_hour() {
    let world = World::new();
    let works = world.cloud.background_work();
    let watch = works
        .iter()
        .find(|work| work.name() == "phoenixnap-network")
        .unwrap();
    let reads = || world.sim.journal().count_operation("public-networks.read");
    assert_eq!(watch.first(), Duration::ZERO);
    world.sim.faults().add(reading().nth(1).status(403));
    world.watch().await;
    assert_eq!((reads(), watch.period()), (1, Duration::from_secs(30)));
    world.watch().await;
    assert_eq!((reads(), watch.period()), (2, Duration::from_secs(3600)));
    // It is also run whenever a Service has gone.
    world.watch().await;
    assert_eq!(reads(), 2);
    tokio::time::sleep(Duration::from_secs(3600)).await;
    world.watch().await;
    assert_eq!(reads(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_takes_the_address_of_a_service_is_told_of() {
    let world = World::with_service();
    let address: IpAddr = world.run(KEY).await.published()[0].parse().unwrap();
    world.watch().await;
    assert!(world.sweep().await.is_empty());
    // It comes later, and is seen with the next look at the network.
    let server = world.sim.add_server(ServerSpec::on(NETWORK, "n1"));
    world.sim.join_network(NETWORK, &server, [address]);
    tokio::time::sleep(Duration::from_secs(3600)).await;
    world.watch().await;
    let notes = world.sweep().await;
    assert_eq!(notes[0].reason, "ServiceAddressInUse", "{notes:?}");
    assert!(notes[0].text.contains(KEY), "{notes:?}");
}

#[tokio::test(start_paused = true)]
async fn a_refused_attachment_does_not_wait_for_a_slow_network_to_say_that_it_is_full() {
    let world = World::with_service();
    world.run(KEY).await.settled();
    world.sim.faults().add(reading().always().delay(LONG));
    world
        .sim
        .faults()
        .add(Fault::operation("public-networks.attach").nth(1).status(409));
    world.add("shop/search");
    let begun = Instant::now();
    let run = world.run("shop/search").await.settled();
    let spent = begun.elapsed() - run.waited;
    assert!(spent < Duration::from_secs(3), "{spent:?} {run:#?}");
}
