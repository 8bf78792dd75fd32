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

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bowline_kube_api::KubeApi;
use bowline_kube_io::{Gate, GateClosed, Kube, KubeOptions, TokioClock};
use jiff::Timestamp;
use serde_json::{Value, json};

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
