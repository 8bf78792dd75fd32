//! The IP API: purchase, states, tags and deletion of blocks.

use std::time::Duration;

use bowline_phoenixnap_sim::kit::{Fault, TransportError};
use bowline_phoenixnap_sim::{BlockSpec, BlockStatus, Operation, PhoenixnapSim, TagFilter};
use http::Method;
use serde_json::{Value, json};

use crate::support::{CLUSTER, Caller, NAMES, NETWORK, account, pass, text, wish};

const BLOCKS: &str = "/ips/v1/ip-blocks";

fn with_field(field: &str, value: Value) -> Value {
    let mut body = wish();
    body[field] = value;
    body
}

#[tokio::test(start_paused = true)]
async fn new_block_is_the_next_free_range_with_its_tags() {
    let sim = account();
    for name in NAMES {
        sim.add_tag(name);
    }
    let caller = Caller::new(&sim).await;
    let tags = json!([{ "name": "usage", "value": "auto" }, { "name": "delete" }]);
    let (status, block) = caller.post(BLOCKS, with_field("tags", tags)).await;
    assert_eq!(status, 201);
    for (field, value) in [
        ("location", json!("NLD")),
        ("cidrBlockSize", json!("/29")),
        ("cidr", json!("198.19.96.0/29")),
        ("ipVersion", json!("V4")),
        ("status", json!("unassigned")),
        ("createdOn", json!("2026-01-01T00:00:00.000Z")),
    ] {
        assert_eq!(block[field], value, "{field}");
    }
    assert_eq!(block["tags"][0]["value"], "auto");
    assert_eq!(block["tags"][0]["id"], sim.tags()[0].id);
    assert_eq!(block["tags"][1].get("value"), None);
    assert_eq!(block.get("assignedResourceId"), None);

    let small = caller
        .post(BLOCKS, with_field("cidrBlockSize", json!("/31")))
        .await
        .1;
    assert_eq!(small["cidr"], "198.19.96.8/31");
    let large = caller
        .post(BLOCKS, with_field("cidrBlockSize", json!("/28")))
        .await
        .1;
    assert_eq!(large["cidr"], "198.19.96.16/28", "ranges are aligned");
    let mut v6 = with_field("ipVersion", json!("V6"));
    v6["cidrBlockSize"] = json!("/64");
    assert_eq!(caller.post(BLOCKS, v6).await.1["cidr"], "2001:db8:4::/64");
    assert_eq!(sim.check_invariants(), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn purchase_is_checked_as_strictly_as_by_the_vendor() {
    let sim = account();
    sim.add_tag("usage");
    let caller = Caller::new(&sim).await;
    for (field, value) in [
        ("location", json!("MOON")),
        ("location", Value::Null),
        ("cidrBlockSize", json!("/27")),
        ("cidrBlockSize", json!("29")),
        ("cidrBlockSize", Value::Null),
        ("ipVersion", json!("V5")),
        ("ipVersion", json!("V6")),
        ("description", json!("x".repeat(251))),
        ("tags", json!([{ "name": "cluster", "value": "a" }])),
        ("tags", json!([{ "name": "usage", "value": "shop.checkout" }])),
        (
            "tags",
            json!([{ "name": "usage", "value": "a" }, { "name": "usage", "value": "b" }]),
        ),
    ] {
        let (status, answer) = caller.post(BLOCKS, with_field(field, value.clone())).await;
        assert_eq!(status, 400, "{field} {value}");
        let errors = answer["validationErrors"].as_array().unwrap();
        assert_eq!(errors.len(), 1, "{answer}");
        let named = if field == "ipVersion" && value == "V6" {
            "cidrBlockSize"
        } else {
            field
        };
        assert!(text(&errors[0]).starts_with(&format!("{named}: ")), "{answer}");
    }
    let (status, answer) = caller.post(BLOCKS, json!({ "location": 5 })).await;
    assert_eq!((status, answer.get("validationErrors")), (400, None));
    assert!(sim.blocks().is_empty());
}

#[tokio::test(start_paused = true)]
async fn empty_pool_and_full_account_are_not_acceptable() {
    let sim = PhoenixnapSim::builder()
        .pool("NLD", ["203.0.113.0/28".parse().unwrap()])
        .build();
    let caller = Caller::new(&sim).await;
    let first = caller.buy().await;
    caller.buy().await;
    let (status, answer) = caller.post(BLOCKS, wish()).await;
    assert_eq!(status, 406);
    assert!(
        text(&answer["message"]).contains("/29 is available in NLD"),
        "{answer}"
    );
    assert_eq!(caller.delete(&format!("{BLOCKS}/{first}")).await.0, 200);
    sim.set_behaviour(|it| it.quota.blocks = Some(1));
    assert_eq!(caller.post(BLOCKS, wish()).await.0, 406);
    sim.set_behaviour(|it| it.quota.blocks = Some(2));
    let again = caller.buy().await;
    assert_eq!(sim.block(&again).unwrap().cidr.to_string(), "203.0.113.0/29");
}

#[tokio::test(start_paused = true)]
async fn block_goes_through_its_states_with_the_clock() {
    let sim = account();
    sim.set_behaviour(|it| {
        it.block_create_time = Duration::from_secs(5);
        it.attach_time = Duration::from_secs(90);
        it.detach_time = Duration::from_secs(20);
    });
    let caller = Caller::new(&sim).await;
    let block = caller.buy().await;
    let path = format!("{BLOCKS}/{block}");
    assert_eq!(caller.status(&block).await, "creating");
    assert_eq!(caller.attach(&block).await.0, 409);
    assert_eq!(caller.delete(&path).await.0, 409);
    pass(5).await;
    assert_eq!(caller.status(&block).await, "unassigned");
    assert_eq!(caller.attach(&block).await.0, 202);
    assert_eq!(caller.status(&block).await, "assigning");
    assert_eq!(caller.detach(&block).await.0, 409);
    pass(90).await;
    assert_eq!(caller.status(&block).await, "assigned");
    assert_eq!(caller.attach(&block).await.0, 409, "twice");
    assert_eq!(caller.delete(&path).await.0, 409);
    sim.set_behaviour(|it| it.delete_used_status = 403);
    assert_eq!(caller.delete(&path).await.0, 403);
    assert_eq!(caller.detach(&block).await.0, 202);
    assert_eq!(caller.status(&block).await, "unassigning");
    assert_eq!(caller.detach(&block).await.0, 409);
    pass(20).await;
    let (_, shown) = caller.get(&path).await;
    assert_eq!(shown["status"], "unassigned");
    assert_eq!(shown.get("assignedResourceId"), None);
    let (status, answer) = caller.delete(&path).await;
    assert_eq!((status, text(&answer["ipBlockId"])), (200, block));
    assert_eq!(caller.get(&path).await.0, 403);
    assert_eq!(caller.delete(&path).await.0, 403);
}

#[tokio::test(start_paused = true)]
async fn list_is_filtered_by_tags() {
    let sim = account();
    let one = sim.add_block(BlockSpec::of_service(CLUSTER, "shop", "checkout"));
    let two = sim.add_block(BlockSpec::of_service(CLUSTER, "shop", "search"));
    let marked = sim.add_block(BlockSpec::marked("elsewhere"));
    let caller = Caller::new(&sim).await;
    let ids = async |query: &str| {
        let (_, list) = caller.get(&format!("{BLOCKS}?{query}")).await;
        let list = list.as_array().unwrap().iter().map(|it| text(&it["id"]));
        list.collect::<Vec<_>>()
    };
    let service = format!("tag=cluster.{CLUSTER}&tag=serviceName.checkout");
    assert_eq!(ids(&service).await, [one.as_str()]);
    assert_eq!(ids("tag=serviceName").await, [one.as_str(), two.as_str()]);
    assert_eq!(ids("tag=delete").await, [marked.as_str()]);
    assert_eq!(ids("").await.len(), 3);
    sim.set_behaviour(|it| it.tag_filter = TagFilter::Any);
    assert_eq!(ids(&service).await, [one.as_str(), two.as_str()]);
    sim.set_behaviour(|it| it.tag_filter = TagFilter::Ignored);
    assert_eq!(ids(&service).await, [one, two, marked]);
    let asked = sim.journal().filter(|it| it.operation == "ip-blocks.list");
    assert_eq!(
        asked[0].query[0],
        ("tag".to_owned(), format!("cluster.{CLUSTER}"))
    );
}

#[tokio::test(start_paused = true)]
async fn new_tags_replace_all_old_ones() {
    let sim = account();
    let block = sim.add_block(BlockSpec::of_service(CLUSTER, "shop", "checkout").tag("team", "blue"));
    let caller = Caller::new(&sim).await;
    let path = format!("{BLOCKS}/{block}/tags");
    let wanted = json!([{ "name": "team", "value": "blue" }, { "name": "delete", "value": "true" }]);
    let (status, answer) = caller.put(&path, wanted.clone()).await;
    assert_eq!(status, 400, "{answer}");
    assert_eq!(
        answer["validationErrors"],
        json!(["tags: there is no tag delete"])
    );
    assert_eq!(sim.block(&block).unwrap().tags.len(), 5);
    sim.add_tag("delete");
    let (status, shown) = caller.put(&path, wanted).await;
    assert_eq!(status, 200);
    assert_eq!(text(&shown["id"]), block);
    let block = sim.block(&block).unwrap();
    assert_eq!((block.tags.len(), block.tag("delete")), (2, Some("true")));
    assert_eq!(caller.put(&format!("{BLOCKS}/none/tags"), json!([])).await.0, 403);
}

#[tokio::test(start_paused = true)]
async fn lost_answer_leaves_a_block_behind() {
    let sim = account();
    let caller = Caller::new(&sim).await;
    sim.faults()
        .add(Fault::operation(Operation::CreateBlock.name()).lose_answer());
    let lost = caller.try_send(Method::POST, BLOCKS, wish()).await;
    assert_eq!(lost.unwrap_err(), TransportError::Dropped);
    assert_eq!(sim.blocks().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn two_blocks_for_one_service_are_a_complaint() {
    let sim = account();
    let spec = || BlockSpec::of_service(CLUSTER, "shop", "checkout");
    sim.add_block(spec());
    sim.add_block(BlockSpec::of_service("elsewhere", "shop", "checkout"));
    sim.add_block(spec().tag("delete", "true"));
    assert_eq!(sim.check_invariants(), Vec::<String>::new());
    sim.add_block(spec());
    let found = sim.check_invariants();
    assert!(
        found.len() == 1 && found[0].contains("Service shop/checkout"),
        "{found:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn hand_made_block_is_as_it_was_described() {
    let sim = account();
    let block = sim.add_block(BlockSpec {
        cidr: Some("198.51.100.16/29".parse().unwrap()),
        ..BlockSpec::of_service(CLUSTER, "shop", "checkout").attached(NETWORK, "PUBLIC_NETWORK")
    });
    sim.add_block(BlockSpec {
        status: Some(BlockStatus::Other("frozen".to_owned())),
        ..BlockSpec::default()
    });
    let (_, list) = Caller::new(&sim).await.get(BLOCKS).await;
    assert_eq!(list[0]["status"], "assigned");
    assert_eq!(list[0]["assignedResourceType"], "PUBLIC_NETWORK");
    assert_eq!(list[0]["cidr"], "198.51.100.16/29");
    assert_eq!(list[1]["status"], "frozen");
    let snapshot = sim.snapshot();
    let mut blocks = snapshot["blocks"].as_array().unwrap().iter();
    assert!(blocks.any(|it| it["attached_to"] == "k8s-vips"));
    sim.edit_block(&block, |it| it.shown_cidr = Some("nonsense".to_owned()));
    let (_, list) = Caller::new(&sim).await.get(BLOCKS).await;
    assert_eq!(list[0]["cidr"], "nonsense");
    assert!(sim.remove_network(NETWORK));
    assert_eq!(sim.block(&block).unwrap().status, BlockStatus::Unassigned);
}
