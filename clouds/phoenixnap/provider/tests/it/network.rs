//! What the public network says: good to know before a purchase, and nothing that anybody waits for.

use std::net::IpAddr;
use std::time::Duration;

use bowline_cloud_provider::CloudProvider as _;
use bowline_phoenixnap_sim::ServerSpec;
use bowline_phoenixnap_sim::kit::{Fault, faults::FaultBuilder};
use tokio::time::Instant;

use crate::world::{NETWORK, Outcome, USUAL, World};

const KEY: &str = "shop/checkout";
const LONG: Duration = Duration::from_secs(25);

fn reading() -> FaultBuilder {
    Fault::operation("public-networks.read")
}

#[tokio::test(start_paused = true)]
async fn a_network_that_takes_its_time_keeps_neither_a_service_nor_the_sweeper_waiting() {
    let faults = [
        reading().always().delay(LONG),
        reading().always().hang_before(),
        reading().always().drop_before(),
        reading().always().status(503),
    ];
    for fault in faults {
        let world = World::with_service();
        let what = format!("{fault:?}");
        world.sim.faults().add(fault);
        // What has to be read takes its time as well: both are asked for at once.
        let names = Fault::operation("tags.list").always();
        world.sim.faults().add(names.delay(Duration::from_secs(1)));
        let begun = Instant::now();
        world.run(KEY).await.settled();
        assert!(
            begun.elapsed() < Duration::from_secs(2),
            "{what}: {:?}",
            begun.elapsed()
        );
        let begun = Instant::now();
        world.sweep().await;
        assert_eq!(begun.elapsed(), Duration::ZERO, "{what}");
        world.check(&what);
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
    let begun = Instant::now();
    let first = async {
        world.add(KEY);
        world.run(KEY).await
    };
    let (first, ()) = tokio::join!(first, world.watch());
    assert_eq!(
        begun.elapsed(),
        LONG,
        "the read that the service did not wait for went on"
    );
    assert!(matches!(first.outcome, Outcome::Failed(_)), "{first:#?}");
    assert_eq!(world.sim.blocks().len(), 1);
    world.add("shop/search");
    let (second, calls) = world.calls_of(world.run("shop/search")).await;
    assert!(second.complaint().contains("which is in NLD"), "{second:#?}");
    assert_eq!(calls, ["ip-blocks.list"]);
    assert_eq!(world.sim.blocks().len(), 1);
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
