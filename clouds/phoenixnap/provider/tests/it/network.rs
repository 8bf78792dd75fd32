//! When the public network is read. What it says is in `scenarios/network.scenario`.

use std::time::Duration;

use bowline_cloud_provider::CloudProvider as _;
use bowline_phoenixnap_sim::kit::Fault;
use bowline_phoenixnap_sim::kit::faults::FaultBuilder;

use crate::world::{USUAL, World};

const KEY: &str = "shop/checkout";
const LONG: Duration = Duration::from_secs(25);

fn reading() -> FaultBuilder {
    Fault::operation("public-networks.read")
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
async fn a_configuration_that_does_not_fit_the_network_is_told_before_anything_is_bought() {
    let misfits = async |world: &World| {
        let late = || std::future::pending::<bowline_cloud_provider::CloudError>();
        let (misfits, failed) = bowline_cloud_provider::ask_all(world.cloud.misfits(), late).await;
        assert_eq!(failed, []);
        let told = misfits
            .into_iter()
            .map(|it| format!("{}; {}", it.text, it.remedy));
        told.collect::<Vec<_>>()
    };
    let fits = World::with(&[USUAL[1], ("PNAP_LOCATION", "nld")]);
    assert_eq!(misfits(&fits).await, Vec::<String>::new());
    let elsewhere = World::with(&[USUAL[1], ("PNAP_LOCATION", "SEA")]);
    assert_eq!(
        misfits(&elsewhere).await,
        [
            "IP blocks are to be bought in SEA (the variable PNAP_LOCATION), and public network 6598f7c2d2a94b6e0f1c1234 is in NLD: none of \
             them could be attached; whoever runs the manager corrects the variable PNAP_LOCATION, which is SEA, to NLD, or names a public \
             network that is in SEA"
        ]
    );
    elsewhere.sim.faults().add(reading().nth(1).status(403));
    let told = misfits(&elsewhere).await;
    assert!(
        told[0].contains("if it was deleted, or the ID is wrong"),
        "{told:?}"
    );
    elsewhere.sim.faults().add(reading().nth(1).status(404));
    assert_eq!(misfits(&elsewhere).await, Vec::<String>::new());
}
