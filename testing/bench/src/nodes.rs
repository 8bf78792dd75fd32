//! Nodes as large as real ones, and a watch that tells when their taints are gone.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::time::Duration;

use anyhow::{Context, Result};
use bytes::Bytes;
use futures::stream::{StreamExt as _, TryStreamExt as _};
use http::{Request, header};
use http_body_util::BodyExt as _;
use kube::client::Body;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::wait::PATIENCE;

/// The taint that a manager takes off when it has initialised a Node.
pub(crate) const UNINITIALIZED: &str = "node.cloudprovider.kubernetes.io/uninitialized";

/// Images that a kubelet reports at most (`--node-status-max-images`).
const IMAGES: u32 = 50;

/// Writes under way at once.
const AT_ONCE: usize = 16;

/// The name of a Node, and of its server in the simulated cloud.
pub(crate) fn name(number: u32) -> String {
    format!("node-{number}")
}

/// Creates Nodes that wait to be initialised.
pub(crate) async fn create(client: &kube::Client, numbers: RangeInclusive<u32>) -> Result<()> {
    send_each(client, numbers, |number| {
        Request::post("/api/v1/nodes")
            .header(header::CONTENT_TYPE, "application/json")
            .body(node(number).to_string().into_bytes())
    })
    .await
    .context("cannot create the nodes")
}

/// Writes the time into the status of each Node, as its kubelet does.
pub(crate) async fn heartbeat(client: &kube::Client, numbers: RangeInclusive<u32>) -> Result<()> {
    let now = jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let status = json!({"status": {"conditions": [{"type": "Ready", "lastHeartbeatTime": now}]}}).to_string();
    send_each(client, numbers, |number| {
        Request::patch(format!("/api/v1/nodes/{}/status", name(number)))
            .header(header::CONTENT_TYPE, "application/strategic-merge-patch+json")
            .body(status.clone().into_bytes())
    })
    .await
    .context("cannot write the heartbeats")
}

async fn send_each(
    client: &kube::Client,
    numbers: RangeInclusive<u32>,
    request: impl Fn(u32) -> http::Result<Request<Vec<u8>>>,
) -> Result<()> {
    futures::stream::iter(numbers)
        .map(|number| {
            let request = request(number);
            async move {
                let _written: Value = client.request(request?).await?;
                anyhow::Ok(())
            }
        })
        .buffer_unordered(AT_ONCE)
        .try_collect::<()>()
        .await
}

/// A Node with what a kubelet and its neighbours write. The server adds managed fields for all of it.
fn node(number: u32) -> Value {
    let images: Vec<Value> = (0..IMAGES)
        .map(|image| {
            let repository = format!("registry.example.com/platform/component-{image:02}");
            let digest = format!("{number:016x}{image:048x}");
            json!({
                "names": [
                    format!("{repository}@sha256:{digest}"),
                    format!("{repository}:v1.{image}.{}", number % 10),
                    format!("{repository}:stable"),
                ],
                "sizeBytes": 40_000_000 + u64::from(image) * 1_000_003,
            })
        })
        .collect();
    let time = "2026-01-02T03:04:05Z";
    let conditions: Vec<Value> = [
        ("MemoryPressure", "False", "KubeletHasSufficientMemory"),
        ("DiskPressure", "False", "KubeletHasNoDiskPressure"),
        ("PIDPressure", "False", "KubeletHasSufficientPID"),
        ("Ready", "True", "KubeletReady"),
    ]
    .iter()
    .map(|(kind, status, reason)| {
        json!({"type": kind, "status": status, "reason": reason, "message": format!("kubelet reports {reason}"),
            "lastHeartbeatTime": time, "lastTransitionTime": time})
    })
    .collect();
    let name = name(number);
    let resources = json!({"cpu": "4", "memory": "16384000Ki", "pods": "110", "ephemeral-storage": "50620216Ki",
        "hugepages-1Gi": "0", "hugepages-2Mi": "0"});
    json!({
        "metadata": {
            "name": name,
            "labels": {
                "beta.kubernetes.io/arch": "amd64", "beta.kubernetes.io/os": "linux",
                "kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux", "kubernetes.io/hostname": name,
                "node.example.com/pool": "workers", "node.example.com/generation": "7",
            },
            "annotations": {
                "node.alpha.kubernetes.io/ttl": "0",
                "volumes.kubernetes.io/controller-managed-attach-detach": "true",
                "csi.volume.kubernetes.io/nodeid": format!("{{\"csi.example.com\":\"{name}\"}}"),
            },
        },
        "spec": {
            "podCIDR": format!("10.{}.{}.0/24", 100 + number / 256, number % 256),
            "taints": [{"key": UNINITIALIZED, "value": "true", "effect": "NoSchedule"}],
        },
        "status": {
            "addresses": [{"type": "Hostname", "address": name}],
            "capacity": resources, "allocatable": resources,
            "conditions": conditions,
            "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
            "images": images,
            "nodeInfo": {
                "architecture": "amd64", "operatingSystem": "linux", "osImage": "Some Linux 12",
                "kernelVersion": "6.1.0", "kubeletVersion": "v1.37.0", "kubeProxyVersion": "",
                "containerRuntimeVersion": "containerd://2.0.0", "bootID": format!("{number:032x}"),
                "machineID": format!("{number:032x}"), "systemUUID": format!("{number:032x}"),
            },
        },
    })
}

