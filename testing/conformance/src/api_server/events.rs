//! Events of core/v1, as controllers write them.

use serde_json::{Value, json};

use super::scope::{Scope, names};

fn event(namespace: &str, involved: &Value) -> Value {
    json!({
        "metadata": {"generateName": "e-", "namespace": namespace},
        "involvedObject": involved,
        "type": "Normal", "reason": "Synced", "message": "all is well",
        "source": {"component": "conformance"},
        "firstTimestamp": "2026-01-02T03:04:05Z", "lastTimestamp": "2026-01-02T03:04:05Z",
        "count": 1,
    })
}

fn events(namespace: &str) -> String {
    format!("/api/v1/namespaces/{namespace}/events")
}

pub(super) async fn an_event_is_created_and_counted_up(scope: Scope) {
    let here = scope.namespace();
    let involved = json!({"kind": "Service", "namespace": here, "name": "a", "uid": "1"});
    let made = scope.post(&events(here), &event(here, &involved)).await.granted();
    assert_eq!(made["count"], 1);
    let name = made["metadata"]["name"].as_str().unwrap();
    let again = json!({"count": 2, "lastTimestamp": "2026-01-02T03:05:05Z"});
    for counted in [
        scope.merge(&format!("{}/{name}", events(here)), &again).await,
        scope.strategic(&format!("{}/{name}", events(here)), &again).await,
    ] {
        let counted = counted.granted();
        assert_eq!(
            (
                &counted["count"],
                &counted["firstTimestamp"],
                &counted["lastTimestamp"]
            ),
            (
                &json!(2),
                &json!("2026-01-02T03:04:05Z"),
                &json!("2026-01-02T03:05:05Z")
            )
        );
    }
    let path = format!(
        "{}?fieldSelector=involvedObject.kind%3DService,involvedObject.name%3Da,reason%3DSynced",
        events(here)
    );
    assert_eq!(names(&scope.get(&path).await.granted()), [name]);
    let path = format!("{}?fieldSelector=involvedObject.uid%3D2", events(here));
    assert!(names(&scope.get(&path).await.granted()).is_empty());
}

pub(super) async fn an_event_lies_where_its_object_does(scope: Scope) {
    let here = scope.namespace();
    let elsewhere = json!({"kind": "Service", "namespace": "default", "name": "a"});
    let causes = scope.post(&events(here), &event(here, &elsewhere)).await.causes();
    assert_eq!(causes[0].0, "involvedObject.namespace", "{causes:?}");
    let node = json!({"kind": "Node", "name": scope.node_name("a")});
    scope
        .post(&events("default"), &event("default", &node))
        .await
        .granted();
    assert_eq!(
        scope.post(&events(here), &event(here, &node)).await.code,
        422,
        "objects of the cluster have their events in the default namespace"
    );
}
