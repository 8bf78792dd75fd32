//! Balancers follow the Nodes.

use std::time::Duration;

use bowline_cloud_provider::{CloudError, keys};
use bowline_kube_api::{Effect, Fault, Status};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::cloud::INSTANCE;
use super::seconds;
use super::world::{MADE, World};

#[tokio::test(start_paused = true)]
async fn node_changes_update_the_balancer_and_say_so() {
    let (world, uid) = World::serving(&["a", "b"]).await;
    world.add_node("c");
    world.leads_to(&uid, &["a", "b", "c"]).await;
    world.pass(seconds(1)).await;
    assert_eq!(
        world.events("web").last().unwrap(),
        &(
            "UpdatedLoadBalancer".to_owned(),
            "Updated load balancer with new hosts".to_owned()
        )
    );
    world.delete_node("c");
    world.leads_to(&uid, &["a", "b"]).await;
    for name in ["a", "b"] {
        world.delete_node(name);
    }
    world
        .until("nobody is left", |w| w.balancer(&uid).unwrap().is_empty())
        .await;
    world.pass(seconds(1)).await;
    assert_eq!(world.reasons("web").last().unwrap(), "UnAvailableLoadBalancer");
}

#[tokio::test(start_paused = true)]
async fn the_set_of_nodes_is_not_worked_out_anew_for_a_heartbeat() {
    let (world, _) = World::serving(&["a", "b"]).await;
    let sync_after = async |change: fn(&mut Value)| {
        let mut node = world.node("a");
        change(&mut node);
        world.apply(node);
        world.pass(seconds(11)).await;
        world.annotate("web", "cloud.example/a", &format!("{:?}", Instant::now()));
        world.pass(seconds(1)).await;
        let mut lists = std::mem::take(&mut world.cloud.state.lock().unwrap().nodes);
        lists.pop().unwrap()
    };
    let first = sync_after(|_| ()).await;
    let beaten = sync_after(|node| {
        node["status"]["conditions"] = json!([{ "type": "Ready", "status": "True" }]);
    })
    .await;
    assert!(std::sync::Arc::ptr_eq(&first, &beaten));
    let labelled = sync_after(|node| node["metadata"]["labels"]["rack"] = json!("7")).await;
    assert!(!std::sync::Arc::ptr_eq(&first, &labelled));
}

