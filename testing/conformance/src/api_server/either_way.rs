//! What servers may answer in more than one way.

use serde_json::{Value, json};

use super::scope::{Scope, names, text, version_of};

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

/// Objects without managed fields may be asked for. A server that does not know how gives the whole objects.
pub(super) async fn managed_fields_that_are_not_wanted_change_nothing_else(scope: Scope) {
    const PARTIAL: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
    for name in ["a", "b", "c", "d", "e"] {
        scope.new_balanced(name).await;
    }
    for form in ["application/json", PARTIAL] {
        let lean = format!("{form};drop=metadata.managedFields");
        let [mut whole, mut lean] = [
            scope.get_as(&scope.services(), form).await.granted(),
            scope.get_as(&scope.services(), &lean).await.granted(),
        ];
        for list in [&mut whole, &mut lean] {
            for item in list["items"].as_array_mut().unwrap() {
                item["metadata"].as_object_mut().unwrap().remove("managedFields");
            }
            // Other tests write to the same server between the two requests.
            list["metadata"]
                .as_object_mut()
                .unwrap()
                .remove("resourceVersion");
        }
        assert_eq!(names(&lean).len(), 5);
        assert_eq!(lean, whole);
    }
}

pub(super) async fn a_watch_from_a_forgotten_past_expires(scope: Scope) {
    let made = scope.new_balanced("a").await;
    scope.new_balanced("b").await;
    scope.embedded().compact();
    let path = format!(
        "{}?watch=true&resourceVersion={}",
        scope.services(),
        version_of(&made)
    );
    let answer = scope.get(&format!("{path}&timeoutSeconds=1")).await;
    let told = if answer.code == 200 {
        answer.body["object"].clone()
    } else {
        answer.body
    };
    assert_eq!(
        (&told["code"], &told["reason"]),
        (&json!(410), &json!("Expired")),
        "{told}"
    );
}
