//! The route controller against an API server and a route table in memory.

mod conditions;
mod deletions;
mod failures;
mod pace;

use std::time::Duration;

use bowline_cloud_provider::{CloudError, ErrorKind};
use bowline_controllers::Controller as _;
use bowline_controllers::route::{RouteSettings, RouteTiming};
use bowline_kube_api::{Effect, Fault, Status};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::cluster::{Cluster, SECOND};
use crate::route_table::RouteTable;

const WITHIN: Duration = Duration::from_secs(11);
pub(crate) const PERIODIC: RouteTiming = RouteTiming::Periodic(Duration::from_secs(10));

fn settings(timing: RouteTiming) -> RouteSettings {
    RouteSettings::new(true, "10.200.0.0/16,fd00::/48", timing)
}

pub(crate) fn start(timing: RouteTiming) -> (Cluster, RouteTable) {
    let (mut cluster, table) = (Cluster::new(), RouteTable::default());
    cluster.start_route_loop(&table, &settings(timing));
    (cluster, table)
}

pub(crate) fn node(name: &str, networks: &[&str]) -> Value {
    let mut node = json!({
        "apiVersion": "v1", "kind": "Node", "metadata": {"name": name},
        "status": {"addresses": [{"type": "InternalIP", "address": "10.1.0.1"}]},
    });
    if let Some(first) = networks.first() {
        node["spec"] = json!({"podCIDR": first, "podCIDRs": networks});
    }
    node
}

/// `status reason message` of the condition.
fn condition(cluster: &Cluster, name: &str) -> Option<String> {
    let node = cluster.node(name);
    let conditions = node["status"]["conditions"].as_array()?;
    let found = conditions
        .iter()
        .find(|one| one["type"] == "NetworkUnavailable")?;
    for time in ["lastTransitionTime", "lastHeartbeatTime"] {
        assert!(found[time].is_string(), "{found}");
    }
    let text = |key: &str| found[key].as_str().unwrap_or_default().to_owned();
    Some(format!(
        "{} {} {}",
        text("status"),
        text("reason"),
        text("message")
    ))
}

const ROUTED: &str = "False RouteCreated RouteController created a route";
const NOT_ROUTED: &str = "True NoRouteCreated RouteController failed to create a route";

fn is_routed(cluster: &Cluster, name: &str) -> bool {
    condition(cluster, name).as_deref() == Some(ROUTED)
}

fn is_not_routed(cluster: &Cluster, name: &str) -> bool {
    condition(cluster, name).as_deref() == Some(NOT_ROUTED)
}

fn syncs(cluster: &Cluster) -> u64 {
    let samples = cluster.series("route_controller_route_sync_total");
    let values = samples.iter().filter_map(|sample| sample.rsplit_once(' '));
    values.map(|(_, value)| value.parse::<u64>().unwrap()).sum()
}

/// Waits until a Node has its routes. Gives the time it took.
async fn routed(cluster: &Cluster, name: &str) -> Duration {
    cluster.within(WITHIN, "routed", |c| is_routed(c, name)).await
}

async fn not_routed(cluster: &Cluster, name: &str) {
    cluster
        .within(WITHIN, "not routed", |c| is_not_routed(c, name))
        .await;
}

/// The Node `n1`, with its route.
async fn put_routed(cluster: &Cluster) {
    cluster.put(node("n1", &["10.200.1.0/24"]));
    routed(cluster, "n1").await;
}

#[tokio::test(start_paused = true)]
async fn a_pod_network_gets_its_route_and_the_node_its_condition() {
    for timing in [PERIODIC, RouteTiming::WatchBased] {
        let (cluster, table) = start(timing);
        cluster.put(node("n1", &["10.200.1.0/24"]));
        let took = routed(&cluster, "n1").await;
        assert!(took <= SECOND * 3, "at once, not at the next period: {took:?}");
        let uid = cluster.node("n1")["metadata"]["uid"].as_str().unwrap().to_owned();
        assert_eq!(
            table.writes(),
            [format!("create {uid} n1 10.200.1.0/24 10.1.0.1")]
        );
        let write = &cluster.node_writes()[0];
        assert_eq!(
            (write.subresource.as_str(), write.verb.as_str()),
            ("status", "patch")
        );
        assert_eq!(write.body.as_ref().unwrap()["metadata"]["uid"], uid.as_str());
    }
}

