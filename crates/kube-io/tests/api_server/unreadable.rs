//! Objects that this program does not understand, from a server made up for it.

use std::convert::Infallible;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bowline_cloud_provider::{Node, NodeName};
use bowline_kube_io::{Body, Kube, KubeError, NodeCache, NodePatch, watch_nodes};
use bytes::Bytes;
use futures::{StreamExt as _, stream};
use http::{Request, Response};
use http_body_util::StreamBody;
use hyper::body::Frame;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::{options, until};

/// A server of Nodes that says what it is told to say.
#[derive(Clone, Default)]
struct Server(Arc<Told>);

#[derive(Default)]
struct Told {
    /// What lists show.
    items: Mutex<Vec<Value>>,
    /// What the next watch shows before it falls silent; without any, it says that it has expired.
    events: Mutex<Vec<Value>>,
    /// How many lists of everything were asked for.
    lists: AtomicUsize,
}

impl Server {
    fn showing(items: &[Value]) -> Self {
        let server = Self::default();
        server.show(items);
        server
    }

    fn show(&self, items: &[Value]) {
        *self.0.items.lock().unwrap() = items.to_vec();
    }

    fn then(&self, events: &[Value]) {
        *self.0.events.lock().unwrap() = events.to_vec();
    }

    fn lists(&self) -> usize {
        self.0.lists.load(Ordering::SeqCst)
    }

    fn client(&self) -> Kube {
        let told = Arc::clone(&self.0);
        Kube::with_service(
            tower::service_fn(move |request: Request<Body>| {
                let (body, is_open) = told.answer(request.uri().query().unwrap_or_default());
                let first = stream::iter([Ok::<_, Infallible>(Frame::data(Bytes::from(body)))]);
                let rest = stream::pending().take(usize::from(is_open));
                std::future::ready(Ok::<_, Infallible>(Response::new(StreamBody::new(
                    first.chain(rest),
                ))))
            }),
            options(),
        )
    }

    fn watched(&self) -> (Arc<NodeCache>, JoinHandle<()>) {
        let cache = Arc::new(NodeCache::new());
        let watch = tokio::spawn(watch_nodes(self.client(), Arc::clone(&cache)));
        (cache, watch)
    }
}

impl Told {
    /// A body, and whether it stays open.
    fn answer(&self, query: &str) -> (String, bool) {
        if query.contains("watch=true") {
            let events = std::mem::take(&mut *self.events.lock().unwrap());
            if events.is_empty() {
                let status = json!({"kind": "Status", "code": 410, "message": "too old"});
                return (format!("{}\n", json!({"type": "ERROR", "object": status})), false);
            }
            let line = |object| format!("{}\n", json!({"type": "MODIFIED", "object": object}));
            return (events.iter().map(line).collect(), true);
        }
        let mut items = self.items.lock().unwrap().clone();
        if let Some((_, name)) = query.split_once("metadata.name%3D") {
            items.retain(|item| item["metadata"]["name"] == name);
        } else if !query.contains("Exact") {
            self.lists.fetch_add(1, Ordering::SeqCst);
        }
        let list = json!({
            "kind": "NodeList", "apiVersion": "v1", "metadata": {"resourceVersion": "70"}, "items": items,
        });
        (list.to_string(), false)
    }
}

fn node(name: &str, version: &str, taint: Value) -> Value {
    json!({
        "metadata": {"name": name, "uid": name, "resourceVersion": version},
        "spec": {"taints": [taint]}
    })
}

/// A Node that is read.
fn good(name: &str, version: &str) -> Value {
    node(name, version, json!({"key": "k", "effect": "NoSchedule"}))
}

/// A Node that is not.
fn bad(name: &str, version: &str) -> Value {
    node(name, version, json!("spam"))
}

fn version(cache: &NodeCache, name: &str) -> Option<String> {
    let node = cache.get(&NodeName::new(name))?;
    Some(node.resource_version.to_string())
}

async fn pass(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}

