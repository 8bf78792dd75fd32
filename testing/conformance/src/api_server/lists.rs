//! Lists: pages, selectors, versions.

use std::collections::BTreeSet;

use serde_json::json;

use super::scope::{Scope, names, text, version_of};

async fn five_services(scope: &Scope) {
    for name in ["a", "b", "c", "d", "e"] {
        scope.new_balanced(name).await;
    }
}

pub(super) async fn pages_show_one_moment(scope: Scope) {
    five_services(&scope).await;
    let path = format!("{}?limit=2", scope.services());
    let first = scope.get(&path).await.granted();
    assert_eq!(names(&first), ["a", "b"]);
    assert_eq!(
        (&first["kind"], &first["metadata"]["remainingItemCount"]),
        (&json!("ServiceList"), &json!(3))
    );
    // What happens between the pages is not in them.
    scope.new_balanced("aa").await;
    scope.new_balanced("cc").await;
    scope.delete(&scope.service("d"), &json!({})).await.granted();
    let mut next = text(&first["metadata"]["continue"]).to_owned();
    let mut seen = Vec::new();
    while !next.is_empty() {
        let page = scope.get(&format!("{path}&continue={next}")).await.granted();
        assert_eq!(
            version_of(&page),
            version_of(&first),
            "all pages are of one version"
        );
        seen.extend(names(&page).into_iter().map(str::to_owned));
        next = text(&page["metadata"]["continue"]).to_owned();
    }
    assert_eq!(seen, ["c", "d", "e"]);
    let (code, reason, _) = scope.get(&format!("{path}&continue=rubbish")).await.refused();
    assert_eq!((code, reason.as_str()), (400, "BadRequest"));
}

pub(super) async fn labels_select(scope: Scope) {
    for (name, labels) in [
        ("a", json!({"zone": "x", "tier": "front"})),
        ("b", json!({"zone": "y"})),
        ("c", json!({"zone": "z", "tier": "back"})),
        ("d", json!({"other": ""})),
    ] {
        scope.new_balanced(name).await;
        let patch = json!({"metadata": {"labels": labels}});
        scope.merge(&scope.service(name), &patch).await.granted();
    }
    for (selector, expected) in [
        ("zone=x", &["a"] as &[&str]),
        ("zone==x", &["a"]),
        ("zone!=x", &["b", "c", "d"]),
        ("zone in (x,y)", &["a", "b"]),
        ("zone notin (x,y)", &["c", "d"]),
        ("tier", &["a", "c"]),
        ("!tier", &["b", "d"]),
        ("zone,!tier", &["b"]),
        ("zone in (x,z),tier!=back", &["a"]),
    ] {
        let query: String = selector.bytes().map(|byte| format!("%{byte:02X}")).collect();
        let list = scope
            .get(&format!("{}?labelSelector={query}", scope.services()))
            .await
            .granted();
        assert_eq!(names(&list), expected, "{selector}");
    }
    let (code, reason, _) = scope
        .get(&format!("{}?labelSelector=a%20b", scope.services()))
        .await
        .refused();
    assert_eq!((code, reason.as_str()), (400, "BadRequest"));
}

pub(super) async fn fields_select(scope: Scope) {
    scope.new_balanced("lb").await;
    scope.new_service("plain", json!({"ports": [{"port": 1}]})).await;
    let list = |query: &'static str| {
        let path = format!("{}?fieldSelector={query}", scope.services());
        let scope = &scope;
        async move { scope.get(&path).await.granted() }
    };
    assert_eq!(names(&list("metadata.name%3Dlb").await), ["lb"]);
    assert_eq!(names(&list("metadata.name!%3Dlb").await), ["plain"]);
    assert_eq!(names(&list("spec.type%3DLoadBalancer").await), ["lb"]);

    scope.new_node("a", json!({})).await;
    scope
        .new_node("b", json!({"spec": {"unschedulable": true}}))
        .await;
    let path = format!("{}&fieldSelector=spec.unschedulable%3Dtrue", scope.own_nodes());
    assert_eq!(names(&scope.get(&path).await.granted()), [scope.node_name("b")]);
}

pub(super) async fn an_unknown_field_is_no_selector(scope: Scope) {
    let path = format!("{}?fieldSelector=spec.colour%3Dred", scope.services());
    let (code, reason, message) = scope.get(&path).await.refused();
    assert_eq!((code, reason.as_str()), (400, "BadRequest"));
    assert!(message.contains("spec.colour"), "{message}");
}

pub(super) async fn a_list_of_nothing_is_a_list(scope: Scope) {
    let list = scope.get(&scope.services()).await.granted();
    assert_eq!(
        (&list["kind"], &list["apiVersion"], &list["items"]),
        (&json!("ServiceList"), &json!("v1"), &json!([]))
    );
    assert!(version_of(&list).parse::<u64>().unwrap() > 0);
    let elsewhere = scope
        .get("/api/v1/namespaces/nowhere-at-all/services")
        .await
        .granted();
    assert_eq!(elsewhere["items"], json!([]));
}

pub(super) async fn an_object_that_is_not_there_is_not_found(scope: Scope) {
    let (code, reason, message) = scope.get(&scope.service("gone")).await.refused();
    assert_eq!(
        (code, reason.as_str(), message.as_str()),
        (404, "NotFound", "services \"gone\" not found")
    );
    let patch = json!({"metadata": {"labels": {"a": "b"}}});
    for path in [scope.service("gone"), format!("{}/status", scope.service("gone"))] {
        assert_eq!(scope.merge(&path, &patch).await.refused().0, 404);
    }
    assert_eq!(
        scope.delete(&scope.service("gone"), &json!({})).await.refused().0,
        404
    );
    let (code, _, message) = scope
        .post(
            "/api/v1/namespaces/nowhere-at-all/services",
            &json!({"metadata": {"name": "a"}, "spec": {"ports": [{"port": 1}]}}),
        )
        .await
        .refused();
    assert_eq!(
        (code, message.as_str()),
        (404, "namespaces \"nowhere-at-all\" not found")
    );
}

pub(super) async fn a_list_may_begin_at_a_version(scope: Scope) {
    five_services(&scope).await;
    let list = scope.get(&scope.services()).await.granted();
    let version = version_of(&list);
    for query in [
        "resourceVersion=0".to_owned(),
        format!("resourceVersion={version}"),
        format!("resourceVersion={version}&resourceVersionMatch=NotOlderThan"),
        format!("resourceVersion={version}&resourceVersionMatch=Exact"),
    ] {
        let path = format!("{}?{query}", scope.services());
        let found = scope.get(&path).await.granted();
        let all: BTreeSet<&str> = names(&found).into_iter().collect();
        // A list from version 0 may be as old as it likes.
        if query != "resourceVersion=0" {
            assert_eq!(all, BTreeSet::from(["a", "b", "c", "d", "e"]), "{query}");
        }
    }
    for (query, code) in [
        ("limit=x", 400),
        ("resourceVersionMatch=Exact", 422),
        ("resourceVersion=x", 400),
    ] {
        let path = format!("{}?{query}", scope.services());
        assert_eq!(scope.get(&path).await.refused().0, code, "{query}");
    }
}

/// Objects without managed fields may be asked for. A server that does not know how gives the whole objects.
pub(super) async fn managed_fields_that_are_not_wanted_change_nothing_else(scope: Scope) {
    const PARTIAL: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
    five_services(&scope).await;
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
