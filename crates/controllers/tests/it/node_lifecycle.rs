//! The cloud-node-lifecycle controller against an API server and a cloud in memory.

use std::time::Duration;

use bowline_base::log::Log;
use bowline_cloud_provider::{CloudError, ErrorKind, InstanceMetadata, PowerState, Purpose};
use bowline_controllers::metrics::Guard;
use bowline_controllers::node::NodeSettings;
use bowline_controllers::node_lifecycle::NodeLifecycleSettings;
use bowline_kube_api::{Effect, Fault, Status};
use serde_json::{Value, json};
use tracing::Level;

use crate::cluster::{Cluster, SECOND, SHUTDOWN, UNINITIALIZED, new_node, node_of, node_patch};
use crate::instances::{Call, metadata, present};

fn cluster() -> Cluster {
    Cluster::new().with_lifecycle_loop(NodeLifecycleSettings::default())
}

fn set_ready(cluster: &Cluster, name: &str, status: &str) {
    cluster.edit(name, |node| {
        node["status"]["conditions"][0]["status"] = json!(status)
    });
}

fn running(cluster: &Cluster, name: &str) {
    cluster.instances.run(name, InstanceMetadata::default());
}

/// So many Nodes are lost, and their instances gone.
fn lose(cluster: &Cluster, nodes: usize) {
    for n in 0..nodes {
        let name = format!("n{n:02}");
        cluster.instances.remove(&name);
        cluster.put(node_of(&name, Some("Unknown")));
    }
}

fn powered_off(cluster: &Cluster, name: &str) {
    cluster
        .instances
        .set(name, present(InstanceMetadata::default(), PowerState::Off));
}

/// A lost Node whose instance is powered off, and the taint on its way to it.
async fn about_to_taint(name: &str) -> Cluster {
    let cluster = cluster();
    powered_off(&cluster, name);
    cluster.inject(node_patch(Effect::Delay(SECOND)).times(1));
    cluster.put(node_of(name, Some("Unknown")));
    cluster.soon("asked", |c| questions(c, name) == 1).await;
    cluster
}

fn questions(cluster: &Cluster, name: &str) -> usize {
    cluster.instances.asked(name, Purpose::Existence).len()
}

#[tokio::test(start_paused = true)]
async fn nobody_asks_for_a_ready_node() {
    let cluster = cluster();
    cluster.instances.remove("n1");
    cluster.put(node_of("n1", Some("True")));
    cluster.pass(SECOND * 12).await;
    assert!(cluster.exists("n1"));
    assert!(cluster.questions() == 0);
}

#[tokio::test(start_paused = true)]
async fn a_node_whose_instance_is_gone_is_deleted_within_six_seconds() {
    for ready in [Some("Unknown"), Some("False"), None] {
        let cluster = cluster();
        cluster.instances.remove("n1");
        cluster.put(node_of("n1", ready));
        let uid = cluster.node("n1")["metadata"]["uid"].clone();
        let took = cluster.gone("n1").await;
        assert!(took >= SECOND * 5, "proved twice, five seconds apart: {took:?}");
        cluster.soon("the event", |c| !c.events("n1").is_empty()).await;
        assert_eq!(
            cluster.events("n1"),
            [(
                "Normal DeletingNode: Deleting node n1 because it does not exist in the cloud provider"
                    .to_owned(),
                "cloud-node-lifecycle-controller".to_owned()
            )]
        );
        let deletion = &cluster.node_writes()[0];
        assert_eq!(deletion.body.as_ref().unwrap()["preconditions"]["uid"], uid);
        assert_eq!(questions(&cluster, "n1"), 2);
    }
}

#[tokio::test(start_paused = true)]
async fn a_lost_node_is_asked_for_at_once() {
    let cluster = cluster();
    cluster.instances.remove("n1");
    running(&cluster, "n2");
    for name in ["n1", "n2"] {
        cluster.put(node_of(name, Some("True")));
    }
    cluster.pass(SECOND * 7).await;
    set_ready(&cluster, "n1", "Unknown");
    let took = cluster.gone("n1").await;
    assert!(took >= SECOND * 5, "{took:?}");
    assert!(cluster.exists("n2"));
}

