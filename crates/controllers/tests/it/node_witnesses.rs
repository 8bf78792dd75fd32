//! When the instance that has a new Node's name is taken for the Node's.

use std::time::Duration;

use bowline_cloud_provider::{CloudError, InstanceAnswer, InstanceMetadata, Purpose};
use bowline_controllers::node::NodeSettings;
use serde_json::{Value, json};

use crate::cluster::{Cluster, SECOND, new_node, node_of};
use crate::instances::metadata;
use crate::node::{cluster, with};

const MINUTE: Duration = Duration::from_secs(60);

/// A Node that was initialised, and is Ready.
fn running(name: &str) -> Value {
    with(node_of(name, Some("True")), |node| {
        node["metadata"]["labels"] = json!({
            "node.kubernetes.io/instance-type": "flex-4",
            "topology.kubernetes.io/region": "r1",
        });
    })
}

/// The same, whose kubelet does not report any more.
fn lost(name: &str) -> Value {
    with(running(name), |node| {
        node["status"]["conditions"][0]["status"] = json!("Unknown");
    })
}

/// These Nodes, of which the cloud shows no instance, and a new one of whose name it shows one.
fn blind(cluster: &Cluster, nodes: impl IntoIterator<Item = Value>) {
    for node in nodes {
        cluster
            .instances
            .remove(node["metadata"]["name"].as_str().unwrap_or_default());
        cluster.put(node);
    }
    join(cluster);
}

fn join(cluster: &Cluster) {
    cluster.begin("new");
}

/// The calls in which the new Node was asked for, each with how many Nodes were asked for beside it.
fn questions(cluster: &Cluster) -> Vec<usize> {
    let calls = cluster.instances.calls();
    let about_new = calls
        .iter()
        .filter(|call| call.asked.iter().any(|(name, _)| name == "new"));
    about_new.map(|call| call.asked.len() - 1).collect()
}

#[tokio::test(start_paused = true)]
async fn a_name_is_not_believed_of_a_cloud_that_shows_no_instance_of_the_other_nodes() {
    let cluster = cluster();
    blind(&cluster, [running("a"), running("b")]);
    cluster.pass(MINUTE * 10).await;
    assert!(!cluster.is_initialized("new"));
    // As long as one of them is Ready.
    cluster.put(lost("a"));
    cluster.pass(MINUTE * 10).await;
    assert!(!cluster.is_initialized("new"));
    assert!(cluster.writes() == 0);
    let text = "Warning NodeInitFailed: failed to get instance metadata for node new: the cloud has an instance of this name, but with these credentials it shows none of the instances of the initialised nodes. Check that the credentials belong to the project of this cluster, and leave the nodes as they are until that is known";
    let events = cluster.texts("new");
    assert_eq!(events, [text], "once");
    // The right credentials, within the longest distance of two tries.
    cluster.instances.run("b", InstanceMetadata::default());
    cluster.initialized_within(MINUTE + SECOND * 10, "new").await;
}

#[tokio::test(start_paused = true)]
async fn a_name_is_believed_where_too_little_speaks_against_it() {
    let unlabelled = |name| {
        with(running(name), |node| {
            node["metadata"]["labels"] = json!({"topology.kubernetes.io/zone": "by-hand"});
        })
    };
    let waiting = |name| {
        with(running(name), |node| {
            node["spec"]["taints"] = new_node(name)["spec"]["taints"].clone();
        })
    };
    let nameless = |name| {
        with(running(name), |node| {
            node["spec"] = json!({});
        })
    };
    for (case, nodes) in [
        ("one may have gone a moment ago", vec![running("a")]),
        (
            "no cloud has said anything of them",
            vec![unlabelled("a"), unlabelled("b")],
        ),
        ("they are not initialised", vec![waiting("a"), waiting("b")]),
        ("they may not run", vec![lost("a"), lost("b")]),
        ("they name no instance", vec![nameless("a"), nameless("b")]),
    ] {
        let cluster = cluster();
        blind(&cluster, nodes);
        cluster
            .within(SECOND * 5, case, |c| c.is_initialized("new"))
            .await;
    }
}

