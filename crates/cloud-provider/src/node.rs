//! A Kubernetes Node, cut down to what the controllers and the clouds look at.
//!
//! A real Node object is 10 to 50 KiB, most of it image lists and managed fields. This one is a few hundred bytes, with
//! label strings shared between Nodes.

use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// Well-known names of the Kubernetes API that this program reads or writes.
pub mod keys {
    /// The taint that a kubelet with `--cloud-provider=external` registers with.
    pub const TAINT_UNINITIALIZED: &str = "node.cloudprovider.kubernetes.io/uninitialized";
    /// The taint of a Node whose instance is powered off.
    pub const TAINT_SHUTDOWN: &str = "node.cloudprovider.kubernetes.io/shutdown";
    /// The taint that the cluster autoscaler sets before it removes a Node.
    pub const TAINT_TO_BE_DELETED: &str = "ToBeDeletedByClusterAutoscaler";
    /// The conditions of a Node whose pods are moved elsewhere, whose machine is worked on, or that shuts down.
    pub const CONDITIONS_DRAINING: [&str; 3] = [
        "DrainInProgress",
        "MaintenanceInProgress",
        "GracefulNodeShutdownInProgress",
    ];
    /// The label that keeps a Node from being deleted, whatever its cloud says.
    pub const LABEL_EXCLUDE_FROM_LIFECYCLE: &str = "node.kubernetes.io/exclude-from-lifecycle-management";
    /// The annotation of a Service that says whether its members go before their machines do: `true` or `false`.
    pub const ANNOTATION_DRAIN: &str = "bowline/drain-members";
    /// The annotation of a Service that says of which class it was when its finalizer was put on. The API server clears the class
    /// with the type, and the next leader finds by this whose the removal is.
    pub const ANNOTATION_CLASS: &str = "bowline/load-balancer-class";
    /// The annotation with the addresses given to the kubelet by `--node-ip`.
    pub const ANNOTATION_PROVIDED_NODE_IP: &str = "alpha.kubernetes.io/provided-node-ip";
    /// The annotation on Services that stood for `spec.loadBalancerSourceRanges` before that was a field.
    pub const ANNOTATION_LOAD_BALANCER_SOURCE_RANGES: &str =
        "service.beta.kubernetes.io/load-balancer-source-ranges";
    /// The label that keeps a Node out of load balancers.
    pub const LABEL_EXCLUDE_FROM_BALANCERS: &str = "node.kubernetes.io/exclude-from-external-load-balancers";
    /// The instance type.
    pub const LABEL_INSTANCE_TYPE: &str = "node.kubernetes.io/instance-type";
    /// The instance type under its beta name.
    pub const LABEL_INSTANCE_TYPE_BETA: &str = "beta.kubernetes.io/instance-type";
    /// The zone.
    pub const LABEL_ZONE: &str = "topology.kubernetes.io/zone";
    /// The zone under its beta name.
    pub const LABEL_ZONE_BETA: &str = "failure-domain.beta.kubernetes.io/zone";
    /// The region.
    pub const LABEL_REGION: &str = "topology.kubernetes.io/region";
    /// The region under its beta name.
    pub const LABEL_REGION_BETA: &str = "failure-domain.beta.kubernetes.io/region";
    /// The finalizer of Services that have a load balancer.
    pub const FINALIZER_LOAD_BALANCER: &str = "service.kubernetes.io/load-balancer-cleanup";
    /// The condition of a Service whose load balancer is not as it should be.
    pub const CONDITION_RECONCILED: &str = "LoadBalancerReconciled";
    /// The condition of a Service that showed another address before.
    pub const CONDITION_ADDRESS_CHANGED: &str = "LoadBalancerAddressChanged";
}

/// The name of a Node.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct NodeName(Arc<str>);

impl NodeName {
    /// Names a Node.
    #[must_use]
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        Self(name.into())
    }

    /// The name as the API server writes it.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for NodeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for NodeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.0, f)
    }
}

