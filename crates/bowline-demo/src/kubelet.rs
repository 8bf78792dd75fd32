//! A stand-in for the kubelets, and for the part of kube-controller-manager that notices when they fall silent.
//!
//! An instance that runs registers its Node with the taint that calls for a cloud controller manager. An instance that is
//! off or gone is silent, and its Node's `Ready` condition becomes `Unknown`.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::api::{Api, ApiError, Patch};
use crate::cloud::{Cloud, Instance};
use crate::narrative::Narrator;

/// How often the instances are looked at.
const PERIOD: Duration = Duration::from_millis(200);

/// How long a silent kubelet is believed to be well. 50 s in a real cluster (`--node-monitor-grace-period`).
const GRACE: Duration = Duration::from_secs(1);

/// Plays the kubelets and publishes the instances. Never returns; drop it to stop.
pub(crate) async fn run(
    api: Api,
    cloud: Arc<dyn Cloud>,
    instances: watch::Sender<Vec<Instance>>,
    narrator: Narrator,
) {
    let mut nodes = BTreeMap::new();
    loop {
        let found = cloud.instances();
        instances.send_if_modified(|known| {
            let differs = *known != found;
            known.clone_from(&found);
            differs
        });
        for instance in &found {
            if !nodes.contains_key(&instance.name) && instance.is_on {
                match register(&api, instance).await {
                    Ok(()) => narrator.tell(format!("node    {} registers, uninitialized", instance.name)),
                    Err(ApiError::Answered { status, .. }) if status == http::StatusCode::CONFLICT => {}
                    // Tried again at the next look.
                    Err(_) => continue,
                }
                nodes.insert(instance.name.clone(), Kubelet::default());
            }
        }
        for (name, kubelet) in &mut nodes {
            let is_well = found
                .iter()
                .any(|instance| instance.name == *name && instance.is_on);
            let Some(ready) = kubelet.hear(is_well) else {
                continue;
            };
            match set_ready(&api, name, ready).await {
                Err(error) if !error.is_not_found() => {}
                _ => kubelet.told = ready,
            }
        }
        // An instance that comes back under an old name after its Node was deleted is a new one.
        let mut gone = Vec::new();
        for name in nodes.keys() {
            let is_there = found.iter().any(|instance| instance.name == *name);
            if !is_there && matches!(api.find(&format!("/api/v1/nodes/{name}")).await, Ok(None)) {
                gone.push(name.clone());
            }
        }
        nodes.retain(|name, _| !gone.contains(name));
        tokio::time::sleep(PERIOD).await;
    }
}

/// What is known of one kubelet.
struct Kubelet {
    silent_since: Option<Instant>,
    /// What the condition says.
    told: bool,
}

impl Default for Kubelet {
    /// A Node is registered as ready.
    fn default() -> Self {
        Self {
            silent_since: None,
            told: true,
        }
    }
}

impl Kubelet {
    /// What the condition must become, if it must change.
    fn hear(&mut self, is_well: bool) -> Option<bool> {
        if is_well {
            self.silent_since = None;
        } else {
            self.silent_since.get_or_insert_with(Instant::now);
        }
        let is_believed = self.silent_since.is_none_or(|since| since.elapsed() < GRACE);
        (is_believed != self.told).then_some(is_believed)
    }
}

async fn register(api: &Api, instance: &Instance) -> Result<(), ApiError> {
    api.create("/api/v1/nodes", &node(&instance.name, instance.address()))
        .await?;
    set_ready(api, &instance.name, true).await
}

/// A Node as a kubelet with `--cloud-provider=external` and `--node-ip` creates it.
fn node(name: &str, address: IpAddr) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {
                "kubernetes.io/hostname": name,
                "kubernetes.io/os": "linux",
                "kubernetes.io/arch": "amd64",
            },
            "annotations": { "alpha.kubernetes.io/provided-node-ip": address.to_string() },
        },
        "spec": {
            "taints": [{
                "key": "node.cloudprovider.kubernetes.io/uninitialized",
                "value": "true",
                "effect": "NoSchedule",
            }],
        },
    })
}

async fn set_ready(api: &Api, name: &str, is_ready: bool) -> Result<(), ApiError> {
    let (status, reason, message) = if is_ready {
        ("True", "KubeletReady", "kubelet is posting ready status")
    } else {
        (
            "Unknown",
            "NodeStatusUnknown",
            "Kubelet stopped posting node status.",
        )
    };
    let now = Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let condition = json!({
        "type": "Ready",
        "status": status,
        "reason": reason,
        "message": message,
        "lastHeartbeatTime": now,
        "lastTransitionTime": now,
    });
    let patch = json!({ "status": { "conditions": [condition] } });
    api.patch(&format!("/api/v1/nodes/{name}/status"), Patch::Strategic, &patch)
        .await
        .map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_silent_kubelet_is_believed_for_a_while() {
        let mut kubelet = Kubelet::default();
        assert_eq!(kubelet.hear(true), None);
        assert_eq!(kubelet.hear(false), None);
        tokio::time::advance(GRACE).await;
        assert_eq!(kubelet.hear(false), Some(false));
        kubelet.told = false;
        assert_eq!(kubelet.hear(false), None);
        assert_eq!(kubelet.hear(true), Some(true));
    }
}
