//! Node IPAM against an API server in memory.

use std::collections::BTreeSet;

use bowline_controllers::Controller as _;
use bowline_controllers::node_ipam::ranges::{RangeFlags, Ranges};
use bowline_kube_api::{Effect, Fault, Status};
use ipnet::IpNet;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::cluster::{Cluster, SECOND, node_patch};

fn ranges(cluster_cidr: &str, mask_ipv4: i64) -> Ranges {
    Ranges::new(&RangeFlags {
        cluster_cidr,
        mask_ipv4,
        service_range: "10.200.0.0/24",
        allocator: "RangeAllocator",
        ..RangeFlags::default()
    })
    .unwrap()
}

fn start(cluster_cidr: &str, mask_ipv4: i64) -> Cluster {
    let mut cluster = Cluster::new();
    cluster.start_node_ipam(&ranges(cluster_cidr, mask_ipv4));
    cluster
}

fn node(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}})
}

fn node_with(name: &str, network: &str) -> Value {
    let mut node = node(name);
    node["spec"] = json!({"podCIDR": network, "podCIDRs": [network]});
    node
}

fn networks(cluster: &Cluster, name: &str) -> Vec<String> {
    let node = cluster.node(name);
    let texts = node["spec"]["podCIDRs"].as_array().cloned().unwrap_or_default();
    let texts: Vec<String> = texts
        .iter()
        .map(|text| text.as_str().unwrap().to_owned())
        .collect();
    assert_eq!(
        node["spec"]["podCIDR"].as_str(),
        texts.first().map(String::as_str)
    );
    texts
}

async fn all_have_networks(cluster: &Cluster, names: &[&str]) {
    cluster
        .within(SECOND * 90, "networks", |c| {
            names.iter().all(|name| !networks(c, name).is_empty())
        })
        .await;
}

// I-01
#[tokio::test(start_paused = true)]
async fn each_node_gets_a_network_of_its_own() {
    let cluster = start("10.200.0.0/16", 0);
    for name in ["n1", "n2", "n3"] {
        cluster.put(node(name));
    }
    cluster
        .soon("networks", |c| {
            ["n1", "n2", "n3"]
                .iter()
                .all(|name| !networks(c, name).is_empty())
        })
        .await;
    let given: BTreeSet<String> = ["n1", "n2", "n3"]
        .iter()
        .flat_map(|name| networks(&cluster, name))
        .collect();
    // The first block is the Services'.
    assert_eq!(
        given,
        ["10.200.1.0/24", "10.200.2.0/24", "10.200.3.0/24"]
            .map(str::to_owned)
            .into()
    );
    let writes = cluster.node_writes();
    assert_eq!(writes.len(), 3);
    assert!(
        writes
            .iter()
            .all(|write| write.body.as_ref().unwrap()["metadata"]["uid"].is_string())
    );
    cluster.pass(SECOND * 600).await;
    assert_eq!(cluster.writes(), 3);
    assert!(cluster.stalled().is_empty());
}

#[tokio::test(start_paused = true)]
async fn with_two_networks_of_the_cluster_a_node_gets_one_of_each() {
    let cluster = start("fd00::/48,10.200.0.0/16", 26);
    cluster.put(node("n1"));
    cluster
        .soon("networks", |c| {
            networks(c, "n1") == ["fd00::/64", "10.200.1.0/26"]
        })
        .await;
}

// I-02
#[tokio::test(start_paused = true)]
async fn when_no_network_is_left_a_node_waits_until_one_is() {
    let cluster = start("10.201.0.0/24", 26);
    for n in 1..=5 {
        cluster.put(node(&format!("n{n}")));
    }
    cluster
        .soon("told", |c| c.count_events("CIDRNotAvailable") == 1)
        .await;
    all_have_networks(&cluster, &["n1", "n2", "n3", "n4"]).await;
    cluster.pass(SECOND * 600).await;
    assert!(networks(&cluster, "n5").is_empty());
    assert_eq!(
        cluster.events("n5"),
        [(
            "Normal CIDRNotAvailable: Node n5 status is now: CIDRNotAvailable".to_owned(),
            "cidrAllocator".to_owned()
        )]
    );
    let freed = networks(&cluster, "n2");
    cluster.delete("n2");
    cluster.soon("its turn", |c| networks(c, "n5") == freed).await;
}

