//! The client against the embedded API server, in one process and under a stopped clock.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests too")]

mod accounts;
mod bounds;
mod credentials;
mod events;
mod lease;
mod missing;
mod sockets;
mod unreadable;
mod watches;
mod writes;

use std::convert::Infallible;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bowline_cloud_provider::{Node, Service, ServiceKey};
use bowline_kube_api::{Effect, Fault, KubeApi};
use bowline_kube_io::{
    Body, Cache, CacheKey, Change, Gate, GateClosed, Kube, KubeOptions, NodeCache, ServiceCache, TokioClock,
    watch_nodes, watch_services,
};
use bytes::Bytes;
use futures::{StreamExt as _, stream};
use http::{Request, Response, Uri};
use http_body_util::StreamBody;
use hyper::body::Frame;
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

fn start_time() -> Timestamp {
    "2026-03-01T10:00:00Z".parse().unwrap()
}

fn server() -> KubeApi {
    KubeApi::builder().start_time(start_time()).build()
}

fn options() -> KubeOptions {
    KubeOptions {
        clock: Arc::new(TokioClock::starting_at(start_time())),
        ..KubeOptions::new("test/1")
    }
}

fn client(api: &KubeApi) -> Kube {
    Kube::with_service(api.service(), options())
}

fn node(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}})
}

fn service(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"namespace": "default", "name": name},
        "spec": {"type": "LoadBalancer", "selector": {"app": name}, "ports": [{"port": 80}]}
    })
}

/// Creates Nodes called `n000`, `n001` and so on.
fn add_nodes(api: &KubeApi, number: usize) {
    for number in 0..number {
        api.apply_json(node(&format!("n{number:03}"))).unwrap();
    }
}

/// What this request meets from now on.
fn fault(effect: Effect, verb: &str, resource: &str) -> Fault {
    Fault::new(effect).verb(verb).resource(resource)
}

async fn pass(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}

/// A cache with its watch, and what its listeners were told.
struct Watched<T: CacheKey> {
    cache: Arc<Cache<T>>,
    seen: Arc<Mutex<Vec<String>>>,
    watch: JoinHandle<()>,
}

impl Watched<Node> {
    fn nodes(kube: Kube) -> Self {
        let cache = Arc::new(NodeCache::new());
        let seen = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&seen);
        cache.subscribe(Arc::new(move |change| {
            let text = match change {
                Change::Added(node) => format!("+{}", node.name),
                Change::Updated { new, .. } => format!("~{}", new.name),
                Change::Deleted(node) => format!("-{}", node.name),
            };
            log.lock().unwrap().push(text);
        }));
        let watch = tokio::spawn(watch_nodes(kube, Arc::clone(&cache)));
        Self { cache, seen, watch }
    }

    fn seen(&self) -> String {
        self.seen.lock().unwrap().join(" ")
    }
}

impl Watched<Service> {
    fn services(kube: Kube) -> Self {
        let cache = Arc::new(ServiceCache::new());
        let watch = tokio::spawn(watch_services(kube, Arc::clone(&cache)));
        let seen = Arc::default();
        Self { cache, seen, watch }
    }

    fn knows(&self, name: &str) -> bool {
        self.cache.get(&ServiceKey::new("default", name)).is_some()
    }
}

impl<T: CacheKey> Drop for Watched<T> {
    fn drop(&mut self) {
        self.watch.abort();
    }
}

/// A client of a server that says this to each request, and ends the answer after this time, or never.
fn scripted(answer: impl Fn(&Uri) -> (String, Option<Duration>) + Clone + Send + Sync + 'static) -> Kube {
    let service = tower::service_fn(move |request: Request<Body>| {
        let (text, ends) = answer(request.uri());
        let first = stream::iter([Ok::<_, Infallible>(Frame::data(Bytes::from(text)))]);
        let last = stream::once(async move {
            match ends {
                Some(after) => tokio::time::sleep(after).await,
                None => std::future::pending().await,
            }
            Ok(Frame::data(Bytes::new()))
        });
        std::future::ready(Ok::<_, Infallible>(Response::new(StreamBody::new(
            first.chain(last),
        ))))
    });
    Kube::with_service(service, options())
}

/// Waits until it is so; an hour of the stopped clock is long enough for everything here.
async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let poll = async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(3600), poll)
        .await
        .unwrap_or_else(|_| panic!("never: {what}"));
}

/// Tries until it works; for real sockets, so under the real clock, within half a minute.
async fn eventually(mut works: impl AsyncFnMut() -> bool) {
    let tries = async {
        while !works().await {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), tries)
        .await
        .unwrap_or_else(|_| panic!("it never works"));
}

/// A gate that a test opens and closes.
struct Switch(AtomicBool);

impl Switch {
    fn open() -> Arc<Self> {
        Arc::new(Self(AtomicBool::new(true)))
    }

    fn close(&self) {
        self.0.store(false, Ordering::SeqCst);
    }
}

impl Gate for Switch {
    fn check(&self) -> Result<(), GateClosed> {
        match self.0.load(Ordering::SeqCst) {
            true => Ok(()),
            false => Err(GateClosed::new("closed")),
        }
    }
}
