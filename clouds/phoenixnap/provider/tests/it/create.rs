//! Services that want a block.

use std::time::Duration;

use bowline_cloud_provider::CloudProvider;
use bowline_cloud_provider::plan::ReportedOutcome;
use bowline_kit::{Outcome, predict, predicted_kinds};
use bowline_phoenixnap_sim::kit::Fault;
use bowline_phoenixnap_sim::{BlockSpec, BlockStatus};

use crate::world::{CLUSTER, World};

const KEY: &str = "shop/checkout";

fn third_address(world: &World, index: usize) -> String {
    let network = world.sim.blocks()[index].cidr.network();
    let std::net::IpAddr::V4(network) = network else {
        panic!("no IPv4 block")
    };
    std::net::Ipv4Addr::from_bits(network.to_bits() + 2).to_string()
}

#[tokio::test(start_paused = true)]
async fn the_writes_for_a_service_are_those_that_were_predicted_in_that_order() {
    let world = World::with_service();
    for is_deleted in [false, true] {
        if is_deleted {
            world.delete(KEY);
        }
        let facts = world.facts(KEY, world.now());
        let predicted = predicted_kinds(world.cloud.load_balancer().unwrap(), facts).await;
        let run = world.run(KEY).await.settled();
        assert_eq!(run.kinds_of_steps(), predicted);
    }
}

#[tokio::test(start_paused = true)]
async fn a_plan_shows_no_address_that_it_made_up() {
    let world = World::with_service();
    let facts = world.facts(KEY, world.now());
    let report = predict(world.cloud.load_balancer().unwrap(), facts).await;
    let ReportedOutcome::Settled { publishes } = &report.outcome else {
        panic!("{report:#?}");
    };
    assert_eq!(*publishes, ["an address of the block that is bought"]);
    let words = report.in_words();
    assert!(
        words.iter().any(|it| it.starts_with("attach IP block <new> to ")),
        "{words:?}"
    );
    let has_numbers = |it: &String| it.contains("192.0.2.") || it.contains("0.0.0.");
    assert!(!words.iter().any(has_numbers), "{words:?}");
}

#[tokio::test(start_paused = true)]
async fn a_block_that_is_being_made_need_not_say_its_addresses() {
    let world = World::with_service();
    let spec = BlockSpec {
        status: Some(BlockStatus::Creating),
        ..BlockSpec::of_service(CLUSTER, "shop", "checkout")
    };
    let block = world.sim.add_block(spec);
    let say = |cidr: Option<&str>, status: BlockStatus| {
        world.sim.edit_block(&block, |block| {
            block.shown_cidr = cidr.map(str::to_owned);
            block.status = status.clone();
        });
    };
    say(Some(""), BlockStatus::Creating);
    let made = async {
        tokio::time::sleep(Duration::from_secs(15)).await;
        say(None, BlockStatus::Unassigned);
    };
    let (run, ()) = tokio::join!(world.run(KEY), made);
    assert_eq!(run.published(), [third_address(&world, 0)]);
    // Of one that is made it is an error, and no obstacle to its release.
    say(Some(""), BlockStatus::Assigned);
    world.set_field(KEY, "");
    assert!(world.run(KEY).await.complaint().contains("no third IPv4 address"));
    world.delete(KEY);
    world.run(KEY).await.settled();
    assert!(world.sim.blocks()[0].has_tag("delete", Some("true")));
}

/// A list of the network shows none of those that are being bought.
#[tokio::test(start_paused = true)]
async fn of_services_that_come_together_only_as_many_buy_as_the_network_takes() {
    let world = World::new();
    world
        .sim
        .set_behaviour(|behaviour| behaviour.attach_time = Duration::from_secs(30));
    let keys: Vec<String> = (1..=13).map(|number| format!("shop/s{number}")).collect();
    keys.iter().for_each(|key| world.add(key));
    let runs = futures::future::join_all(keys.iter().map(|key| world.run(key))).await;
    let served = runs
        .iter()
        .filter(|run| matches!(run.outcome, Outcome::Settled(_)))
        .count();
    assert_eq!((served, world.sim.blocks().len()), (10, 10), "{runs:#?}");
    for run in runs
        .iter()
        .filter(|run| !matches!(run.outcome, Outcome::Settled(_)))
    {
        assert!(run.complaint().contains("takes no more"), "{run:?}");
    }
    assert!(keys.iter().all(|key| world.claim(key).is_none()));
    world.check("together");
}

#[tokio::test(start_paused = true)]
async fn an_attachment_that_stays_half_done_is_tried_again_less_and_less_often() {
    let world = World::with_service();
    world.sim.set_behaviour(|behaviour| {
        behaviour.failing_attachments = 1;
        behaviour.failed_attachment_is_final = false;
        behaviour.failed_attachment_stays = true;
    });
    world.run(KEY).await.settled();
    // Every further try is refused for an hour.
    let attach = "public-networks.attach";
    world
        .sim
        .faults()
        .add(Fault::operation(attach).always().status(409));
    let mut tries = 0;
    for _ in 0..360 {
        let (run, calls) = world.calls_of(world.run(KEY)).await;
        let Outcome::Refused(text) = &run.outcome else {
            panic!("{run:#?}");
        };
        assert!(text.contains("is error assigning"), "{text}");
        tries += calls.iter().filter(|call| *call == attach).count();
        tokio::time::sleep(Duration::from_secs(10)).await;
    }
    assert!((8..=10).contains(&tries), "{tries}");
    world.sim.faults().clear();
    tokio::time::sleep(Duration::from_secs(1_800)).await;
    world.run(KEY).await.settled();
    assert_eq!(world.sim.blocks()[0].status, BlockStatus::Assigned);
}

#[tokio::test(start_paused = true)]
async fn a_sweeper_tries_an_attachment_that_is_refused_less_and_less_often() {
    let world = World::with_service();
    world.sim.set_behaviour(|behaviour| {
        behaviour.failing_attachments = 1;
        behaviour.failed_attachment_is_final = false;
        behaviour.failed_attachment_stays = true;
    });
    world.run(KEY).await.settled();
    let attach = "public-networks.attach";
    let refusal = Fault::operation(attach).always().status(409);
    let refusal = world.sim.faults().add(refusal);
    let mut tries = 0;
    for _ in 0..120 {
        let (notes, calls) = world.calls_of(world.sweep()).await;
        let of_block = notes.iter().filter(|note| note.reason == "IPBlockFallenOff");
        assert_eq!(of_block.count(), 1, "{notes:?}");
        tries += calls.iter().filter(|call| *call == attach).count();
        tokio::time::sleep(Duration::from_secs(30)).await;
    }
    assert!((8..=10).contains(&tries), "{tries}");
    world.sim.faults().remove(refusal);
    tokio::time::sleep(Duration::from_secs(1_800)).await;
    world.sweep().await;
    assert_eq!(world.sim.blocks()[0].status, BlockStatus::Assigned);
}

#[tokio::test(start_paused = true)]
async fn a_tag_that_takes_its_time_for_one_service_holds_up_no_other() {
    let world = World::with_service();
    world.add("shop/search");
    world
        .sim
        .faults()
        .add(Fault::operation("tags.create").nth(1).hang_before());
    let begun = tokio::time::Instant::now();
    let other = async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        world.run("shop/search").await.settled();
        begun.elapsed()
    };
    let (_, took) = tokio::join!(world.run(KEY), other);
    assert!(took < Duration::from_secs(5), "{took:?}");
    world.run(KEY).await.settled();
}
