//! The cloud-node controller against an API server and a cloud in memory.

mod meanwhile;
mod refused;
mod tainted_again;

use std::time::Duration;

use bowline_cloud_provider::{CloudError, ErrorKind, InstanceAnswer, InstanceMetadata, Purpose};
use bowline_controllers::node::NodeSettings;
use bowline_kube_api::{Effect, Fault, Status};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::cluster::{Cluster, SECOND, new_node, node_of, node_patch};
use crate::instances::metadata;

const PROVIDED: &str = "alpha.kubernetes.io/provided-node-ip";
const TYPE: &str = "node.kubernetes.io/instance-type";
const TYPE_BETA: &str = "beta.kubernetes.io/instance-type";
const ZONE: &str = "topology.kubernetes.io/zone";

pub(crate) fn cluster() -> Cluster {
    Cluster::new().with_node_loop(NodeSettings::default())
}

/// A cluster whose periodic pass comes this often.
pub(crate) fn cluster_with_pass_every(period: Duration) -> Cluster {
    Cluster::new().with_node_loop(NodeSettings {
        node_status_update_frequency: period,
        ..NodeSettings::default()
    })
}

pub(crate) fn with(mut node: Value, change: impl FnOnce(&mut Value)) -> Value {
    change(&mut node);
    node
}

pub(crate) fn provided(node: Value, ips: &str) -> Value {
    with(node, |node| {
        node["metadata"]["annotations"][PROVIDED] = json!(ips)
    })
}

#[tokio::test(start_paused = true)]
async fn a_new_node_gets_everything_with_one_question() {
    let cluster = cluster();
    cluster.join("n1").await;
    assert_eq!(cluster.node("n1")["spec"]["providerID"], "fake://1");
    for (key, value) in [
        (TYPE, "flex-4"),
        (TYPE_BETA, "flex-4"),
        (ZONE, "z1"),
        ("failure-domain.beta.kubernetes.io/zone", "z1"),
        ("topology.kubernetes.io/region", "r1"),
        ("failure-domain.beta.kubernetes.io/region", "r1"),
    ] {
        assert!(cluster.is_labelled("n1", key, value), "{key}");
    }
    assert_eq!(cluster.addresses("n1"), ["InternalIP 10.1.0.1"]);
    cluster.soon("the event", |c| !c.events("n1").is_empty()).await;
    assert_eq!(
        cluster.events("n1"),
        [(
            "Normal Synced: Node synced successfully".to_owned(),
            "cloud-node-controller".to_owned()
        )]
    );
    cluster.pass(SECOND * 10).await;
    assert_eq!(cluster.questions(), 1);
    assert_eq!(cluster.writes(), 2, "the addresses and the rest");
}

#[tokio::test(start_paused = true)]
async fn a_wrong_provided_ip_keeps_the_taint_until_it_is_corrected() {
    let cluster = cluster();
    for (name, ips) in [
        ("unknown", "10.9.9.9"),
        ("blank", "10.1.0.1, fd00::1"),
        ("empty", ""),
    ] {
        cluster.instances.run(name, metadata(&["10.1.0.1", "fd00::1"]));
        cluster.put(provided(new_node(name), ips));
    }
    cluster.pass(SECOND * 3).await;
    for name in ["unknown", "blank", "empty"] {
        assert!(!cluster.is_initialized(name));
        assert_eq!(cluster.node(name)["spec"]["providerID"], Value::Null);
        assert!(cluster.addresses(name).is_empty());
        let events = cluster.events(name);
        assert_eq!(
            events.len(),
            1,
            "one event while the text is the same: {events:?}"
        );
        assert!(
            events[0].0.starts_with(&format!(
                "Warning NodeInitFailed: failed to get node modifiers from cloud provider: provided node ip for node \
                 \"{name}\" is not valid: "
            )),
            "{events:?}"
        );
    }
    cluster.pass(SECOND * 100).await; // the back-off is long by now
    cluster.edit("unknown", |node| {
        node["metadata"]["annotations"][PROVIDED] = json!("10.1.0.1");
    });
    cluster.initialized("unknown").await;
    assert!(!cluster.is_initialized("blank"));
}