#[tokio::test(start_paused = true)]
async fn a_node_that_cannot_be_understood_is_not_gone() {
    let server = Server::showing(&[good("a", "1"), good("b", "1")]);
    let (cache, watch) = server.watched();
    cache.synced().await;
    server.show(&[good("a", "2"), bad("b", "2")]);
    until("the second list", || version(&cache, "a").as_deref() == Some("2")).await;
    assert_eq!(version(&cache, "b").as_deref(), Some("1"));
    // It fills the cache of a new leader too.
    cache.renew();
    cache.synced().await;
    assert_eq!(version(&cache, "b").as_deref(), Some("1"));
    watch.abort();
}

#[tokio::test(start_paused = true)]
async fn a_cache_is_not_filled_while_an_unknown_node_cannot_be_understood() {
    let server = Server::showing(&[good("a", "1"), bad("b", "1")]);
    let (cache, watch) = server.watched();
    pass(600).await;
    assert!(!cache.is_synced());
    let refusal = cache.refusal().unwrap().to_string();
    assert!(
        refusal.starts_with("answer of the API server: Node b: invalid type: string")
            && refusal.contains("Nothing is changed"),
        "{refusal}"
    );
    let lists = server.lists();
    assert!((20..=30).contains(&lists), "{lists} lists in ten minutes");
    server.show(&[good("a", "1"), good("b", "2")]);
    server.then(&[good("a", "3")]);
    cache.synced().await;
    assert_eq!((cache.len(), cache.refusal()), (2, None));
    watch.abort();
}

#[tokio::test(start_paused = true)]
async fn a_new_leader_waits_for_a_node_that_it_has_never_understood() {
    let server = Server::showing(&[good("a", "1")]);
    server.then(&[good("a", "2")]);
    let (cache, watch) = server.watched();
    until("the watch", || version(&cache, "a").as_deref() == Some("2")).await;
    server.show(&[good("a", "2"), bad("b", "3")]);
    cache.renew();
    pass(60).await;
    assert!(!cache.is_synced() && cache.refusal().is_some());
    server.show(&[good("a", "2")]); // somebody deleted it
    cache.synced().await;
    assert_eq!(cache.len(), 1);
    watch.abort();
}

#[tokio::test(start_paused = true)]
async fn a_list_with_an_object_without_a_name_is_not_believed() {
    let server = Server::showing(&[good("a", "1"), good("b", "1")]);
    let (cache, watch) = server.watched();
    cache.synced().await;
    for nameless in [
        json!({}),
        json!(null),
        good("", "2"),
        json!({"metadata": {"uid": "b"}, "spec": {}}),
    ] {
        let before = server.lists();
        server.show(&[good("a", "2"), nameless.clone()]);
        until("it is listed again", || server.lists() > before + 2).await;
        assert_eq!(version(&cache, "a").as_deref(), Some("1"), "{nameless}");
        assert_eq!(cache.len(), 2, "{nameless}");
    }
    let error = server.client().list_nodes().await.unwrap_err().to_string();
    assert!(error.contains("one of its objects has no name"), "{error}");
    watch.abort();
}

