//! Objects that cannot be understood.

use std::sync::Arc;

use bowline_controllers::tell_of_unreadable;
use bowline_kube_io::ServiceCache;
use serde_json::{Value, json};

use crate::cluster::{Cluster, SECOND, node_of};

/// A Node with a condition that has no status.
fn odd(name: &str) -> Value {
    let mut node = node_of(name, None);
    node["status"]["conditions"] = json!([{ "type": "Ready" }]);
    node
}

#[tokio::test(start_paused = true)]
async fn an_object_that_is_not_understood_is_told_of_every_quarter_of_an_hour_whatever_others_do() {
    let cluster = Cluster::new();
    let (nodes, services) = (Arc::clone(&cluster.nodes), Arc::new(ServiceCache::new()));
    let telling = tokio::spawn(tell_of_unreadable(
        nodes,
        services,
        cluster.events.recorder("test"),
    ));
    cluster.put(odd("a"));
    let told = || -> u64 {
        let events = cluster.api.objects("Event");
        let of_a = events.iter().filter(|event| {
            event["involvedObject"]["name"] == "a" && event["reason"] == "ObjectNotUnderstood"
        });
        of_a.map(|event| event["count"].as_u64().unwrap_or(1)).sum()
    };
    cluster.soon("a is told of", |_| told() == 1).await;
    cluster.pass(SECOND * 14 * 60).await;
    cluster.put(odd("b"));
    cluster.pass(SECOND * 2 * 60).await;
    assert_eq!(told(), 2);
    cluster.pass(SECOND * 60 * 60).await;
    assert!((6..=8).contains(&told()), "{}", told());
    telling.abort();
}