#[tokio::test(start_paused = true)]
async fn another_provider_id_is_left_and_told_once() {
    let cluster = cluster_with_pass_every(SECOND * 5);
    cluster.instances.run("n1", metadata(&["10.1.0.1"]));
    cluster.put(with(new_node("n1"), |node| {
        node["spec"]["providerID"] = json!("fake://old")
    }));
    cluster.initialized("n1").await;
    cluster.pass(SECOND * 30).await;
    assert_eq!(cluster.node("n1")["spec"]["providerID"], "fake://old");
    assert_eq!(cluster.count_events("ProviderIDMismatch"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_foreign_node_is_asked_for_once_until_it_changes_and_told_of_once() {
    let cluster = cluster();
    cluster.instances.set("n1", Ok(InstanceAnswer::Foreign));
    cluster.put(with(new_node("n1"), |node| {
        node["spec"]["providerID"] = json!("k3s://n1");
    }));
    cluster.pass(SECOND * 60).await;
    for second in 0..5 {
        cluster.edit("n1", |node| {
            node["status"]["conditions"][0]["lastHeartbeatTime"] =
                json!(format!("2026-01-01T00:00:0{second}Z"));
        });
        cluster.pass(SECOND).await;
    }
    assert_eq!(cluster.questions(), 1);
    assert!(cluster.writes() == 0);
    cluster.edit("n1", |node| node["metadata"]["labels"]["owner"] = json!("them"));
    cluster.soon("asked for again", |c| c.questions() == 2).await;
    assert_eq!(
        cluster.texts("n1")[0],
        "Warning ForeignProviderID: The provider ID \"k3s://n1\" is none of this cloud, so the node is not initialized here \
         and keeps its uninitialized taint until the manager of its cloud takes the taint off"
    );
    assert_eq!(cluster.count_events("ForeignProviderID"), 1);
    cluster.instances.run("n1", metadata(&["10.1.0.1"]));
    cluster.edit("n1", |node| node["metadata"]["labels"]["owner"] = json!("us"));
    cluster.initialized("n1").await;
}

#[tokio::test(start_paused = true)]
async fn a_cloud_that_is_down_delays_an_initialisation_and_nothing_is_written_before() {
    let cluster = cluster();
    cluster.instances.run("n1", metadata(&["10.1.0.1"]));
    cluster.outage(Some(CloudError::transient("bad gateway")));
    cluster.put(new_node("n1"));
    cluster
        .within(SECOND * 10, "three tries", |c| c.questions() == 3)
        .await;
    assert!(cluster.writes() == 0);
    cluster.outage(None);
    cluster.initialized_within(SECOND * 5, "n1").await;
    cluster.soon("both events", |c| c.events("n1").len() == 2).await;
    assert_eq!(
        cluster.texts("n1")[0],
        "Warning NodeInitFailed: failed to get instance metadata for node n1: bad gateway"
    );
    assert_eq!(cluster.count_events("NodeInitFailed"), 1);
}

#[tokio::test(start_paused = true)]
async fn tries_are_a_second_to_a_minute_apart_whatever_the_kubelet_posts() {
    let cluster = cluster();
    cluster.outage(Some(CloudError::transient("bad gateway")));
    cluster.put(new_node("n1"));
    for _ in 0..100 {
        cluster.pass(SECOND * 10).await;
        cluster.edit("n1", |node| {
            node["status"]["conditions"][0]["reason"] = json!(format!("{:?}", Instant::now()));
        });
    }
    let asked = cluster.instances.asked("n1", Purpose::Metadata);
    for pair in asked.windows(2) {
        let distance = pair[1] - pair[0];
        assert!(distance >= SECOND && distance <= SECOND * 61, "{distance:?}");
    }
    assert!((18..45).contains(&asked.len()), "{}", asked.len());
}

#[tokio::test(start_paused = true)]
async fn the_delay_that_a_cloud_states_is_kept() {
    let cluster = cluster();
    let after = SECOND * 33;
    cluster.instances.run("n1", metadata(&["10.1.0.1"]));
    cluster.outage(Some(CloudError::new(
        ErrorKind::Throttled { after },
        "too many requests",
    )));
    cluster.put(new_node("n1"));
    cluster.soon("asked", |c| c.questions() > 0).await;
    cluster.outage(None);
    cluster.initialized_within(after + SECOND, "n1").await;
    let asked = cluster.instances.asked("n1", Purpose::Metadata);
    assert_eq!(asked.len(), 2);
    assert!(asked[1] - asked[0] >= after);
}

#[tokio::test(start_paused = true)]
async fn an_api_server_that_is_busy_for_minutes_does_not_have_the_cloud_asked_each_second() {
    let cluster = cluster();
    cluster.instances.run("n1", metadata(&["10.1.0.1"]));
    let fault = Fault::new(Effect::Answer(Status::too_many_requests(3)));
    let fault = fault.verb("patch").resource("nodes");
    cluster.inject(fault);
    cluster.put(new_node("n1"));
    cluster.pass(SECOND * 120).await;
    let asked = cluster.instances.asked("n1", Purpose::Metadata);
    assert!((4..12).contains(&asked.len()), "{}", asked.len());
    assert!(asked[1] - asked[0] >= SECOND * 3);
    cluster.api.faults().clear();
    cluster.initialized_within(SECOND * 62, "n1").await;
}

#[tokio::test(start_paused = true)]
async fn the_periodic_pass_leaves_nodes_that_wait_to_the_queue() {
    let cluster = cluster_with_pass_every(SECOND);
    cluster.instances.run("n1", metadata(&["10.1.0.1"]));
    cluster.put(provided(new_node("n1"), "10.9.9.9"));
    cluster.pass(SECOND * 300).await;
    let asked = cluster.asked("n1");
    assert!(asked < 15, "{asked} questions, as many as the back-off allows");
}

#[tokio::test(start_paused = true)]
async fn a_node_without_its_addresses_keeps_the_taint() {
    let cluster = cluster();
    cluster.instances.run("n1", metadata(&["10.1.0.1"]));
    cluster.inject(
        node_patch(Effect::Answer(Status::new(
            403,
            "Forbidden",
            "admission webhook denied the request",
        )))
        .subresource("status")
        .times(3),
    );
    cluster.put(new_node("n1"));
    cluster
        .within(SECOND * 10, "three tries", |c| c.writes() == 3)
        .await;
    assert!(!cluster.is_initialized("n1"));
    assert_eq!(cluster.node("n1")["spec"]["providerID"], Value::Null);
    cluster.initialized_within(SECOND * 10, "n1").await;
    assert_eq!(cluster.count_events("NodeInitFailed"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_thousand_new_nodes_share_a_few_questions() {
    let cluster = Cluster::new();
    cluster.instances.latency(Duration::from_millis(20));
    for n in 0..1000 {
        let name = format!("n{n}");
        cluster.begin(&name);
    }
    let cluster = cluster.with_node_loop(NodeSettings::default());
    cluster
        .within(SECOND * 10, "all initialized", |c| {
            let nodes = c.nodes.all();
            nodes.len() == 1000 && nodes.iter().all(|node| !node.is_uninitialized())
        })
        .await;
    let calls = cluster.instances.calls();
    assert!(calls.len() <= 10, "{} questions", calls.len());
    assert_eq!(cluster.writes(), 2000, "two writes per node");
}