#[tokio::test(start_paused = true)]
async fn a_route_that_cannot_be_made_shows_on_the_node_until_it_can() {
    for timing in [PERIODIC, RouteTiming::WatchBased] {
        let (cluster, table) = start(timing);
        table.fail("create", Some(CloudError::other("quota exceeded")));
        cluster.put(node("n1", &["10.200.1.0/24"]));
        not_routed(&cluster, "n1").await;
        let uid = cluster.node("n1")["metadata"]["uid"].as_str().unwrap().to_owned();
        cluster.pass(SECOND * 300).await;
        let events = cluster.events("n1");
        assert_eq!(
            events,
            [(
                format!(
                    "Warning FailedToCreateRoute: Could not create route {uid} 10.200.1.0/24 for node n1 after 0s: quota exceeded"
                ),
                "route_controller".to_owned()
            )],
            "said once, in the words of upstream"
        );
        assert_eq!(cluster.writes(), 1);
        let tries = table.calls("create").len();
        assert!((6..=40).contains(&tries), "{tries}");
        table.fail("create", None);
        let limit = if timing == PERIODIC { WITHIN } else { SECOND * 60 };
        cluster.within(limit, "routed", |c| is_routed(c, "n1")).await;
        assert_eq!(table.routes(), ["n1 10.200.1.0/24"]);
    }
}

/// A Node that has just joined: the kubelet knows its name, and the node controller has not been there yet.
fn joining(name: &str, network: &str) -> Value {
    let mut node = node(name, &[network]);
    node["spec"]["taints"] = json!([{
        "key": "node.cloudprovider.kubernetes.io/uninitialized", "value": "true", "effect": "NoSchedule",
    }]);
    node["status"]["addresses"] = json!([{"type": "Hostname", "address": name}]);
    node
}