#[tokio::test(start_paused = true)]
async fn a_list_is_asked_whether_an_object_of_a_watch_is_as_odd_as_shown() {
    for (case, event) in [
        ("known", bad("a", "2")),
        ("never seen", bad("b", "2")),
        ("lost its metadata", json!({"spec": {}})),
        ("lost its spec", json!({"metadata": good("a", "2")["metadata"]})),
    ] {
        let server = Server::showing(&[good("a", "1")]);
        server.then(&[event]);
        let (cache, watch) = server.watched();
        cache.synced().await;
        server.show(&[good("a", "3"), good("b", "2")]);
        server.then(&[good("a", "4")]);
        until(case, || version(&cache, "a").as_deref() == Some("4")).await;
        assert_eq!(version(&cache, "b").as_deref(), Some("2"), "{case}");
        watch.abort();
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_list_shows_as_oddly_as_the_watch_is_not_listed_again() {
    let server = Server::showing(&[good("a", "1")]);
    server.then(&[bad("b", "2")]);
    let (cache, watch) = server.watched();
    cache.synced().await;
    server.show(&[good("a", "1"), bad("b", "2")]);
    server.then(&[bad("b", "3"), bad("b", "4"), good("a", "5")]);
    until("the second watch", || {
        version(&cache, "a").as_deref() == Some("5")
    })
    .await;
    assert_eq!(server.lists(), 2);
    assert!(
        cache.is_synced() && cache.refusal().is_none(),
        "nothing was done for it"
    );
    watch.abort();
}

#[tokio::test(start_paused = true)]
async fn what_a_node_cannot_lose_is_not_lost() {
    let whole = || {
        json!({
            "metadata": {
                "name": "a", "uid": "a", "resourceVersion": "5", "deletionTimestamp": "2026-03-01T10:00:00Z"
            },
            "spec": {"providerID": "nimbus://7", "podCIDRs": ["10.1.0.0/24"]},
            "status": {
                "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}],
                "conditions": [{"type": "Ready", "status": "True"}]
            }
        })
    };
    let losses: [fn(&mut Value); 6] = [
        |node| node["spec"]["providerID"] = Value::Null,
        |node| node["spec"]["providerID"] = json!(""),
        |node| node["spec"]["podCIDRs"] = Value::Null,
        |node| node["spec"] = json!({}),
        |node| node["status"] = Value::Null,
        |node| node["metadata"]["deletionTimestamp"] = Value::Null,
    ];
    for lose in losses {
        let mut lossy = whole();
        lose(&mut lossy);
        let mut old = lossy.clone();
        old["metadata"]["resourceVersion"] = json!("4");
        lossy["metadata"]["resourceVersion"] = json!("6");

        let server = Server::showing(&[whole()]);
        server.then(&[old, lossy.clone()]);
        let (cache, watch) = server.watched();
        cache.synced().await;
        server.show(&[lossy.clone(), good("b", "6")]);
        until("the second list", || version(&cache, "b").is_some()).await;
        pass(60).await;
        assert_eq!(version(&cache, "a").as_deref(), Some("5"), "{lossy}");
        // Others of its fields may change.
        let mut next = whole();
        next["metadata"]["resourceVersion"] = json!("7");
        next["metadata"]["labels"] = Value::Null;
        next["status"]["addresses"] = json!([]);
        server.show(&[next]);
        until("the next list", || version(&cache, "a").as_deref() == Some("7")).await;
        watch.abort();
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_not_the_object_asked_for_is_an_error() {
    let nameless = "Node a: the answer is about another object";
    let versionless = json!({"metadata": {"name": "a", "uid": "u"}, "spec": {}});
    let cases = [
        (json!({}), "`metadata`", None),
        (good("b", "2"), nameless, None),
        (versionless, "Node a: it has no `metadata.resourceVersion`", None),
        // Of what was written, only the metadata is looked at.
        (
            json!({"metadata": good("a", "2")["metadata"]}),
            "Node a: it has no `spec`",
            Some("2"),
        ),
    ];
    for (body, why, written) in cases {
        let answer = body.to_string();
        let kube = Kube::with_service(
            tower::service_fn(move |_: Request<Body>| {
                std::future::ready(Ok::<_, Infallible>(Response::new(Body::from(
                    answer.clone().into_bytes(),
                ))))
            }),
            options(),
        );
        let node = Node::named("a");
        let error = kube.node(&node.name).await.unwrap_err();
        assert!(error.to_string().contains(why), "{error}");
        match (kube.patch_node(&node, &NodePatch::default()).await, written) {
            (Ok(answer), Some(version)) => assert_eq!(answer.resource_version, version),
            (Err(error), None) => assert!(error.to_string().contains(why), "{error}"),
            (answer, _) => panic!("{answer:?}"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_complete_list_has_no_gaps() {
    let kube = Server::showing(&[good("a", "1"), bad("b", "1")]).client();
    let KubeError::Decode(error) = kube.list_nodes().await.unwrap_err() else {
        panic!("another error")
    };
    assert!(error.starts_with("Node b: invalid type: string"), "{error}");
}
