//! Checking one point of the story: again and again until it holds or its time is up.

use std::time::Duration;

use anyhow::{anyhow, ensure};
use serde_json::Value;
use tokio::time::Instant;

use crate::cloud::Instance;
use crate::reporter;
use crate::service::list;
use crate::stage::Stage;

/// How long one point may take. The slowest, the deletion of a Node, takes about 11 s on a machine with nothing else
/// to do.
const DEADLINE: Duration = Duration::from_secs(40);

/// Between two looks.
const PERIOD: Duration = Duration::from_millis(50);

/// Looks until the point holds, and says so. An error is the last look's, when the time is up or the manager has ended.
pub(super) async fn check<T>(
    stage: &Stage,
    what: &str,
    look: impl AsyncFnMut() -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    check_within(stage, DEADLINE, what, look).await
}

/// As [`check`], for a point that may take longer.
pub(super) async fn check_within<T>(
    stage: &Stage,
    patience: Duration,
    what: &str,
    mut look: impl AsyncFnMut() -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let end = Instant::now() + patience;
    let result = loop {
        match look().await {
            Ok(found) => break Ok(found),
            Err(error) if stage.manager().has_ended() => {
                break Err(error.context("the manager has ended"));
            }
            Err(error) if Instant::now() >= end => {
                break Err(error.context(format!("not within {} s", patience.as_secs())));
            }
            Err(_) => tokio::time::sleep(PERIOD).await,
        }
    };
    verdict(stage, what, result)
}

/// Waits until nothing goes on in the cloud, so that all of a chapter is told within it.
pub(super) async fn calm(stage: &Stage) {
    /// The manager spaces its listings by half a second, so a shorter silence may only be a pause.
    const SILENCE: Duration = Duration::from_millis(600);
    /// Then the story goes on in any case.
    const PATIENCE: Duration = Duration::from_secs(5);

    let journal = stage.cloud().journal();
    let end = Instant::now() + PATIENCE;
    let (mut seen, mut since) = (journal.len(), Instant::now());
    while since.elapsed() < SILENCE && Instant::now() < end {
        tokio::time::sleep(PERIOD).await;
        let is_busy = !journal.filter(|entry| entry.outcome.is_none()).is_empty();
        if is_busy || journal.len() != seen {
            (seen, since) = (journal.len(), Instant::now());
        }
    }
}

/// Says how a point that was looked at once has come out.
pub(super) fn verdict<T>(stage: &Stage, what: &str, result: anyhow::Result<T>) -> anyhow::Result<T> {
    match result {
        Ok(found) => {
            stage.narrator().verdict(what, None);
            Ok(found)
        }
        Err(error) => {
            let why = format!("{error:#}");
            stage.narrator().verdict(what, Some(&why));
            Err(anyhow!("{what}: {why}"))
        }
    }
}

/// Whether a Node is initialised, and as its instance says.
pub(super) fn node_is(node: &Value, expected: &Instance) -> anyhow::Result<()> {
    ensure!(!reporter::is_uninitialized(node), "it is still uninitialized");
    let provider_id = node["spec"]["providerID"].as_str().unwrap_or_default();
    ensure!(
        provider_id == expected.provider_id,
        "its provider ID is `{provider_id}`, not `{}`",
        expected.provider_id
    );
    for (label, wanted) in [
        ("node.kubernetes.io/instance-type", &*expected.instance_type),
        (
            "topology.kubernetes.io/zone",
            expected.zone.as_deref().unwrap_or_default(),
        ),
        ("topology.kubernetes.io/region", &expected.region),
    ] {
        let found = node["metadata"]["labels"][label].as_str().unwrap_or_default();
        ensure!(found == wanted, "its label {label} is `{found}`, not `{wanted}`");
    }
    for (kind, address) in &expected.addresses {
        let mut addresses = list(&node["status"]["addresses"]);
        let is_there = addresses.any(|one| one["type"] == *kind && one["address"] == *address);
        ensure!(is_there, "it lacks {kind} {address}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_node_must_be_exactly_what_its_instance_says() {
        let expected = Instance {
            name: "demo-node-1".into(),
            is_on: true,
            provider_id: "cloudscale://1".into(),
            instance_type: "flex-16-4".into(),
            zone: Some("rma1".into()),
            region: "rma".into(),
            addresses: vec![("InternalIP", "127.10.0.2".into())],
        };
        let node = json!({
            "metadata": { "labels": {
                "node.kubernetes.io/instance-type": "flex-16-4",
                "topology.kubernetes.io/zone": "rma1",
                "topology.kubernetes.io/region": "rma",
            }},
            "spec": { "providerID": "cloudscale://1" },
            "status": { "addresses": [{ "type": "InternalIP", "address": "127.10.0.2" }] },
        });
        assert!(node_is(&node, &expected).is_ok());
        for (pointer, value, complaint) in [
            ("/spec/providerID", json!("cloudscale://2"), "provider ID"),
            (
                "/metadata/labels/topology.kubernetes.io~1zone",
                json!("lpg1"),
                "label",
            ),
            (
                "/status/addresses/0/address",
                json!("127.10.0.3"),
                "lacks InternalIP",
            ),
            (
                "/spec",
                json!({ "taints": [{ "key": "node.cloudprovider.kubernetes.io/uninitialized" }] }),
                "uninitialized",
            ),
        ] {
            let mut wrong = node.clone();
            *wrong.pointer_mut(pointer).unwrap() = value;
            let error = node_is(&wrong, &expected).unwrap_err().to_string();
            assert!(error.contains(complaint), "{error}");
        }
    }
}
