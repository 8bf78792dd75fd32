//! The cluster as the page shows it.

use serde::Serialize;
use serde_json::Value;

use crate::reporter;
use crate::service::{self, list};

/// A Node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Node {
    pub(super) name: String,
    /// The status of the condition `Ready`.
    pub(super) ready: String,
    /// Key and effect.
    pub(super) taints: Vec<String>,
    pub(super) is_uninitialized: bool,
    pub(super) is_shut_down: bool,
    pub(super) provider_id: String,
    pub(super) addresses: Vec<String>,
    /// Type and zone, or region.
    pub(super) place: Vec<String>,
    pub(super) pod_network: Option<String>,
}

impl Node {
    pub(super) fn read(node: &Value) -> Option<Self> {
        let (metadata, spec) = (&node["metadata"], &node["spec"]);
        let label = |name: &str| metadata["labels"][name].as_str().map(str::to_owned);
        let taints = list(&spec["taints"]).filter_map(|taint| {
            let (key, effect) = (taint["key"].as_str()?, taint["effect"].as_str()?);
            Some(format!("{key}:{effect}"))
        });
        let addresses = list(&node["status"]["addresses"])
            .filter(|address| address["type"] != "Hostname")
            .filter_map(|address| address["address"].as_str().map(str::to_owned));
        let zone = label("topology.kubernetes.io/zone").or(label("topology.kubernetes.io/region"));
        let kind = label("node.kubernetes.io/instance-type");
        Some(Self {
            name: metadata["name"].as_str()?.to_owned(),
            ready: reporter::ready(node).to_owned(),
            taints: taints.collect(),
            is_uninitialized: reporter::is_uninitialized(node),
            is_shut_down: reporter::is_shut_down(node),
            provider_id: spec["providerID"].as_str().unwrap_or_default().to_owned(),
            addresses: addresses.collect(),
            place: [kind, zone].into_iter().flatten().collect(),
            pod_network: spec["podCIDR"].as_str().map(str::to_owned),
        })
    }
}

/// A port of a Service.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Port {
    pub(super) name: String,
    pub(super) protocol: String,
    pub(super) port: u16,
    pub(super) node_port: u16,
}

/// A Service.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Service {
    pub(super) namespace: String,
    pub(super) name: String,
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) ports: Vec<Port>,
    pub(super) addresses: Vec<String>,
    pub(super) is_being_deleted: bool,
    /// What the condition says while it is in trouble: the reason, then cause and remedy.
    pub(super) trouble: Option<String>,
}

impl Service {
    /// The API server's own Service is no part of the demo.
    pub(super) fn read(service: &Value) -> Option<Self> {
        let (metadata, spec) = (&service["metadata"], &service["spec"]);
        let name = metadata["name"]
            .as_str()
            .filter(|it| *it != reporter::API_SERVER)?;
        let ports = list(&spec["ports"]).filter_map(|port| {
            Some(Port {
                name: port["name"].as_str().unwrap_or_default().to_owned(),
                protocol: port["protocol"].as_str().unwrap_or("TCP").to_owned(),
                port: service::number(&port["port"])?,
                node_port: service::number(&port["nodePort"]).unwrap_or_default(),
            })
        });
        Some(Self {
            namespace: metadata["namespace"].as_str()?.to_owned(),
            name: name.to_owned(),
            kind: spec["type"].as_str().unwrap_or_default().to_owned(),
            ports: ports.collect(),
            addresses: reporter::addresses(service),
            is_being_deleted: !metadata["deletionTimestamp"].is_null(),
            trouble: trouble(service),
        })
    }

    pub(super) fn object(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }
}

fn trouble(service: &Value) -> Option<String> {
    let mut conditions = list(&service["status"]["conditions"]);
    let shown = conditions.find(|it| it["type"] == "LoadBalancerReconciled" && it["status"] == "False")?;
    Some(format!(
        "{}: {}",
        shown["reason"].as_str()?,
        shown["message"].as_str()?
    ))
}

/// The last event of an object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Event {
    /// `Normal` or `Warning`.
    #[serde(rename = "type")]
    kind: String,
    reason: String,
    message: String,
    count: u64,
}

impl Event {
    /// With the object that it is of, as `Kind/namespace/name`.
    pub(super) fn read(event: &Value) -> Option<(String, Self)> {
        let of = &event["involvedObject"];
        let (kind, name) = (of["kind"].as_str()?, of["name"].as_str()?);
        let namespace = of["namespace"].as_str().unwrap_or_default();
        let text = |field: &str| event[field].as_str().unwrap_or_default().trim().to_owned();
        let read = Self {
            kind: text("type"),
            reason: text("reason"),
            message: text("message"),
            count: event["count"].as_u64().unwrap_or(1),
        };
        Some((format!("{kind}/{namespace}/{name}"), read))
    }

    /// Whether the manager has done what there was to do.
    pub(super) fn is_end_of_sync(&self) -> bool {
        const ENDS: [&str; 3] = [
            "EnsuredLoadBalancer",
            "UpdatedLoadBalancer",
            "DeletedLoadBalancer",
        ];
        ENDS.contains(&self.reason.as_str())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_service_of_the_api_server_is_not_shown_and_others_are() {
        let service = |name: &str| {
            json!({
                "metadata": { "namespace": "default", "name": name },
                "spec": { "type": "LoadBalancer", "ports": [{ "port": 80, "nodePort": 30080 }] },
                "status": { "loadBalancer": { "ingress": [{ "ip": "127.0.0.9" }] } },
            })
        };
        assert_eq!(Service::read(&service("kubernetes")), None);
        let web = Service::read(&service("web")).unwrap();
        assert_eq!((web.object().as_str(), web.addresses.len()), ("default/web", 1));
        assert_eq!(web.trouble, None);
        let mut full = service("web");
        let message = "the quota is met. What to do: have it raised";
        full["status"]["conditions"] = json!([
            { "type": "LoadBalancerReconciled", "status": "False", "reason": "quota", "message": message },
        ]);
        let told = Service::read(&full).unwrap().trouble;
        assert_eq!(told, Some(format!("quota: {message}")));
        assert_eq!(
            (web.ports[0].protocol.as_str(), web.ports[0].node_port),
            ("TCP", 30080)
        );
    }

    #[test]
    fn a_node_shows_its_taints_and_where_it_runs() {
        let node = json!({
            "metadata": { "name": "a", "labels": {
                "node.kubernetes.io/instance-type": "flex", "topology.kubernetes.io/region": "rma",
            }},
            "spec": { "taints": [
                { "key": "node.cloudprovider.kubernetes.io/shutdown", "effect": "NoSchedule" },
            ]},
            "status": { "conditions": [{ "type": "Ready", "status": "Unknown" }] },
        });
        let node = Node::read(&node).unwrap();
        assert_eq!(
            node.taints,
            ["node.cloudprovider.kubernetes.io/shutdown:NoSchedule"]
        );
        assert_eq!(node.place, ["flex", "rma"]);
        assert!(node.is_shut_down && !node.is_uninitialized);
        assert_eq!(node.ready, "Unknown");
    }

    #[test]
    fn an_event_names_its_object() {
        let event = json!({
            "involvedObject": { "kind": "Service", "namespace": "default", "name": "web" },
            "type": "Normal", "reason": "EnsuredLoadBalancer", "message": "Ensured load balancer\n",
        });
        let (object, event) = Event::read(&event).unwrap();
        assert_eq!(
            (object.as_str(), event.message.as_str()),
            ("Service/default/web", "Ensured load balancer")
        );
        assert!(event.is_end_of_sync());
    }
}
