//! Nodes.

use bowline_control_plane::Version;
use serde_json::{Value, json};

use super::scope::{Scope, text};

const UNINITIALIZED: &str = "node.cloudprovider.kubernetes.io/uninitialized";

pub(super) async fn a_new_node_keeps_its_status(scope: Scope) {
    let status = json!({"addresses": [{"type": "Hostname", "address": "a"}],
        "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}]});
    let made = scope.new_node("a", json!({"status": status})).await;
    assert_eq!(made["status"]["addresses"], status["addresses"]);
    let condition = &made["status"]["conditions"][0];
    assert_eq!(
        (&condition["type"], &condition["status"], &condition["reason"]),
        (&json!("Ready"), &json!("True"), &json!("KubeletReady"))
    );
    assert_eq!(
        (&made["kind"], &made["apiVersion"]),
        (&json!("Node"), &json!("v1"))
    );
    assert!(!text(&made["metadata"]["uid"]).is_empty());
    assert!(text(&made["metadata"]["creationTimestamp"]).ends_with('Z'));
}

pub(super) async fn status_and_spec_are_written_apart(scope: Scope) {
    scope.new_node("a", json!({})).await;
    let path = scope.node("a");
    let both = json!({
        "metadata": {"labels": {"both": "x"}},
        "spec": {"unschedulable": true},
        "status": {"addresses": [{"type": "Hostname", "address": "a"}]},
    });
    let by_status = scope.strategic(&format!("{path}/status"), &both).await.granted();
    assert_eq!(by_status["spec"]["unschedulable"], Value::Null);
    assert_eq!(by_status["status"]["addresses"], both["status"]["addresses"]);
    assert_eq!(
        by_status["metadata"]["labels"]["both"], "x",
        "metadata goes both ways"
    );
    let other = json!({"spec": {"unschedulable": true}, "status": {"addresses": null}});
    let by_main = scope.merge(&path, &other).await.granted();
    assert_eq!(by_main["spec"]["unschedulable"], true);
    assert_eq!(by_main["status"]["addresses"], both["status"]["addresses"]);
}

pub(super) async fn the_provider_id_is_set_once(scope: Scope) {
    scope.new_node("a", json!({})).await;
    let path = scope.node("a");
    let id = |id: &str| json!({"spec": {"providerID": id}});
    let patched = scope.merge(&path, &id("cloud://1")).await.granted();
    assert_eq!(patched["spec"]["providerID"], "cloud://1");
    scope.merge(&path, &id("cloud://1")).await.granted();
    let before_1_37 = "Forbidden: node updates may not change providerID except from \"\" to valid";
    for (wanted, since_1_37) in [
        (
            "cloud://2",
            "Invalid value: null: field cannot be modified once set",
        ),
        ("", "Invalid value: null: field cannot be cleared once set"),
    ] {
        let causes = scope.merge(&path, &id(wanted)).await.causes();
        let said = if scope.version() < Version::V1_37 {
            before_1_37
        } else {
            since_1_37
        };
        assert_eq!(
            causes,
            [("spec.providerID".to_owned(), said.to_owned())],
            "{wanted:?}"
        );
    }
}

pub(super) async fn taints_are_replaced_as_a_list(scope: Scope) {
    let taints = json!([
        {"key": UNINITIALIZED, "value": "true", "effect": "NoSchedule"},
        {"key": "keep", "effect": "NoExecute", "timeAdded": "2026-01-02T03:04:05Z"},
    ]);
    let made = scope.new_node("a", json!({"spec": {"taints": taints}})).await;
    assert_eq!(made["spec"]["taints"], taints);
    let path = scope.node("a");
    let kept = json!({"spec": {"taints": [taints[1]]}});
    let merged = scope.merge(&path, &kept).await.granted();
    assert_eq!(merged["spec"]["taints"], json!([taints[1]]));
    // Not so in a strategic patch of other lists: this one has no key to merge by.
    let strategic = json!({"spec": {"taints": [taints[0]]}});
    let patched = scope.strategic(&path, &strategic).await.granted();
    assert_eq!(patched["spec"]["taints"], json!([taints[0]]));
    let cleared = scope
        .merge(&path, &json!({"spec": {"taints": []}}))
        .await
        .granted();
    assert_eq!(cleared["spec"]["taints"], Value::Null);
}

pub(super) async fn wrong_nodes_are_refused(scope: Scope) {
    let name = scope.node_name("bad");
    for (object, field) in [
        (json!({"metadata": {"name": "Upper"}}), "metadata.name"),
        (
            json!({"metadata": {"name": name, "labels": {"a b": ""}}}),
            "metadata.labels",
        ),
        (
            json!({"metadata": {"name": name, "labels": {"a": "b/c"}}}),
            "metadata.labels",
        ),
        (
            json!({"metadata": {"name": name, "annotations": {"a b": ""}}}),
            "metadata.annotations",
        ),
        (
            json!({"metadata": {"name": name}, "spec": {"taints": [{"key": "k"}]}}),
            "metadata.taints[0].effect",
        ),
        (
            json!({"metadata": {"name": name}, "spec": {"taints": [
                {"key": "k", "effect": "NoSchedule"}, {"key": "k", "effect": "NoSchedule"}]}}),
            "metadata.taints[1]",
        ),
    ] {
        let causes = scope.post("/api/v1/nodes", &object).await.causes();
        assert_eq!(causes[0].0, field, "{object}: {causes:?}");
    }
    // A name that would not do as a part of a domain is no name of a label either.
    scope.new_node("a", json!({})).await;
    let bad = json!({"metadata": {"labels": {"example.com/zone": "-"}}});
    assert_eq!(scope.merge(&scope.node("a"), &bad).await.code, 422);
}
