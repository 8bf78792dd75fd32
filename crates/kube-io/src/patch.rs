//! The bodies of all writes to Nodes and Services.
//!
//! Each carries the UID of the object that the decision was made for, so that a late write never lands on another
//! object of the same name. What replaces a whole list also carries the resource version that the list was read in.

use std::collections::BTreeMap;

use bowline_cloud_provider::{
    AddressNote, IngressPort, LoadBalancerStatus, Node, NodeAddress, Service, Taint, facts, keys,
};
use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Map, Value, json};

/// A change of a Node outside its status.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NodePatch {
    /// Labels to set, or to remove where none.
    pub labels: BTreeMap<String, Option<String>>,
    /// Annotations to set, or to remove where none.
    pub annotations: BTreeMap<String, Option<String>>,
    /// `spec.providerID`, which can be set once.
    pub provider_id: Option<String>,
    /// All taints that there should be. The write fails with a conflict if the Node has changed since it was read.
    pub taints: Option<Vec<Taint>>,
}

impl NodePatch {
    /// Whether nothing would change.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

// The two that each new Node needs are written as they are; a tree of values would be most of what they cost.

/// Merge patch of `nodes/NAME`.
pub(crate) fn node<'a>(node: &'a Node, patch: &'a NodePatch) -> impl Serialize + 'a {
    #[derive(Serialize)]
    struct Body<'a> {
        metadata: Metadata<'a>,
        #[serde(skip_serializing_if = "Spec::is_empty")]
        spec: Spec<'a>,
    }

    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Metadata<'a> {
        #[serde(skip_serializing_if = "str::is_empty")]
        uid: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        resource_version: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        labels: Option<&'a BTreeMap<String, Option<String>>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        annotations: Option<&'a BTreeMap<String, Option<String>>>,
    }

    #[derive(Serialize)]
    struct Spec<'a> {
        #[serde(rename = "providerID", skip_serializing_if = "Option::is_none")]
        provider_id: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        taints: Option<&'a [Taint]>,
    }

    impl Spec<'_> {
        fn is_empty(&self) -> bool {
            self.provider_id.is_none() && self.taints.is_none()
        }
    }

    let NodePatch {
        labels,
        annotations,
        provider_id,
        taints,
    } = patch;
    let version = taints.as_ref().map(|_| &*node.resource_version);
    Body {
        metadata: Metadata {
            uid: &node.uid,
            resource_version: version.filter(|version| !version.is_empty()),
            labels: Some(labels).filter(|labels| !labels.is_empty()),
            annotations: Some(annotations).filter(|annotations| !annotations.is_empty()),
        },
        spec: Spec {
            provider_id: provider_id.as_deref(),
            taints: taints.as_deref(),
        },
    }
}

/// Strategic merge patch of `nodes/NAME/status`.
///
/// The API merges this list by the type of address, which mixes up two addresses of one type. So the list is marked as a
/// replacement.
pub(crate) fn node_addresses<'a>(node: &'a Node, addresses: &'a [NodeAddress]) -> impl Serialize + 'a {
    #[derive(Serialize)]
    struct Body<'a> {
        metadata: Identity<'a>,
        status: Status<'a>,
    }

    #[derive(Serialize)]
    struct Status<'a> {
        addresses: Vec<Entry<'a>>,
    }

    #[derive(Serialize)]
    #[serde(untagged)]
    enum Entry<'a> {
        Address(&'a NodeAddress),
        Mark {
            #[serde(rename = "$patch")]
            patch: &'static str,
        },
    }

    let mark = Entry::Mark { patch: "replace" };
    Body {
        metadata: Identity::of(node),
        status: Status {
            addresses: addresses.iter().map(Entry::Address).chain([mark]).collect(),
        },
    }
}

