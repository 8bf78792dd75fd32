//! Services that want a block.

use std::time::Duration;

use bowline_cloud_provider::CloudProvider;
use bowline_cloud_provider::k8s::{LoadBalancerIngress, LoadBalancerStatus, PortStatus, ServiceStatus};
use bowline_kit::{Outcome, Run, predicted_kinds};
use bowline_phoenixnap_sim::kit::Fault;
use bowline_phoenixnap_sim::kit::faults::Canned;
use bowline_phoenixnap_sim::{BlockSpec, BlockStatus, TagFilter};

use crate::world::{CLUSTER, Interruption, NETWORK, World};

const KEY: &str = "shop/checkout";
const BALANCING: (&str, &str) = ("PNAP_LOAD_BALANCER", "kube-vip://6598f7c2d2a94b6e0f1c1234");

fn reasons_and_texts(run: &Run) -> Vec<(&str, &str)> {
    let notes = run.notes.iter();
    notes.map(|note| (note.reason, note.text.as_str())).collect()
}

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

// The order of the conditions.

#[tokio::test(start_paused = true)]
async fn a_block_that_is_listed_twice_is_one() {
    let world = World::with_service();
    let block = format!(
        r#"{{"id":"b1","cidr":"198.51.100.8/29","status":"assigned","assignedResourceId":"{NETWORK}",
        "assignedResourceType":"public network","tags":[{{"name":"usage","value":"cloud-provider-phoenixnap-auto"}},
        {{"name":"cluster","value":"{CLUSTER}"}},{{"name":"serviceNamespace","value":"shop"}},
        {{"name":"serviceName","value":"checkout"}}]}}"#
    );
    let list = Canned::json(200, &format!("[{block},{block}]"));
    let lists = Fault::operation("ip-blocks.list").always();
    world.sim.faults().add(lists.answer(list));
    assert_eq!(world.run(KEY).await.published(), ["198.51.100.10"]);
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

#[tokio::test(start_paused = true)]
async fn while_the_network_is_busy_the_second_service_waits_and_gets_its_own_block() {
    let world = World::with_service();
    world.add("shop/search");
    world
        .sim
        .set_behaviour(|behaviour| behaviour.attach_time = Duration::from_secs(20));
    let begun = tokio::time::Instant::now();
    let (one, two) = tokio::join!(world.run(KEY), world.run("shop/search"));
    assert_ne!(one.published(), two.published());
    assert!(
        begun.elapsed() < Duration::from_secs(120),
        "{:?}",
        begun.elapsed()
    );
    tokio::time::sleep(Duration::from_secs(30)).await;
    let blocks = world.sim.blocks();
    assert_eq!(blocks.len(), 2);
    assert!(blocks.iter().all(|block| block.status == BlockStatus::Assigned));
    let accepted = world
        .sim
        .journal()
        .filter(|entry| entry.operation == "public-networks.attach" && entry.status() == Some(202));
    assert_eq!(accepted.len(), 2);
    world.check("on a busy network");
}

// Deletion.

#[tokio::test(start_paused = true)]
async fn blocks_of_another_cluster_are_never_used_whatever_the_filter_does() {
    for filter in [TagFilter::Ignored, TagFilter::Any] {
        let world = World::with_service();
        let foreign = world
            .sim
            .add_block(BlockSpec::of_service("another", "shop", "checkout").network(NETWORK));
        let marked = world.sim.add_block(BlockSpec::marked("another").network(NETWORK));
        world.sim.set_behaviour(|behaviour| behaviour.tag_filter = filter);
        let before = (world.sim.block(&foreign), world.sim.block(&marked));
        world.run(KEY).await.settled();
        world.delete(KEY);
        world.run(KEY).await.settled();
        world.forget(KEY);
        world.sweep().await;
        assert_eq!((world.sim.block(&foreign), world.sim.block(&marked)), before);
        assert_eq!(world.sim.blocks().len(), 2);
    }
}

// What the vendor's manager leaves.
#[tokio::test(start_paused = true)]
async fn what_the_vendor_s_manager_left_is_taken_over() {
    let world = World::new();
    for key in ["shop/one", "shop/two"] {
        world.add(key);
        let name = key.split_once('/').unwrap().1;
        let spec = BlockSpec::of_service(CLUSTER, "shop", name).attached(NETWORK, "PUBLIC_NETWORK");
        world.sim.add_block(spec);
    }
    world.set_field("shop/one", &third_address(&world, 0));
    let one = world.service("shop/one");
    let (run, calls) = world.calls_of(world.run("shop/one")).await;
    assert_eq!(run.published(), [third_address(&world, 0)]);
    assert_eq!(calls, ["ip-blocks.list"]);
    let after = world.service("shop/one");
    assert_eq!((&after.metadata, &after.spec), (&one.metadata, &one.spec));

    world.set_field("shop/two", &third_address(&world, 1));
    world.edit("shop/two", |service| {
        service.status = Some(status(vec![LoadBalancerIngress::default()]));
    });
    assert_eq!(
        world.run("shop/two").await.published(),
        [third_address(&world, 1)]
    );
    world
        .sim
        .add_block(BlockSpec::marked(CLUSTER).attached(NETWORK, "PUBLIC_NETWORK"));
    world.sweep().await;
    assert_eq!(world.sim.blocks().len(), 2);
}

fn status(ingress: Vec<LoadBalancerIngress>) -> ServiceStatus {
    ServiceStatus {
        load_balancer: Some(LoadBalancerStatus {
            ingress: Some(ingress),
        }),
        ..ServiceStatus::default()
    }
}