/// A Node as the controllers and the clouds see it. Read-only: it is shared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// `metadata.name`.
    pub name: NodeName,
    /// `metadata.uid`.
    pub uid: Arc<str>,
    /// `metadata.resourceVersion`.
    pub resource_version: Arc<str>,
    /// `metadata.creationTimestamp`.
    pub created: Timestamp,
    /// Whether `metadata.deletionTimestamp` is set.
    pub deleting: bool,
    /// `metadata.labels`.
    pub labels: Labels,
    /// `metadata.annotations`, without those that only kubectl, kubelet and kube-controller-manager use.
    pub annotations: Labels,
    /// `spec.providerID`, `None` if empty.
    pub provider_id: Option<Arc<str>>,
    /// `spec.taints` in order.
    pub taints: Vec<Taint>,
    /// `spec.podCIDRs`.
    pub pod_cidrs: Vec<String>,
    /// `status.addresses` in order.
    pub addresses: Vec<NodeAddress>,
    /// `status.conditions[type=Ready]`.
    pub readiness: Readiness,
    /// The first of the [`keys::CONDITIONS_DRAINING`] that is `True`. Among the Nodes of a Service it is set only where the member is to
    /// get no new connections.
    pub draining: Option<&'static str>,
    /// `status.conditions[type=NetworkUnavailable]`.
    pub network_unavailable: Option<NetworkUnavailable>,
}

impl Node {
    /// A Node of this name with nothing set. For tests and as a base for struct updates.
    #[must_use]
    pub fn named(name: &str) -> Self {
        Self {
            name: NodeName::new(name),
            uid: Arc::from(""),
            resource_version: Arc::from(""),
            created: Timestamp::UNIX_EPOCH,
            deleting: false,
            labels: Labels::default(),
            annotations: Labels::default(),
            provider_id: None,
            taints: Vec::new(),
            pod_cidrs: Vec::new(),
            addresses: Vec::new(),
            readiness: Readiness::Missing,
            draining: None,
            network_unavailable: None,
        }
    }

    /// The cloud that the Node says it is of: the scheme of its provider ID. `None` if it bears none.
    #[must_use]
    pub fn platform(&self) -> Option<&str> {
        let (platform, _) = self.provider_id.as_deref()?.split_once("://")?;
        Some(platform.trim()).filter(|platform| !platform.is_empty())
    }

    /// Whether a taint with this key is there, whatever its value and effect.
    #[must_use]
    pub fn has_taint(&self, key: &str) -> bool {
        self.taints.iter().any(|taint| taint.key == key)
    }

    /// Whether the Node still waits for its cloud.
    #[must_use]
    pub fn is_uninitialized(&self) -> bool {
        self.has_taint(keys::TAINT_UNINITIALIZED)
    }

    /// Whether the label that keeps Nodes out of load balancers applies: present, and not a false boolean.
    #[must_use]
    pub fn is_excluded_from_balancers(&self) -> bool {
        self.is_labelled(keys::LABEL_EXCLUDE_FROM_BALANCERS)
    }

    /// Whether the label applies that keeps the Node from being deleted: present, and not a false boolean.
    #[must_use]
    pub fn is_excluded_from_lifecycle(&self) -> bool {
        self.is_labelled(keys::LABEL_EXCLUDE_FROM_LIFECYCLE)
    }

    fn is_labelled(&self, key: &str) -> bool {
        self.labels
            .value(key)
            .is_some_and(|value| !matches!(value, "0" | "f" | "F" | "false" | "False" | "FALSE"))
    }

    /// What says that the Node is about to go, or to stand still for a while: a condition, or the taint of the cluster autoscaler.
    #[must_use]
    pub fn drained_by(&self) -> Option<&'static str> {
        let tainted = || {
            self.has_taint(keys::TAINT_TO_BE_DELETED)
                .then_some(keys::TAINT_TO_BE_DELETED)
        };
        self.draining.or_else(tainted)
    }
}

/// Labels or annotations: keys in order, strings shared.
///
/// Keys and values stand apart because nearly all Nodes of a cluster have the same keys: they can share one list of them.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Labels {
    keys: Arc<[Arc<str>]>,
    /// The value of each key, in the same order.
    values: Box<[Arc<str>]>,
}

impl Labels {
    /// Labels whose list of keys is what `share` has for it: an equal list, which others may hold too. Of a key that comes
    /// more than once, the first value counts.
    pub fn sharing<K: Into<Arc<str>>, V: Into<Arc<str>>>(
        pairs: impl IntoIterator<Item = (K, V)>,
        share: impl FnOnce(Vec<Arc<str>>) -> Arc<[Arc<str>]>,
    ) -> Self {
        let mut pairs: Vec<(Arc<str>, Arc<str>)> = pairs
            .into_iter()
            .map(|(key, value)| (key.into(), value.into()))
            .collect();
        pairs.sort_by(|a, b| a.0.cmp(&b.0));
        pairs.dedup_by(|later, earlier| later.0 == earlier.0);
        let (keys, values): (Vec<_>, Vec<_>) = pairs.into_iter().unzip();
        Self {
            keys: share(keys),
            values: values.into(),
        }
    }