/// Strategic merge patch of `nodes/NAME/status`; conditions are merged by type.
pub(crate) fn network_unavailable(
    node: &Node,
    unavailable: bool,
    reason: &str,
    message: &str,
    now: Timestamp,
) -> Value {
    let now = whole_seconds(now);
    let condition = json!({
        "type": "NetworkUnavailable",
        "status": if unavailable { "True" } else { "False" },
        "reason": reason,
        "message": message,
        "lastHeartbeatTime": now,
        "lastTransitionTime": now,
    });
    json!({"metadata": Identity::of(node), "status": {"conditions": [condition]}})
}

/// Merge patch of `nodes/NAME`.
pub(crate) fn pod_networks(node: &Node, networks: &[String]) -> Value {
    json!({
        "metadata": Identity::of(node),
        "spec": {"podCIDR": networks.first(), "podCIDRs": networks},
    })
}

/// The body of a DELETE that hits only this very Node.
pub(crate) fn delete_node(node: &Node) -> Value {
    json!({
        "kind": "DeleteOptions",
        "apiVersion": "v1",
        "preconditions": Identity::of(node),
    })
}

/// Merge patch of `services/NAME/status`, through which finalizers and annotations may be changed as well. The class is noted with the
/// finalizer, for as long as that is there.
pub(crate) fn service_finalizer(service: &Service, present: bool) -> Value {
    let others = service.metadata.finalizers.iter().flatten();
    let mut finalizers: Vec<&str> = others
        .map(String::as_str)
        .filter(|name| *name != keys::FINALIZER_LOAD_BALANCER)
        .collect();
    if present {
        finalizers.push(keys::FINALIZER_LOAD_BALANCER);
    }
    let mut metadata = service_version(service);
    metadata.insert("finalizers".into(), json!(finalizers));
    let class = facts::class(service).filter(|_| present);
    if facts::noted_class(service) != class {
        metadata.insert("annotations".into(), json!({keys::ANNOTATION_CLASS: class}));
    }
    json!({"metadata": metadata})
}

/// Has any patch of a Service take the note of the class off, or not put it on.
pub(crate) fn leave_out_class(patch: &mut Value) {
    patch["metadata"]["annotations"][keys::ANNOTATION_CLASS] = Value::Null;
}

/// Patch of `services/NAME/status`: a strategic one if the condition is to be changed, which is merged by type; else a merge patch. The
/// addresses are replaced as a whole in both.
pub(crate) fn service_status(service: &Service, status: &LoadBalancerStatus, note: &AddressNote) -> Value {
    let ingress: Vec<Value> = status
        .ingress
        .iter()
        .map(|entry| {
            let mut wire = Map::new();
            if let Some(ip) = &entry.ip {
                wire.insert("ip".into(), json!(ip));
            }
            if let Some(hostname) = &entry.hostname {
                wire.insert("hostname".into(), json!(hostname));
            }
            if let Some(mode) = entry.ip_mode {
                wire.insert("ipMode".into(), json!(mode.as_str()));
            }
            if !entry.ports.is_empty() {
                wire.insert("ports".into(), entry.ports.iter().map(port).collect());
            }
            Value::Object(wire)
        })
        .collect();
    // In both kinds of patch null takes the field away, as it is on a Service that never had an address.
    let ingress = if ingress.is_empty() {
        Value::Null
    } else {
        Value::Array(ingress)
    };
    let mut patch = address_note(service, note);
    patch["status"]["loadBalancer"] = json!({"ingress": ingress});
    patch
}

/// Strategic merge patch of `services/NAME/status`; conditions are merged by type.
pub(crate) fn address_note(service: &Service, note: &AddressNote) -> Value {
    let condition = match note {
        AddressNote::Keep => return json!({"metadata": service_identity(service)}),
        AddressNote::Remove => json!({"type": keys::CONDITION_ADDRESS_CHANGED, "$patch": "delete"}),
        AddressNote::Set(condition) => json!(condition),
    };
    json!({"metadata": service_identity(service), "status": {"conditions": [condition]}})
}