#[tokio::test(start_paused = true)]
async fn the_ports_that_kube_vip_wrote_into_the_status_stay() {
    let world = World::with_service();
    let address = world.run(KEY).await.published().remove(0);
    world.edit(KEY, |service| {
        service.status = Some(status(vec![LoadBalancerIngress {
            ip: Some(address.clone()),
            ip_mode: Some("VIP".to_owned()),
            ports: Some(vec![PortStatus {
                port: 443,
                protocol: "TCP".to_owned(),
                error: None,
            }]),
            ..LoadBalancerIngress::default()
        }]));
    });
    world.annotate(KEY, "kube-vip.io/vipHost", "node-2");
    let (run, calls) = world.calls_of(world.run(KEY)).await;
    assert_eq!(calls, ["ip-blocks.list"]);
    let Outcome::Settled(status) = run.outcome else {
        panic!("{run:#?}")
    };
    assert_eq!(status.ingress[0].ports[0].port, 443);
    assert!(status.ingress[0].ip_mode.is_some());
}

#[tokio::test(start_paused = true)]
async fn a_full_network_is_named_as_the_reason() {
    let world = World::with_service();
    for _ in 0..10 {
        world.sim.add_block(BlockSpec::default().network(NETWORK));
    }
    let run = world.run(KEY).await;
    assert!(run.complaint().contains("takes no more"), "{run:?}");
    assert_eq!(
        world.sim.blocks().len(),
        10,
        "none is bought that cannot be attached"
    );
    assert_eq!(world.claim(KEY), None);
    let first = world.sim.blocks()[0].id.clone();
    assert!(world.sim.remove_block(&first));
    world.run(KEY).await.settled();
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
async fn a_network_with_room_is_not_full_because_of_its_ipv6_block() {
    let world = World::with_service();
    for _ in 0..9 {
        world.sim.add_block(BlockSpec::default().network(NETWORK));
    }
    let v6 = BlockSpec {
        cidr: Some("2001:db8:7::/64".parse().unwrap()),
        ..BlockSpec::default()
    };
    world.sim.add_block(v6.network(NETWORK));
    let busy = Canned::json(409, r#"{"message":"The network is BUSY."}"#);
    let attachments = Fault::operation("public-networks.attach");
    world.sim.faults().add(attachments.times(3).answer(busy));
    world.run(KEY).await.settled();
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
async fn why_a_block_is_not_attached_yet_is_told_once_and_after_minutes_as_a_warning() {
    let refusal = "409 Conflict: The network is BUSY.";
    for (refusals, reasons) in [
        (1, &["IPBlockPending"][..]),
        (8, &["IPBlockPending"]),
        (40, &["IPBlockPending", "IPBlockNotAttached"]),
    ] {
        let world = World::with_service();
        let busy = Canned::json(409, r#"{"message":"The network is BUSY."}"#);
        world.sim.faults().add(
            Fault::operation("public-networks.attach")
                .times(refusals)
                .answer(busy),
        );
        let run = world.run(KEY).await.settled();
        let told = reasons_and_texts(&run);
        assert_eq!(run.reasons(), reasons, "{told:#?}");
        assert_eq!(told.len(), reasons.len(), "{told:#?}");
        assert!(told.iter().all(|(_, text)| text.contains(refusal)), "{told:#?}");
    }
    // It is told at once, and not after the first wait.
    let world = World::with_service();
    let attachments = Fault::operation("public-networks.attach").always();
    world.sim.faults().add(attachments.status(409));
    let run = world.run_with(KEY, Interruption::AfterStep(8)).await;
    assert_eq!(
        (run.reasons(), run.waited),
        (vec!["IPBlockPending"], Duration::ZERO)
    );
    // A block that is not ready at the first look need not be told of, one that stays so is.
    for (takes, expected) in [(5, None), (45, Some("is creating"))] {
        let world = World::with_service();
        world
            .sim
            .set_behaviour(|behaviour| behaviour.block_create_time = Duration::from_secs(takes));
        let run = world.run(KEY).await.settled();
        let told = reasons_and_texts(&run);
        assert_eq!(told.len(), usize::from(expected.is_some()), "{told:#?}");
        assert!(
            told.iter()
                .all(|(reason, text)| *reason == "IPBlockPending" && text.ends_with(expected.unwrap())),
            "{told:#?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_purchase_that_is_wrong_in_itself_is_tried_once_while_the_names_are_fresh() {
    let world = World::with(&[("PNAP_LOCATION", "XYZ"), BALANCING]);
    world.add(KEY);
    let network = Fault::operation("public-networks.read").always();
    world.sim.faults().add(network.status(404));
    let (run, calls) = world.calls_of(world.run(KEY)).await;
    assert!(run.complaint().contains("400"), "{run:?}");
    let of = |calls: &[String], name: &str| calls.iter().filter(|call| *call == name).count();
    assert_eq!(
        (of(&calls, "ip-blocks.create"), of(&calls, "tags.list")),
        (1, 1),
        "{calls:?}"
    );
    tokio::time::sleep(Duration::from_secs(5)).await;
    // Now they are believed to be known: it may be they that are wrong.
    let (run, calls) = world.calls_of(world.run(KEY)).await;
    assert!(run.complaint().contains("400"), "{run:?}");
    assert_eq!(
        (of(&calls, "ip-blocks.create"), of(&calls, "tags.list")),
        (2, 1),
        "{calls:?}"
    );
    assert_eq!(world.claim(KEY), None);
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
