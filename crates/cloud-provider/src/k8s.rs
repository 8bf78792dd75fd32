//! The Service as Kubernetes writes it, as far as somebody here reads it. Fields are called as in the API
//! (`k8s.io/api/core/v1`), and what is left out of an object is `None`.
//!
//! What nobody reads has no field, so it may be whatever it likes and takes no memory: a cluster can have thousands of
//! Services that want no load balancer.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::Pairs;

/// A Service.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct Service {
    /// What it is called, and what others say of it.
    pub metadata: ObjectMeta,
    /// What is asked for.
    pub spec: Option<ServiceSpec>,
    /// What there is.
    pub status: Option<ServiceStatus>,
}

/// What every object has.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
#[expect(missing_docs, reason = "named as in the API, whose reference describes them")]
pub struct ObjectMeta {
    pub annotations: Option<Pairs<String>>,
    pub creation_timestamp: Option<Timestamp>,
    pub deletion_timestamp: Option<Timestamp>,
    pub finalizers: Option<Vec<String>>,
    pub name: Option<String>,
    pub namespace: Option<String>,
    pub resource_version: Option<String>,
    pub uid: Option<String>,
}

/// `spec` of a Service.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
#[expect(missing_docs, reason = "named as in the API, whose reference describes them")]
pub struct ServiceSpec {
    #[serde(rename = "type")]
    pub type_: Option<String>,
    pub ports: Option<Vec<ServicePort>>,
    #[serde(rename = "clusterIP")]
    pub cluster_ip: Option<String>,
    #[serde(rename = "externalIPs")]
    pub external_ips: Option<Vec<String>>,
    pub external_traffic_policy: Option<String>,
    pub health_check_node_port: Option<i32>,
    pub ip_families: Option<Vec<String>>,
    pub load_balancer_class: Option<String>,
    #[serde(rename = "loadBalancerIP")]
    pub load_balancer_ip: Option<String>,
    pub load_balancer_source_ranges: Option<Vec<String>>,
    pub session_affinity: Option<String>,
    pub session_affinity_config: Option<SessionAffinityConfig>,
}

/// A port of a Service.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
#[expect(missing_docs, reason = "named as in the API, whose reference describes them")]
pub struct ServicePort {
    pub app_protocol: Option<String>,
    pub name: Option<String>,
    pub node_port: Option<i32>,
    pub port: i32,
    pub protocol: Option<String>,
    pub target_port: Option<IntOrString>,
}

/// A number, or the name of one.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Deserialize, Serialize)]
#[serde(untagged)]
#[expect(missing_docs, reason = "named as in the API")]
pub enum IntOrString {
    Int(i32),
    String(String),
}

/// How long a client stays with its pod.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Deserialize, Serialize)]
#[serde(default)]
pub struct SessionAffinityConfig {
    /// By the client's address.
    #[serde(rename = "clientIP")]
    pub client_ip: Option<ClientIPConfig>,
}

/// How long a client's address stays with its pod.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ClientIPConfig {
    /// In seconds.
    pub timeout_seconds: Option<i32>,
}

/// `status` of a Service.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
#[expect(missing_docs, reason = "named as in the API, whose reference describes them")]
pub struct ServiceStatus {
    pub conditions: Option<Vec<Condition>>,
    pub load_balancer: Option<LoadBalancerStatus>,
}

/// A condition of an object.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[expect(missing_docs, reason = "named as in the API, whose reference describes them")]
pub struct Condition {
    #[serde(rename = "type")]
    pub type_: String,
    pub status: String,
    pub reason: String,
    pub message: String,
    pub last_transition_time: Timestamp,
}

/// The addresses that a Service shows.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct LoadBalancerStatus {
    /// One for each.
    pub ingress: Option<Vec<LoadBalancerIngress>>,
}

/// As the API server stores it: it fills in its default of how nodes treat an address.
impl From<&crate::LoadBalancerStatus> for LoadBalancerStatus {
    fn from(status: &crate::LoadBalancerStatus) -> Self {
        let ingress = status.ingress.iter().map(|entry| LoadBalancerIngress {
            ip: entry.ip.clone(),
            hostname: entry.hostname.clone(),
            ip_mode: entry
                .ip
                .is_some()
                .then(|| entry.ip_mode.unwrap_or(crate::IpMode::Vip).as_str().to_owned()),
            ports: None,
        });
        let ingress: Vec<_> = ingress.collect();
        Self {
            ingress: (!ingress.is_empty()).then_some(ingress),
        }
    }
}

/// An address at which a load balancer takes traffic.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
#[expect(missing_docs, reason = "named as in the API, whose reference describes them")]
pub struct LoadBalancerIngress {
    pub hostname: Option<String>,
    pub ip: Option<String>,
    pub ip_mode: Option<String>,
    pub ports: Option<Vec<PortStatus>>,
}

/// A port that a load balancer serves, or why it does not.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
#[expect(missing_docs, reason = "named as in the API, whose reference describes them")]
pub struct PortStatus {
    pub error: Option<String>,
    pub port: i32,
    pub protocol: String,
}