/// As on CloudStack, whose empty list proves something only beside the instance of another Node, which a young process has not asked for.
#[tokio::test(start_paused = true)]
async fn what_is_proved_only_beside_ready_nodes_takes_no_longer() {
    let cluster = cluster();
    cluster.instances.prove_beside_others();
    cluster.instances.remove("n1");
    running(&cluster, "n2");
    cluster.put(node_of("n2", Some("True")));
    cluster.put(node_of("n1", Some("Unknown")));
    let took = cluster.gone("n1").await;
    assert!(took >= SECOND * 5, "{took:?}");
    assert!(cluster.exists("n2"));
}

/// Of several clouds one takes requests and does not answer: its own Nodes wait, and no others.
#[tokio::test(start_paused = true)]
async fn a_cloud_that_is_silent_holds_up_no_deletion_in_another() {
    let of_silent = |name: &str, ready| {
        let mut node = node_of(name, ready);
        node["spec"]["providerID"] = json!(format!("silent://{name}"));
        node
    };
    let cluster = cluster();
    cluster.instances.silence("silent");
    running(&cluster, "n2");
    cluster.put(node_of("n2", Some("True")));
    cluster.put(of_silent("s1", Some("True")));
    for (name, node) in [
        ("s2", of_silent("s2", Some("Unknown"))),
        ("n1", node_of("n1", Some("Unknown"))),
    ] {
        cluster.instances.remove(name);
        cluster.put(node);
    }
    cluster.gone("n1").await;
    assert!(cluster.exists("s2"));
    let of_both = |call: &Call| {
        let mut platforms = call.asked.iter().map(|(name, _)| name.starts_with('s'));
        let first = platforms.next();
        platforms.any(|it| Some(it) != first)
    };
    assert!(
        !cluster.instances.calls().iter().any(of_both),
        "each cloud is asked about its own Nodes"
    );
}

#[tokio::test(start_paused = true)]
async fn upstreams_behaviour_is_one_proof_and_no_limit() {
    let cluster = Cluster::new().with_lifecycle_loop(NodeLifecycleSettings {
        node_deletion_confirmation: Duration::ZERO,
        node_deletion_share: 0.0,
        ..NodeLifecycleSettings::default()
    });
    lose(&cluster, 20);
    cluster
        .soon("all gone", |c| c.api.objects("Node").is_empty())
        .await;
}

fn upstreams() -> Cluster {
    Cluster::new().with_lifecycle_loop(NodeLifecycleSettings {
        node_deletion_confirmation: Duration::ZERO,
        node_deletion_share: 0.0,
        ..NodeLifecycleSettings::default()
    })
}

#[tokio::test(start_paused = true)]
async fn upstreams_behaviour_spares_no_young_node_and_asks_for_no_witness() {
    let cluster = upstreams();
    for name in ["young", "blind", "lost"] {
        cluster.instances.remove(name);
    }
    cluster.put(node_of("blind", Some("True")));
    cluster.put(node_of("lost", Some("Unknown")));
    cluster.put(new_node("young"));
    set_ready(&cluster, "young", "Unknown");
    cluster
        .soon("both gone", |c| !c.exists("young") && !c.exists("lost"))
        .await;
    assert!(cluster.exists("blind"), "a ready node is not asked for");
    assert!(
        cluster
            .instances
            .asked("blind", Purpose::CredentialCheck)
            .is_empty(),
        "no call that the Go managers do not make"
    );
    assert_eq!(cluster.count_events("NodeDeletionFrozen"), 0);
}

