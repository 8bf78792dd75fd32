//! Writes that are tied to an object or a version of it.

use serde_json::json;

use super::scope::{Scope, text, version_of};

const MODIFIED: &str =
    "the object has been modified; please apply your changes to the latest version and try again";

pub(super) async fn an_old_version_is_a_conflict(scope: Scope) {
    let made = scope.new_balanced("a").await;
    let path = scope.service("a");
    scope
        .merge(&path, &json!({"metadata": {"labels": {"a": "b"}}}))
        .await
        .granted();
    let tied = json!({"metadata": {"resourceVersion": version_of(&made), "labels": {"c": "d"}}});
    let expected = (
        409,
        "Conflict".to_owned(),
        format!("Operation cannot be fulfilled on services \"a\": {MODIFIED}"),
    );
    assert_eq!(scope.merge(&path, &tied).await.refused(), expected);
    assert_eq!(scope.strategic(&path, &tied).await.refused(), expected);
    assert_eq!(
        scope.merge(&format!("{path}/status"), &tied).await.refused(),
        expected
    );
    assert_eq!(scope.put(&path, &made).await.refused(), expected);
    let current = scope.get(&path).await.granted();
    let tied = json!({"metadata": {"resourceVersion": version_of(&current), "labels": {"c": "d"}}});
    scope.merge(&path, &tied).await.granted();
}

pub(super) async fn another_uid_is_refused(scope: Scope) {
    let made = scope.new_balanced("a").await;
    let path = scope.service("a");
    let tied = json!({"metadata": {"uid": "other", "labels": {"c": "d"}}});
    for path in [path.clone(), format!("{path}/status")] {
        let answer = scope.merge(&path, &tied).await;
        // As a precondition that failed, or as an attempt to change the field: refused either way, and it says so.
        match answer.code {
            409 => {
                let uid = text(&made["metadata"]["uid"]);
                let expected =
                    format!("Precondition failed: UID in precondition: other, UID in object meta: {uid}");
                assert!(answer.refused().2.ends_with(&expected));
            }
            _ => {
                let causes = answer.causes();
                assert!(
                    causes.iter().any(|(field, _)| field == "metadata.uid"),
                    "{causes:?}"
                );
            }
        }
    }
    let mut other = made.clone();
    other["metadata"]["uid"] = json!("other");
    let (code, reason, message) = scope.put(&path, &other).await.refused();
    assert_eq!((code, reason.as_str()), (409, "Conflict"));
    let uid = text(&made["metadata"]["uid"]);
    assert_eq!(
        message,
        format!(
            "Operation cannot be fulfilled on services \"a\": StorageError: invalid object, Code: 4, Key: \
             /registry/services/specs/{}/a, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in \
             precondition: other, UID in object meta: {uid}",
            scope.namespace()
        )
    );
    assert_eq!(scope.get(&path).await.granted(), made);
}

pub(super) async fn a_name_is_given_once(scope: Scope) {
    scope.new_balanced("a").await;
    let again = scope
        .try_service("a", json!({"ports": [{"port": 1}]}))
        .await
        .refused();
    assert_eq!(
        again,
        (
            409,
            "AlreadyExists".to_owned(),
            "services \"a\" already exists".to_owned()
        )
    );
    let node = scope.new_node("a", json!({})).await;
    let name = scope.node_name("a");
    assert_eq!(
        scope
            .post("/api/v1/nodes", &json!({"metadata": {"name": name}}))
            .await
            .refused()
            .2,
        format!("nodes \"{name}\" already exists")
    );
    assert_eq!(scope.get(&scope.node("a")).await.granted(), node);
}

pub(super) async fn a_deletion_may_be_tied_to_uid_and_version(scope: Scope) {
    let made = scope.new_node("a", json!({})).await;
    let path = scope.node("a");
    let uid = text(&made["metadata"]["uid"]);
    let (code, reason, message) = scope
        .delete(&path, &json!({"preconditions": {"uid": "other"}}))
        .await
        .refused();
    assert_eq!((code, reason.as_str()), (409, "Conflict"));
    assert_eq!(
        message,
        format!(
            "Operation cannot be fulfilled on Node \"{}\": the UID in the precondition (other) does not match the UID \
             in record ({uid}). The object might have been deleted and then recreated",
            scope.node_name("a")
        )
    );
    scope
        .merge(&path, &json!({"metadata": {"labels": {"a": "b"}}}))
        .await
        .granted();
    let old = json!({"preconditions": {"uid": uid, "resourceVersion": version_of(&made)}});
    let (code, reason, message) = scope.delete(&path, &old).await.refused();
    assert_eq!((code, reason.as_str()), (409, "Conflict"));
    assert!(message.contains(version_of(&made)), "{message}");
    scope
        .delete(&path, &json!({"preconditions": {"uid": uid}}))
        .await
        .granted();
    assert_eq!(scope.get(&path).await.code, 404);
}

pub(super) async fn names_can_be_generated(scope: Scope) {
    let service = json!({"metadata": {"generateName": "made-"}, "spec": {"ports": [{"port": 1}]}});
    let first = scope.post(&scope.services(), &service).await.granted();
    let second = scope.post(&scope.services(), &service).await.granted();
    assert_ne!(first["metadata"]["name"], second["metadata"]["name"]);
    let name = text(&first["metadata"]["name"]);
    assert!(name.starts_with("made-") && name.len() == 10, "{name}");
    let (code, _, message) = scope
        .post("/api/v1/nodes", &json!({"metadata": {}}))
        .await
        .refused();
    assert_eq!(
        (code, message.as_str()),
        (
            422,
            "Node \"\" is invalid: metadata.name: Required value: name or generateName is required"
        )
    );
}
