//! What a `kube` client sees of the embedded server alone: its stopped clock, its faults and its gaps. What it shares with a
//! real one is in the conformance suite.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::time::Duration;

use bowline_kube_api::{Effect, Fault, KubeApi, Status};
use futures::TryStreamExt;
use k8s_openapi::api::core::v1::Node;
use kube::api::{Api, Patch, PatchParams, PostParams, WatchEvent, WatchParams};
use kube::{Client, Error};
use serde_json::json;

fn server() -> (KubeApi, Api<Node>) {
    let api = KubeApi::builder().seed(7).build();
    let nodes = Api::all(Client::new(api.service(), "default"));
    (api, nodes)
}

fn node(name: &str) -> Node {
    serde_json::from_value(json!({"metadata": {"name": name}})).unwrap()
}

fn refusal(result: Result<impl std::fmt::Debug, Error>) -> (u16, String, String) {
    match result {
        Err(Error::Api(status)) => (status.code, status.reason.clone(), status.message.clone()),
        other => panic!("not refused: {other:?}"),
    }
}

#[tokio::test]
async fn server_side_apply_is_refused() {
    let (_, nodes) = server();
    let apply = nodes
        .patch("a", &PatchParams::apply("test"), &Patch::Apply(node("a")))
        .await;
    let (code, _, message) = refusal(apply);
    assert_eq!(
        (code, message.as_str()),
        (415, "server-side apply is not served by this embedded API server")
    );
}

#[tokio::test(start_paused = true)]
async fn a_watch_ends_at_its_timeout_and_sends_bookmarks_until_then() {
    let (_, nodes) = server();
    let begun = tokio::time::Instant::now();
    let stream = nodes
        .watch(&WatchParams::default().timeout(150), "0")
        .await
        .unwrap();
    let events: Vec<_> = stream.try_collect().await.unwrap();
    assert!(
        events
            .iter()
            .all(|event| matches!(event, WatchEvent::Bookmark(_))),
        "{events:?}"
    );
    assert_eq!(
        events.len(),
        3,
        "after one minute, after two, and shortly before the end"
    );
    assert_eq!(begun.elapsed().as_secs(), 150);
}

#[tokio::test(start_paused = true)]
async fn faults_refuse_delay_and_break_requests() {
    let (api, nodes) = server();
    api.faults()
        .fail_next(1, "create", "nodes", Status::too_many_requests(3));
    let (code, reason, _) = refusal(nodes.create(&PostParams::default(), &node("a")).await);
    assert_eq!((code, reason.as_str()), (429, "TooManyRequests"));
    api.faults()
        .inject(Fault::new(Effect::DropBefore).verb("create").times(1));
    assert!(nodes.create(&PostParams::default(), &node("a")).await.is_err());
    assert_eq!(api.object("Node", "", "a"), None);
    api.faults()
        .inject(Fault::new(Effect::DropAfter).verb("create").times(1));
    assert!(nodes.create(&PostParams::default(), &node("a")).await.is_err());
    assert!(api.object("Node", "", "a").is_some());
    api.faults()
        .inject(Fault::new(Effect::Delay(Duration::from_secs(7))).resource("nodes"));
    let begun = tokio::time::Instant::now();
    nodes.get("a").await.unwrap();
    assert_eq!(begun.elapsed().as_secs(), 7);

    let codes: Vec<u16> = api
        .journal()
        .of("create", "nodes")
        .iter()
        .map(|exchange| exchange.status)
        .collect();
    assert_eq!(codes, [429, 0, 0]);
    assert_eq!(api.journal().writes().len(), 3);
    assert_eq!(
        api.journal().all()[0].body.as_ref().unwrap()["metadata"]["name"],
        "a"
    );
}