#[tokio::test(start_paused = true)]
async fn one_of_the_two_settings_alone_keeps_the_freeze_and_the_grace() {
    for (confirmation, share) in [(Duration::ZERO, 0.2), (SECOND * 5, 0.0)] {
        let cluster = Cluster::new().with_lifecycle_loop(NodeLifecycleSettings {
            node_deletion_confirmation: confirmation,
            node_deletion_share: share,
            ..NodeLifecycleSettings::default()
        });
        for name in ["young", "blind", "lost"] {
            cluster.instances.remove(name);
        }
        cluster.put(node_of("blind", Some("True")));
        cluster.put(node_of("lost", Some("Unknown")));
        cluster.put(new_node("young"));
        set_ready(&cluster, "young", "Unknown");
        cluster.pass(SECOND * 60).await;
        assert!(
            cluster.exists("young") && cluster.exists("lost"),
            "{confirmation:?} {share}"
        );
        assert_eq!(cluster.count_events("NodeDeletionFrozen"), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_node_that_comes_back_while_the_witnesses_are_asked_for_stays() {
    // One proof is enough here, so the witnesses are asked for after it.
    let cluster = Cluster::new().with_lifecycle_loop(NodeLifecycleSettings {
        node_deletion_confirmation: Duration::ZERO,
        ..NodeLifecycleSettings::default()
    });
    cluster.instances.remove("n1");
    running(&cluster, "n2");
    cluster.instances.latency(SECOND * 2);
    cluster.put(node_of("n2", Some("True")));
    cluster.put(node_of("n1", Some("Unknown")));
    cluster
        .within(SECOND * 10, "the witness is asked for", |c| {
            !c.instances.asked("n2", Purpose::CredentialCheck).is_empty()
        })
        .await;
    set_ready(&cluster, "n1", "True");
    cluster.pass(SECOND * 60).await;
    assert!(cluster.exists("n1"));
    assert_eq!(cluster.count_events("DeletingNode"), 0);
    assert!(cluster.writes() == 0);
}

#[tokio::test(start_paused = true)]
async fn the_shutdown_taint_of_a_node_does_not_reach_its_successor_of_the_same_name() {
    let cluster = about_to_taint("n1").await;
    cluster.delete("n1");
    running(&cluster, "n1");
    cluster.put(node_of("n1", Some("Unknown")));
    cluster.pass(SECOND * 30).await;
    assert_eq!(cluster.taints("n1"), Vec::<String>::new());
    assert_eq!(
        cluster.statuses(),
        [409],
        "the write for the old node, and none for the new one"
    );
}

#[tokio::test(start_paused = true)]
async fn a_node_that_becomes_ready_while_it_is_being_tainted_is_not_tainted() {
    let cluster = about_to_taint("n1").await;
    set_ready(&cluster, "n1", "True");
    cluster.pass(SECOND * 30).await;
    assert_eq!(cluster.taints("n1"), Vec::<String>::new());
    assert_eq!(cluster.statuses(), [409], "one write, refused, and none after it");
}

#[tokio::test(start_paused = true)]
async fn ready_nodes_without_a_provider_id_are_no_witnesses_against_the_credentials() {
    let cluster = cluster();
    for n in 0..3 {
        let name = format!("n{n}");
        cluster.instances.remove(&name);
        let mut node = node_of(&name, Some(if n == 0 { "Unknown" } else { "True" }));
        if n > 0 {
            node["spec"].as_object_mut().unwrap().remove("providerID");
        }
        cluster.put(node);
    }
    cluster.gone("n0").await;
    assert_eq!(cluster.count_events("NodeDeletionFrozen"), 0);
}

#[tokio::test(start_paused = true)]
async fn a_node_that_waits_for_its_cloud_is_no_news_here() {
    let cluster = cluster();
    cluster
        .instances
        .set("n1", Err(CloudError::other("node n1 has no ProviderID")));
    let mut node = node_of("n1", Some("False"));
    node["spec"] = json!({"taints": [{"key": UNINITIALIZED, "value": "true", "effect": "NoSchedule"}]});
    let (log, _while_it_lasts) = Log::listen(Level::WARN);
    cluster.put(node);
    cluster.pass(SECOND * 120).await;
    assert!(!cluster.instances.asked("n1", Purpose::Existence).is_empty());
    assert_eq!(log.text(), "");
}

#[tokio::test(start_paused = true)]
async fn an_error_deletes_and_taints_nothing() {
    let cluster = cluster();
    cluster
        .instances
        .set("n1", Err(CloudError::not_found("server not found")));
    cluster
        .instances
        .set("n2", Err(CloudError::transient("bad gateway")));
    for name in ["n1", "n2"] {
        cluster.put(node_of(name, Some("False")));
    }
    let (log, _while_it_lasts) = Log::listen(Level::WARN);
    cluster.pass(SECOND * 600).await;
    assert!(cluster.exists("n1") && cluster.exists("n2"));
    assert!(cluster.writes() == 0);
    // Both in one line, and not again while nothing changes.
    assert_eq!(
        log.count("Nothing is known of the instances"),
        1,
        "{}",
        log.text()
    );
    assert_eq!(log.count("nodes=2"), 1, "{}", log.text());
    cluster.instances.set("n2", Err(CloudError::not_found("no")));
    cluster.pass(SECOND * 120).await;
    assert_eq!(
        log.count("Nothing is known of the instances"),
        2,
        "{}",
        log.text()
    );
}

#[tokio::test(start_paused = true)]
async fn power_decides_about_the_taint_and_ready_takes_it_away_without_a_question() {
    let cluster = cluster();
    powered_off(&cluster, "n1");
    cluster.put(node_of("n1", Some("False")));
    cluster.edit("n1", |node| {
        node["spec"]["taints"] = json!([{"key": "other", "effect": "NoSchedule"}]);
    });
    cluster
        .within(SECOND * 6, "tainted", |c| c.taints("n1") == ["other", SHUTDOWN])
        .await;
    let taint = &cluster.node("n1")["spec"]["taints"][1];
    assert_eq!(taint["effect"], "NoSchedule");
    assert_eq!(taint.get("value").and_then(Value::as_str).unwrap_or_default(), "");
    cluster.pass(SECOND * 30).await;
    assert_eq!(cluster.writes(), 1, "written once");
    let reads = cluster.api.journal().of("get", "nodes").len();
    assert_eq!(reads, 0, "the cached taint is enough");
    let asked = questions(&cluster, "n1");
    set_ready(&cluster, "n1", "True");
    cluster.soon("freed", |c| c.taints("n1") == ["other"]).await;
    assert_eq!(questions(&cluster, "n1"), asked);
}

#[tokio::test(start_paused = true)]
async fn the_taint_goes_when_the_instance_runs_though_the_node_is_not_ready() {
    let cluster = cluster();
    powered_off(&cluster, "n1");
    cluster.put(node_of("n1", Some("Unknown")));
    cluster.soon("tainted", |c| c.taints("n1") == [SHUTDOWN]).await;
    running(&cluster, "n1");
    cluster
        .within(SECOND * 6, "freed", |c| c.taints("n1").is_empty())
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_running_node_that_stays_not_ready_is_asked_for_less_and_less() {
    let cluster = cluster();
    running(&cluster, "n1");
    cluster.put(node_of("n1", Some("False")));
    cluster.pass(SECOND * 3600).await;
    let asked = cluster.instances.asked("n1", Purpose::Existence);
    assert!((80..90).contains(&asked.len()), "{}", asked.len());
    assert!(
        asked
            .windows(2)
            .take(20)
            .all(|pair| pair[1] - pair[0] <= SECOND * 5)
    );
    assert!(cluster.writes() == 0);
}

#[tokio::test(start_paused = true)]
async fn a_refused_deletion_is_told() {
    let cluster = cluster();
    cluster.instances.remove("n1");
    cluster.inject(
        Fault::new(Effect::Answer(Status::new(
            403,
            "Forbidden",
            "nodes \"n1\" is forbidden",
        )))
        .verb("delete")
        .resource("nodes"),
    );
    cluster.put(node_of("n1", Some("Unknown")));
    cluster.pass(SECOND * 120).await;
    let texts = cluster.texts("n1");
    assert!(
        texts.contains(
            &"Warning DeletingNodeFailed: Failed deleting node n1: nodes \"n1\" is forbidden".to_owned()
        ),
        "{texts:?}"
    );
    assert_eq!(cluster.count_events("DeletingNodeFailed"), 1);
    assert_eq!(cluster.count_events("DeletingNode"), 1, "once per node");
    assert!(cluster.writes() > 2, "tried again");
}

#[tokio::test(start_paused = true)]
async fn a_deletion_that_conflicts_is_tried_again() {
    let cluster = cluster();
    cluster.instances.remove("n1");
    let conflict = Status::new(409, "Conflict", "the object has been modified");
    cluster.api.faults().fail_next(1, "delete", "nodes", conflict);
    cluster.put(node_of("n1", Some("Unknown")));
    cluster.within(SECOND * 20, "gone", |c| !c.exists("n1")).await;
    assert_eq!(cluster.count_events("DeletingNode"), 1);
    assert_eq!(cluster.count_events("DeletingNodeFailed"), 0);
}

#[tokio::test(start_paused = true)]
async fn a_finalizer_that_holds_a_node_makes_no_noise() {
    let cluster = cluster();
    cluster.instances.remove("n1");
    cluster.put(node_of("n1", Some("Unknown")));
    cluster.edit("n1", |node| {
        node["metadata"]["finalizers"] = json!(["example.com/hold"])
    });
    cluster
        .within(SECOND * 6, "marked", |c| {
            !c.node("n1")["metadata"]["deletionTimestamp"].is_null()
        })
        .await;
    cluster.pass(SECOND * 120).await;
    assert_eq!(cluster.writes(), 1);
    assert_eq!(cluster.count_events("DeletingNode"), 1);
    assert_eq!(questions(&cluster, "n1"), 2);
}

#[tokio::test(start_paused = true)]
async fn a_node_whose_instance_appears_late_is_not_deleted() {
    let cluster = cluster();
    cluster.instances.remove("n1");
    cluster.put(new_node("n1"));
    set_ready(&cluster, "n1", "False");
    cluster.pass(SECOND * 10).await;
    running(&cluster, "n1");
    cluster.pass(SECOND * 600).await;
    assert!(cluster.exists("n1"));
    assert_eq!(cluster.count_events("DeletingNode"), 0);
}

#[tokio::test(start_paused = true)]
async fn less_than_a_fifth_of_the_nodes_goes_at_once_but_all_go_in_the_end() {
    let cluster = cluster();
    cluster.pass(SECOND * 600).await; // the first window of a leader is another matter
    lose(&cluster, 50);
    cluster.pass(SECOND * 30).await;
    assert_eq!(cluster.api.objects("Node").len(), 41);
    assert_eq!(
        cluster.count_events("NodeDeletionThrottled"),
        41,
        "one on each that waits"
    );
    assert_eq!(cluster.metrics.node_deletions_throttled.get(), 41);
    cluster.pass(SECOND * 600).await;
    assert_eq!(cluster.api.objects("Node").len(), 33);
    cluster
        .within(SECOND * 3 * 3600, "all gone", |c| {
            c.api.objects("Node").is_empty()
        })
        .await;
    let told = cluster.count_events("NodeDeletionThrottled");
    assert!(told > 41, "{told}: it is said again while a Node waits");
    assert_eq!(cluster.metrics.node_deletions_throttled.get(), 0);
    assert_eq!(cluster.metrics.guard_trips(Guard::NodeDeletionThrottled), 41);
}

#[tokio::test(start_paused = true)]
async fn no_more_than_the_share_goes_while_the_answers_to_deletions_are_lost() {
    let cluster = cluster();
    cluster.pass(SECOND * 600).await;
    cluster.inject(Fault::new(Effect::DropAfter).verb("delete").resource("nodes"));
    lose(&cluster, 50);
    cluster.pass(SECOND * 500).await;
    assert_eq!(cluster.api.objects("Node").len(), 41);
}

/// A new leader may delete three. One that is busy says so before it looks at what is asked.
#[tokio::test(start_paused = true)]
async fn deletions_that_a_busy_api_server_refuses_use_up_no_share() {
    for (status, gone) in [
        (Status::too_many_requests(1), 2),
        (Status::unavailable("busy").retry_after(1), 0),
    ] {
        let cluster = cluster();
        for n in 0..5 {
            let name = format!("n{n}");
            cluster.instances.remove(&name);
            cluster.put(node_of(&name, Some("Unknown")));
            if n < 3 {
                let busy = Fault::new(Effect::Answer(status.clone())).verb("delete");
                cluster.inject(busy.resource("nodes").name(&name));
            }
        }
        cluster.pass(SECOND * 120).await;
        assert_eq!(cluster.api.objects("Node").len(), 5 - gone, "{status:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_new_leader_does_not_begin_with_the_share_anew() {
    let settings = |share| NodeLifecycleSettings {
        node_deletion_share: share,
        ..NodeLifecycleSettings::default()
    };
    let left = |cluster: &Cluster| cluster.api.objects("Node").len();
    for (share, most) in [(0.2, 9), (0.5, 24)] {
        let cluster = Cluster::new().with_lifecycle_loop(settings(share));
        cluster.pass(SECOND * 600).await;
        lose(&cluster, 50);
        cluster.pass(SECOND * 30).await;
        assert_eq!(left(&cluster), 50 - most, "{share}");
        let cluster = cluster.after_a_crash().with_lifecycle_loop(settings(share));
        cluster.pass(SECOND * 590).await;
        assert_eq!(
            left(&cluster),
            50 - most - 3,
            "{share}: a new leader begins with three"
        );
        cluster.pass(SECOND * 60).await;
        assert!(
            left(&cluster) < 50 - most - 3,
            "{share}: and goes on when its window is over"
        );
    }
    let cluster = Cluster::new();
    lose(&cluster, 50);
    let cluster = cluster.with_lifecycle_loop(settings(0.0));
    cluster.pass(SECOND * 30).await;
    assert_eq!(left(&cluster), 0, "a share of zero is no limit");
}

#[tokio::test(start_paused = true)]
async fn nothing_goes_while_the_credentials_see_no_instance_of_a_ready_node() {
    let cluster = cluster();
    for n in 0..5 {
        let name = format!("n{n}");
        cluster.instances.remove(&name); // another project: everything is absent
        cluster.put(node_of(&name, Some(if n < 3 { "True" } else { "Unknown" })));
    }
    cluster.pass(SECOND * 300).await;
    assert_eq!(cluster.api.objects("Node").len(), 5);
    assert_eq!(cluster.metrics.node_deletions_frozen.get(), 2);
    assert_eq!(cluster.metrics.guard_trips(Guard::NodeDeletionFrozen), 2);
    assert_eq!(cluster.count_events("NodeDeletionFrozen"), 2, "one on each");
    assert_eq!(
        cluster.texts("n4")[0],
        "Warning NodeDeletionFrozen: Not deleting node n4: with these credentials the cloud shows none of the instances \
         of the 3 ready nodes either. Check that the credentials are valid and belong to the project of this cluster"
    );
    running(&cluster, "n0"); // the right token again, though two more instances are gone
    cluster
        .within(SECOND * 61, "the lost ones are gone", |c| {
            c.api.objects("Node").len() == 3
        })
        .await;
    assert_eq!(cluster.metrics.node_deletions_frozen.get(), 0);
}

#[tokio::test(start_paused = true)]
async fn of_an_instance_that_the_cloud_refuses_to_show_it_is_said_that_nothing_is_proved() {
    let cluster = cluster();
    cluster.put(node_of("n1", Some("True")));
    cluster.put(node_of("n2", Some("Unknown")));
    let refused = CloudError::new(ErrorKind::Unauthenticated, "401 Unauthorized");
    cluster.outage(Some(refused));
    cluster.pass(SECOND * 60).await;
    assert_eq!(
        cluster.texts("n2")[0],
        "Warning NodeDeletionFrozen: Not deleting node n2: nothing is proved about its instance, and with these credentials \
         the cloud shows none of the instances of the 1 ready nodes either. Check that the credentials are valid and belong \
         to the project of this cluster. The cloud answered: 401 Unauthorized"
    );
}

#[tokio::test(start_paused = true)]
async fn a_node_that_is_ready_again_when_the_answer_comes_stays() {
    let cluster = cluster();
    cluster.instances.remove("n1");
    cluster.instances.latency(SECOND * 2);
    cluster.put(node_of("n1", Some("Unknown")));
    cluster
        .within(SECOND * 10, "asked twice", |c| questions(c, "n1") == 2)
        .await;
    set_ready(&cluster, "n1", "True");
    cluster.pass(SECOND * 60).await;
    assert!(cluster.exists("n1"));
    assert_eq!(cluster.count_events("DeletingNode"), 0);
}

#[tokio::test(start_paused = true)]
async fn a_taint_that_somebody_adds_meanwhile_is_kept() {
    let cluster = about_to_taint("n1").await;
    cluster.edit("n1", |node| {
        node["spec"]["taints"] = json!([{"key": "late", "effect": "NoExecute"}]);
    });
    cluster
        .soon("tainted", |c| c.taints("n1") == ["late", SHUTDOWN])
        .await;
    assert_eq!(
        cluster
            .node_writes()
            .iter()
            .filter(|write| write.status == 409)
            .count(),
        1
    );
}

#[tokio::test(start_paused = true)]
async fn who_puts_the_shutdown_taint_back_is_named_and_met_less_and_less_often() {
    let cluster = cluster();
    running(&cluster, "n1");
    cluster.put(node_of("n1", Some("True")));
    for _ in 0..2400 {
        if cluster.taints("n1").is_empty() {
            cluster.edit("n1", |node| {
                node["spec"]["taints"] = json!([{"key": SHUTDOWN, "effect": "NoSchedule"}]);
            });
        }
        cluster.pass(SECOND / 2).await;
    }
    // One at first, five at once, then after 5, 10, 20, 40, 80, 160, 300 and 300 s.
    let writes = cluster.writes();
    assert!((11..=14).contains(&writes), "{writes}");
    assert_eq!(cluster.count_events("ChangedBack"), 1);
}

#[tokio::test(start_paused = true)]
async fn five_hundred_lost_nodes_are_one_question() {
    let cluster = cluster();
    cluster.instances.latency(Duration::from_millis(100));
    for n in 0..500 {
        let name = format!("n{n}");
        running(&cluster, &name);
        cluster.put(node_of(&name, Some("True")));
    }
    cluster.soon("known", |c| c.nodes.len() == 500).await;
    for n in 0..500 {
        set_ready(&cluster, &format!("n{n}"), "Unknown");
    }
    cluster
        .within(SECOND * 10, "all asked for", |c| {
            let asked: usize = c.instances.calls().iter().map(|call| call.asked.len()).sum();
            asked >= 500
        })
        .await;
    cluster.pass(SECOND * 60).await;
    let calls = cluster.questions();
    assert!(calls <= 20, "{calls} questions for 500 nodes in a minute");
}

#[tokio::test(start_paused = true)]
async fn of_nodes_that_are_lost_one_after_the_other_all_but_the_first_share_questions() {
    let cluster = cluster();
    let names: Vec<String> = (0..60).map(|n| format!("n{n}")).collect();
    for name in &names {
        running(&cluster, name);
        cluster.put(node_of(name, Some("True")));
    }
    cluster.soon("known", |c| c.nodes.len() == 60).await;
    cluster.pass(SECOND).await;
    for name in &names {
        set_ready(&cluster, name, "Unknown");
        cluster.pass(Duration::from_millis(10)).await;
    }
    cluster
        .within(SECOND, "all asked for", |c| {
            names.iter().all(|name| questions(c, name) == 1)
        })
        .await;
    let calls: Vec<usize> = cluster
        .instances
        .calls()
        .iter()
        .map(|it| it.asked.len())
        .collect();
    assert!(calls[0] == 1 && calls.len() <= 3, "{calls:?}");
}

#[tokio::test(start_paused = true)]
async fn a_new_leader_begins_without_a_proof() {
    let cluster = cluster();
    cluster.instances.remove("n1");
    cluster.put(node_of("n1", Some("Unknown")));
    cluster.pass(SECOND * 4).await;
    assert_eq!(questions(&cluster, "n1"), 1);
    let cluster = cluster
        .after_a_crash()
        .with_lifecycle_loop(NodeLifecycleSettings::default());
    let took = cluster.gone("n1").await;
    assert!(took >= SECOND * 5, "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn a_loop_that_is_blocked_for_ten_minutes_is_named() {
    let cluster = cluster().with_node_loop(NodeSettings::default());
    cluster.put(new_node("n1"));
    set_ready(&cluster, "n1", "Unknown");
    cluster.pass(SECOND * 600).await;
    assert!(
        cluster.stalled().is_empty(),
        "a cloud that fails is no blocked controller"
    );
    cluster.instances.latency(SECOND * 3600);
    cluster.pass(SECOND * 660).await;
    assert_eq!(
        cluster.stalled(),
        ["cloud-node-lifecycle-controller", "cloud-node-controller"]
    );
}

#[tokio::test(start_paused = true)]
async fn many_nodes_at_a_slow_api_server_do_not_look_stuck() {
    let cluster = Cluster::new();
    cluster.slow_writes();
    for n in 0..700 {
        let name = format!("n{n:03}");
        cluster
            .instances
            .set(&name, present(metadata(&["10.1.0.1"]), PowerState::Off));
        cluster.put(node_of(&name, Some("Unknown")));
    }
    let cluster = cluster.with_lifecycle_loop(NodeLifecycleSettings::default());
    let took = cluster
        .without_a_stall(|c| (0..700).all(|n| c.taints(&format!("n{n:03}")) == [SHUTDOWN]))
        .await;
    assert!(took > SECOND * 600, "{took:?} is no test");
}

#[tokio::test(start_paused = true)]
async fn a_node_that_is_excluded_from_lifecycle_management_stays_until_the_label_goes() {
    let cluster = cluster();
    cluster.instances.remove("n1");
    let mut node = node_of("n1", Some("Unknown"));
    node["metadata"]["labels"] = json!({ "node.kubernetes.io/exclude-from-lifecycle-management": "" });
    cluster.put(node.clone());
    cluster.pass(SECOND * 120).await;
    assert!(cluster.exists("n1") && cluster.events("n1").is_empty());
    node["metadata"]["labels"] = json!({ "node.kubernetes.io/exclude-from-lifecycle-management": "false" });
    cluster.put(node);
    cluster.within(SECOND * 130, "gone", |c| !c.exists("n1")).await;
}