#[tokio::test(start_paused = true)]
async fn a_label_that_a_service_selects_by_counts_also_while_its_balancer_is_made() {
    for is_served in [false, true] {
        let world = World::running(&["a", "b"]).await;
        world.set(|cloud| cloud.selected_label = Some("env"));
        let label = |name: &str| {
            world.edit_node(name, |node| {
                node["metadata"]["labels"] = json!({ "env": "prod" });
            });
        };
        let uid = world.add_service("web");
        if is_served {
            world.settled("web").await;
            world.set(|cloud| cloud.busy_looks = 20);
            label("b");
        } else {
            world.set(|cloud| cloud.busy_looks = 20);
        }
        world.pass(seconds(5)).await;
        label("a");
        world.pass(seconds(60)).await;
        let expected: &[&str] = if is_served { &["a", "b"] } else { &["a"] };
        assert_eq!(world.balancer(&uid).unwrap(), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn what_waits_before_its_first_write_goes_on_with_the_nodes_of_then() {
    let world = World::running(&["a"]).await;
    world.set(|cloud| cloud.awaited_node = Some("b".to_owned()));
    let uid = world.add_service("web");
    world.pass(seconds(30)).await;
    assert_eq!(world.cloud.calls("create"), []);
    world.add_node("b");
    world.pass(seconds(3)).await;
    assert_eq!(world.balancer(&uid).unwrap(), ["a", "b"]);
    assert_eq!(world.reasons("web"), MADE);
}

#[tokio::test(start_paused = true)]
async fn a_node_that_gets_its_provider_id_is_told_to_the_cloud_though_its_name_is_known() {
    let world = World::running(&["a"]).await;
    world.apply(json!({ "kind": "Node", "apiVersion": "v1", "metadata": { "name": "b" } }));
    let uid = world.add_service("web");
    world.settled("web").await;
    assert_eq!(world.balancer(&uid).unwrap(), ["a", "b"]);
    let reads = world.calls("read");
    world.add_node("b");
    world
        .until("the cloud is asked to look again", |w| w.calls("read") > reads)
        .await;
    assert_eq!(world.balancer(&uid).unwrap(), ["a", "b"]);
}

#[tokio::test(start_paused = true)]
async fn a_node_that_joins_is_one_change_and_is_not_waited_for_when_nobody_initialises_it() {
    let (world, uid) = World::serving(&["a"]).await;
    let reads = || world.calls("read");
    let join = |name: &str| {
        let taint = json!([{ "key": keys::TAINT_UNINITIALIZED, "effect": "NoSchedule" }]);
        world.apply(json!({ "kind": "Node", "apiVersion": "v1", "metadata": { "name": name }, "spec": { "taints": taint } }));
    };
    let before = reads();
    join("b");
    world.pass(seconds(3)).await;
    assert_eq!(reads(), before, "nobody knows its address yet");
    world.edit_node("b", |node| {
        node["spec"] = json!({ "providerID": "fake://b" });
    });
    world.pass(seconds(30)).await;
    assert_eq!(
        reads(),
        before + 2,
        "registered and initialised: once before the write and once after"
    );
    join("c");
    world.pass(seconds(11)).await;
    assert_eq!(world.balancer(&uid).unwrap(), ["a", "b", "c"]);
}

#[tokio::test(start_paused = true)]
async fn a_node_that_gets_other_addresses_has_the_balancers_looked_at() {
    let (world, _) = World::serving(&["a"]).await;
    let reads = || world.calls("read");
    let before = reads();
    let node = |address: &str, heartbeat: u32| {
        json!({
            "kind": "Node", "apiVersion": "v1", "metadata": { "name": "a" },
            "spec": { "providerID": "fake://a" },
            "status": {
                "addresses": [{ "type": "InternalIP", "address": address }],
                "conditions": [{ "type": "Ready", "status": "True", "lastHeartbeatTime": format!("2026-01-01T00:00:0{heartbeat}Z") }],
            },
        })
    };
    world.apply(node("10.0.0.1", 1));
    world.pass(seconds(3)).await;
    assert_eq!(reads(), before + 1);
    world.apply(node("10.0.0.1", 2));
    world.pass(seconds(5)).await;
    assert_eq!(reads(), before + 1, "a heartbeat is no news");
}

#[tokio::test(start_paused = true)]
async fn the_exclusion_label_counts_by_its_value_and_a_cordon_does_not_count() {
    let (world, uid) = World::serving(&["a", "b", "c"]).await;
    let updates = || world.calls("set-nodes");
    let change = |part: &str, field: &str, value: Value| {
        world.edit_node("c", |node| {
            node[part][field] = value;
        });
    };
    let exclude = |value: &str| json!({ "node.kubernetes.io/exclude-from-external-load-balancers": value });
    for (value, is_in, is_news) in [
        ("", false, true),
        ("false", true, true),
        ("true", false, true),
        ("banana", false, false),
        ("0", true, true),
    ] {
        let before = updates();
        change("metadata", "labels", exclude(value));
        world.pass(seconds(3)).await;
        let nodes = world.balancer(&uid).unwrap();
        assert_eq!(nodes.contains(&"c".to_owned()), is_in, "{value:?}");
        assert_eq!(updates() - before, usize::from(is_news), "{value:?}");
    }
    let before = updates();
    let not_ready = json!([{ "type": "Ready", "status": "False" }]);
    let to_be_deleted = json!([{ "key": "ToBeDeletedByClusterAutoscaler", "effect": "NoSchedule" }]);
    for (part, field, value) in [
        ("spec", "unschedulable", json!(true)),
        ("status", "conditions", not_ready),
    ] {
        change(part, field, value);
        world.pass(seconds(3)).await;
    }
    assert_eq!(updates(), before);
    change("spec", "taints", to_be_deleted);
    world.pass(seconds(3)).await;
    let nodes = world.balancer(&uid).unwrap();
    assert_eq!(nodes, ["a", "b"], "the autoscaler's taint counts");
}

#[tokio::test(start_paused = true)]
async fn thirty_nodes_that_join_together_are_few_updates() {
    let world = World::running(&["a"]).await;
    let uids: Vec<String> = (0..20).map(|n| world.add_service(&format!("web-{n}"))).collect();
    world
        .until("all have addresses", |w| {
            (0..20).all(|n| w.address(&format!("web-{n}")).is_some())
        })
        .await;
    world.pass(seconds(2)).await;
    let before = world.calls("set-nodes");
    for n in 0..30 {
        world.add_node(&format!("n{n:02}"));
        world.pass(Duration::from_millis(40)).await;
    }
    world
        .until("all balance over all", |w| {
            uids.iter().all(|uid| w.balancer(uid).unwrap().len() == 31)
        })
        .await;
    let updates = world.calls("set-nodes") - before;
    assert!(updates <= 40, "{updates}");
}

#[tokio::test(start_paused = true)]
async fn a_failed_node_update_says_which_nodes_and_a_full_sync_follows_at_once() {
    let (world, uid) = World::serving(&["a"]).await;
    world.fail(1, CloudError::other("busy"));
    world.add_node("b");
    world.leads_to(&uid, &["a", "b"]).await;
    world.pass(seconds(1)).await;
    let failed = world.message("web", "UpdateLoadBalancerFailed");
    assert_eq!(
        failed,
        "Error updating load balancer with new hosts [a b] [node names limited, total number of nodes: 2], \
         error: error during set-nodes(web: a b): busy"
    );
    assert_eq!(world.metrics.nodesync_error_total.get(), 1);
    let times: Vec<Duration> = world
        .cloud
        .calls("set-nodes")
        .iter()
        .rev()
        .take(2)
        .map(|(at, _)| *at)
        .collect();
    assert!(times[0] - times[1] < seconds(1), "{times:?}");
}

/// Nobody is served by it, and what is refused may have been built and taken back at each try: that is no matter for each Node that joins.
#[tokio::test(start_paused = true)]
async fn a_balancer_that_was_never_finished_waits_for_its_next_try_with_the_nodes_of_then() {
    let world = World::running(&["a"]).await;
    let second = [("web".to_owned(), seconds(1))];
    world.set(|cloud| cloud.write_time = second.into());
    let uid = world.add_service("web");
    world.until("it is made", |w| w.balancer(&uid).is_some()).await;
    world.fail(50, CloudError::other("no quota for that"));
    world.pass(seconds(400)).await; // the next try by the schedule is minutes away
    let reads = world.calls("read web");
    for name in ["b", "c"] {
        world.add_node(name);
        world.pass(seconds(5)).await;
    }
    assert_eq!(world.calls("read web"), reads);
    world.set(|cloud| cloud.write_errors.clear());
    world.pass(seconds(300)).await;
    assert_eq!(world.balancer(&uid).unwrap(), ["a", "b", "c"]);
}

#[tokio::test(start_paused = true)]
async fn nodes_that_are_again_those_of_before_a_failure_are_followed_at_once() {
    let (world, _) = World::serving(&["a"]).await;
    world.fail(50, CloudError::other("no quota for that"));
    world.add_node("b");
    world.pass(seconds(400)).await; // the next try by the schedule is minutes away
    let reads = world.calls("read web");
    world.delete_node("b");
    world.pass(seconds(10)).await;
    assert!(world.calls("read web") > reads);
}

/// As when a Node is not ready for a few seconds, and a part of the Service is refused for good.
#[tokio::test(start_paused = true)]
async fn nodes_that_change_during_a_sync_that_fails_are_followed_at_once() {
    let (world, _) = World::serving(&["a", "b"]).await;
    let failures = || (0..50).map(|_| CloudError::other("no quota for that"));
    world.set(|cloud| {
        cloud.write_errors = failures().collect();
        cloud.write_time.insert("web".to_owned(), seconds(5));
    });
    world.add_node("c");
    world.pass(seconds(400)).await; // the next try by the schedule is minutes away
    world.delete_node("b");
    world.pass(seconds(2)).await;
    world.add_node("b");
    world.pass(seconds(2)).await;
    let reads = world.calls("read web");
    world.pass(seconds(6)).await;
    assert!(world.calls("read web") > reads);
}

/// One part of a new Service may never be done.
#[tokio::test(start_paused = true)]
async fn a_service_that_is_shown_before_its_sync_ends_follows_the_nodes() {
    let world = World::running(&["a"]).await;
    world.set(|cloud| {
        cloud.shows_early = true;
        cloud.hangs_when_shown = true;
    });
    let uid = world.add_service("web");
    world.addressed("web").await;
    world.add_node("b");
    world.pass(seconds(10)).await;
    assert_eq!(world.balancer(&uid).unwrap(), ["a", "b"]);
    world.delete_node("a");
    world.pass(seconds(10)).await;
    assert_eq!(world.balancer(&uid).unwrap(), ["b"]);
}

/// Whatever fails: an intent that is refused, a read of the cloud, or the status that a policy denies.
#[tokio::test(start_paused = true)]
async fn a_service_that_fails_keeps_its_pauses_though_the_nodes_are_others_than_when_it_settled() {
    let (world, _) = World::serving(&["a"]).await;
    let deny = Effect::Deny(|service| service["status"]["loadBalancer"]["ingress"].is_array());
    world.inject(Fault::new(deny).resource("services"));
    world.edit("web", |service| service["status"] = json!({}));
    world.add_node("b");
    world.pass(seconds(10)).await;
    let reads = world.calls("read web");
    world.pass(seconds(120)).await;
    let more = world.calls("read web") - reads;
    assert!((1..=8).contains(&more), "{more} looks in two minutes");
}

#[tokio::test(start_paused = true)]
async fn a_cloud_that_made_no_balancer_is_not_asked_again_because_a_node_joined() {
    for tells_later in [false, true] {
        let world = World::running(&["a"]).await;
        let failures = || (0..50).map(|_| CloudError::other("no quota for that"));
        world.set(|cloud| {
            cloud.write_errors = failures().collect();
            cloud.tells_errors_later = tells_later;
        });
        world.add_service("web");
        world.pass(seconds(400)).await;
        let tries = world.calls("create");
        assert!(tries > 3, "{tries}");
        world.add_node("b");
        world.pass(seconds(5)).await;
        assert_eq!(world.calls("create"), tries, "tells later: {tells_later}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_was_refused_for_want_of_nodes_is_made_when_one_joins() {
    let world = World::running(&[]).await;
    world.set(|cloud| cloud.refuses_without_nodes = true);
    let uid = world.add_service("web");
    world.pass(seconds(400)).await; // the next try by the schedule is minutes away
    assert_eq!(world.balancer(&uid), None);
    world.add_node("a");
    world.pass(seconds(5)).await;
    assert_eq!(world.balancer(&uid).unwrap(), ["a"]);
}

#[tokio::test(start_paused = true)]
async fn a_balancer_that_somebody_deleted_is_made_anew_without_a_warning_when_nodes_change() {
    let (world, uid) = World::serving(&["a"]).await;
    world.set(|cloud| cloud.balancers.clear());
    world.add_node("b");
    world
        .until("it is there again", |w| {
            w.balancer(&uid).is_some_and(|nodes| nodes == ["a", "b"])
        })
        .await;
    world.pass(seconds(60)).await;
    let failures = world.reasons("web");
    assert!(
        !failures.iter().any(|reason| reason.ends_with("Failed")),
        "{failures:?}"
    );
    assert_eq!(world.metrics.nodesync_error_total.get(), 0);
    assert_eq!(world.calls("create"), 2);
}

#[tokio::test(start_paused = true)]
async fn a_pass_over_changed_nodes_lasts_until_its_slowest_balancer_is_up_to_date() {
    let world = World::running(&["a"]).await;
    let uids = ["quick", "slow"].map(|name| world.add_service(name));
    world.settled("quick").await;
    world.settled("slow").await;
    world.slow("slow", seconds(7));
    let passes = |world: &World| {
        let page = world.page();
        let value = |name: &str| {
            let line = page.lines().find(|line| line.starts_with(name)).unwrap();
            line.rsplit(' ').next().unwrap().parse::<f64>().unwrap()
        };
        (
            value("service_controller_nodesync_latency_seconds_count"),
            value("service_controller_nodesync_latency_seconds_sum"),
        )
    };
    let before = passes(&world);
    world.add_node("b");
    world
        .until("both balance over both", |w| {
            uids.iter().all(|uid| w.balancer(uid).unwrap() == ["a", "b"])
        })
        .await;
    world.pass(seconds(1)).await;
    let after = passes(&world);
    let (count, sum) = (after.0 - before.0, after.1 - before.1);
    assert!((count - 1.0).abs() < 1e-9, "one pass: {count}");
    assert!((7.0..8.0).contains(&sum), "as long as the slow one: {sum}");
}

#[tokio::test(start_paused = true)]
async fn a_cloud_whose_balancers_follow_no_nodes_is_not_asked_when_nodes_change() {
    let world = World::new_with(&["a"], |cloud| cloud.ignores_nodes = true);
    world.add_service("web");
    world.settled("web").await;
    world.pass(seconds(5)).await;
    let calls = world.calls("");
    let said = world.events("web").len();
    world.add_node("b");
    world.pass(seconds(60)).await;
    let updated = ("UpdatedLoadBalancer", "Updated load balancer with new hosts");
    let updated = (updated.0.to_owned(), updated.1.to_owned());
    assert_eq!(world.events("web")[said..], [updated]);
    assert_eq!(world.metrics.loadbalancer_sync_total.get(), 1);
    world.delete_node("a");
    world.pass(seconds(60)).await;
    assert_eq!(
        world.metrics.loadbalancer_sync_total.get(),
        2,
        "the same event once more"
    );
    world.edit_node("b", |node| {
        node["status"]["addresses"] = json!([{ "type": "InternalIP", "address": "10.0.0.9" }]);
    });
    world.pass(seconds(60)).await;
    assert_eq!(
        world.metrics.loadbalancer_sync_total.get(),
        2,
        "its addresses are nothing to them"
    );
    world.delete_node("b");
    world.pass(seconds(60)).await;
    let events = world.events("web");
    assert_eq!(events.last().unwrap().0, "UnAvailableLoadBalancer");
    assert_eq!(
        events.last().unwrap().1,
        "There are no available nodes for LoadBalancer"
    );
    world.add_node("c");
    world.pass(seconds(60)).await;
    assert_eq!(world.calls(""), calls);
    world.annotate("web", "example.com/changed", "yes");
    world.pass(seconds(5)).await;
    assert!(world.calls("") > calls, "a change of the Service still counts");
    let after = world.calls("");
    world.pass(seconds(60)).await;
    assert_eq!(world.calls(""), after, "nor is it behind the nodes for ever");
}

#[tokio::test(start_paused = true)]
async fn a_node_that_joins_during_the_first_sync_is_told_where_balancers_follow_no_nodes() {
    let world = World::new_with(&["a"], |cloud| {
        cloud.ignores_nodes = true;
        cloud.write_time.insert("web".to_owned(), seconds(7));
    });
    world.add_service("web");
    world.pass(seconds(2)).await;
    world.add_node("b");
    world.settled("web").await;
    world.pass(seconds(60)).await;
    let reasons = world.reasons("web");
    assert_eq!(
        reasons[reasons.len() - 2..],
        ["EnsuredLoadBalancer", "UpdatedLoadBalancer"]
    );
}

#[tokio::test(start_paused = true)]
async fn a_service_on_its_way_out_is_told_of_no_nodes() {
    let world = World::new_with(&["a"], |cloud| {
        cloud.ignores_nodes = true;
        cloud.write_time.insert("web".to_owned(), seconds(7));
    });
    world.add_service("web");
    world.settled("web").await;
    world.delete("web");
    world.pass(seconds(2)).await;
    world.add_node("b");
    world.pass(seconds(2)).await;
    let reasons = world.reasons("web");
    assert_eq!(reasons.last().unwrap(), "DeletingLoadBalancer", "{reasons:?}");
}

/// What the cloud has noted on a Node.
fn instance(world: &World, node: &str) -> Option<String> {
    let node = world.api.object("Node", "", node)?;
    node["metadata"]["annotations"][INSTANCE]
        .as_str()
        .map(str::to_owned)
}

/// Writes sent to Nodes so far, as the versions of these Nodes show them.
fn versions(world: &World, nodes: &[&str]) -> Vec<String> {
    let version = |name: &&str| world.node(name)["metadata"]["resourceVersion"].to_string();
    nodes.iter().map(version).collect()
}

#[tokio::test(start_paused = true)]
async fn nodes_of_a_sync_or_an_update_carry_what_the_cloud_notes_on_them() {
    for ignores_nodes in [false, true] {
        let world = World::new_with(&["a"], |cloud| {
            cloud.ignores_nodes = ignores_nodes;
            cloud.annotates_nodes = true;
        });
        world.pass(seconds(10)).await;
        assert_eq!(instance(&world, "a"), None, "handed to nobody yet");
        world.add_service("web");
        world.add_service("web-2");
        world.settled("web").await;
        assert_eq!(instance(&world, "a").as_deref(), Some("fake://a"));
        world.add_node("b");
        world.pass(seconds(10)).await;
        assert_eq!(instance(&world, "b").as_deref(), Some("fake://b"));
        world.edit_node("a", |node| {
            node["metadata"]["annotations"][INSTANCE] = json!("zzz");
        });
        world.pass(seconds(10)).await;
        assert_eq!(
            instance(&world, "a").as_deref(),
            Some("zzz"),
            "nobody was handed it"
        );
        world.annotate("web", "example.com/changed", "yes");
        world.pass(seconds(10)).await;
        assert_eq!(instance(&world, "a").as_deref(), Some("fake://a"));
        let before = versions(&world, &["a", "b"]);
        world.annotate("web", "example.com/changed", "again");
        world.pass(seconds(10)).await;
        assert_eq!(
            versions(&world, &["a", "b"]),
            before,
            "written only where it differs"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_note_on_a_node_that_cannot_be_written_fails_nothing_and_is_tried_at_the_next_sync() {
    let world = World::new_with(&["a"], |cloud| cloud.annotates_nodes = true);
    world
        .api
        .faults()
        .fail_next(1, "patch", "nodes", Status::new(403, "Forbidden", "no"));
    let uid = world.add_service("web");
    world.settled("web").await;
    world.pass(seconds(60)).await;
    assert_eq!(instance(&world, "a"), None);
    assert_eq!(world.balancer(&uid).unwrap(), ["a"]);
    assert_eq!(world.reasons("web"), MADE);
    world.annotate("web", "example.com/changed", "yes");
    world.pass(seconds(10)).await;
    assert_eq!(instance(&world, "a").as_deref(), Some("fake://a"));
}