#[tokio::test(start_paused = true)]
async fn a_node_that_joins_is_waited_for_until_it_has_an_address() {
    for timing in [PERIODIC, RouteTiming::WatchBased] {
        let (cluster, table) = start(timing);
        table.fail("create", Some(CloudError::other("no address found for host")));
        cluster.put(joining("n1", "10.200.1.0/24"));
        not_routed(&cluster, "n1").await;
        cluster.pass(SECOND * 60).await;
        assert!(cluster.events("n1").is_empty() && table.calls("create").is_empty());
        table.fail("create", None);
        // An address of the other family does not help.
        let addresses = |addresses: &[&str]| {
            let all = addresses.iter();
            let all: Vec<Value> = all
                .map(|text| json!({"type": "InternalIP", "address": text}))
                .collect();
            cluster.edit("n1", |node| node["status"]["addresses"] = json!(all));
        };
        addresses(&["fd00:1::1"]);
        cluster.pass(SECOND * 20).await;
        assert!(table.calls("create").is_empty());
        addresses(&["fd00:1::1", "10.1.0.1"]);
        routed(&cluster, "n1").await;
        assert_eq!(table.routes(), ["n1 10.200.1.0/24"]);
        assert!(cluster.events("n1").is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn a_node_that_stays_without_an_address_is_told_after_two_minutes() {
    for timing in [PERIODIC, RouteTiming::WatchBased] {
        let (cluster, table) = start(timing);
        table.fail("create", Some(CloudError::other("no address found for host")));
        cluster.put(joining("n1", "10.200.1.0/24"));
        cluster.pass(SECOND * 115).await;
        assert!(cluster.events("n1").is_empty());
        cluster.pass(SECOND * 20).await;
        let events = cluster.events("n1");
        assert!(
            matches!(&*events, [(text, _)] if text.ends_with("no address found for host")),
            "{events:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_route_deleted_by_hand_is_made_again() {
    let (cluster, table) = start(PERIODIC);
    put_routed(&cluster).await;
    table.forget("r-n1-10.200.1.0/24");
    assert!(table.routes().is_empty());
    cluster
        .within(WITHIN, "made again", |_| table.routes() == ["n1 10.200.1.0/24"])
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_node_without_pod_network_and_routes_is_left_alone() {
    let (cluster, table) = start(PERIODIC);
    cluster.put(node("n1", &[]));
    cluster.pass(SECOND * 30).await;
    assert_eq!(condition(&cluster, "n1"), None);
    assert!(table.writes().is_empty() && cluster.writes() == 0);

    table.put("n1", "192.168.1.0/24", false);
    not_routed(&cluster, "n1").await;
    assert!(table.writes().is_empty());

    cluster.edit("n1", |node| {
        node["spec"] = json!({"podCIDR": "10.200.1.0/24", "podCIDRs": ["10.200.1.0/24"]})
    });
    cluster.soon("routed", |c| is_routed(c, "n1")).await;
}

#[tokio::test(start_paused = true)]
async fn both_pod_networks_must_have_their_route() {
    let (cluster, table) = start(PERIODIC);
    table.fail("fd00:", Some(CloudError::transient("bad gateway")));
    cluster.put(node("n1", &["10.200.1.0/24", "fd00:0:0:1::/64"]));
    not_routed(&cluster, "n1").await;
    assert_eq!(table.routes(), ["n1 10.200.1.0/24"]);
    table.fail("fd00:", None);
    routed(&cluster, "n1").await;
    assert_eq!(table.routes(), ["n1 10.200.1.0/24", "n1 fd00:0:0:1::/64"]);
    let hints: std::collections::BTreeSet<String> = table
        .calls("create")
        .iter()
        .map(|call| call.what.split(' ').nth(1).unwrap().to_owned())
        .collect();
    assert_eq!(hints.len(), 1, "the same hint for both");
}

#[tokio::test(start_paused = true)]
async fn where_addresses_count_a_changed_node_has_its_route_deleted_then_created() {
    let (cluster, table) = start(PERIODIC);
    table.compare_addresses();
    table.latency(Duration::from_millis(300));
    for n in 1..=3 {
        cluster.put(node(&format!("n{n}"), &[&format!("10.200.{n}.0/24")]));
    }
    cluster
        .within(WITHIN, "routed", |c| {
            (1..=3).all(|n| is_routed(c, &format!("n{n}")))
        })
        .await;
    let before = table.writes().len();
    for name in ["n1", "n2"] {
        cluster.edit(name, |node| {
            node["status"]["addresses"][0]["address"] = json!("10.1.0.9")
        });
    }
    cluster
        .within(WITHIN, "new routes", |_| table.writes().len() == before + 4)
        .await;
    let kinds: Vec<String> = table.writes()[before..]
        .iter()
        .map(|what| what[..6].to_owned())
        .collect();
    assert_eq!(kinds, ["delete", "delete", "create", "create"]);
    let ended = table
        .calls("delete")
        .iter()
        .map(|call| call.at + Duration::from_millis(300))
        .max();
    assert!(
        table
            .calls("create")
            .iter()
            .rev()
            .take(2)
            .all(|call| Some(call.at) >= ended)
    );
    cluster.pass(SECOND * 60).await;
    assert_eq!(table.writes().len(), before + 4);
    assert!(is_routed(&cluster, "n1"));
}

#[tokio::test(start_paused = true)]
async fn calls_are_bounded_and_each_node_is_told_when_its_own_route_is_there() {
    for (bound, seconds) in [(10, 4), (4, 10)] {
        let (mut cluster, table) = (Cluster::new(), RouteTable::default());
        for n in 0..40 {
            cluster.put(node(&format!("n{n:02}"), &[&format!("10.200.{n}.0/24")]));
        }
        table.latency(SECOND);
        table.allow_at_once(bound);
        cluster.start_route_loop(&table, &settings(PERIODIC));
        cluster
            .within(SECOND * 4, "the first", |c| is_routed(c, "n00"))
            .await;
        assert!(!is_routed(&cluster, "n39"));
        cluster
            .within(SECOND * (seconds + 1), "all", |c| {
                (0..40).all(|n| is_routed(c, &format!("n{n:02}")))
            })
            .await;
        assert_eq!(table.most_in_flight(), bound);
    }
}

#[tokio::test(start_paused = true)]
async fn a_pod_network_with_host_bits_keeps_its_route() {
    let (cluster, table) = start(PERIODIC);
    cluster.put(node("n1", &["10.200.1.2/24"]));
    routed(&cluster, "n1").await;
    cluster.pass(SECOND * 60).await;
    assert_eq!(table.writes().len(), 1, "{:?}", table.writes());
    assert_eq!(table.routes(), ["n1 10.200.1.0/24"]);
}

#[tokio::test(start_paused = true)]
async fn what_is_wished_for_together_goes_with_one_call_where_the_cloud_takes_that() {
    let (mut cluster, table) = (Cluster::new(), RouteTable::default());
    table.allow_at_once(1);
    table.allow_per_call(50);
    table.latency(SECOND);
    table.put("", "10.200.250.0/24", false);
    for n in 0..100 {
        cluster.put(node(&format!("n{n:02}"), &[&format!("10.200.{n}.0/24")]));
    }
    // Each route stands for itself, though they share a call.
    table.fail(" n07 ", Some(CloudError::other("no port with its address")));
    cluster.start_route_loop(&table, &settings(PERIODIC));
    cluster
        .within(SECOND * 6, "all but one", |c| {
            (0..100).all(|n| n == 7 || is_routed(c, &format!("n{n:02}")))
        })
        .await;
    assert_eq!(
        table.batches()[..3],
        [50, 50, 1],
        "99 routes in two calls, and a deletion"
    );
    assert!(is_not_routed(&cluster, "n07"));
    assert_eq!(cluster.events("n07").len(), 1);
    assert_eq!(cluster.events("n08").len(), 0);
    table.fail(" n07 ", None);
    routed(&cluster, "n07").await;
    assert_eq!(table.most_in_flight(), 1);
    assert_eq!(table.routes().len(), 100);
}