async fn watch(client: &kube::Client) -> Result<Body> {
    let first = Request::get("/api/v1/nodes?limit=1").body(Vec::new())?;
    let list: Value = client.request(first).await?;
    let version = list["metadata"]["resourceVersion"]
        .as_str()
        .context("no resource version")?;
    let path = format!("/api/v1/nodes?watch=true&timeoutSeconds=3600&resourceVersion={version}");
    let response = client.send(Request::get(path).body(Body::empty())?).await?;
    anyhow::ensure!(response.status().is_success(), "watch: {}", response.status());
    Ok(response.into_body())
}

/// A watch of all Nodes. It looks at the bytes and parses nothing, so that it takes as little as it can from the
/// machine that it shares with what is measured.
pub(crate) struct TaintWatch {
    client: kube::Client,
    body: Body,
    buffer: Vec<u8>,
    tainted: BTreeSet<String>,
}

impl TaintWatch {
    /// Begins to watch. Must be called when these Nodes are still tainted, or not there yet.
    pub(crate) async fn open(client: &kube::Client, numbers: RangeInclusive<u32>) -> Result<Self> {
        Ok(Self {
            client: client.clone(),
            body: watch(client).await?,
            buffer: Vec::new(),
            tainted: numbers.map(name).collect(),
        })
    }

    /// Waits until none of the Nodes is tainted, and tells when that was.
    pub(crate) async fn all_clear(mut self) -> Result<Instant> {
        let clear = async {
            while !self.tainted.is_empty() {
                let Some(frame) = self.body.frame().await else {
                    self.begin_again().await?;
                    continue;
                };
                let data: Bytes = frame?.into_data().unwrap_or_default();
                let fresh = self.buffer.len();
                self.buffer.extend_from_slice(&data);
                self.take_lines(fresh);
            }
            Ok(Instant::now())
        };
        tokio::time::timeout(PATIENCE, clear)
            .await
            .context("the nodes are not initialised in time")?
    }

    /// The API server ends the watch of a client that does not keep up. What was missed is in a list.
    async fn begin_again(&mut self) -> Result<()> {
        self.buffer.clear();
        self.body = watch(&self.client).await?;
        let list: Value = self
            .client
            .request(Request::get("/api/v1/nodes").body(Vec::new())?)
            .await?;
        let items = list["items"].as_array().context("no list of nodes")?;
        for node in items {
            let taints = node["spec"]["taints"]
                .as_array()
                .map(Vec::as_slice)
                .unwrap_or_default();
            if !taints.iter().any(|taint| taint["key"] == UNINITIALIZED) {
                self.tainted
                    .remove(node["metadata"]["name"].as_str().unwrap_or_default());
            }
        }
        Ok(())
    }

    /// Looks at the lines that are complete; there is no line's end before this place.
    fn take_lines(&mut self, mut searched: usize) {
        let mut start = 0;
        while let Some(end) = self.buffer[searched..].iter().position(|byte| *byte == b'\n') {
            let line = &self.buffer[start..searched + end];
            if let Some(node) = cleared(line) {
                self.tainted.remove(node);
            }
            searched += end + 1;
            start = searched;
        }
        self.buffer.drain(..start);
    }
}

/// The name of the Node of an event, if it is not tainted any more.
fn cleared(event: &[u8]) -> Option<&str> {
    const BEFORE_NAME: &str = r#""metadata":{"name":""#;
    let event = std::str::from_utf8(event).ok()?;
    let (_, rest) = event.split_once(BEFORE_NAME)?;
    let (name, rest) = rest.split_once('"')?;
    (!rest.contains(UNINITIALIZED)).then_some(name)
}

/// How long ago a moment of the wall clock was.
pub(crate) fn since(moment: jiff::Timestamp) -> Duration {
    Duration::try_from(jiff::Timestamp::now().duration_since(moment)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_is_clear_when_its_event_does_not_name_the_taint() {
        let event = |taints: &str| {
            format!(
                r#"{{"type":"MODIFIED","object":{{"kind":"Node","metadata":{{"name":"node-7","uid":"1"}},"spec":{{{taints}}}}}}}"#
            )
        };
        assert_eq!(cleared(event("").as_bytes()), Some("node-7"));
        let tainted = event(&format!(r#""taints":[{{"key":"{UNINITIALIZED}"}}]"#));
        assert_eq!(cleared(tainted.as_bytes()), None);
        assert_eq!(cleared(b"{}"), None);
    }

    #[test]
    fn a_node_is_as_large_as_a_real_one() {
        let size = node(1000).to_string().len();
        assert!((10_000..40_000).contains(&size), "{size}");
    }
}