// I-04
#[tokio::test(start_paused = true)]
async fn after_a_restart_no_network_is_given_twice() {
    let cluster = start("10.201.0.0/22", 0);
    cluster.put(node_with("old", "10.201.0.0/24"));
    cluster.put(node("n1"));
    all_have_networks(&cluster, &["n1"]).await;
    let mut cluster = cluster.after_a_crash();
    cluster.put(node("n2"));
    cluster.put(node("n3"));
    cluster.start_node_ipam(&ranges("10.201.0.0/22", 0));
    all_have_networks(&cluster, &["n2", "n3"]).await;
    let names = ["old", "n1", "n2", "n3"];
    let given: BTreeSet<IpNet> = names
        .iter()
        .flat_map(|name| networks(&cluster, name))
        .map(|text| text.parse().unwrap())
        .collect();
    assert_eq!(given.len(), 4, "{given:?}");
}

#[tokio::test(start_paused = true)]
async fn a_network_that_somebody_else_gave_is_not_given_again() {
    let cluster = start("10.201.0.0/22", 0);
    cluster.put(node_with("n1", "10.201.0.0/24"));
    cluster.put(node_with("n2", "10.201.1.0/24"));
    cluster.pass(SECOND).await;
    cluster.put(node("n3"));
    cluster
        .soon("networks", |c| networks(c, "n3") == ["10.201.2.0/24"])
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_node_under_deletion_gets_nothing() {
    let cluster = start("10.201.0.0/22", 0);
    let mut leaving = node("n1");
    leaving["metadata"]["finalizers"] = json!(["example.org/wait"]);
    cluster.inject(node_patch(Effect::Answer(Status::new(403, "Forbidden", "not yet"))).times(3));
    cluster.put(leaving);
    cluster.pass(SECOND / 2).await;
    cluster.delete("n1");
    cluster.pass(SECOND * 120).await;
    assert!(networks(&cluster, "n1").is_empty());
    assert_eq!(cluster.writes(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_write_that_is_refused_gives_the_network_back_and_is_tried_again() {
    let cluster = start("10.201.0.0/24", 24);
    let refused = Fault::new(Effect::Answer(Status::new(403, "Forbidden", "no")));
    cluster.inject(refused.verb("patch").resource("nodes").name("n1"));
    cluster.put(node("n1"));
    cluster
        .soon("told", |c| c.count_events("CIDRAssignmentFailed") == 1)
        .await;
    assert_eq!(
        cluster.texts("n1")[0],
        "Normal CIDRAssignmentFailed: Node n1 status is now: CIDRAssignmentFailed"
    );
    assert_eq!(cluster.writes(), 3, "three tries");
    cluster.put(node("n2"));
    all_have_networks(&cluster, &["n2"]).await;
    cluster.api.faults().clear();
    cluster.delete("n2");
    all_have_networks(&cluster, &["n1"]).await;
}

#[tokio::test(start_paused = true)]
async fn a_write_that_conflicts_is_tried_again_without_a_word() {
    let cluster = start("10.201.0.0/23", 0);
    let conflict = Status::new(409, "Conflict", "the object has been modified");
    cluster.api.faults().fail_next(2, "patch", "nodes", conflict);
    cluster.put(node("n1"));
    cluster.put(node("n2"));
    all_have_networks(&cluster, &["n1", "n2"]).await;
    assert_ne!(networks(&cluster, "n1"), networks(&cluster, "n2"));
    assert_eq!(cluster.count_events("CIDRAssignmentFailed"), 0);
}

#[tokio::test(start_paused = true)]
async fn a_network_whose_write_was_not_answered_stays_with_its_node() {
    let cluster = start("10.201.0.0/23", 0);
    cluster.inject(node_patch(Effect::DropAfter).times(9));
    cluster.put(node("n1"));
    cluster.put(node("n2"));
    all_have_networks(&cluster, &["n1", "n2"]).await;
    assert_ne!(networks(&cluster, "n1"), networks(&cluster, "n2"));
}

#[tokio::test(start_paused = true)]
async fn a_network_whose_write_may_have_been_made_is_given_to_nobody_else() {
    let mut cluster = Cluster::new();
    for name in ["n1", "n2", "n3"] {
        cluster.put(node(name));
    }
    cluster.pass(SECOND).await;
    let patch = |effect| node_patch(effect).name("n1");
    let refused = || Effect::Answer(Status::new(403, "Forbidden", "not now"));
    // The answer to the first try is lost, all others fail for sure, and the watch is away: lists are all there is.
    cluster.inject(patch(Effect::DropAfter).times(1));
    cluster.inject(patch(refused()).times(20));
    let away = Effect::Delay(SECOND * 20);
    cluster.inject(Fault::new(away).verb("watch").resource("nodes"));
    cluster.api.close_watches();
    cluster.start_node_ipam(&ranges("10.201.0.0/23", 0)); // two blocks
    cluster.pass(SECOND * 600).await;
    assert_eq!(networks(&cluster, "n1"), ["10.201.0.0/24"]);
    assert_eq!(networks(&cluster, "n2"), ["10.201.1.0/24"]);
    assert!(
        networks(&cluster, "n3").is_empty(),
        "{:?}",
        networks(&cluster, "n3")
    );
    cluster.delete("n1");
    let is_given = |c: &Cluster| networks(c, "n3") == ["10.201.0.0/24"];
    cluster.within(SECOND * 60, "its block is free", is_given).await;
}

#[tokio::test(start_paused = true)]
async fn nothing_is_given_before_the_nodes_could_be_listed() {
    let mut cluster = Cluster::new();
    cluster.put(node_with("old", "10.201.0.0/24"));
    cluster.put(node("n1"));
    cluster.pass(SECOND).await;
    let not_yet = Status::new(403, "Forbidden", "not yet");
    cluster.api.faults().fail_next(3, "list", "nodes", not_yet);
    cluster.start_node_ipam(&ranges("10.201.0.0/22", 0));
    cluster.pass(SECOND * 29).await;
    assert!(cluster.writes() == 0);
    cluster
        .soon("networks", |c| networks(c, "n1") == ["10.201.1.0/24"])
        .await;
}

#[tokio::test(start_paused = true)]
async fn odd_nodes_are_told_of_keep_their_networks_and_stop_nothing() {
    let mut cluster = Cluster::new();
    for (name, network) in [
        ("elsewhere", "192.168.0.0/24"),
        ("v6", "fd00::/64"),
        ("host-bits", "10.201.0.9/24"),
        ("small", "10.201.1.0/28"),
        ("twin-a", "10.201.2.0/24"),
        ("twin-b", "10.201.2.0/25"),
    ] {
        cluster.put(node_with(name, network));
    }
    cluster.put(node("n1"));
    cluster.pass(SECOND).await;
    cluster.start_node_ipam(&ranges("10.201.0.0/22", 0));
    cluster
        .soon("networks", |c| networks(c, "n1") == ["10.201.3.0/24"])
        .await;
    cluster.pass(SECOND * 600).await;
    assert_eq!(cluster.writes(), 1);
    let reasons = |name: &str| {
        let events = cluster.events(name).into_iter();
        let reasons = events.map(|(text, _)| text.split(':').next().unwrap_or_default().to_owned());
        reasons.collect::<Vec<_>>()
    };
    for (name, expected) in [
        ("elsewhere", &["Warning PodNetworkOutside"][..]),
        ("v6", &["Warning PodNetworkOutside"]),
        ("host-bits", &[]),
        ("small", &[]),
        ("twin-a", &["Warning PodNetworkShared"]),
        ("twin-b", &["Warning PodNetworkShared"]),
    ] {
        assert_eq!(reasons(name), expected, "{name}");
    }
    cluster.put(node_with("late", "10.9.0.0/24"));
    cluster
        .soon("told", |c| c.count_events("PodNetworkOutside") == 3)
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_list_that_fails_for_an_hour_ends_nothing() {
    let mut cluster = Cluster::new();
    cluster.put(node("n1"));
    cluster.pass(SECOND).await;
    let no = Fault::new(Effect::Answer(Status::new(403, "Forbidden", "no")));
    cluster.inject(no.verb("list").resource("nodes"));
    cluster.start_node_ipam(&ranges("10.201.0.0/22", 0));
    let begun = Instant::now();
    cluster.without_a_stall(|_| begun.elapsed() > SECOND * 3600).await;
    assert!(cluster.writes() == 0);
    cluster.api.faults().clear();
    cluster
        .within(SECOND * 11, "networks", |c| !networks(c, "n1").is_empty())
        .await;
}

#[tokio::test(start_paused = true)]
async fn tries_of_a_write_are_apart_and_a_busy_api_server_is_left_alone() {
    let cluster = start("10.201.0.0/22", 0);
    let busy = Status::too_many_requests(20);
    cluster.api.faults().fail_next(1, "patch", "nodes", busy);
    cluster.put(node("n1"));
    cluster.pass(SECOND * 19).await;
    assert_eq!(cluster.writes(), 1);
    cluster
        .within(SECOND * 3, "networks", |c| !networks(c, "n1").is_empty())
        .await;
    let refused = Status::new(500, "InternalError", "no");
    cluster.api.faults().fail_next(3, "patch", "nodes", refused);
    cluster.put(node("n2"));
    cluster.soon("three tries", |c| c.writes() == 5).await;
    let at: Vec<_> = cluster.node_writes().iter().map(|write| write.at).collect();
    for pair in at[2..].windows(2) {
        assert!(pair[0] < pair[1], "{at:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_series_show_what_is_used() {
    let cluster = start("10.201.0.0/22", 0);
    for n in 1..=3 {
        cluster.put(node(&format!("n{n}")));
    }
    all_have_networks(&cluster, &["n1", "n2", "n3"]).await;
    cluster.delete("n1");
    cluster.pass(SECOND).await;
    let mut registry = prometheus_client::registry::Registry::default();
    cluster.metrics.register(&mut registry);
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
    let labels = r#"{clusterCIDR="10.201.0.0/22"}"#;
    for line in [
        format!("node_ipam_controller_cidrset_cidrs_allocations_total{labels} 3"),
        format!("node_ipam_controller_cidrset_cidrs_releases_total{labels} 1"),
        format!("node_ipam_controller_cirdset_max_cidrs{labels} 4"),
        format!("node_ipam_controller_cidrset_usage_cidrs{labels} 0.5"),
        format!("node_ipam_controller_cidrset_allocation_tries_per_request_count{labels} 3"),
    ] {
        assert!(text.lines().any(|found| found == line), "{line}\n{text}");
    }
}

#[tokio::test(start_paused = true)]
async fn after_a_stop_nothing_is_given() {
    let mut cluster = Cluster::new();
    let controller = cluster.start_node_ipam(&ranges("10.201.0.0/22", 0));
    cluster.put(node("n1"));
    all_have_networks(&cluster, &["n1"]).await;
    controller.stop();
    cluster.end_of_a_loop().await;
    cluster.put(node("n2"));
    cluster.pass(SECOND * 60).await;
    assert!(networks(&cluster, "n2").is_empty());
}

#[tokio::test(start_paused = true)]
async fn many_nodes_at_a_slow_api_server_do_not_look_stuck() {
    let mut cluster = Cluster::new();
    cluster.slow_writes();
    for n in 0..700 {
        cluster.put(node(&format!("n{n:03}")));
    }
    cluster.start_node_ipam(&ranges("10.200.0.0/16", 28));
    let took = cluster
        .without_a_stall(|c| (0..700).all(|n| !networks(c, &format!("n{n:03}")).is_empty()))
        .await;
    assert!(took > SECOND * 600, "{took:?} is no test");
}
