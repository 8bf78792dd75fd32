//! Watches: order, resumption, selectors, bookmarks.

use serde_json::{Value, json};

use super::scope::{Scope, text, version_of};

async fn touch(scope: &Scope, name: &str, value: &str) -> Value {
    let patch = json!({"metadata": {"labels": {"step": value}}});
    scope.merge(&scope.service(name), &patch).await.granted()
}

fn shown(event: &(String, Value)) -> (&str, &str) {
    (event.0.as_str(), text(&event.1["metadata"]["labels"]["step"]))
}

async fn version_now(scope: &Scope) -> String {
    version_of(&scope.get(&scope.services()).await.granted()).to_owned()
}

pub(super) async fn a_watch_shows_each_change_in_order(scope: Scope) {
    let since = version_now(&scope).await;
    let path = format!("{}?watch=true&resourceVersion={since}", scope.services());
    let mut watch = scope.watch(&path).await;
    let made = scope.new_balanced("a").await;
    let last = touch(&scope, "a", "1").await;
    scope.delete(&scope.service("a"), &json!({})).await.granted();

    let (kind, added) = watch.expect().await;
    assert_eq!(
        (kind.as_str(), &added),
        ("ADDED", &made),
        "the object as it was created"
    );
    let (kind, modified) = watch.expect().await;
    assert_eq!((kind.as_str(), &modified), ("MODIFIED", &last));
    let (kind, deleted) = watch.expect().await;
    assert_eq!(
        (kind.as_str(), &deleted["metadata"]["uid"]),
        ("DELETED", &made["metadata"]["uid"])
    );
    let version = |object: &Value| version_of(object).parse::<u64>().unwrap();
    assert!(version(&added) < version(&modified));
    assert!(
        version(&modified) < version(&deleted),
        "the deletion has a version of its own"
    );
}

pub(super) async fn a_watch_goes_on_where_the_last_one_ended(scope: Scope) {
    let since = version_now(&scope).await;
    scope.new_balanced("a").await;
    let middle = touch(&scope, "a", "1").await;
    touch(&scope, "a", "2").await;
    let path = |version: &str| {
        format!(
            "{}?watch=true&timeoutSeconds=1&resourceVersion={version}",
            scope.services()
        )
    };
    let mut watch = scope.watch(&path(&since)).await;
    for expected in [("ADDED", ""), ("MODIFIED", "1"), ("MODIFIED", "2")] {
        assert_eq!(shown(&watch.expect().await), expected);
    }
    assert!(watch.next().await.is_none(), "it ends when it was asked to");
    let mut watch = scope.watch(&path(version_of(&middle))).await;
    assert_eq!(shown(&watch.expect().await), ("MODIFIED", "2"));
    assert!(watch.next().await.is_none());
}

pub(super) async fn a_selector_turns_changes_into_arrivals_and_departures(scope: Scope) {
    let since = version_now(&scope).await;
    let path = format!(
        "{}?watch=true&resourceVersion={since}&labelSelector=step%3Din",
        scope.services()
    );
    let mut watch = scope.watch(&path).await;
    scope.new_balanced("a").await;
    for step in ["in", "out", "in"] {
        touch(&scope, "a", step).await;
    }
    scope.new_balanced("b").await;
    scope.delete(&scope.service("a"), &json!({})).await.granted();
    let mut kinds = Vec::new();
    for _ in 0..4 {
        let (kind, object) = watch.expect().await;
        assert_eq!(object["metadata"]["name"], "a");
        kinds.push(kind);
    }
    assert_eq!(kinds, ["ADDED", "DELETED", "ADDED", "DELETED"]);
}

pub(super) async fn bookmarks_come_before_the_end(scope: Scope) {
    let since = version_now(&scope).await;
    // Something else moves the version on.
    scope.new_node("a", json!({})).await;
    let path = format!(
        "{}?watch=true&resourceVersion={since}&allowWatchBookmarks=true&timeoutSeconds=4",
        scope.services()
    );
    let mut watch = scope.watch(&path).await;
    let mut bookmarks = 0;
    while let Some((kind, object)) = watch.next().await {
        assert_eq!(kind, "BOOKMARK", "{object}");
        assert_eq!(
            (&object["kind"], &object["apiVersion"]),
            (&json!("Service"), &json!("v1"))
        );
        let version = |text: &str| text.parse::<u64>().unwrap();
        assert!(version(version_of(&object)) >= version(&since));
        bookmarks += 1;
    }
    assert!(bookmarks > 0);
}

pub(super) async fn a_watch_can_begin_with_all_there_is(scope: Scope) {
    scope.new_balanced("a").await;
    scope.new_balanced("b").await;
    let path = format!(
        "{}?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true",
        scope.services()
    );
    let mut watch = scope.watch(&path).await;
    for name in ["a", "b"] {
        let (kind, object) = watch.expect().await;
        assert_eq!(
            (kind.as_str(), text(&object["metadata"]["name"])),
            ("ADDED", name)
        );
    }
    let (kind, bookmark) = watch.expect().await;
    assert_eq!(
        (
            kind.as_str(),
            &bookmark["metadata"]["annotations"]["k8s.io/initial-events-end"]
        ),
        ("BOOKMARK", &json!("true"))
    );
    touch(&scope, "b", "1").await;
    assert_eq!(shown(&watch.expect().await), ("MODIFIED", "1"));
}
