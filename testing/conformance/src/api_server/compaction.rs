//! What happens when history is gone.

use serde_json::json;

use super::scope::{Scope, text, version_of};

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

pub(super) async fn a_page_of_a_forgotten_past_expires(scope: Scope) {
    for name in ["a", "b", "c"] {
        scope.new_balanced(name).await;
    }
    let path = format!("{}?limit=1", scope.services());
    let first = scope.get(&path).await.granted();
    scope.new_balanced("d").await;
    scope.embedded().compact();
    let next = text(&first["metadata"]["continue"]);
    let (code, reason, _) = scope.get(&format!("{path}&continue={next}")).await.refused();
    assert_eq!((code, reason.as_str()), (410, "Expired"));
}
