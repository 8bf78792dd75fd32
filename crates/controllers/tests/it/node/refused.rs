//! What the API server refuses of a Node, and what keeps it from nothing else.

use super::*;

fn patches(code: u16, reason: &str) -> Fault {
    let status = Status::new(code, reason, "denied by a policy");
    node_patch(Effect::Answer(status))
}

#[tokio::test(start_paused = true)]
async fn refused_addresses_keep_a_node_from_nothing_else_and_are_told_of() {
    for (code, reason, limit) in [(422, "Invalid", 3), (403, "Forbidden", 30)] {
        let cluster = cluster();
        cluster.instances.run("n1", metadata(&["10.1.0.1"]));
        cluster.inject(patches(code, reason).subresource("status"));
        cluster.put(new_node("n1"));
        cluster.initialized_within(SECOND * limit, "n1").await;
        assert_eq!(cluster.node("n1")["spec"]["providerID"], "fake://1");
        assert!(cluster.is_labelled("n1", TYPE, "flex-4"));
        cluster.pass(SECOND * 700).await;
        let told = cluster.count_events("NodeWriteRefused");
        assert!((1..=2).contains(&told), "at most once in ten minutes: {told}");
        assert_eq!(
            cluster.count_events("NodeWithoutAddress"),
            0,
            "the cloud named one"
        );
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
    cluster.initialized("n1").await;
    assert!(cluster.is_labelled("n1", TYPE, "flex-4"));
    assert_eq!(cluster.label("n1", ZONE), None);
    assert_eq!(cluster.writes(), 2);
    cluster.pass(SECOND * 700).await;
    assert_eq!(
        cluster.count_events("NodeWriteRefused"),
        2,
        "counted up after ten minutes"
    );
    assert_eq!(cluster.writes(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_label_that_is_refused_keeps_a_node_from_nothing_else() {
    let cluster = cluster();
    cluster.instances.run("n1", metadata(&["10.1.0.1"]));
    // The write as a whole; then none is changed, the provider ID, six labels by name, the taints.
    cluster.inject(patches(422, "Invalid").subresource("").times(1));
    cluster.inject(patches(422, "Invalid").subresource("").after(2).times(1));
    cluster.put(new_node("n1"));
    cluster.initialized("n1").await;
    assert_eq!(cluster.node("n1")["spec"]["providerID"], "fake://1");
    assert!(cluster.is_labelled("n1", TYPE, "flex-4"));
    cluster
        .soon("told", |c| c.count_events("NodeWriteRefused") == 1)
        .await;
    assert_eq!(cluster.count_events("NodeInitFailed"), 0);
    assert!(cluster.events("n1").iter().any(|(text, _)| text.contains(
        "goes on without the label beta.kubernetes.io/instance-type=\"flex-4\": denied by a policy"
    )));
    assert_eq!(cluster.writes(), 1 + 1 + 1 + 7 + 1);
}

#[tokio::test(start_paused = true)]
async fn a_provider_id_that_is_refused_keeps_the_taint_and_the_rest_is_written() {
    let cluster = cluster();
    cluster.instances.run("n1", metadata(&["10.1.0.1"]));
    cluster.inject(patches(403, "Forbidden").subresource("").times(1));
    cluster.inject(patches(403, "Forbidden").subresource("").after(1).times(1));
    cluster.put(new_node("n1"));
    cluster
        .soon("told", |c| c.count_events("NodeInitFailed") == 1)
        .await;
    assert_eq!(
        cluster.texts("n1")[0],
        "Warning NodeInitFailed: failed to write the provider ID of node n1: denied by a policy"
    );
    assert!(!cluster.is_initialized("n1"));
    assert!(cluster.is_labelled("n1", ZONE, "z1"));
    cluster.initialized_within(SECOND * 3, "n1").await;
    assert_eq!(cluster.node("n1")["spec"]["providerID"], "fake://1");
}

#[tokio::test(start_paused = true)]
async fn where_every_write_is_refused_its_parts_are_not_tried() {
    let cluster = cluster();
    cluster.instances.run("n1", metadata(&["10.1.0.1"]));
    cluster.inject(patches(403, "Forbidden").subresource(""));
    cluster.put(new_node("n1"));
    cluster.pass(SECOND / 2).await;
    assert_eq!(cluster.writes(), 3, "addresses, all, and nothing");
}

#[tokio::test(start_paused = true)]
async fn a_node_that_is_left_without_an_address_is_told_of_until_it_has_one() {
    let cluster = cluster_with_pass_every(SECOND * 10);
    cluster.instances.run("n1", metadata(&[]));
    cluster.put(with(new_node("n1"), |node| {
        node["status"]["addresses"] = json!([{"type": "Hostname", "address": "n1"}]);
    }));
    cluster.initialized("n1").await;
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
