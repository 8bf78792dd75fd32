//! Patches of all three kinds.

use serde_json::{Value, json};

use super::scope::{Scope, balanced, text, version_of};

pub(super) async fn each_kind_of_patch_works(scope: Scope) {
    scope.new_balanced("a").await;
    let path = scope.service("a");
    let merged = scope
        .merge(
            &path,
            &json!({"metadata": {"annotations": {"one": "1", "two": "2"}}}),
        )
        .await
        .granted();
    assert_eq!(merged["metadata"]["annotations"], json!({"one": "1", "two": "2"}));
    let merged = scope
        .merge(&path, &json!({"metadata": {"annotations": {"one": null}}}))
        .await
        .granted();
    assert_eq!(merged["metadata"]["annotations"], json!({"two": "2"}));
    // Ports merge by number in a strategic patch, and are one value in a merge patch.
    let port = json!({"spec": {"ports": [{"port": 81, "name": "more"}, {"port": 80, "name": "web"}]}});
    let strategic = scope.strategic(&path, &port).await.granted();
    let ports = |object: &Value| -> Vec<u64> {
        let ports = object["spec"]["ports"].as_array().unwrap();
        ports.iter().map(|port| port["port"].as_u64().unwrap()).collect()
    };
    let mut numbers = ports(&strategic);
    numbers.sort_unstable();
    assert_eq!(numbers, [80, 81]);
    let gone = json!({"spec": {"ports": [{"port": 81, "$patch": "delete"}]}});
    assert_eq!(ports(&scope.strategic(&path, &gone).await.granted()), [80]);
    let operations = json!([
        {"op": "test", "path": "/spec/ports/0/port", "value": 80},
        {"op": "add", "path": "/metadata/labels", "value": {"a/b": "c"}},
        {"op": "replace", "path": "/spec/ports/0/port", "value": 8080},
        {"op": "remove", "path": "/metadata/annotations/two"},
    ]);
    let patched = scope.json_patch(&path, &operations).await.granted();
    assert_eq!(patched["metadata"]["labels"], json!({"a/b": "c"}));
    assert_eq!(patched["metadata"]["annotations"], Value::Null);
    assert_eq!(ports(&patched), [8080]);
}

