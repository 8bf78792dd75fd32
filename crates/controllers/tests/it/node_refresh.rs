//! The periodic pass of the cloud-node controller, and what it does about labels.

use bowline_base::log::Log;
use bowline_cloud_provider::{CloudError, InstanceAnswer, InstanceMetadata};
use bowline_controllers::node::NodeSettings;
use bowline_kube_api::{Effect, Status};
use serde_json::json;
use tracing::Level;

use crate::cluster::{Cluster, SECOND, new_node, node_of, node_patch};
use crate::instances::metadata;
use crate::node::{cluster, cluster_with_pass_every, provided, with};

const TYPE: &str = "node.kubernetes.io/instance-type";
const TYPE_BETA: &str = "beta.kubernetes.io/instance-type";

#[tokio::test(start_paused = true)]
async fn the_periodic_pass_keeps_addresses_true() {
    let cluster = cluster_with_pass_every(SECOND * 2);
    cluster
        .instances
        .run("n1", metadata(&["10.1.0.1", "203.0.113.1"]));
    cluster.put(provided(
        with(new_node("n1"), |node| {
            node["status"]["addresses"] = json!([{"type": "Hostname", "address": "h1"}]);
        }),
        "10.1.0.1",
    ));
    cluster.initialized("n1").await;
    assert_eq!(
        cluster.addresses("n1"),
        ["InternalIP 10.1.0.1", "ExternalIP 203.0.113.1", "Hostname h1"]
    );
    cluster
        .instances
        .run("n1", metadata(&["10.1.0.1", "203.0.113.9"]));
    cluster
        .within(SECOND * 5, "the new address", |c| {
            c.addresses("n1") == ["InternalIP 10.1.0.1", "ExternalIP 203.0.113.9", "Hostname h1"]
        })
        .await;
    cluster.instances.run("n1", metadata(&[]));
    cluster.pass(SECOND * 5).await;
    assert_eq!(
        cluster.addresses("n1").len(),
        3,
        "no address named: nothing said about addresses"
    );
}

#[tokio::test(start_paused = true)]
async fn further_labels_follow_the_cloud_behind_their_gate_alone() {
    const HOST: &str = "topology.example.com/host";
    let on_host = |host: &str| InstanceMetadata {
        additional_labels: [(HOST.to_owned(), host.to_owned())].into(),
        ..metadata(&["10.1.0.1"])
    };
    for (keeps, moved) in [(false, "a"), (true, "b")] {
        let cluster = Cluster::new().with_node_loop(NodeSettings {
            node_status_update_frequency: SECOND * 2,
            keeps_additional_labels: keeps,
            ..NodeSettings::default()
        });
        cluster.instances.run("n1", on_host("a"));
        cluster.put(new_node("n1"));
        cluster.initialized("n1").await;
        assert!(cluster.is_labelled("n1", HOST, "a"));
        cluster.instances.run("n1", on_host("b"));
        cluster.pass(SECOND * 5).await;
        assert!(cluster.is_labelled("n1", HOST, moved));
        cluster.instances.run("n1", metadata(&["10.1.0.1"]));
        let writes = cluster.writes();
        cluster.pass(SECOND * 5).await;
        assert!(cluster.is_labelled("n1", HOST, moved), "it stays");
        assert_eq!(cluster.writes(), writes);
    }
}

#[tokio::test(start_paused = true)]
async fn a_node_that_may_not_be_written_to_is_told_of_once() {
    let (log, _while_it_lasts) = Log::listen(Level::WARN);
    let cluster = cluster_with_pass_every(SECOND);
    cluster.join("n1").await;
    let larger = |kind: &str| InstanceMetadata {
        instance_type: kind.into(),
        ..metadata(&["10.1.0.1"])
    };
    for (kind, words) in [("flex-8", 1), ("flex-16", 2)] {
        let forbidden = Status::new(403, "Forbidden", "no");
        cluster.api.faults().fail_next(3, "patch", "nodes", forbidden);
        cluster.instances.run("n1", larger(kind));
        cluster
            .within(SECOND * 10, "the new type", |c| c.is_labelled("n1", TYPE, kind))
            .await;
        assert_eq!(log.count("Failed to refresh a node"), words);
    }
}

