//! Objects that this program does not understand, from a server made up for it.

use std::convert::Infallible;
use std::future::ready;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bowline_cloud_provider::NodeName;
use bowline_kube_io::{Body, Kube, KubeError, NodeCache, watch_nodes};
use http::{Request, Response};
use serde_json::{Value, json};

use crate::{options, until};

/// Answers each list with the next of these; watches with *expired*.
fn answering(lists: Vec<Value>) -> Kube {
    let asked = AtomicUsize::new(0);
    Kube::with_service(
        tower::service_fn(move |request: Request<Body>| {
            let is_watch = request
                .uri()
                .query()
                .is_some_and(|query| query.contains("watch=true"));
            let body = if is_watch {
                let status = json!({"kind": "Status", "code": 410, "message": "too old"});
                format!("{}\n", json!({"type": "ERROR", "object": status}))
            } else {
                let is_count = request.uri().query().is_some_and(|query| query.contains("Exact"));
                let number =
                    asked.fetch_add(usize::from(!is_count), Ordering::SeqCst) - usize::from(is_count);
                let number = number.min(lists.len() - 1);
                json!({
                    "kind": "NodeList", "apiVersion": "v1",
                    "metadata": {"resourceVersion": "7"}, "items": lists[number],
                })
                .to_string()
            };
            ready(Ok::<_, Infallible>(Response::new(Body::from(body.into_bytes()))))
        }),
        options(),
    )
}

fn node(name: &str, version: &str, effect: &str) -> Value {
    json!({
        "metadata": {"name": name, "uid": name, "resourceVersion": version},
        "spec": {"taints": [{"key": "k", "effect": effect}]}
    })
}

#[tokio::test(start_paused = true)]
async fn a_node_that_cannot_be_understood_is_not_gone() {
    let first = json!([node("a", "1", "NoSchedule"), node("b", "1", "NoSchedule")]);
    let second = json!([node("a", "2", "NoSchedule"), node("b", "2", "FromTheFuture")]);
    let cache = Arc::new(NodeCache::new());
    let watch = tokio::spawn(watch_nodes(answering(vec![first, second]), Arc::clone(&cache)));
    let version = |name: &str| {
        cache
            .get(&NodeName::new(name))
            .map(|node| node.resource_version.to_string())
    };
    until("the second list", || version("a").as_deref() == Some("2")).await;
    assert_eq!(version("b").as_deref(), Some("1"));
    watch.abort();
}

#[tokio::test(start_paused = true)]
async fn a_complete_list_has_no_gaps() {
    let kube = answering(vec![json!([
        node("a", "1", "NoSchedule"),
        node("b", "1", "FromTheFuture")
    ])]);
    let error = kube.list_nodes().await.unwrap_err();
    assert_eq!(error, KubeError::Decode("nodes \"b\"".into()));
}