pub(super) async fn what_changes_nothing_keeps_its_version(scope: Scope) {
    let made = scope.new_balanced("a").await;
    let path = scope.service("a");
    let status = format!("{path}/status");
    scope
        .merge(&path, &json!({"metadata": {"labels": {"a": "b"}}}))
        .await
        .granted();
    let current = scope.get(&path).await.granted();
    for (name, answer) in [
        (
            "merge",
            scope
                .merge(&path, &json!({"metadata": {"labels": {"a": "b", "c": null}}}))
                .await,
        ),
        (
            "strategic",
            scope
                .strategic(&path, &json!({"spec": {"ports": [{"port": 80}]}}))
                .await,
        ),
        (
            "json",
            scope
                .json_patch(
                    &path,
                    &json!([{"op": "replace", "path": "/spec/type", "value": "LoadBalancer"}]),
                )
                .await,
        ),
        ("empty", scope.merge(&path, &json!({})).await),
        (
            "status",
            scope
                .merge(&status, &json!({"status": {"loadBalancer": {"ingress": null}}}))
                .await,
        ),
        ("put", scope.put(&path, &current).await),
        (
            "status by the main path",
            scope
                .merge(
                    &path,
                    &json!({"status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}}}),
                )
                .await,
        ),
    ] {
        assert_eq!(version_of(&answer.granted()), version_of(&current), "{name}");
    }
    assert_ne!(version_of(&current), version_of(&made));
}

pub(super) async fn lists_of_nodes_merge_by_their_keys(scope: Scope) {
    scope
        .new_node(
            "a",
            json!({"status": {
                "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}, {"type": "Hostname", "address": "a"}],
                "conditions": [{"type": "Ready", "status": "True"}],
            }}),
        )
        .await;
    let status = format!("{}/status", scope.node("a"));
    let condition =
        json!({"status": {"conditions": [{"type": "NetworkUnavailable", "status": "False", "reason": "R"}]}});
    let merged = scope.strategic(&status, &condition).await.granted();
    let mut kinds: Vec<&str> = merged["status"]["conditions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|condition| text(&condition["type"]))
        .collect();
    kinds.sort_unstable();
    assert_eq!(kinds, ["NetworkUnavailable", "Ready"]);
    // Two addresses of one type need the list to be replaced as a whole.
    let addresses = json!([
        {"type": "InternalIP", "address": "10.0.0.2"},
        {"type": "InternalIP", "address": "fd00::2"},
    ]);
    let mut marked = addresses.clone();
    marked.as_array_mut().unwrap().push(json!({"$patch": "replace"}));
    let replaced = scope
        .strategic(&status, &json!({"status": {"addresses": marked}}))
        .await
        .granted();
    assert_eq!(replaced["status"]["addresses"], addresses);
    let merged = scope
        .strategic(
            &status,
            &json!({"status": {"addresses": [{"type": "Hostname", "address": "a"}]}}),
        )
        .await
        .granted();
    assert_eq!(merged["status"]["addresses"].as_array().unwrap().len(), 3);
}

pub(super) async fn a_failed_test_changes_nothing(scope: Scope) {
    let made = scope.new_balanced("a").await;
    let operations = json!([
        {"op": "add", "path": "/metadata/labels", "value": {"a": "b"}},
        {"op": "test", "path": "/metadata/uid", "value": "other"},
    ]);
    let (code, reason, _) = scope.json_patch(&scope.service("a"), &operations).await.refused();
    assert_eq!((code, reason.as_str()), (422, "Invalid"));
    assert_eq!(scope.get(&scope.service("a")).await.granted(), made);
}

pub(super) async fn bad_patches_are_refused(scope: Scope) {
    scope.new_balanced("a").await;
    let path = scope.service("a");
    let refused = |answer: super::scope::Answer| answer.refused().0;
    assert_eq!(
        refused(scope.patch(&path, "application/json", &json!({})).await),
        415
    );
    assert_eq!(
        refused(scope.json_patch(&path, &json!({"no": "list"})).await),
        400
    );
    let missing = json!([{"op": "remove", "path": "/metadata/annotations/none"}]);
    assert_eq!(refused(scope.json_patch(&path, &missing).await), 422);
    assert_eq!(
        refused(scope.merge(&path, &json!({"spec": {"ports": "many"}})).await),
        422
    );
    let renamed = json!({"metadata": {"name": "b"}});
    assert_eq!(refused(scope.merge(&path, &renamed).await), 400);
}

pub(super) async fn a_dry_run_is_not_kept(scope: Scope) {
    let service = json!({"metadata": {"name": "a"}, "spec": balanced()});
    let path = format!("{}?dryRun=All", scope.services());
    let made = scope.post(&path, &service).await.granted();
    assert_eq!(made["spec"]["type"], "LoadBalancer");
    assert_eq!(scope.get(&scope.service("a")).await.code, 404);
    let made = scope.new_balanced("a").await;
    let path = format!("{}?dryRun=All", scope.service("a"));
    let patched = scope
        .merge(&path, &json!({"metadata": {"labels": {"a": "b"}}}))
        .await
        .granted();
    assert_eq!(patched["metadata"]["labels"]["a"], "b");
    let options = json!({"dryRun": ["All"]});
    scope.delete(&scope.service("a"), &options).await.granted();
    assert_eq!(scope.get(&scope.service("a")).await.granted(), made);
    // With a body, nobody looks at the query.
    scope.delete(&path, &json!({})).await.granted();
    assert_eq!(scope.get(&scope.service("a")).await.code, 404);
}

pub(super) async fn generation_counts_changes_of_the_spec(scope: Scope) {
    scope.new_balanced("a").await;
    let path = scope.service("a");
    let counted = |object: &Value| object["metadata"]["generation"].clone();
    let made = scope.get(&path).await.granted();
    let labelled = scope
        .merge(&path, &json!({"metadata": {"labels": {"a": "b"}}}))
        .await
        .granted();
    assert_eq!(counted(&labelled), counted(&made));
    let changed = scope
        .merge(&path, &json!({"spec": {"sessionAffinity": "ClientIP"}}))
        .await
        .granted();
    if let Some(before) = counted(&made).as_u64() {
        assert_eq!(counted(&changed), before + 1);
    } else {
        assert_eq!(counted(&changed), Value::Null, "Services may have none");
    }
}