fn port(port: &IngressPort) -> Value {
    let mut wire = Map::new();
    wire.insert("port".into(), json!(port.port));
    wire.insert("protocol".into(), json!(port.protocol));
    if let Some(error) = &port.error {
        wire.insert("error".into(), json!(error));
    }
    Value::Object(wire)
}

/// Strategic merge patch of `services/NAME/status`; conditions are merged by type.
pub(crate) fn service_trouble(service: &Service, trouble: Option<(&str, &str)>, since: Timestamp) -> Value {
    let mut condition = Map::new();
    condition.insert("type".into(), json!(keys::CONDITION_RECONCILED));
    match trouble {
        None => drop(condition.insert("$patch".into(), json!("delete"))),
        Some((reason, message)) => {
            condition.insert("status".into(), json!("False"));
            condition.insert("reason".into(), json!(reason));
            condition.insert("message".into(), json!(message));
            if facts::trouble(service).is_none() {
                condition.insert("lastTransitionTime".into(), json!(whole_seconds(since)));
            }
        }
    }
    json!({"metadata": service_identity(service), "status": {"conditions": [condition]}})
}

/// Merge patch of `services/NAME` that leaves all as it is.
pub(crate) fn nothing(service: &Service) -> Value {
    json!({"metadata": service_identity(service)})
}

/// The same with the note of the class, if the Service has one or is to have one.
pub(crate) fn class_note(service: &Service) -> Value {
    let mut patch = nothing(service);
    if let Some(class) = facts::class(service).or(facts::noted_class(service)) {
        patch["metadata"]["annotations"][keys::ANNOTATION_CLASS] = json!(class);
    }
    patch
}

/// Merge patch of `services/NAME`.
pub(crate) fn service_annotations(service: &Service, annotations: &[(String, Option<String>)]) -> Value {
    let mut metadata = service_version(service);
    metadata.insert("annotations".into(), pairs(annotations));
    json!({"metadata": metadata})
}

/// Merge patch of `services/NAME`.
pub(crate) fn load_balancer_ip(
    service: &Service,
    ip: &str,
    annotations: &[(String, Option<String>)],
) -> Value {
    let ip = if ip.is_empty() { Value::Null } else { json!(ip) };
    let mut metadata = service_version(service);
    if !annotations.is_empty() {
        metadata.insert("annotations".into(), pairs(annotations));
    }
    json!({"metadata": metadata, "spec": {"loadBalancerIP": ip}})
}

/// Times outside leases and the newer events have no fractions of seconds.
pub(crate) fn whole_seconds(time: Timestamp) -> String {
    Timestamp::from_second(time.as_second())
        .unwrap_or(time)
        .to_string()
}

/// Which Node a write is for. An empty text would be a wish to clear the field, not a precondition.
#[derive(Serialize)]
struct Identity<'a> {
    #[serde(skip_serializing_if = "str::is_empty")]
    uid: &'a str,
}

impl<'a> Identity<'a> {
    fn of(node: &'a Node) -> Self {
        Self { uid: &node.uid }
    }
}

fn service_identity(service: &Service) -> Map<String, Value> {
    let mut metadata = Map::new();
    insert_text(
        &mut metadata,
        "uid",
        service.metadata.uid.as_deref().unwrap_or_default(),
    );
    metadata
}

fn service_version(service: &Service) -> Map<String, Value> {
    let mut metadata = service_identity(service);
    let version = service.metadata.resource_version.as_deref().unwrap_or_default();
    insert_text(&mut metadata, "resourceVersion", version);
    metadata
}

/// An empty text would be a wish to clear the field, not a precondition.
fn insert_text(object: &mut Map<String, Value>, key: &str, text: &str) {
    if !text.is_empty() {
        object.insert(key.into(), json!(text));
    }
}

fn pairs(annotations: &[(String, Option<String>)]) -> Value {
    annotations
        .iter()
        .map(|(key, value)| (key.clone(), json!(value)))
        .collect()
}

#[cfg(test)]
mod tests;
