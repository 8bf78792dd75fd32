//! The cloud-node controller against an API server and a cloud in memory.

use std::time::Duration;

use bowline_cloud_provider::{CloudError, ErrorKind, InstanceAnswer, InstanceMetadata, Purpose};
use bowline_controllers::node::NodeSettings;
use bowline_kube_api::{Effect, Fault, Status};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::cluster::{Cluster, SECOND, new_node, node_of};
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

pub(crate) async fn initialized(cluster: &Cluster, name: &str) {
    cluster.soon("initialized", |c| c.is_initialized(name)).await;
}

#[tokio::test(start_paused = true)]
async fn a_new_node_gets_everything_with_one_question() {
    let cluster = cluster();
    cluster.instances.run("n1", metadata(&["10.1.0.1"]));
    cluster.put(new_node("n1"));
    initialized(&cluster, "n1").await;
    assert_eq!(cluster.node("n1")["spec"]["providerID"], "fake://1");
    for (key, value) in [
        (TYPE, "flex-4"),
        (TYPE_BETA, "flex-4"),
        (ZONE, "z1"),
        ("failure-domain.beta.kubernetes.io/zone", "z1"),
        ("topology.kubernetes.io/region", "r1"),
        ("failure-domain.beta.kubernetes.io/region", "r1"),
    ] {
        assert_eq!(cluster.label("n1", key).as_deref(), Some(value), "{key}");
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
    assert_eq!(cluster.instances.calls().len(), 1);
    assert_eq!(cluster.node_writes().len(), 2, "the addresses and the rest");
}

#[tokio::test(start_paused = true)]
async fn every_uninitialized_taint_goes_and_no_other() {
    let cluster = cluster();
    cluster.instances.run("n1", metadata(&["10.1.0.1"]));
    cluster.put(with(new_node("n1"), |node| {
        node["spec"]["taints"] = json!([
            {"key": "other", "value": "x", "effect": "NoSchedule"},
            {"key": "node.cloudprovider.kubernetes.io/uninitialized", "value": "foo", "effect": "NoExecute"},
            {"key": "more", "effect": "NoExecute"},
        ]);
    }));
    initialized(&cluster, "n1").await;
    assert_eq!(cluster.taints("n1"), ["other", "more"]);
}

#[tokio::test(start_paused = true)]
async fn the_ips_given_to_the_kubelet_come_first_and_hide_others_of_their_type() {
    let cluster = cluster();
    for (name, ips) in [("both", "10.1.0.1,fd00::1"), ("one", "10.1.0.1")] {
        cluster
            .instances
            .run(name, metadata(&["10.1.0.1", "203.0.113.1", "fd00::1"]));
        cluster.put(provided(new_node(name), ips));
        initialized(&cluster, name).await;
    }
    assert_eq!(
        cluster.addresses("both"),
        [
            "InternalIP 10.1.0.1",
            "InternalIP fd00::1",
            "ExternalIP 203.0.113.1"
        ]
    );
    assert_eq!(
        cluster.addresses("one"),
        ["InternalIP 10.1.0.1", "ExternalIP 203.0.113.1"]
    );
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
    initialized(&cluster, "unknown").await;
    assert!(!cluster.is_initialized("blank"));
}

#[tokio::test(start_paused = true)]
async fn further_labels_never_take_the_place_of_others() {
    let cluster = cluster();
    let labels = [
        ("example.com/rack", "a1"),
        ("node.kubernetes.io/bad", "x"),
        ("foo.k8s.io/y", "z"),
        ("existing", "cloud"),
    ];
    cluster.instances.run(
        "n1",
        InstanceMetadata {
            additional_labels: labels
                .map(|(key, value)| (key.to_owned(), value.to_owned()))
                .into(),
            ..metadata(&["10.1.0.1"])
        },
    );
    cluster.put(with(new_node("n1"), |node| {
        node["metadata"]["labels"]["existing"] = json!("kubelet");
    }));
    initialized(&cluster, "n1").await;
    assert_eq!(cluster.label("n1", "example.com/rack").as_deref(), Some("a1"));
    assert_eq!(cluster.label("n1", "existing").as_deref(), Some("kubelet"));
    assert_eq!(cluster.label("n1", "node.kubernetes.io/bad"), None);
    assert_eq!(cluster.label("n1", "foo.k8s.io/y"), None);
}

#[tokio::test(start_paused = true)]
async fn a_provider_id_comes_from_the_cloud_or_is_there_already() {
    let cluster = cluster();
    let without = InstanceMetadata {
        provider_id: None,
        ..metadata(&["10.1.0.1"])
    };
    cluster.instances.run("bare", without.clone());
    cluster.instances.run("named", without);
    cluster.put(new_node("bare"));
    cluster.put(with(new_node("named"), |node| {
        node["spec"]["providerID"] = json!("fake://x")
    }));
    initialized(&cluster, "named").await;
    assert_eq!(cluster.node("named")["spec"]["providerID"], "fake://x");
    cluster.pass(SECOND * 10).await;
    assert!(!cluster.is_initialized("bare"));
    assert!(
        cluster.instances.asked("bare", Purpose::Metadata).len() > 2,
        "tried again"
    );
}

#[tokio::test(start_paused = true)]
async fn another_provider_id_is_left_and_told_once() {
    let cluster = cluster_with_pass_every(SECOND * 5);
    cluster.instances.run("n1", metadata(&["10.1.0.1"]));
    cluster.put(with(new_node("n1"), |node| {
        node["spec"]["providerID"] = json!("fake://old")
    }));
    initialized(&cluster, "n1").await;
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
    assert_eq!(cluster.instances.calls().len(), 1);
    assert!(cluster.node_writes().is_empty());
    cluster.edit("n1", |node| node["metadata"]["labels"]["owner"] = json!("them"));
    cluster
        .soon("asked for again", |c| c.instances.calls().len() == 2)
        .await;
    assert_eq!(
        cluster.events("n1")[0].0,
        "Warning ForeignProviderID: The provider ID \"k3s://n1\" is none of this cloud, so the node is not initialized here \
         and keeps its uninitialized taint until the manager of its cloud takes the taint off"
    );
    assert_eq!(cluster.count_events("ForeignProviderID"), 1);
    cluster.instances.run("n1", metadata(&["10.1.0.1"]));
    cluster.edit("n1", |node| node["metadata"]["labels"]["owner"] = json!("us"));
    initialized(&cluster, "n1").await;
}

#[tokio::test(start_paused = true)]
async fn a_cloud_that_is_down_delays_an_initialisation_and_nothing_is_written_before() {
    let cluster = cluster();
    cluster.instances.run("n1", metadata(&["10.1.0.1"]));
    cluster
        .instances
        .outage(Some(CloudError::transient("bad gateway")));
    cluster.put(new_node("n1"));
    cluster
        .within(SECOND * 10, "three tries", |c| c.instances.calls().len() == 3)
        .await;
    assert!(cluster.node_writes().is_empty());
    cluster.instances.outage(None);
    cluster
        .within(SECOND * 5, "initialized", |c| c.is_initialized("n1"))
        .await;
    cluster.soon("both events", |c| c.events("n1").len() == 2).await;
    assert_eq!(
        cluster.events("n1")[0].0,
        "Warning NodeInitFailed: failed to get instance metadata for node n1: bad gateway"
    );
    assert_eq!(cluster.count_events("NodeInitFailed"), 1);
}

#[tokio::test(start_paused = true)]
async fn tries_are_a_second_to_a_minute_apart_whatever_the_kubelet_posts() {
    let cluster = cluster();
    cluster
        .instances
        .outage(Some(CloudError::transient("bad gateway")));
    cluster.put(new_node("n1"));
    for _ in 0..100 {
        cluster.pass(SECOND * 10).await;
        cluster.edit("n1", |node| {
            node["status"]["conditions"][0]["reason"] = json!(format!("{:?}", tokio::time::Instant::now()));
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
    cluster.instances.outage(Some(CloudError::new(
        ErrorKind::Throttled { after },
        "too many requests",
    )));
    cluster.put(new_node("n1"));
    cluster.soon("asked", |c| !c.instances.calls().is_empty()).await;
    cluster.instances.outage(None);
    cluster
        .within(after + SECOND, "initialized", |c| c.is_initialized("n1"))
        .await;
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
    cluster.api.faults().inject(fault);
    cluster.put(new_node("n1"));
    cluster.pass(SECOND * 120).await;
    let asked = cluster.instances.asked("n1", Purpose::Metadata);
    assert!((4..12).contains(&asked.len()), "{}", asked.len());
    assert!(asked[1] - asked[0] >= SECOND * 3);
    cluster.api.faults().clear();
    cluster
        .within(SECOND * 62, "initialized", |c| c.is_initialized("n1"))
        .await;
}

#[tokio::test(start_paused = true)]
async fn the_periodic_pass_leaves_nodes_that_wait_to_the_queue() {
    let cluster = cluster_with_pass_every(SECOND);
    cluster.instances.run("n1", metadata(&["10.1.0.1"]));
    cluster.put(provided(new_node("n1"), "10.9.9.9"));
    cluster.pass(SECOND * 300).await;
    let asked = cluster.instances.asked("n1", Purpose::Metadata).len();
    assert!(asked < 15, "{asked} questions, as many as the back-off allows");
}

#[tokio::test(start_paused = true)]
async fn a_node_without_its_addresses_keeps_the_taint() {
    let cluster = cluster();
    cluster.instances.run("n1", metadata(&["10.1.0.1"]));
    cluster.api.faults().inject(
        Fault::new(Effect::Answer(Status::new(
            403,
            "Forbidden",
            "admission webhook denied the request",
        )))
        .verb("patch")
        .resource("nodes")
        .subresource("status")
        .times(3),
    );
    cluster.put(new_node("n1"));
    cluster
        .within(SECOND * 10, "three tries", |c| c.node_writes().len() == 3)
        .await;
    assert!(!cluster.is_initialized("n1"));
    assert_eq!(cluster.node("n1")["spec"]["providerID"], Value::Null);
    cluster
        .within(SECOND * 10, "initialized", |c| c.is_initialized("n1"))
        .await;
    assert_eq!(cluster.count_events("NodeInitFailed"), 1);
}

fn patches(code: u16, reason: &str) -> Fault {
    let status = Status::new(code, reason, "denied by a policy");
    Fault::new(Effect::Answer(status)).verb("patch").resource("nodes")
}

#[tokio::test(start_paused = true)]
async fn an_address_that_the_cloud_names_twice_is_shown_once() {
    let cluster = cluster();
    cluster
        .instances
        .run("n1", metadata(&["10.1.0.1", "10.1.0.1", "10.1.0.2"]));
    cluster.put(new_node("n1"));
    initialized(&cluster, "n1").await;
    assert_eq!(
        cluster.addresses("n1"),
        ["InternalIP 10.1.0.1", "InternalIP 10.1.0.2"]
    );
    assert_eq!(cluster.node_writes().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn refused_addresses_keep_a_node_from_nothing_else_and_are_told_of() {
    for (code, reason, limit) in [(422, "Invalid", 3), (403, "Forbidden", 30)] {
        let cluster = cluster();
        cluster.instances.run("n1", metadata(&["10.1.0.1"]));
        cluster
            .api
            .faults()
            .inject(patches(code, reason).subresource("status"));
        cluster.put(new_node("n1"));
        cluster
            .within(SECOND * limit, "initialized", |c| c.is_initialized("n1"))
            .await;
        assert_eq!(cluster.node("n1")["spec"]["providerID"], "fake://1");
        assert_eq!(cluster.label("n1", TYPE).as_deref(), Some("flex-4"));
        cluster.pass(SECOND * 700).await;
        let told = cluster.count_events("NodeWriteRefused");
        assert!((1..=2).contains(&told), "at most once in ten minutes: {told}");
        assert_eq!(cluster.count_events("NodeWithoutAddress"), 1);
        let events = cluster.events("n1");
        let told = "and it goes on without the addresses: denied by a policy";
        assert!(events.iter().any(|(text, _)| text.ends_with(told)), "{events:?}");
        cluster.api.faults().clear();
        cluster
            .within(SECOND * 301, "the next pass", |c| {
                c.addresses("n1") == ["InternalIP 10.1.0.1"]
            })
            .await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_label_that_kubernetes_does_not_take_keeps_a_node_from_nothing_else() {
    let cluster = cluster();
    let odd = InstanceMetadata {
        zone: "Zürich 1".into(),
        ..metadata(&["10.1.0.1"])
    };
    cluster.instances.run("n1", odd);
    cluster.put(new_node("n1"));
    initialized(&cluster, "n1").await;
    assert_eq!(cluster.label("n1", TYPE).as_deref(), Some("flex-4"));
    assert_eq!(cluster.label("n1", ZONE), None);
    assert_eq!(cluster.node_writes().len(), 2);
    cluster.pass(SECOND * 700).await;
    assert_eq!(
        cluster.count_events("NodeWriteRefused"),
        2,
        "counted up after ten minutes"
    );
    assert_eq!(cluster.node_writes().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_label_that_is_refused_keeps_a_node_from_nothing_else() {
    let cluster = cluster();
    cluster.instances.run("n1", metadata(&["10.1.0.1"]));
    // The write as a whole; then none is changed, the provider ID, six labels by name, the taints.
    cluster
        .api
        .faults()
        .inject(patches(422, "Invalid").subresource("").times(1));
    cluster
        .api
        .faults()
        .inject(patches(422, "Invalid").subresource("").after(2).times(1));
    cluster.put(new_node("n1"));
    initialized(&cluster, "n1").await;
    assert_eq!(cluster.node("n1")["spec"]["providerID"], "fake://1");
    assert_eq!(cluster.label("n1", TYPE).as_deref(), Some("flex-4"));
    cluster
        .soon("told", |c| c.count_events("NodeWriteRefused") == 1)
        .await;
    assert_eq!(cluster.count_events("NodeInitFailed"), 0);
    assert!(cluster.events("n1").iter().any(|(text, _)| text.contains(
        "goes on without the label beta.kubernetes.io/instance-type=\"flex-4\": denied by a policy"
    )));
    assert_eq!(cluster.node_writes().len(), 1 + 1 + 1 + 7 + 1);
}

#[tokio::test(start_paused = true)]
async fn a_provider_id_that_is_refused_keeps_the_taint_and_the_rest_is_written() {
    let cluster = cluster();
    cluster.instances.run("n1", metadata(&["10.1.0.1"]));
    cluster
        .api
        .faults()
        .inject(patches(403, "Forbidden").subresource("").times(1));
    cluster
        .api
        .faults()
        .inject(patches(403, "Forbidden").subresource("").after(1).times(1));
    cluster.put(new_node("n1"));
    cluster
        .soon("told", |c| c.count_events("NodeInitFailed") == 1)
        .await;
    assert_eq!(
        cluster.events("n1")[0].0,
        "Warning NodeInitFailed: failed to write the provider ID of node n1: denied by a policy"
    );
    assert!(!cluster.is_initialized("n1"));
    assert_eq!(cluster.label("n1", ZONE).as_deref(), Some("z1"));
    cluster
        .within(SECOND * 3, "the next try", |c| c.is_initialized("n1"))
        .await;
    assert_eq!(cluster.node("n1")["spec"]["providerID"], "fake://1");
}

#[tokio::test(start_paused = true)]
async fn where_every_write_is_refused_its_parts_are_not_tried() {
    let cluster = cluster();
    cluster.instances.run("n1", metadata(&["10.1.0.1"]));
    cluster
        .api
        .faults()
        .inject(patches(403, "Forbidden").subresource(""));
    cluster.put(new_node("n1"));
    cluster.pass(SECOND / 2).await;
    assert_eq!(cluster.node_writes().len(), 3, "addresses, all, and nothing");
}

#[tokio::test(start_paused = true)]
async fn a_node_that_is_left_without_an_address_is_told_of_until_it_has_one() {
    let cluster = cluster_with_pass_every(SECOND * 10);
    cluster.instances.run("n1", metadata(&[]));
    cluster.put(with(new_node("n1"), |node| {
        node["status"]["addresses"] = json!([{"type": "Hostname", "address": "n1"}]);
    }));
    initialized(&cluster, "n1").await;
    cluster.pass(SECOND * 60).await;
    let told = |cluster: &Cluster| cluster.count_events("NodeWithoutAddress");
    assert_eq!(told(&cluster), 1);
    cluster.instances.run("n1", metadata(&["10.1.0.1"]));
    cluster
        .within(SECOND * 11, "an address", |c| c.addresses("n1").len() == 2)
        .await;
    cluster.pass(SECOND * 60).await;
    assert_eq!(told(&cluster), 1);
}

#[tokio::test(start_paused = true)]
async fn a_node_that_changes_meanwhile_is_read_again_and_keeps_the_others_change() {
    let cluster = cluster();
    cluster.instances.run("n1", metadata(&["10.1.0.1"]));
    cluster.instances.latency(SECOND);
    cluster.api.faults().inject(
        // The taint patch is late, and somebody adds a taint before it arrives.
        Fault::new(Effect::Delay(SECOND))
            .verb("patch")
            .resource("nodes")
            .subresource("")
            .times(1),
    );
    cluster.put(new_node("n1"));
    cluster
        .soon("the addresses", |c| !c.addresses("n1").is_empty())
        .await;
    cluster.edit("n1", |node| {
        let taints = node["spec"]["taints"].as_array_mut().unwrap();
        taints.push(json!({"key": "late", "effect": "NoExecute"}));
    });
    initialized(&cluster, "n1").await;
    assert_eq!(cluster.taints("n1"), ["late"]);
    let conflicts = cluster
        .node_writes()
        .iter()
        .filter(|write| write.status == 409)
        .count();
    assert_eq!(conflicts, 1);
    assert_eq!(
        cluster.instances.asked("n1", Purpose::Metadata).len(),
        1,
        "no second question"
    );
}

#[tokio::test(start_paused = true)]
async fn a_node_that_is_tainted_anew_while_the_watch_is_away_is_initialised_again() {
    let cluster = cluster();
    cluster.instances.run("n1", metadata(&["10.1.0.1"]));
    cluster.instances.latency(SECOND);
    cluster.put(new_node("n1"));
    initialized(&cluster, "n1").await;
    cluster.pass(SECOND * 5).await;
    // But for the taint, the Node is already as it will be.
    let taint = |cluster: &Cluster| {
        let taints = new_node("n1")["spec"]["taints"].clone();
        cluster.edit("n1", |node| node["spec"]["taints"] = taints);
    };
    taint(&cluster);
    cluster
        .soon("asked", |c| c.instances.asked("n1", Purpose::Metadata).len() == 2)
        .await;
    // The watch sees neither how the taint goes nor how it comes back, only the Node as it is then.
    for verb in ["list", "watch"] {
        let away = Fault::new(Effect::Delay(SECOND * 20))
            .verb(verb)
            .resource("nodes");
        cluster.api.faults().inject(away.times(1));
    }
    cluster.api.close_watches();
    initialized(&cluster, "n1").await;
    taint(&cluster);
    cluster.api.compact();
    cluster.pass(SECOND * 60).await;
    assert_eq!(cluster.taints("n1"), Vec::<String>::new());
    assert_eq!(cluster.instances.asked("n1", Purpose::Metadata).len(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_taint_that_somebody_adds_before_the_addresses_arrive_is_kept() {
    let cluster = cluster();
    cluster.instances.run("n1", metadata(&["10.1.0.1"]));
    cluster.api.faults().inject(
        Fault::new(Effect::Delay(SECOND))
            .verb("patch")
            .resource("nodes")
            .subresource("status")
            .times(1),
    );
    cluster.put(new_node("n1"));
    cluster.soon("asked", |c| !c.instances.calls().is_empty()).await;
    cluster.edit("n1", |node| {
        let taints = node["spec"]["taints"].as_array_mut().unwrap();
        taints.push(json!({"key": "late", "effect": "NoExecute"}));
    });
    initialized(&cluster, "n1").await;
    assert_eq!(cluster.taints("n1"), ["late"]);
}

#[tokio::test(start_paused = true)]
async fn a_node_that_comes_anew_under_the_same_name_is_not_written_to_by_the_old_answer() {
    let cluster = cluster();
    cluster.instances.run("n1", metadata(&["10.1.0.1"]));
    cluster.instances.latency(SECOND);
    cluster.put(new_node("n1"));
    cluster.soon("asked", |c| c.instances.calls().len() == 1).await;
    cluster.api.delete("Node", "", "n1");
    cluster.put(new_node("n1"));
    cluster.pass(SECOND).await;
    assert!(cluster.node_writes().is_empty());
    initialized(&cluster, "n1").await;
    assert_eq!(cluster.instances.asked("n1", Purpose::Metadata).len(), 2);
}

#[tokio::test(start_paused = true)]
async fn stopped_between_its_two_writes_the_next_run_finishes_and_repeats_none() {
    let cluster = cluster();
    cluster.instances.run("n1", metadata(&["10.1.0.1"]));
    cluster.api.faults().inject(
        Fault::new(Effect::Delay(SECOND))
            .verb("patch")
            .resource("nodes")
            .subresource("")
            .times(1),
    );
    cluster.put(new_node("n1"));
    cluster
        .soon("the addresses", |c| !c.addresses("n1").is_empty())
        .await;
    let cluster = cluster.after_a_crash();
    cluster.pass(SECOND * 2).await;
    assert!(!cluster.is_initialized("n1"), "the second write was never made");
    let cluster = cluster.with_node_loop(NodeSettings::default());
    initialized(&cluster, "n1").await;
    let of_addresses = cluster
        .api
        .journal()
        .matching(|e| e.verb == "patch" && e.subresource == "status");
    assert_eq!(of_addresses.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_lost_is_no_failure() {
    for subresource in ["status", ""] {
        let cluster = cluster();
        cluster.instances.run("n1", metadata(&["10.1.0.1"]));
        cluster.api.faults().inject(
            Fault::new(Effect::DropAfter)
                .verb("patch")
                .resource("nodes")
                .subresource(subresource)
                .times(1),
        );
        cluster.put(new_node("n1"));
        initialized(&cluster, "n1").await;
        cluster.soon("the event", |c| c.count_events("Synced") == 1).await;
        cluster.pass(SECOND * 10).await;
        assert_eq!(cluster.count_events("NodeInitFailed"), 0);
        assert_eq!(cluster.instances.calls().len(), 1, "{subresource:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_thousand_new_nodes_share_a_few_questions() {
    let cluster = Cluster::new();
    cluster.instances.latency(Duration::from_millis(20));
    for n in 0..1000 {
        let name = format!("n{n}");
        cluster.instances.run(&name, metadata(&["10.1.0.1"]));
        cluster.put(new_node(&name));
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
    assert_eq!(cluster.node_writes().len(), 2000, "two writes per node");
}

#[tokio::test(start_paused = true)]
async fn a_node_that_is_tainted_again_is_initialised_again_and_tried_until_that_works() {
    let cluster = cluster();
    cluster.instances.run("n1", metadata(&["10.1.0.1"]));
    cluster.put(new_node("n1"));
    initialized(&cluster, "n1").await;
    cluster.pass(SECOND).await;
    cluster
        .instances
        .outage(Some(CloudError::new(ErrorKind::Transient, "bad gateway")));
    cluster.edit("n1", |node| {
        node["spec"]["taints"] =
            json!([{"key": "node.cloudprovider.kubernetes.io/uninitialized", "effect": "NoSchedule"}]);
    });
    cluster
        .within(SECOND * 60, "tried several times", |c| {
            c.instances.asked("n1", Purpose::Metadata).len() >= 4
        })
        .await;
    assert!(!cluster.is_initialized("n1"));
    assert_eq!(cluster.count_events("NodeInitFailed"), 1);
    cluster.instances.outage(None);
    cluster
        .within(SECOND * 61, "initialised again", |c| c.is_initialized("n1"))
        .await;
}

const UNINITIALIZED: &str = "node.cloudprovider.kubernetes.io/uninitialized";

#[tokio::test(start_paused = true)]
async fn who_puts_the_taint_back_again_and_again_is_told_of_and_met_less_and_less_often() {
    let cluster = cluster();
    cluster.instances.run("n1", metadata(&["10.1.0.1"]));
    cluster.put(new_node("n1"));
    initialized(&cluster, "n1").await;
    let before = cluster.node_writes().len();
    let rounds = || cluster.node_writes().len() - before;
    let begun = Instant::now();
    while begun.elapsed() < SECOND * 300 && rounds() < 50 {
        cluster.edit("n1", |node| {
            node["spec"]["taints"] = json!([{"key": UNINITIALIZED, "effect": "NoSchedule"}]);
        });
        cluster
            .within(SECOND * 301, "off again", |c| c.is_initialized("n1"))
            .await;
    }
    // Five times at once, then after 5, 15, 35, 75, 155 and 315 s.
    assert_eq!(rounds(), 11);
    assert_eq!(
        cluster.instances.asked("n1", Purpose::Metadata).len(),
        1 + 5,
        "the cloud is not asked for the sake of a fight"
    );
    assert!(cluster.count_events("NodeInitFailed") > 0);
    assert_eq!(cluster.count_events("ChangedBack"), 1);
}

#[tokio::test(start_paused = true)]
async fn who_changes_one_name_of_a_label_again_and_again_is_met_less_and_less_often() {
    let cluster = cluster();
    cluster.instances.run("n1", metadata(&["10.1.0.1"]));
    cluster.put(new_node("n1"));
    initialized(&cluster, "n1").await;
    let (before, begun) = (cluster.node_writes().len(), Instant::now());
    let rounds = || cluster.node_writes().len() - before;
    while begun.elapsed() < SECOND * 300 && rounds() < 50 {
        cluster.edit("n1", |node| node["metadata"]["labels"][TYPE_BETA] = json!("mine"));
        cluster
            .within(SECOND * 301, "one value again", |c| {
                c.label("n1", TYPE) == c.label("n1", TYPE_BETA)
            })
            .await;
    }
    assert_eq!(rounds(), 11);
    assert_eq!(cluster.count_events("ChangedBack"), 1);
}

#[tokio::test(start_paused = true)]
async fn who_mixes_taint_and_labels_in_separate_writes_is_met_less_and_less_often() {
    type Edit = fn(&mut Value);
    let strip: Edit = |node| {
        let labels = node["metadata"]["labels"].as_object_mut().unwrap();
        labels.remove(ZONE);
    };
    let taint: Edit = |node| node["spec"]["taints"] = json!([{"key": UNINITIALIZED, "effect": "NoSchedule"}]);
    let other: Edit = |node| {
        let labels = &mut node["metadata"]["labels"];
        labels["rack"] = json!(if labels["rack"] == "a" { "b" } else { "a" });
    };
    for mix in [
        [strip, taint],
        [taint, strip],
        [strip, other],
        [taint, other],
        [other, taint],
    ] {
        let cluster = cluster();
        let mut metadata = metadata(&["10.1.0.1"]);
        metadata.zone = "z1".into();
        cluster.instances.run("n1", metadata);
        cluster.put(new_node("n1"));
        initialized(&cluster, "n1").await;
        let (before, begun) = (cluster.node_writes().len(), Instant::now());
        while begun.elapsed() < SECOND * 300 {
            for edit in mix {
                cluster.edit("n1", edit);
                cluster.pass(SECOND / 10).await;
            }
        }
        let writes = cluster.node_writes().len() - before;
        let asked = cluster.instances.asked("n1", Purpose::Metadata).len();
        // Of each part five at once, then seven by the schedule; and five questions more where both are there.
        assert!((10..=25).contains(&writes), "{writes} writes, {asked} questions");
        assert!(asked <= 1 + 10, "{writes} writes, {asked} questions");
        assert!((1..=2).contains(&cluster.count_events("ChangedBack")));
        cluster
            .within(SECOND * 301, "whole in the end", |c| {
                c.is_initialized("n1") && c.label("n1", ZONE).is_some()
            })
            .await;
    }
}

#[tokio::test(start_paused = true)]
async fn changes_of_a_node_that_waits_do_not_have_the_cloud_asked_without_end() {
    let cluster = cluster();
    cluster.put(new_node("n1")); // the cloud shows no instance
    let begun = Instant::now();
    for change in 0.. {
        if begun.elapsed() > SECOND * 300 {
            break;
        }
        cluster.edit("n1", |node| {
            node["metadata"]["labels"]["step"] = json!(change.to_string());
        });
        cluster.pass(SECOND / 5).await;
    }
    let asked = cluster.instances.asked("n1", Purpose::Metadata).len();
    assert!((5..25).contains(&asked), "{asked} questions in five minutes");
}

#[tokio::test(start_paused = true)]
async fn a_node_whose_taint_a_webhook_keeps_is_told_of_and_tried_less_and_less_often() {
    // A webhook that keeps the taint alone, and one that keeps everything: then nothing is stored, and no watch shows anything.
    let taint: fn(&mut Value) =
        |node| node["spec"]["taints"] = json!([{"key": UNINITIALIZED, "effect": "NoSchedule"}]);
    let all: fn(&mut Value) = |node| {
        let new = new_node("n1");
        node["metadata"]["labels"] = new["metadata"]["labels"].clone();
        (node["spec"], node["status"]) = (new["spec"].clone(), new["status"].clone());
    };
    for (keep, synced) in [(taint, 1), (all, 0)] {
        let cluster = cluster();
        let webhook = Fault::new(Effect::Rewrite(keep)).resource("nodes");
        cluster.api.faults().inject(webhook);
        cluster.instances.run("n1", metadata(&["10.1.0.1"]));
        cluster.put(new_node("n1"));
        cluster.pass(SECOND * 300).await;
        assert!(!cluster.is_initialized("n1"));
        // One that changed something is believed until the watch shows what was stored.
        assert_eq!(cluster.count_events("Synced"), synced);
        assert_eq!(cluster.count_events("NodeInitFailed"), 1);
        let asked = cluster.instances.asked("n1", Purpose::Metadata).len();
        assert!((5..15).contains(&asked), "{asked}");
    }
}

#[tokio::test(start_paused = true)]
async fn many_nodes_at_a_slow_api_server_do_not_look_stuck() {
    let cluster = Cluster::new();
    cluster.slow_writes();
    for n in 0..350 {
        let name = format!("n{n:03}");
        cluster.instances.run(&name, metadata(&["10.1.0.1"]));
        cluster.put(new_node(&name));
        let mut labelled = node_of(&format!("l{n:03}"), Some("True"));
        labelled["metadata"]["labels"] = json!({"failure-domain.beta.kubernetes.io/zone": "z1"});
        cluster.put(labelled);
    }
    let cluster = cluster.with_node_loop(NodeSettings::default());
    let took = cluster
        .without_a_stall(|c| {
            (0..350).all(|n| {
                c.is_initialized(&format!("n{n:03}")) && c.label(&format!("l{n:03}"), ZONE).is_some()
            })
        })
        .await;
    assert!(took > SECOND * 600, "{took:?} is no test");
}

#[tokio::test(start_paused = true)]
async fn many_nodes_whose_writes_hang_do_not_look_stuck() {
    let cluster = Cluster::new();
    let hangs = Fault::new(Effect::Silence).verb("patch").resource("nodes");
    cluster.api.faults().inject(hangs);
    for n in 0..40 {
        let name = format!("n{n:02}");
        cluster.instances.run(&name, metadata(&["10.1.0.1"]));
        cluster.put(new_node(&name));
    }
    let cluster = cluster.with_node_loop(NodeSettings::default());
    let begun = tokio::time::Instant::now();
    cluster.without_a_stall(|_| begun.elapsed() > SECOND * 3600).await;
}

#[tokio::test(start_paused = true)]
async fn nothing_is_said_or_kept_of_a_node_that_goes_while_its_cloud_is_asked() {
    for outage in [Some(CloudError::transient("bad gateway")), None] {
        let cluster = cluster();
        cluster.instances.run("n1", metadata(&["10.1.0.1"]));
        cluster.instances.latency(SECOND * 5);
        cluster.instances.outage(outage);
        cluster.put(new_node("n1"));
        cluster
            .soon("asked", |c| c.instances.asked("n1", Purpose::Metadata).len() == 1)
            .await;
        assert!(cluster.api.delete("Node", "", "n1"));
        cluster.pass(SECOND * 600).await;
        assert_eq!(cluster.instances.asked("n1", Purpose::Metadata).len(), 1);
        assert!(cluster.events("n1").is_empty(), "{:?}", cluster.events("n1"));
    }
}