#[tokio::test(start_paused = true)]
async fn nodes_of_another_cloud_and_a_cloud_that_fails_for_them_say_nothing() {
    for answer in [
        Ok(InstanceAnswer::Foreign),
        Err(CloudError::transient("bad gateway")),
    ] {
        let cluster = cluster();
        for name in ["a", "b"] {
            cluster.put(running(name));
            cluster.instances.set(name, answer.clone());
        }
        join(&cluster);
        cluster.initialized("new").await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_node_that_names_its_instance_needs_no_witness_and_one_that_names_another_does() {
    for (named, is_believed) in [("fake://1", true), ("fake://2", false)] {
        let cluster = cluster();
        for name in ["a", "b"] {
            cluster.instances.remove(name);
            cluster.put(running(name));
        }
        cluster.instances.run("new", metadata(&["10.1.0.1"]));
        cluster.put(with(new_node("new"), |node| {
            node["spec"]["providerID"] = json!(named);
        }));
        cluster.pass(MINUTE).await;
        assert_eq!(cluster.is_initialized("new"), is_believed, "{named}");
        let is_asked = !cluster.instances.asked("a", Purpose::CredentialCheck).is_empty();
        assert_eq!(is_asked, !is_believed, "{named}");
    }
}

#[tokio::test(start_paused = true)]
async fn whom_the_others_hold_back_is_tried_when_one_of_them_goes() {
    let cluster = cluster();
    blind(&cluster, [running("a"), running("b")]);
    cluster.pass(MINUTE * 10).await; // the tries are a minute apart by now
    cluster.delete("a");
    cluster.initialized("new").await;
}

#[tokio::test(start_paused = true)]
async fn upstreams_behaviour_believes_every_name() {
    let cluster = Cluster::new().with_node_loop(NodeSettings {
        needs_witnesses: false,
        ..NodeSettings::default()
    });
    blind(&cluster, [running("a"), running("b")]);
    cluster.initialized("new").await;
    assert_eq!(cluster.instances.asked("a", Purpose::CredentialCheck), []);
}

#[tokio::test(start_paused = true)]
async fn ten_are_asked_for_in_the_same_call_and_all_only_if_none_of_them_is_seen() {
    let name = |index: usize| format!("n{index:02}");
    for (seen, calls) in [(0, vec![10]), (30, vec![10, 40])] {
        let cluster = cluster();
        for index in 0..40 {
            cluster.instances.remove(&name(index));
            cluster.put(running(&name(index)));
        }
        cluster.instances.run(&name(seen), InstanceMetadata::default());
        join(&cluster);
        cluster.initialized("new").await;
        assert_eq!(questions(&cluster), calls, "n{seen:02} is seen");
    }
}

#[tokio::test(start_paused = true)]
async fn an_instance_and_what_speaks_for_it_come_from_one_listing() {
    let cluster = cluster();
    let names: Vec<String> = (0..12).map(|index| format!("n{index:02}")).collect();
    for name in &names {
        cluster.instances.remove(name);
        cluster.put(running(name));
    }
    cluster.pass(SECOND).await;
    cluster.instances.latency(SECOND);
    join(&cluster);
    cluster
        .within(SECOND * 5, "asked", |c| questions(c).len() == 1)
        .await;
    // The right credentials, while the answer to the wrong ones is on its way.
    for name in &names {
        cluster.instances.run(name, InstanceMetadata::default());
    }
    let right = InstanceMetadata {
        provider_id: Some("fake://right".into()),
        ..metadata(&["10.1.0.1"])
    };
    cluster.instances.run("new", right);
    cluster.initialized("new").await;
    assert_eq!(cluster.node("new")["spec"]["providerID"], "fake://right");
}
