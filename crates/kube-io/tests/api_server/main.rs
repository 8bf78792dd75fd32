//! The client against servers made up for a test, and over real sockets; what an API server in memory can show is in `tests/scenarios`.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests too")]

mod credentials;
mod sockets;
mod unreadable;
mod watches;

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bowline_cloud_provider::{Node, Service};
use bowline_kube_api::KubeApi;
use bowline_kube_io::{Body, Cache, CacheKey, Kube, KubeOptions, TokioClock, watch_nodes, watch_services};
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

async fn pass(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}

/// A cache with its watch.
struct Watched<T: CacheKey> {
    cache: Arc<Cache<T>>,
    watch: JoinHandle<()>,
}

impl Watched<Node> {
    fn nodes(kube: Kube) -> Self {
        let cache = Arc::new(Cache::new());
        let watch = tokio::spawn(watch_nodes(kube, Arc::clone(&cache)));
        Self { cache, watch }
    }
}

impl Watched<Service> {
    fn services(kube: Kube) -> Self {
        let cache = Arc::new(Cache::new());
        let watch = tokio::spawn(watch_services(kube, Arc::clone(&cache)));
        Self { cache, watch }
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