    /// The value under this key.
    #[must_use]
    pub fn value(&self, key: &str) -> Option<&str> {
        let index = self.keys.binary_search_by(|known| (**known).cmp(key)).ok()?;
        self.values.get(index).map(|value| &**value)
    }

    /// Whether the key is there.
    #[must_use]
    pub fn contains(&self, key: &str) -> bool {
        self.value(key).is_some()
    }

    /// All pairs in key order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        std::iter::zip(&*self.keys, &self.values).map(|(key, value)| (&**key, &**value))
    }
}

impl<K: Into<Arc<str>>, V: Into<Arc<str>>> FromIterator<(K, V)> for Labels {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(pairs: I) -> Self {
        Self::sharing(pairs, Arc::from)
    }
}

impl fmt::Debug for Labels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

/// One entry of `spec.taints`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Taint {
    /// The key.
    pub key: String,
    /// The value, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// What the taint does to pods.
    pub effect: TaintEffect,
    /// When a `NoExecute` taint was added; kept as the API server wrote it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_added: Option<String>,
}

impl Taint {
    /// The taint of a Node whose instance is powered off: no value, `NoSchedule`.
    #[must_use]
    pub fn shutdown() -> Self {
        Self {
            key: keys::TAINT_SHUTDOWN.into(),
            value: None,
            effect: TaintEffect::NoSchedule,
            time_added: None,
        }
    }
}

/// What a taint does to pods that do not tolerate it. An effect that this program does not know is kept as it is.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum TaintEffect {
    /// New pods stay away.
    NoSchedule,
    /// New pods stay away if they can.
    PreferNoSchedule,
    /// Pods are evicted too.
    NoExecute,
    /// Anything else.
    #[serde(untagged)]
    Other(String),
}

/// One entry of `status.addresses`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct NodeAddress {
    /// What kind of address it is.
    #[serde(rename = "type")]
    pub kind: AddressType,
    /// The address or name.
    pub address: String,
}

impl NodeAddress {
    /// An address of this kind.
    #[must_use]
    pub fn new(kind: AddressType, address: impl Into<String>) -> Self {
        Self {
            kind,
            address: address.into(),
        }
    }
}

/// The kinds of node addresses. A kind that this program does not know is kept as it is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum AddressType {
    /// The host name.
    Hostname,
    /// An address inside the cloud's private networks.
    #[serde(rename = "InternalIP")]
    InternalIp,
    /// An address that the world can reach.
    #[serde(rename = "ExternalIP")]
    ExternalIp,
    /// A name inside the cloud's private networks.
    #[serde(rename = "InternalDNS")]
    InternalDns,
    /// A name that the world can resolve.
    #[serde(rename = "ExternalDNS")]
    ExternalDns,
    /// Anything else.
    #[serde(untagged)]
    Other(String),
}

/// What the `Ready` condition says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Readiness {
    /// The kubelet reports and is well.
    Ready,
    /// The kubelet reports that it is not well.
    NotReady,
    /// The kubelet does not report.
    Unknown,
    /// There is no such condition; counts as unknown.
    Missing,
}

/// What the `NetworkUnavailable` condition says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NetworkUnavailable {
    /// Whether the status is `True`.
    pub is_unavailable: bool,
    /// The reason.
    pub reason: Arc<str>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_false_booleans_lift_the_exclusion() {
        for (value, excluded) in [
            ("", true),
            ("true", true),
            ("banana", true),
            ("false", false),
            ("F", false),
            ("0", false),
            ("fALSE", true),
        ] {
            let labels = Labels::from_iter([(keys::LABEL_EXCLUDE_FROM_BALANCERS, value)]);
            let node = Node {
                labels,
                ..Node::named("a")
            };
            assert_eq!(node.is_excluded_from_balancers(), excluded, "{value:?}");
        }
        assert!(!Node::named("a").is_excluded_from_balancers());
    }

    #[test]
    fn labels_are_found_whatever_order_they_came_in() {
        let labels = Labels::from_iter([("b", "2"), ("a", "1"), ("c", "3")]);
        assert_eq!(labels.value("c"), Some("3"));
        assert_eq!(labels.value("d"), None);
        assert_eq!(labels.iter().map(|(key, _)| key).collect::<String>(), "abc");
    }
}
