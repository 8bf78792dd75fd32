//! The same writes by a client that decides nothing: what no manager can beat.

use std::time::Duration;

use anyhow::{Context, Result};
use futures::stream::{StreamExt as _, TryStreamExt as _};
use http::Request;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::nodes::{self, TaintWatch};
use crate::services;
use crate::world::World;

/// Requests under way at once, to the API server as to the cloud. It is what our manager allows itself.
const IN_FLIGHT: usize = 16;

const FINALIZER: &str = "service.kubernetes.io/load-balancer-cleanup";

#[derive(Deserialize)]
struct Versioned {
    metadata: Meta,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Meta {
    uid: String,
    resource_version: String,
}

async fn patch(client: &kube::Client, path: &str, kind: &str, body: &Value) -> Result<Versioned> {
    let request = Request::patch(path)
        .header(
            http::header::CONTENT_TYPE,
            format!("application/{kind}-patch+json"),
        )
        .body(body.to_string().into_bytes())?;
    client
        .request(request)
        .await
        .with_context(|| format!("PATCH {path}"))
}

/// Initialises Nodes: the addresses by one patch, then labels, provider ID and taints by another, and waits until a
/// watch has seen it.
pub(crate) async fn nodes(world: &World, count: u32) -> Result<Duration> {
    nodes::create(&world.client, 1..=count).await?;
    let watch = TaintWatch::open(&world.client, 1..=count).await?;
    let begun = Instant::now();
    let writes = futures::stream::iter(1..=count)
        .map(|number| initialize(&world.client, number))
        .buffer_unordered(IN_FLIGHT)
        .try_collect::<()>();
    let (written, cleared) = tokio::join!(writes, watch.all_clear());
    written?;
    Ok(cleared? - begun)
}

async fn initialize(client: &kube::Client, number: u32) -> Result<()> {
    let name = nodes::name(number);
    let path = format!("/api/v1/nodes/{name}");
    let address = format!("10.0.{}.{}", number / 250, number % 250 + 1);
    let addresses = json!({"status": {"addresses": [
        {"type": "InternalIP", "address": address}, {"type": "Hostname", "address": name}, {"$patch": "replace"}]}});
    let seen = patch(client, &format!("{path}/status"), "strategic-merge", &addresses).await?;
    let rest = json!({
        "metadata": {
            "uid": seen.metadata.uid, "resourceVersion": seen.metadata.resource_version,
            "labels": {
                "node.kubernetes.io/instance-type": "flex-4-2", "beta.kubernetes.io/instance-type": "flex-4-2",
                "topology.kubernetes.io/zone": "a1", "failure-domain.beta.kubernetes.io/zone": "a1",
                "topology.kubernetes.io/region": "a", "failure-domain.beta.kubernetes.io/region": "a",
            },
        },
        "spec": {"providerID": format!("cloud://{number}"), "taints": []},
    });
    patch(client, &path, "merge", &rest).await.map(drop)
}

/// Provides balancers: for each Service a finalizer, this many calls to the cloud one after the other, because they
/// all change one balancer, and the address.
pub(crate) async fn balancers(world: &World, count: u32, calls_each: u32) -> Result<Duration> {
    let begun = Instant::now();
    each(count, async |number| {
        let path = format!("{}/status", services::path(&services::name(number)));
        let guarded = json!({"metadata": {"finalizers": [FINALIZER]}});
        patch(&world.client, &path, "merge", &guarded).await?;
        for _ in 0..calls_each {
            world.cloud.touch().await?;
        }
        let published = json!({"status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}}});
        patch(&world.client, &path, "merge", &published).await.map(drop)
    })
    .await?;
    Ok(begun.elapsed())
}

/// Lets Services go that are being deleted: one call to the cloud each, and the finalizer.
pub(crate) async fn removals(world: &World, count: u32) -> Result<Duration> {
    let begun = Instant::now();
    services::delete(&world.client, count).await?;
    each(count, async |number| {
        world.cloud.touch().await?;
        let path = format!("{}/status", services::path(&services::name(number)));
        patch(
            &world.client,
            &path,
            "merge",
            &json!({"metadata": {"finalizers": []}}),
        )
        .await
        .map(drop)
    })
    .await?;
    Ok(begun.elapsed())
}

async fn each(count: u32, one: impl AsyncFn(u32) -> Result<()>) -> Result<()> {
    futures::stream::iter(1..=count)
        .map(|number| one(number))
        .buffer_unordered(IN_FLIGHT)
        .try_collect()
        .await
}
