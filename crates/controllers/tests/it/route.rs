//! The route controller against an API server and a route table in memory.

use std::time::Duration;

use bowline_cloud_provider::{CloudError, ErrorKind};
use bowline_controllers::Controller as _;
use bowline_controllers::route::{RouteSettings, RouteTiming};
use bowline_kube_api::{Effect, Fault, Status};
use serde_json::{Value, json};

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

fn delete_node(cluster: &Cluster, name: &str) {
    assert!(cluster.api.delete("Node", "", name));
}

#[tokio::test(start_paused = true)]
async fn a_pod_network_gets_its_route_and_the_node_its_condition() {
    for timing in [PERIODIC, RouteTiming::WatchBased] {
        let (cluster, table) = start(timing);
        cluster.put(node("n1", &["10.200.1.0/24"]));
        let took = cluster.within(WITHIN, "routed", |c| is_routed(c, "n1")).await;
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

// What is right stays as it is.
#[tokio::test(start_paused = true)]
async fn one_list_per_period_is_all_that_a_quiet_cluster_costs() {
    let (cluster, table) = start(PERIODIC);
    for n in 0..40 {
        cluster.put(node(&format!("n{n}"), &[&format!("10.200.{n}.0/24")]));
    }
    cluster
        .within(WITHIN, "all routed", |c| {
            (0..40).all(|n| is_routed(c, &format!("n{n}")))
        })
        .await;
    let (lists, writes, conditions, passes) = (
        table.lists(),
        table.writes().len(),
        cluster.node_writes().len(),
        syncs(&cluster),
    );
    assert_eq!((writes, conditions), (40, 40));
    cluster.pass(SECOND * 600).await;
    assert_eq!(table.lists() - lists, 60);
    assert_eq!(syncs(&cluster) - passes, 60, "operators watch the rate of passes");
    assert_eq!(
        (table.writes().len(), cluster.node_writes().len()),
        (writes, conditions)
    );
    assert!(cluster.stalled().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_route_that_cannot_be_made_shows_on_the_node_until_it_can() {
    for timing in [PERIODIC, RouteTiming::WatchBased] {
        let (cluster, table) = start(timing);
        table.fail("create", Some(CloudError::other("quota exceeded")));
        cluster.put(node("n1", &["10.200.1.0/24"]));
        cluster
            .within(WITHIN, "not routed", |c| is_not_routed(c, "n1"))
            .await;
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
        assert_eq!(cluster.node_writes().len(), 1);
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
        cluster
            .within(WITHIN, "not routed", |c| is_not_routed(c, "n1"))
            .await;
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
        cluster.within(WITHIN, "routed", |c| is_routed(c, "n1")).await;
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
async fn another_error_is_another_event() {
    let (cluster, table) = start(PERIODIC);
    table.fail("create", Some(CloudError::other("quota exceeded")));
    cluster.put(node("n1", &["10.200.1.0/24"]));
    cluster.pass(SECOND * 60).await;
    table.fail("create", Some(CloudError::new(ErrorKind::Denied, "denied")));
    cluster.pass(SECOND * 60).await;
    let texts: Vec<bool> = cluster
        .events("n1")
        .iter()
        .map(|(text, _)| text.ends_with(": denied"))
        .collect();
    assert_eq!(texts, [false, true]);
}

#[tokio::test(start_paused = true)]
async fn the_route_of_a_node_that_is_gone_is_deleted() {
    for timing in [PERIODIC, RouteTiming::WatchBased] {
        let (cluster, table) = start(timing);
        cluster.put(node("n1", &["10.200.1.0/24"]));
        cluster.put(node("n2", &["10.200.2.0/24"]));
        cluster
            .within(WITHIN, "routed", |c| is_routed(c, "n1") && is_routed(c, "n2"))
            .await;
        delete_node(&cluster, "n1");
        cluster
            .within(WITHIN, "gone", |_| table.routes() == ["n2 10.200.2.0/24"])
            .await;
        assert_eq!(table.calls("delete").len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn only_routes_of_the_cluster_are_ever_deleted() {
    let (cluster, table) = start(PERIODIC);
    table.put("", "192.168.0.0/24", false);
    table.put("elsewhere", "172.16.0.0/12", true);
    table.put("", "0.0.0.0/0", false);
    table.put("n1", "10.200.1.0/24", true);
    table.put("", "10.200.7.0/24", false);
    table.put("gone", "10.200.8.0/24", true);
    cluster.put(node("n1", &["10.200.1.0/24"]));
    cluster.within(WITHIN, "routed", |c| is_routed(c, "n1")).await;
    cluster.pass(SECOND * 60).await;
    assert_eq!(
        table.routes(),
        [
            " 192.168.0.0/24",
            "elsewhere 172.16.0.0/12",
            " 0.0.0.0/0",
            "n1 10.200.1.0/24"
        ]
    );
    assert_eq!(table.calls("delete").len(), 3);
    assert_eq!(table.calls("create").len(), 1, "the dead route was replaced");
}

#[tokio::test(start_paused = true)]
async fn a_route_deleted_by_hand_is_made_again() {
    let (cluster, table) = start(PERIODIC);
    cluster.put(node("n1", &["10.200.1.0/24"]));
    cluster.within(WITHIN, "routed", |c| is_routed(c, "n1")).await;
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
    assert!(table.writes().is_empty() && cluster.node_writes().is_empty());

    table.put("n1", "192.168.1.0/24", false);
    cluster
        .within(WITHIN, "not routed", |c| is_not_routed(c, "n1"))
        .await;
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
    cluster
        .within(WITHIN, "not routed", |c| is_not_routed(c, "n1"))
        .await;
    assert_eq!(table.routes(), ["n1 10.200.1.0/24"]);
    table.fail("fd00:", None);
    cluster.within(WITHIN, "routed", |c| is_routed(c, "n1")).await;
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
async fn a_network_that_moved_to_another_node_is_freed_before_it_is_routed_there() {
    let (cluster, table) = start(PERIODIC);
    table.latency(Duration::from_millis(200));
    table.put("gone", "10.200.1.0/24", false);
    table.put("gone", "10.200.9.0/24", true);
    cluster.put(node("n1", &["10.200.1.0/24"]));
    cluster.put(node("n2", &["10.200.2.0/24"]));
    cluster
        .within(WITHIN, "routed", |c| is_routed(c, "n1") && is_routed(c, "n2"))
        .await;
    let begun = |begin: &str| table.calls(begin)[0].at;
    let of = |name: &str| {
        let calls = table.calls("create");
        calls.iter().find(|call| call.what.contains(name)).unwrap().at
    };
    assert!(of(" n1 ") >= begun("delete r-gone-10.200.1.0/24") + Duration::from_millis(200));
    assert_eq!(
        of(" n2 "),
        begun("delete r-gone-10.200.9.0/24"),
        "all else side by side"
    );
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
async fn a_list_that_fails_changes_nothing_and_is_tried_again() {
    for timing in [PERIODIC, RouteTiming::WatchBased] {
        let (cluster, table) = start(timing);
        table.put("gone", "10.200.9.0/24", true);
        table.fail("list", Some(CloudError::transient("bad gateway")));
        cluster.put(node("n1", &["10.200.1.0/24"]));
        cluster.pass(SECOND * 120).await;
        assert!(table.writes().is_empty() && cluster.node_writes().is_empty());
        assert!(table.lists() <= 16, "{}", table.lists());
        table.fail("list", None);
        cluster
            .within(SECOND * 60, "routed", |c| is_routed(c, "n1"))
            .await;
    }
}

#[tokio::test(start_paused = true)]
async fn the_delay_that_the_cloud_states_is_kept() {
    let (cluster, table) = start(PERIODIC);
    let after = SECOND * 45;
    table.fail(
        "create",
        Some(CloudError::new(ErrorKind::Throttled { after }, "slow down")),
    );
    cluster.put(node("n1", &["10.200.1.0/24"]));
    cluster
        .within(WITHIN, "not routed", |c| is_not_routed(c, "n1"))
        .await;
    table.fail("create", None);
    cluster
        .within(SECOND * 50, "routed", |c| is_routed(c, "n1"))
        .await;
    let calls = table.calls("create");
    assert_eq!(calls.len(), 2);
    assert!(calls[1].at - calls[0].at >= after);
}

#[tokio::test(start_paused = true)]
async fn what_the_cloud_refuses_is_held_back_until_the_node_changes() {
    for kind in [ErrorKind::Conflict, ErrorKind::Invalid, ErrorKind::Exhausted] {
        let (cluster, table) = start(PERIODIC);
        table.fail("create", Some(CloudError::new(kind, "no")));
        table.put("gone", "10.200.9.0/24", true);
        table.fail("delete", Some(CloudError::new(kind, "no")));
        cluster.put(node("n1", &["10.200.1.0/24"]));
        cluster
            .within(WITHIN, "not routed", |c| is_not_routed(c, "n1"))
            .await;
        cluster.pass(SECOND * 600).await;
        // At once, then 5, 10, 20 ... 320 s later.
        for begin in ["create", "delete"] {
            assert_eq!(table.calls(begin).len(), 7, "{kind:?} {begin}");
        }
        table.fail("create", None);
        cluster.edit("n1", |node| {
            node["status"]["addresses"][0]["address"] = json!("10.1.0.9");
        });
        cluster.soon("routed", |c| is_routed(c, "n1")).await;
    }
}

#[tokio::test(start_paused = true)]
async fn of_two_nodes_with_one_pod_network_one_gets_the_route_and_both_are_told() {
    for timing in [PERIODIC, RouteTiming::WatchBased] {
        let (cluster, table) = start(timing);
        cluster.put(node("n2", &["10.200.1.0/24"]));
        cluster.within(WITHIN, "routed", |c| is_routed(c, "n2")).await;
        cluster.put(node("n1", &["10.200.1.2/24"]));
        cluster
            .within(WITHIN, "not routed", |c| is_not_routed(c, "n1"))
            .await;
        cluster.pass(SECOND * 600).await;
        assert_eq!(table.writes().len(), 1, "{:?}", table.writes());
        for (name, other) in [("n1", "n2"), ("n2", "n1")] {
            let events = cluster.events(name);
            let told = format!(
                "Warning PodNetworkShared: The pod network 10.200.1.0/24 has addresses in common with that of node {other}:"
            );
            assert!(events.len() == 1 && events[0].0.starts_with(&told), "{events:?}");
        }
        delete_node(&cluster, "n2");
        cluster.within(WITHIN, "routed", |c| is_routed(c, "n1")).await;
        assert_eq!(table.routes(), ["n1 10.200.1.0/24"]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_pod_network_with_host_bits_keeps_its_route() {
    let (cluster, table) = start(PERIODIC);
    cluster.put(node("n1", &["10.200.1.2/24"]));
    cluster.within(WITHIN, "routed", |c| is_routed(c, "n1")).await;
    cluster.pass(SECOND * 60).await;
    assert_eq!(table.writes().len(), 1, "{:?}", table.writes());
    assert_eq!(table.routes(), ["n1 10.200.1.0/24"]);
}

#[tokio::test(start_paused = true)]
async fn a_deletion_that_failed_once_and_whose_node_is_there_after_all_calls_for_no_pass_each_second() {
    let (cluster, table) = start(PERIODIC);
    let name = bowline_cloud_provider::NodeName::new("n1");
    cluster.put(node("n1", &["10.200.1.0/24"]));
    cluster.within(WITHIN, "routed", |c| is_routed(c, "n1")).await;
    cluster.nodes.delete(&name);
    let no_answer = Status::unavailable("starting");
    cluster.api.faults().fail_next(2, "list", "nodes", no_answer);
    cluster.pass(SECOND * 30).await;
    let lists = table.lists();
    cluster.pass(SECOND * 120).await;
    assert_eq!(table.routes(), ["n1 10.200.1.0/24"]);
    assert!(table.lists() - lists <= 16, "{}", table.lists() - lists);
}

#[tokio::test(start_paused = true)]
async fn the_condition_is_written_again_until_it_is_there() {
    for (status, times) in [
        (Status::new(403, "Forbidden", "no"), 3),
        (Status::new(409, "Conflict", "the object has been modified"), 6),
    ] {
        let (cluster, _table) = start(RouteTiming::WatchBased);
        cluster.api.faults().fail_next(times, "patch", "nodes", status);
        cluster.put(node("n1", &["10.200.1.0/24"]));
        cluster
            .within(SECOND * 60, "routed", |c| is_routed(c, "n1"))
            .await;
        assert_eq!(cluster.node_writes().len(), 1 + times as usize);
    }
}

#[tokio::test(start_paused = true)]
async fn an_api_server_that_is_busy_for_minutes_does_not_have_the_routes_listed_each_second() {
    let (cluster, table) = start(RouteTiming::WatchBased);
    let fault = Fault::new(Effect::Answer(Status::too_many_requests(1)));
    cluster.api.faults().inject(fault.verb("patch").resource("nodes"));
    cluster.put(node("n1", &["10.200.1.0/24"]));
    cluster.pass(SECOND * 200).await;
    assert!(table.lists() <= 10, "{}", table.lists());
    cluster.api.faults().clear();
    cluster
        .within(SECOND * 51, "routed", |c| is_routed(c, "n1"))
        .await;
}

#[tokio::test(start_paused = true)]
async fn who_sets_the_condition_too_is_named_and_met_less_and_less_often() {
    for timing in [PERIODIC, RouteTiming::WatchBased] {
        let (cluster, _table) = start(timing);
        for name in ["n1", "n2"] {
            cluster.put(node(name, &[&format!("10.200.{}.0/24", &name[1..])]));
        }
        cluster
            .within(WITHIN, "routed", |c| is_routed(c, "n1") && is_routed(c, "n2"))
            .await;
        let begun = tokio::time::Instant::now();
        while begun.elapsed() < SECOND * 1200 {
            if is_routed(&cluster, "n1") {
                cluster.edit("n1", |node| {
                    let condition = &mut node["status"]["conditions"][0];
                    (condition["reason"], condition["message"]) = (json!("CiliumIsUp"), json!("up"));
                });
            }
            cluster.edit("n1", |node| {
                node["status"]["addresses"][0]["address"] =
                    json!(format!("10.1.0.{}", begun.elapsed().as_secs() % 200));
            });
            cluster.pass(SECOND).await;
        }
        // Two at first, five at once, then after 5, 10, 20, 40, 80, 160, 300 and 300 s.
        let writes = cluster.node_writes().len();
        assert!((13..=16).contains(&writes), "{writes} {timing:?}");
        assert_eq!(cluster.count_events("ChangedBack"), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_condition_that_says_so_already_is_not_written() {
    let (mut cluster, table) = (Cluster::new(), RouteTable::default());
    table.put("n1", "10.200.1.0/24", false);
    let mut known = node("n1", &["10.200.1.0/24"]);
    known["status"]["conditions"] = json!([{
        "type": "NetworkUnavailable", "status": "False", "reason": "RouteCreated", "message": "in other words",
        "lastTransitionTime": "2026-01-01T00:00:00Z", "lastHeartbeatTime": "2026-01-01T00:00:00Z",
    }]);
    cluster.put(known);
    cluster.start_route_loop(&table, &settings(PERIODIC));
    cluster.pass(SECOND * 30).await;
    assert!(cluster.node_writes().is_empty() && table.writes().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_node_created_again_under_its_name_gets_its_own_condition() {
    let (cluster, table) = start(PERIODIC);
    cluster.put(node("n1", &["10.200.1.0/24"]));
    cluster.within(WITHIN, "routed", |c| is_routed(c, "n1")).await;
    delete_node(&cluster, "n1");
    cluster.put(node("n1", &["10.200.1.0/24"]));
    assert_eq!(condition(&cluster, "n1"), None);
    cluster.within(WITHIN, "routed", |c| is_routed(c, "n1")).await;
    assert_eq!(table.routes(), ["n1 10.200.1.0/24"]);
}

#[tokio::test(start_paused = true)]
async fn with_the_gate_a_quiet_cluster_costs_no_list() {
    let (mut cluster, table) = (Cluster::new(), RouteTable::default());
    for n in 0..5 {
        let (name, network) = (format!("n{n}"), format!("10.200.{n}.0/24"));
        table.put(&name, &network, false);
        cluster.put(node(&name, &[&network]));
    }
    cluster.start_route_loop(&table, &settings(RouteTiming::WatchBased));
    cluster.pass(SECOND * 15).await;
    let lists = table.lists();
    assert!((1..=2).contains(&lists), "{lists}");
    cluster.pass(SECOND * 60).await;
    assert_eq!(table.lists(), lists);
    cluster.pass(SECOND * 3600).await;
    let passes = table.lists() - lists;
    assert!((6..=12).contains(&passes), "the safety pass: {passes}");
}

#[tokio::test(start_paused = true)]
async fn with_the_gate_nodes_that_join_together_share_lists() {
    let (cluster, table) = start(RouteTiming::WatchBased);
    for n in 0..20 {
        cluster.put(node(&format!("n{n}"), &[&format!("10.200.{n}.0/24")]));
        cluster.pass(Duration::from_millis(100)).await;
    }
    cluster.pass(SECOND * 23).await;
    assert!(table.lists() <= 3, "{}", table.lists());
    assert_eq!(table.routes().len(), 20);
    assert!((0..20).all(|n| is_routed(&cluster, &format!("n{n}"))));
}

#[tokio::test(start_paused = true)]
async fn with_the_gate_what_failed_once_is_tried_again_without_any_change() {
    let (cluster, table) = start(RouteTiming::WatchBased);
    table.fail("create", Some(CloudError::transient("bad gateway")));
    table.put("gone", "10.200.9.0/24", true);
    table.fail("delete", Some(CloudError::transient("bad gateway")));
    cluster.put(node("n1", &["10.200.1.0/24"]));
    cluster
        .within(WITHIN, "not routed", |c| is_not_routed(c, "n1"))
        .await;
    table.fail("create", None);
    table.fail("delete", None);
    cluster
        .within(SECOND * 60, "routed", |c| is_routed(c, "n1"))
        .await;
    assert_eq!(table.routes(), ["n1 10.200.1.0/24"]);
}

#[tokio::test(start_paused = true)]
async fn after_a_stop_no_call_begins_and_those_under_way_end() {
    let (mut cluster, table) = (Cluster::new(), RouteTable::default());
    for n in 0..30 {
        cluster.put(node(&format!("n{n:02}"), &[&format!("10.200.{n}.0/24")]));
    }
    table.latency(SECOND);
    let controller = cluster.start_route_loop(&table, &settings(PERIODIC));
    cluster
        .within(SECOND * 4, "under way", |_| table.calls("create").len() == 10)
        .await;
    controller.stop();
    cluster.end_of_a_loop().await;
    assert_eq!((table.calls("create").len(), table.routes().len()), (10, 10));
}

#[tokio::test(start_paused = true)]
async fn a_call_that_hangs_makes_the_loop_unhealthy() {
    let (cluster, table) = start(PERIODIC);
    table.latency(SECOND * 3600);
    cluster.pass(SECOND * 400).await;
    assert!(cluster.stalled().is_empty());
    cluster.pass(SECOND * 100).await;
    assert_eq!(cluster.stalled(), ["node-route-controller"]);
}

#[tokio::test(start_paused = true)]
async fn many_nodes_at_a_slow_api_server_do_not_look_stuck() {
    let (mut cluster, table) = (Cluster::new(), RouteTable::default());
    cluster.slow_writes();
    for n in 0..700 {
        cluster.put(node(
            &format!("n{n:03}"),
            &[&format!("10.200.{}.{}/28", n / 16, n % 16 * 16)],
        ));
    }
    cluster.start_route_loop(&table, &settings(PERIODIC));
    let took = cluster
        .without_a_stall(|c| (0..700).all(|n| is_routed(c, &format!("n{n:03}"))))
        .await;
    assert!(took > SECOND * 600, "{took:?} is no test");
}

/// Each page comes just in time, and there are many.
#[tokio::test(start_paused = true)]
async fn a_long_list_from_a_slow_api_server_does_not_look_stuck() {
    let (mut cluster, table) = (Cluster::new(), RouteTable::default());
    for n in 0..2300 {
        cluster.put(node(&format!("n{n:04}"), &[]));
    }
    cluster.start_route_loop(&table, &settings(PERIODIC));
    cluster.pass(SECOND * 30).await;
    let slow = Fault::new(Effect::Delay(SECOND * 28)).resource("nodes");
    cluster.api.faults().inject(slow.verb("list"));
    table.put_via("10.1.0.9", "10.200.1.0/24");
    let begun = tokio::time::Instant::now();
    cluster.without_a_stall(|_| begun.elapsed() > SECOND * 1200).await;
    assert_eq!(table.routes(), [" 10.200.1.0/24"], "no answer is no proof");
    cluster.api.faults().clear();
    cluster
        .within(SECOND * 400, "the route is gone", |_| table.routes().is_empty())
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_route_whose_node_is_merely_not_known_is_kept() {
    let (cluster, table) = start(PERIODIC);
    cluster.put(node("n1", &["10.200.1.0/24"]));
    cluster.within(WITHIN, "routed", |c| is_routed(c, "n1")).await;
    // As after a start with a list that lacked it.
    let name = bowline_cloud_provider::NodeName::new("n1");
    cluster.nodes.delete(&name);
    cluster.pass(SECOND * 120).await;
    assert_eq!(table.routes(), ["n1 10.200.1.0/24"]);
    let no_answer = Status::unavailable("starting");
    assert!(cluster.api.delete("Node", "", "n1"));
    cluster.api.faults().fail_next(5, "list", "nodes", no_answer);
    cluster.pass(SECOND * 15).await;
    assert_eq!(table.routes(), ["n1 10.200.1.0/24"], "no answer is no proof");
    cluster
        .within(SECOND * 120, "the route is gone", |_| table.routes().is_empty())
        .await;
}

/// A copy of the cluster has the names and credentials of the original, and not the Nodes that joined it later.
#[tokio::test(start_paused = true)]
async fn a_route_whose_node_this_process_never_saw_goes_only_if_it_leads_to_nothing() {
    let (cluster, table) = start(PERIODIC);
    table.put("later", "10.200.8.0/24", false);
    table.put("dead", "10.200.9.0/24", true);
    table.put("n1", "10.200.7.0/24", false);
    cluster.put(node("n1", &["10.200.1.0/24"]));
    cluster.within(WITHIN, "routed", |c| is_routed(c, "n1")).await;
    cluster.pass(SECOND * 4_000).await;
    assert_eq!(table.routes(), ["later 10.200.8.0/24", "n1 10.200.1.0/24"]);
    let failing = cluster.series("routes_failing");
    assert!(
        failing
            .iter()
            .any(|line| line.contains("delete") && line.ends_with(" 1.0")),
        "{failing:?}"
    );
    // Whoever sees its Node join, and go, deletes it.
    cluster.put(node("later", &["10.200.8.0/24"]));
    cluster.within(WITHIN, "routed", |c| is_routed(c, "later")).await;
    delete_node(&cluster, "later");
    cluster
        .within(WITHIN, "gone", |_| table.routes() == ["n1 10.200.1.0/24"])
        .await;
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
    cluster.within(WITHIN, "the last", |c| is_routed(c, "n07")).await;
    assert_eq!(table.most_in_flight(), 1);
    assert_eq!(table.routes().len(), 100);
}

#[tokio::test(start_paused = true)]
async fn a_route_to_an_address_goes_only_when_surely_no_node_has_it() {
    let (cluster, table) = start(PERIODIC);
    cluster.put(node("n1", &["10.200.1.0/24"]));
    table.put_via("10.1.0.1", "10.200.1.0/24");
    cluster.within(WITHIN, "routed", |c| is_routed(c, "n1")).await;
    // As after a start with a list that lacked it.
    cluster.nodes.delete(&bowline_cloud_provider::NodeName::new("n1"));
    cluster.pass(SECOND * 120).await;
    assert_eq!(table.routes(), [" 10.200.1.0/24"]);
    assert!(cluster.api.delete("Node", "", "n1"));
    let no_answer = Status::unavailable("starting");
    cluster.api.faults().fail_next(5, "list", "nodes", no_answer);
    cluster.pass(SECOND * 15).await;
    assert_eq!(table.routes(), [" 10.200.1.0/24"], "no answer is no proof");
    cluster
        .within(SECOND * 120, "the route is gone", |_| table.routes().is_empty())
        .await;
}
