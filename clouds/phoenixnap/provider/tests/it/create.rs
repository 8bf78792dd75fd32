//! Services that want a block.

use std::time::Duration;

use bowline_cloud_provider::CloudProvider;
use bowline_cloud_provider::k8s::{LoadBalancerIngress, LoadBalancerStatus, PortStatus, ServiceStatus};
use bowline_kit::{Run, predicted_kinds};
use bowline_phoenixnap_sim::kit::Fault;
use bowline_phoenixnap_sim::kit::faults::Canned;
use bowline_phoenixnap_sim::{Assignment, BlockSpec, BlockStatus, NetworkSpec, TagFilter};

use crate::world::{CLUSTER, Interruption, LOCATION_ANNOTATION, NETWORK, Outcome, World};

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

#[tokio::test(start_paused = true)]
async fn the_first_service_costs_nine_calls_and_the_sync_after_it_one() {
    let world = World::with_service();
    let (run, calls) = world.calls_of(world.run(KEY)).await;
    assert_eq!(
        calls,
        [
            "ip-blocks.list",
            "tags.list",
            "tags.create",
            "tags.create",
            "tags.create",
            "tags.create",
            "tags.create",
            "ip-blocks.create",
            "public-networks.attach"
        ]
    );
    let address = third_address(&world, 0);
    assert_eq!(run.published(), [address.as_str()]);
    assert_eq!(world.field(KEY), address);
    assert_eq!(world.claim(KEY), None, "the claim is taken back");
    let names: Vec<String> = world.sim.tags().into_iter().map(|tag| tag.name).collect();
    assert_eq!(
        names,
        ["usage", "cluster", "serviceNamespace", "serviceName", "delete"]
    );
    let block = &world.sim.blocks()[0];
    assert_eq!((block.location.as_str(), block.cidr.prefix_len()), ("NLD", 29));
    assert_eq!(block.tag("serviceNamespace"), Some("shop"));
    assert_eq!(block.tag("serviceName"), Some("checkout"));
    assert_eq!(block.tag("cluster"), Some(CLUSTER));
    assert_eq!(block.tag("usage"), Some("cloud-provider-phoenixnap-auto"));

    let (run, calls) = world.calls_of(world.run(KEY)).await;
    assert_eq!(run.published(), [address]);
    assert_eq!(calls, ["ip-blocks.list"]);
    world.check("the first service");
}

// The order of the conditions.
#[tokio::test(start_paused = true)]
async fn the_blocks_of_a_service_are_asked_for_by_four_tags_in_the_vendor_s_order() {
    let world = World::with_service();
    world.run(KEY).await.settled();
    let list = world
        .sim
        .journal()
        .filter(|entry| entry.operation == "ip-blocks.list");
    let expected = [
        format!("cluster.{CLUSTER}"),
        "usage.cloud-provider-phoenixnap-auto".to_owned(),
        "serviceName.checkout".to_owned(),
        "serviceNamespace.shop".to_owned(),
    ]
    .map(|value| ("tag".to_owned(), value));
    assert_eq!(list[0].query, expected);
}

#[tokio::test(start_paused = true)]
async fn the_second_service_costs_three_calls() {
    let world = World::with_service();
    world.add("shop/search");
    world.run(KEY).await.settled();
    let (run, calls) = world.calls_of(world.run("shop/search")).await;
    assert_eq!(
        calls,
        ["ip-blocks.list", "ip-blocks.create", "public-networks.attach"]
    );
    assert_eq!(run.published(), [third_address(&world, 1)]);
    world.check("the second service");
}

#[tokio::test(start_paused = true)]
async fn without_a_location_the_annotation_says_where() {
    let world = World::with(&[BALANCING]);
    world.add("eu/api");
    world.annotate("eu/api", LOCATION_ANNOTATION, "NLD");
    world.run("eu/api").await.settled();
    assert_eq!(world.sim.blocks()[0].location, "NLD");
}

#[tokio::test(start_paused = true)]
async fn a_location_beats_the_annotation() {
    let world = World::with_service();
    world.annotate(KEY, LOCATION_ANNOTATION, "PHX");
    world.run(KEY).await.settled();
    assert_eq!(world.sim.blocks()[0].location, "NLD");
}

#[tokio::test(start_paused = true)]
async fn without_any_location_nothing_is_bought_until_the_annotation_is_there() {
    let world = World::with(&[BALANCING]);
    world.add(KEY);
    let (run, calls) = world.calls_of(world.run(KEY)).await;
    assert!(run.complaint().contains("PNAP_LOCATION"), "{run:?}");
    assert!(run.complaint().contains(LOCATION_ANNOTATION), "{run:?}");
    assert_eq!(calls, ["ip-blocks.list"]);
    world.annotate(KEY, LOCATION_ANNOTATION, "NLD");
    world.run(KEY).await.settled();
}

#[tokio::test(start_paused = true)]
async fn the_annotation_may_have_another_name() {
    let world = World::with(&[BALANCING, ("PNAP_ANNOTATION_IP_LOCATION", "acme.io/site")]);
    world.add(KEY);
    world.annotate(KEY, "acme.io/site", "NLD");
    world.annotate(KEY, LOCATION_ANNOTATION, "PHX");
    world.run(KEY).await.settled();
    assert_eq!(world.sim.blocks()[0].location, "NLD");
}

