//! Deletion, and what holds it up.

use serde_json::{Value, json};

use super::scope::{Scope, text};

const FINALIZER: &str = "service.kubernetes.io/load-balancer-cleanup";

async fn guarded(scope: &Scope, name: &str) -> Value {
    scope.new_balanced(name).await;
    let patch = json!({"metadata": {"finalizers": [FINALIZER]}});
    let path = format!("{}/status", scope.service(name));
    scope.merge(&path, &patch).await.granted()
}

pub(super) async fn a_finalizer_holds_an_object(scope: Scope) {
    let made = guarded(&scope, "a").await;
    assert_eq!(made["metadata"]["finalizers"], json!([FINALIZER]));
    let path = scope.service("a");
    let marked = scope.delete(&path, &json!({})).await.granted();
    assert_eq!(marked["kind"], "Service");
    assert!(!text(&marked["metadata"]["deletionTimestamp"]).is_empty());
    assert_eq!(marked["metadata"]["deletionGracePeriodSeconds"], 0);
    let again = scope.delete(&path, &json!({})).await.granted();
    assert_eq!(
        again["metadata"], marked["metadata"],
        "a second deletion changes nothing"
    );
    let still = scope.get(&path).await.granted();
    assert_eq!(still["metadata"]["uid"], made["metadata"]["uid"]);
    // Its status can still be written.
    let status = json!({"status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}}});
    scope.merge(&format!("{path}/status"), &status).await.granted();
    scope
        .merge(&path, &json!({"metadata": {"finalizers": null}}))
        .await
        .granted();
    assert_eq!(scope.get(&path).await.code, 404);
}

pub(super) async fn the_status_is_a_way_to_its_finalizers(scope: Scope) {
    guarded(&scope, "a").await;
    let path = scope.service("a");
    scope.delete(&path, &json!({})).await.granted();
    let freed = scope
        .merge(
            &format!("{path}/status"),
            &json!({"metadata": {"finalizers": []}}),
        )
        .await
        .granted();
    assert_eq!(freed["metadata"]["finalizers"], Value::Null);
    assert_eq!(scope.get(&path).await.code, 404);
}

pub(super) async fn no_finalizer_is_added_on_the_way_out(scope: Scope) {
    guarded(&scope, "a").await;
    let path = scope.service("a");
    scope.delete(&path, &json!({})).await.granted();
    let more = json!({"metadata": {"finalizers": [FINALIZER, "example.com/late"]}});
    for path in [path.clone(), format!("{path}/status")] {
        let causes = scope.merge(&path, &more).await.causes();
        // Once or twice: a Service is checked by the rules of all objects and again by its own.
        assert!(!causes.is_empty());
        for (field, message) in causes {
            assert_eq!(
                (field.as_str(), message.as_str()),
                (
                    "metadata.finalizers",
                    "Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers \
                     []string{\"example.com/late\"}"
                )
            );
        }
    }
    let bad = json!({"metadata": {"finalizers": ["not a name"]}});
    scope.new_balanced("b").await;
    assert_eq!(
        scope
            .merge(&format!("{}/status", scope.service("b")), &bad)
            .await
            .code,
        422
    );
}

pub(super) async fn a_deletion_tells_what_is_gone(scope: Scope) {
    let service = scope.new_balanced("a").await;
    let gone = scope.delete(&scope.service("a"), &json!({})).await.granted();
    // A Service comes back as it was, a Node as a Status.
    assert_eq!(
        (&gone["kind"], &gone["metadata"]["uid"]),
        (&json!("Service"), &service["metadata"]["uid"])
    );
    let node = scope.new_node("a", json!({})).await;
    let gone = scope.delete(&scope.node("a"), &json!({})).await.granted();
    assert_eq!(
        (&gone["kind"], &gone["status"], &gone["details"]["uid"]),
        (&json!("Status"), &json!("Success"), &node["metadata"]["uid"])
    );
    let successor = scope.new_node("a", json!({})).await;
    assert_ne!(successor["metadata"]["uid"], node["metadata"]["uid"]);
}