#[tokio::test(start_paused = true)]
async fn both_label_families_agree_again_and_the_present_one_is_the_master() {
    let cluster = cluster();
    cluster.join("n1").await;
    cluster.edit("n1", |node| node["metadata"]["labels"][TYPE] = json!("mine"));
    cluster
        .soon("agreed", |c| c.is_labelled("n1", TYPE_BETA, "mine"))
        .await;
    cluster.edit("n1", |node| {
        node["metadata"]["labels"][TYPE_BETA] = json!("wrong")
    });
    cluster
        .soon("agreed", |c| c.is_labelled("n1", TYPE_BETA, "mine"))
        .await;
    cluster.edit("n1", |node| {
        node["metadata"]["labels"].as_object_mut().unwrap().remove(TYPE);
    });
    cluster
        .soon("agreed", |c| c.is_labelled("n1", TYPE, "mine"))
        .await;
    assert_eq!(cluster.questions(), 1, "no question is needed for it");
    cluster.pass(SECOND * 310).await;
    for key in [TYPE, TYPE_BETA] {
        assert!(cluster.is_labelled("n1", key, "flex-4"), "what is true");
    }
}

#[tokio::test(start_paused = true)]
async fn both_label_families_agree_though_the_write_conflicts_at_first() {
    let (log, _while_it_lasts) = Log::listen(Level::WARN);
    let cluster = cluster();
    cluster.join("n1").await;
    cluster.pass(SECOND).await;
    let conflict = Status::new(409, "Conflict", "the object has been modified");
    let forbidden = Status::new(403, "Forbidden", "no");
    // Only what is no matter of a moment is worth a word, and one word until it is over.
    for (status, times, words) in [(conflict, 1, 0), (forbidden.clone(), 3, 1), (forbidden, 3, 2)] {
        cluster.api.faults().fail_next(times, "patch", "nodes", status);
        let label = format!("mine-{words}");
        cluster.edit("n1", |node| node["metadata"]["labels"][TYPE] = json!(label));
        cluster
            .within(SECOND * 10, "agreed", |c| c.is_labelled("n1", TYPE_BETA, &label))
            .await;
        assert_eq!(log.count("Failed to put back the labels"), words);
    }
}

#[tokio::test(start_paused = true)]
async fn both_label_families_agree_no_sooner_than_a_busy_api_server_says() {
    let cluster = cluster();
    cluster.join("n1").await;
    cluster.pass(SECOND).await;
    let busy = Status::too_many_requests(20);
    cluster.api.faults().fail_next(1, "patch", "nodes", busy);
    cluster.edit("n1", |node| node["metadata"]["labels"][TYPE] = json!("mine"));
    let waited = cluster
        .within(SECOND * 30, "agreed", |c| c.is_labelled("n1", TYPE_BETA, "mine"))
        .await;
    assert!(waited >= SECOND * 20, "{waited:?}");
}

#[tokio::test(start_paused = true)]
async fn nothing_is_written_when_nothing_changes() {
    let cluster = cluster_with_pass_every(SECOND);
    cluster
        .instances
        .run("n1", metadata(&["10.1.0.1", "fd00::1", "203.0.113.1"]));
    cluster.put(new_node("n1"));
    cluster.initialized("n1").await;
    let written = cluster.writes();
    cluster.pass(SECOND * 10).await;
    assert_eq!(cluster.writes(), written);
    assert!(cluster.questions() >= 10, "it was looked at");
}