#[tokio::test(start_paused = true)]
async fn a_network_in_another_location_is_told_of_before_anything_is_bought() {
    let world = World::with(&[BALANCING, ("PNAP_LOCATION", "SEA")]);
    world.add(KEY);
    let run = world.run(KEY).await;
    assert!(
        run.complaint().contains("SEA") && run.complaint().contains("NLD"),
        "{run:?}"
    );
    assert!(world.sim.blocks().is_empty());
}

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

#[tokio::test(start_paused = true)]
async fn a_slow_attachment_keeps_no_address_back_and_is_not_asked_for_twice() {
    let world = World::with_service();
    world.sim.set_behaviour(|behaviour| {
        behaviour.attach_time = Duration::from_secs(90);
        behaviour.assigning_names_network = false;
    });
    let address = world.run(KEY).await.published();
    for second in [10, 40, 39] {
        tokio::time::sleep(Duration::from_secs(second)).await;
        let (run, calls) = world.calls_of(world.run(KEY)).await;
        assert_eq!(
            (run.published(), calls),
            (address.clone(), vec!["ip-blocks.list".to_owned()])
        );
    }
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(world.sim.blocks()[0].status, BlockStatus::Assigned);
}

#[tokio::test(start_paused = true)]
async fn an_attachment_that_failed_is_made_again_by_a_sync_or_by_the_sweeper() {
    for stays in [false, true] {
        for by_sweeper in [false, true] {
            let world = World::with_service();
            world.sim.set_behaviour(|behaviour| {
                behaviour.failing_attachments = 1;
                behaviour.failed_attachment_is_final = false;
                behaviour.failed_attachment_stays = stays;
                behaviour.attach_time = Duration::from_secs(3);
            });
            let address = world.run(KEY).await.published();
            tokio::time::sleep(Duration::from_secs(5)).await;
            assert_eq!(world.sim.blocks()[0].status, BlockStatus::ErrorAssigning);
            if by_sweeper {
                world.sweep().await;
            } else {
                assert_eq!(world.run(KEY).await.published(), address);
            }
            tokio::time::sleep(Duration::from_secs(5)).await;
            let what = format!("{stays} {by_sweeper}");
            assert_eq!(world.sim.blocks()[0].status, BlockStatus::Assigned, "{what}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_block_whose_address_was_never_written_is_found_after_a_restart() {
    let world = World::new();
    world.add("shop/cart");
    world
        .sim
        .add_block(BlockSpec::of_service(CLUSTER, "shop", "cart").network(NETWORK));
    let (run, calls) = world.calls_of(world.run("shop/cart")).await;
    assert_eq!(run.published(), [third_address(&world, 0)]);
    assert_eq!(world.field("shop/cart"), third_address(&world, 0));
    assert_eq!(calls, ["ip-blocks.list"]);
}

#[tokio::test(start_paused = true)]
async fn an_address_set_beforehand_buys_nothing_and_is_explained() {
    let world = World::new();
    world.add("x/y");
    world.set_field("x/y", "203.0.113.200");
    let (run, calls) = world.calls_of(world.run("x/y")).await;
    assert!(
        run.complaint().contains("cannot be requested by address"),
        "{run:?}"
    );
    assert_eq!(calls, ["ip-blocks.list", "ip-blocks.list"]);
    assert_eq!(world.field("x/y"), "203.0.113.200");
    world.set_field("x/y", "");
    world.run("x/y").await.settled();
    assert_eq!(world.sim.blocks().len(), 1);
}

// Deletion.
#[tokio::test(start_paused = true)]
async fn a_service_with_a_strange_address_and_no_block_is_deleted_with_one_call() {
    for address in ["203.0.113.200", "no address"] {
        let world = World::new();
        world.add("x/y");
        world.set_field("x/y", address);
        world.delete("x/y");
        let (run, calls) = world.calls_of(world.run("x/y")).await;
        run.settled();
        assert_eq!(calls, ["ip-blocks.list"]);
    }
}

#[tokio::test(start_paused = true)]
async fn another_address_of_the_own_block_is_kept() {
    let world = World::with_service();
    world.run(KEY).await.settled();
    let network = world.sim.blocks()[0].cidr.network().to_string();
    let other = format!("{}.{}", network.rsplit_once('.').unwrap().0, 6);
    assert!(
        world.sim.blocks()[0]
            .cidr
            .contains(&other.parse::<std::net::IpAddr>().unwrap())
    );
    world.set_field(KEY, &other);
    assert_eq!(world.run(KEY).await.published(), [other.as_str()]);
    assert_eq!(world.field(KEY), other);
    world.set_field(KEY, "192.0.2.1");
    let (run, calls) = world.calls_of(world.run(KEY)).await;
    assert!(run.complaint().contains("outside of"), "{run:?}");
    assert_eq!(calls, ["ip-blocks.list"]);
}

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

#[tokio::test(start_paused = true)]
async fn a_block_on_a_former_network_is_told_of_and_released_from_there() {
    let mut world = World::with_service();
    world.run(KEY).await.settled();
    world
        .sim
        .add_network(NetworkSpec::with_id("0000000000000000000000bb", "new"));
    world.restart_with(&[
        ("PNAP_LOCATION", "NLD"),
        ("PNAP_LOAD_BALANCER", "kube-vip://0000000000000000000000bb"),
    ]);
    let (run, calls) = world.calls_of(world.run(KEY)).await;
    assert!(run.complaint().contains(NETWORK), "{run:?}");
    assert!(run.complaint().contains("0000000000000000000000bb"), "{run:?}");
    assert_eq!(calls, ["ip-blocks.list"]);
    world.delete(KEY);
    world.run(KEY).await.settled();
    world.forget(KEY);
    world.sweep().await;
    assert!(world.sim.blocks().is_empty());
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
async fn an_empty_pool_is_told_in_the_api_s_words_and_frees_the_claim() {
    let world = World::with_service();
    let fault = Fault::operation("ip-blocks.create").always();
    world
        .sim
        .faults()
        .add(fault.answer(Canned::json(406, r#"{"message":"No /29 is left in NLD."}"#)));
    let (run, calls) = world.calls_of(world.run(KEY)).await;
    assert!(run.complaint().contains("No /29 is left in NLD."), "{run:?}");
    assert!(!calls.contains(&"public-networks.attach".to_owned()));
    assert_eq!(world.claim(KEY), None);
    world.sim.faults().clear();
    // It is held back for a while, whatever else comes to the Service, or until a person wants something else.
    world.annotate(KEY, "team", "blue");
    let (run, calls) = world.calls_of(world.run(KEY)).await;
    assert!(run.complaint().contains("No /29 is left in NLD."), "{run:?}");
    assert_eq!((calls, run.waves.len()), (vec!["ip-blocks.list".to_owned()], 0));
    tokio::time::sleep(Duration::from_secs(5)).await;
    let run = world.run(KEY).await.settled();
    assert_eq!(
        run.waited,
        Duration::ZERO,
        "nobody waits for a purchase that was refused"
    );
}

#[tokio::test(start_paused = true)]
async fn somebody_faster_with_a_tag_name_is_no_error() {
    let world = World::with_service();
    let fault = Fault::operation("tags.create").nth(2);
    world.sim.faults().add(fault.status_after(409));
    world.run(KEY).await.settled();
}

#[tokio::test(start_paused = true)]
async fn tag_names_that_an_operator_removed_are_made_again_for_the_next_purchase() {
    let world = World::with_service();
    world.add("shop/search");
    world.run(KEY).await.settled();
    world.sim.remove_tag("serviceName");
    let (run, calls) = world.calls_of(world.run("shop/search")).await;
    run.settled();
    assert_eq!(
        calls.iter().filter(|call| *call == "ip-blocks.create").count(),
        2,
        "{calls:?}"
    );
    assert_eq!(
        calls.iter().filter(|call| *call == "tags.create").count(),
        1,
        "{calls:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn an_ipv6_service_gets_nothing_and_a_dual_one_an_ipv4_address() {
    let world = World::with_service();
    let families = |names: &[&str]| Some(names.iter().map(ToString::to_string).collect());
    world.edit(KEY, |service| {
        service.spec.as_mut().unwrap().ip_families = families(&["IPv6"])
    });
    assert!(world.run(KEY).await.complaint().contains("IPv6 only"));
    assert!(world.sim.blocks().is_empty());
    world.edit(KEY, |service| {
        service.spec.as_mut().unwrap().ip_families = families(&["IPv6", "IPv4"]);
    });
    let run = world.run(KEY).await.settled();
    assert!(run.notes.iter().any(|note| note.reason == "IPv4Only"));
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
async fn several_blocks_of_one_service_are_left_to_a_person_and_all_of_them_are_released() {
    let world = World::with_service();
    for _ in 0..2 {
        world
            .sim
            .add_block(BlockSpec::of_service(CLUSTER, "shop", "checkout").network(NETWORK));
    }
    let (run, calls) = world.calls_of(world.run(KEY)).await;
    for block in world.sim.blocks() {
        assert!(run.complaint().contains(&block.id), "{run:?}");
    }
    assert_eq!(calls, ["ip-blocks.list"]);
    world.delete(KEY);
    world.run(KEY).await.settled();
    let marked = world.sim.blocks();
    let marked = marked
        .iter()
        .filter(|block| block.has_tag("delete", Some("true")));
    assert_eq!(marked.count(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_block_on_a_server_is_never_attached() {
    let world = World::with_service();
    let block = world
        .sim
        .add_block(BlockSpec::of_service(CLUSTER, "shop", "checkout"));
    world.sim.assign_block(
        &block,
        Some(Assignment {
            resource_id: Some("s1".to_owned()),
            resource_type: Some("server".to_owned()),
        }),
    );
    let run = world.run(KEY).await;
    assert!(run.complaint().contains("server"), "{run:?}");
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
