//! Services of type LoadBalancer, and when they are served.

use std::time::Duration;

use anyhow::{Context, Result};
use futures::stream::{StreamExt as _, TryStreamExt as _};
use http::{Method, Request};
use serde_json::{Value, json};

use crate::wait;

pub(crate) const NAMESPACE: &str = "default";

/// Between two looks at the Services. A look is a small list.
const EVERY: Duration = Duration::from_millis(20);

const AT_ONCE: usize = 16;

pub(crate) fn name(number: u32) -> String {
    format!("balanced-{number}")
}

pub(crate) fn path(name: &str) -> String {
    format!("/api/v1/namespaces/{NAMESPACE}/services/{name}")
}

/// Creates Services with this many ports each.
pub(crate) async fn create(client: &kube::Client, services: u32, ports: u32) -> Result<()> {
    create_of("LoadBalancer", client, services, ports).await
}

/// The same of another type. Those of the cluster are headless: the API server needs minutes to find 20,000 addresses.
pub(crate) async fn create_of(kind: &str, client: &kube::Client, services: u32, ports: u32) -> Result<()> {
    let address = (kind == "ClusterIP").then_some("None");
    for_each(services, async |number| {
        let ports: Vec<Value> = (0..ports)
            .map(|port| json!({"name": format!("p{port}"), "port": 80 + port}))
            .collect();
        let service = json!({
            "metadata": {"name": name(number)},
            "spec": {"type": kind, "clusterIP": address, "selector": {"app": "web"}, "ports": ports},
        });
        let request = Request::post(format!("/api/v1/namespaces/{NAMESPACE}/services"))
            .header(http::header::CONTENT_TYPE, "application/json")
            .body(service.to_string().into_bytes())?;
        let _made: Value = client.request(request).await?;
        Ok(())
    })
    .await
    .context("cannot create the services")
}

/// Asks for the deletion of these Services.
pub(crate) async fn delete(client: &kube::Client, services: u32) -> Result<()> {
    for_each(services, async |number| {
        let request = Request::builder()
            .method(Method::DELETE)
            .uri(path(&name(number)))
            .body(Vec::new())?;
        let _marked: Value = client.request(request).await?;
        Ok(())
    })
    .await
    .context("cannot delete the services")
}

async fn for_each(services: u32, each: impl AsyncFn(u32) -> Result<()>) -> Result<()> {
    futures::stream::iter(1..=services)
        .map(|number| each(number))
        .buffer_unordered(AT_ONCE)
        .try_collect()
        .await
}

async fn list(client: &kube::Client) -> Result<Vec<Value>> {
    let request = Request::get(format!("/api/v1/namespaces/{NAMESPACE}/services")).body(Vec::new())?;
    let list: Value = client.request(request).await?;
    let items = list["items"].as_array().cloned().unwrap_or_default();
    Ok(items
        .into_iter()
        .filter(|service| service["spec"]["type"] == "LoadBalancer")
        .collect())
}

/// Waits until all of them have an address.
pub(crate) async fn all_served(client: &kube::Client, services: u32) -> Result<()> {
    wait::until("every service has an address", EVERY, async || {
        let listed = list(client).await?;
        let served = listed
            .iter()
            .filter(|service| service["status"]["loadBalancer"]["ingress"].is_array());
        Ok((served.count() == services as usize).then_some(()))
    })
    .await
}

/// Waits until all of them are gone.
pub(crate) async fn all_gone(client: &kube::Client) -> Result<()> {
    wait::until("every service is gone", EVERY, async || {
        Ok(list(client).await?.is_empty().then_some(()))
    })
    .await
}