#[tokio::test(start_paused = true)]
async fn a_node_that_becomes_foreign_or_fails_stays_as_it_is() {
    let cluster = cluster_with_pass_every(SECOND);
    cluster.join("n1").await;
    let before = cluster.node("n1");
    let (log, _while_it_lasts) = Log::listen(Level::WARN);
    for answer in [
        Ok(InstanceAnswer::Foreign),
        Err(CloudError::transient("bad gateway")),
    ] {
        cluster.instances.set("n1", answer);
        cluster.pass(SECOND * 3).await;
    }
    assert_eq!(log.count("Some nodes were not refreshed"), 1);
    cluster.instances.remove("n1");
    cluster.pass(SECOND * 3).await;
    assert_eq!(log.count("The cloud shows no instance of any node"), 1);
    assert_eq!(cluster.node("n1"), before);
    cluster.instances.run("n2", metadata(&["10.1.0.2"]));
    cluster.put(new_node("n2"));
    cluster.initialized("n2").await;
}

#[tokio::test(start_paused = true)]
async fn one_pass_over_many_nodes_is_one_question() {
    let cluster = Cluster::new();
    for n in 0..200 {
        let name = format!("n{n}");
        cluster.instances.run(&name, metadata(&["10.1.0.1"]));
        cluster.put(node_of(&name, Some("True")));
    }
    let cluster = cluster.with_node_loop(NodeSettings::default());
    cluster
        .soon("all addresses", |c| {
            (0..200).all(|n| !c.addresses(&format!("n{n}")).is_empty())
        })
        .await;
    assert_eq!(cluster.questions(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_new_leader_writes_nothing_when_nothing_changed() {
    let cluster = cluster();
    cluster.join("n1").await;
    let cluster = cluster.after_a_crash();
    cluster.api.journal().clear();
    let cluster = cluster.with_node_loop(NodeSettings::default());
    cluster.pass(SECOND * 900).await;
    assert!(cluster.api.journal().writes().is_empty());
    assert!(cluster.questions() > 3);
}

#[tokio::test(start_paused = true)]
async fn the_answer_about_a_node_is_not_written_to_its_successor_of_the_same_name() {
    let cluster = cluster_with_pass_every(SECOND * 10);
    cluster.join("n1").await;
    cluster.instances.run("n1", metadata(&["10.1.0.99"])); // what the pass is told is the old instance's
    cluster.instances.latency(SECOND);
    let calls = cluster.questions();
    cluster
        .within(SECOND * 11, "the pass asks", |c| c.questions() > calls)
        .await;
    cluster.delete("n1");
    cluster.put(node_of("n1", Some("True")));
    cluster.instances.run("n1", metadata(&[]));
    let writes = cluster.writes();
    cluster.pass(SECOND * 5).await;
    assert_eq!(cluster.addresses("n1"), Vec::<String>::new());
    assert_eq!(cluster.writes(), writes);
}

#[tokio::test(start_paused = true)]
async fn a_node_that_is_ready_without_an_instance_is_told_of_once() {
    let cluster = cluster_with_pass_every(SECOND * 10);
    for name in ["n1", "n2"] {
        cluster.instances.run(name, metadata(&["10.1.0.1"]));
        cluster.put(with(new_node(name), |node| {
            node["status"]["conditions"] = json!([{"type": "Ready", "status": "True"}]);
        }));
        cluster.initialized(name).await;
    }
    let told = |cluster: &Cluster| cluster.count_events("InstanceMissing");
    cluster.instances.remove("n1");
    cluster.pass(SECOND * 12).await;
    assert_eq!(told(&cluster), 0, "it may be on its way");
    cluster.pass(SECOND * 60).await;
    assert_eq!(told(&cluster), 1);
    assert_eq!(cluster.series("nodes_without_instance"), ["1"]);
    // It is there again, and goes again.
    cluster.instances.run("n1", metadata(&["10.1.0.1"]));
    cluster.pass(SECOND * 12).await;
    assert_eq!(cluster.series("nodes_without_instance"), ["0"]);
    cluster.instances.remove("n1");
    cluster.pass(SECOND * 30).await;
    assert_eq!(told(&cluster), 2);
    // Where nothing is shown at all, it is about the credentials.
    cluster.instances.run("n1", metadata(&["10.1.0.1"]));
    cluster.pass(SECOND * 12).await;
    for name in ["n1", "n2"] {
        cluster.instances.remove(name);
    }
    cluster.pass(SECOND * 60).await;
    assert_eq!(told(&cluster), 2);
    assert_eq!(cluster.series("nodes_without_instance"), ["0"]);
}

#[tokio::test(start_paused = true)]
async fn a_node_that_was_never_labelled_and_has_no_instance_is_told_of_and_fills_no_log() {
    let (log, _while_it_lasts) = Log::listen(Level::WARN);
    let cluster = Cluster::new();
    cluster.instances.run("n2", metadata(&["10.1.0.2"]));
    for name in ["n1", "n2"] {
        cluster.put(node_of(name, Some("True"))); // the cloud knows nothing of n1
    }
    let cluster = cluster.with_node_loop(NodeSettings {
        node_status_update_frequency: SECOND * 10,
        ..NodeSettings::default()
    });
    cluster.pass(SECOND * 120).await;
    assert_eq!(cluster.count_events("InstanceMissing"), 1);
    assert_eq!(log.count("Some nodes were not refreshed"), 0);
    assert_eq!(log.count("A node is ready and has no instance"), 1);
    assert_eq!(cluster.series("nodes_without_instance"), ["1"]);
}

#[tokio::test(start_paused = true)]
async fn who_changes_addresses_and_labels_back_is_named_and_met_less_and_less_often() {
    let cluster = cluster_with_pass_every(SECOND);
    cluster.join("n1").await;
    let before = cluster.writes();
    for _ in 0..1200 {
        cluster.edit("n1", |node| {
            node["status"]["addresses"] = json!([{"type": "InternalIP", "address": "10.9.9.9"}]);
            for key in [TYPE, TYPE_BETA] {
                node["metadata"]["labels"][key] = json!("mine");
            }
        });
        cluster.pass(SECOND).await;
    }
    // Of each one at first, five at once, then after 5, 10, 20, 40, 80, 160, 300 and 300 s.
    let writes = cluster.writes() - before;
    assert!((26..=28).contains(&writes), "{writes}");
    assert_eq!(cluster.count_events("ChangedBack"), 2);
}

#[tokio::test(start_paused = true)]
async fn refused_addresses_do_not_keep_labels_from_following_the_cloud() {
    let cluster = cluster_with_pass_every(SECOND * 2);
    cluster.join("n1").await;
    let refused = Status::new(422, "Invalid", "denied by a policy");
    let refused = node_patch(Effect::Answer(refused));
    cluster.inject(refused.subresource("status"));
    let larger = InstanceMetadata {
        instance_type: "flex-8".into(),
        ..metadata(&["10.1.0.9"])
    };
    cluster.instances.run("n1", larger);
    cluster
        .within(SECOND * 3, "the new type", |c| {
            c.is_labelled("n1", TYPE, "flex-8")
        })
        .await;
    cluster.pass(SECOND * 10).await;
    assert_eq!(cluster.count_events("NodeWriteRefused"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_node_that_is_removed_is_not_told_of_as_one_without_an_instance() {
    let cluster = cluster_with_pass_every(SECOND * 10);
    for name in ["n1", "n2"] {
        cluster.begin(name);
        cluster.initialized(name).await;
    }
    cluster.instances.remove("n1");
    cluster.edit("n1", |node| {
        node["status"]["conditions"] = json!([{"type": "Ready", "status": "Unknown"}]);
    });
    cluster.pass(SECOND * 60).await;
    assert_eq!(cluster.count_events("InstanceMissing"), 0);
}
