//! From the bytes of a Node to the small Node of the contract, in one step.
//!
//! A real Node is 10 to 50 KiB of JSON. Only what is looked at is read, strings are borrowed from the answer, and what
//! is kept is shared with the other Nodes. Reading ends with the last thing that is looked at: most of a Node is the list of
//! its images, which comes after that.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use bowline_cloud_provider::{
    Labels, NetworkUnavailable, Node, NodeAddress, NodeName, Readiness, Taint, keys,
};
use jiff::Timestamp;
use serde::de::{Deserialize, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};

use serde_json::{Map, Value, json};

use crate::error::KubeError;
use crate::intern::Interner;
use crate::shape::{Shown, names};

/// Annotations that nearly every Node has and no controller or cloud asks for, so they are not kept.
const DROPPED: [&str; 4] = [
    // The copy of the whole object that `kubectl apply` keeps.
    "kubectl.kubernetes.io/last-applied-configuration",
    // What kubelet and kube-controller-manager say to each other. The second one differs from Node to Node.
    "volumes.kubernetes.io/controller-managed-attach-detach",
    "csi.volume.kubernetes.io/nodeid",
    "node.alpha.kubernetes.io/ttl",
];

/// Longer annotation values differ from Node to Node, so they are not looked up among the shared strings.
const SHARED_ANNOTATION: usize = 64;

/// When a Node was created that does not say so: it counts as new, because a Node that is old may be deleted where a new one
/// may not.
const UNKNOWN_AGE: Timestamp = Timestamp::MAX;

/// Reads a Node. What cannot be understood of it counts as not there.
///
/// Its names and its `spec` must be there, as every API server writes them. Where they are missing, something on the way took
/// them off. A `status` may be missing: a Node that was made by hand has had none yet.
pub(crate) fn decode(bytes: &[u8], strings: &Interner) -> Result<Shown<Node>, KubeError> {
    let error = match understood(bytes, strings) {
        Ok(node) if !node.resource_version.is_empty() => return Ok(Shown::whole(node)),
        Ok(_) => KubeError::missing("metadata.resourceVersion"),
        Err(error) => error,
    };
    let mended = serde_json::to_vec(&mended(bytes)).unwrap_or_default();
    match understood(&mended, strings) {
        // It is not deleted for what it seems to lack.
        Ok(node) => Ok(Shown::part(
            Node {
                created: UNKNOWN_AGE,
                ..node
            },
            error,
        )),
        Err(_) => Err(error),
    }
}

fn understood(bytes: &[u8], strings: &Interner) -> Result<Node, KubeError> {
    let mut wire = WireNode::default();
    let mut json = serde_json::Deserializer::from_slice(bytes);
    let read = json.deserialize_map(&mut wire).and_then(|()| json.end());
    if let (Err(error), false) = (read, wire.is_read()) {
        return Err(KubeError::Decode(error.to_string()));
    }
    let WireNode {
        kind,
        metadata,
        spec,
        status,
    } = wire;
    if kind.is_some_and(|kind| kind.0 != "Node") {
        return Err(KubeError::Decode("it is no Node".into()));
    }
    let metadata = metadata.ok_or_else(|| KubeError::missing("metadata"))?;
    match spec {
        _ if metadata.name.0.is_empty() => Err(KubeError::missing("metadata.name")),
        _ if is_empty(metadata.uid.as_ref()) => Err(KubeError::missing("metadata.uid")),
        None => Err(KubeError::missing("spec")),
        Some(spec) => Ok(convert(metadata, spec, status, strings)),
    }
}

/// The Node without what is not of the form that it has to have: of a list or a map, the entries that are not.
fn mended(bytes: &[u8]) -> Value {
    let wire: Value = serde_json::from_slice(bytes).unwrap_or_default();
    let at = |path: &str| wire.pointer(path);
    let names = names(bytes); // also of what is nested too deeply for a tree
    let text = |path| at(path).filter(|value| value.is_string());
    let time = |path| at(path).filter(|value| is::<Timestamp>(value));
    let entries = |path: &str, is_of_form: fn(&Value) -> bool| -> Vec<&Value> {
        let list = at(path).and_then(Value::as_array);
        list.into_iter()
            .flatten()
            .filter(|entry| is_of_form(entry))
            .collect()
    };
    let pairs = |path| -> Map<String, Value> {
        let map = at(path).and_then(Value::as_object);
        let texts = map.into_iter().flatten().filter(|(_, value)| value.is_string());
        texts.map(|(key, value)| (key.clone(), value.clone())).collect()
    };
    json!({
        "metadata": {
            "name": names.name,
            "uid": names.uid,
            "resourceVersion": names.resource_version,
            "deletionTimestamp": time("/metadata/deletionTimestamp"),
            "labels": pairs("/metadata/labels"),
            "annotations": pairs("/metadata/annotations"),
        },
        "spec": {
            "providerID": text("/spec/providerID"),
            "taints": entries("/spec/taints", |taint| is::<Taint>(taint)),
            "podCIDRs": entries("/spec/podCIDRs", Value::is_string),
        },
        "status": {
            "addresses": entries("/status/addresses", |address| is::<NodeAddress>(address)),
            "conditions": entries("/status/conditions", |condition| is::<WireCondition<'_>>(condition)),
        },
    })
}

/// Whether a value has this form.
fn is<'a, T: Deserialize<'a>>(value: &'a Value) -> bool {
    T::deserialize(value).is_ok()
}

fn is_empty(text: Option<&Text<'_>>) -> bool {
    text.is_none_or(|text| text.0.is_empty())
}

/// Text that is borrowed from the answer where it holds no escapes; also inside maps, where `Cow` alone never is.
#[derive(Default, PartialEq, Eq, PartialOrd, Ord)]
struct Text<'a>(Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Borrowing;
        impl<'de> Visitor<'de> for Borrowing {
            type Value = Cow<'de, str>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Cow::Borrowed(text))
            }

            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Cow::Owned(text.to_owned()))
            }
        }
        deserializer.deserialize_str(Borrowing).map(Self)
    }
}

/// A map as it came: nothing is looked up in it.
struct Pairs<'a>(Vec<(Text<'a>, Text<'a>)>);

impl<'de: 'a, 'a> Deserialize<'de> for Pairs<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;
        impl<'de> Visitor<'de> for InOrder {
            type Value = Vec<(Text<'de>, Text<'de>)>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map of strings")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut pairs = Vec::with_capacity(16);
                while let Some(pair) = map.next_entry()? {
                    pairs.push(pair);
                }
                Ok(pairs)
            }
        }
        deserializer.deserialize_map(InOrder).map(Self)
    }
}

/// What is looked at, as far as it was read.
#[derive(Default)]
struct WireNode<'a> {
    kind: Option<Text<'a>>,
    metadata: Option<WireMeta<'a>>,
    spec: Option<WireSpec<'a>>,
    status: WireStatus<'a>,
}

impl WireNode<'_> {
    /// Whether all of it was read. API servers write the kind before everything else.
    fn is_read(&self) -> bool {
        let WireStatus {
            addresses,
            conditions,
        } = &self.status;
        self.metadata.is_some() && self.spec.is_some() && addresses.is_some() && conditions.is_some()
    }
}

impl<'de: 'a, 'a> Visitor<'de> for &mut WireNode<'a> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a Node")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(Text(key)) = map.next_key()? {
            match &*key {
                "kind" => self.kind = map.next_value()?,
                "metadata" => self.metadata = Some(map.next_value()?),
                "spec" => self.spec = map.next_value()?,
                "status" => map.next_value_seed(StatusOf(self))?,
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }
}

/// The status of a Node that is being read.
struct StatusOf<'r, 'a>(&'r mut WireNode<'a>);

impl<'de: 'a, 'a> DeserializeSeed<'de> for StatusOf<'_, 'a> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_option(self)
    }
}

impl<'de: 'a, 'a> Visitor<'de> for StatusOf<'_, 'a> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the status of a Node")
    }

    fn visit_none<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(Text(key)) = map.next_key()? {
            match &*key {
                "addresses" => self.0.status.addresses = map.next_value()?,
                "conditions" => self.0.status.conditions = map.next_value()?,
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
            if self.0.is_read() {
                break; // and the deserializer, which misses the end, reads no further
            }
        }
        Ok(())
    }
}

#[derive(serde::Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireMeta<'a> {
    #[serde(borrow)]
    name: Text<'a>,
    #[serde(borrow)]
    uid: Option<Text<'a>>,
    #[serde(borrow)]
    resource_version: Option<Text<'a>>,
    creation_timestamp: Option<Timestamp>,
    deletion_timestamp: Option<Timestamp>,
    #[serde(borrow)]
    labels: Option<Pairs<'a>>,
    #[serde(borrow)]
    annotations: Option<Pairs<'a>>,
}

#[derive(serde::Deserialize)]
struct WireSpec<'a> {
    #[serde(borrow, rename = "providerID")]
    provider_id: Option<Text<'a>>,
    taints: Option<Vec<Taint>>,
    #[serde(rename = "podCIDRs")]
    pod_cidrs: Option<Vec<String>>,
}

#[derive(Default)]
struct WireStatus<'a> {
    addresses: Option<Vec<NodeAddress>>,
    conditions: Option<Vec<WireCondition<'a>>>,
}

#[derive(serde::Deserialize)]
struct WireCondition<'a> {
    #[serde(borrow, rename = "type")]
    kind: Text<'a>,
    #[serde(borrow)]
    status: Text<'a>,
    #[serde(borrow)]
    reason: Option<Text<'a>>,
}

fn convert(metadata: WireMeta<'_>, spec: WireSpec<'_>, status: WireStatus<'_>, strings: &Interner) -> Node {
    let conditions = status.conditions.unwrap_or_default();
    Node {
        name: NodeName::new(strings.share(&metadata.name.0)),
        uid: own(metadata.uid.unwrap_or_default()),
        resource_version: own(metadata.resource_version.unwrap_or_default()),
        created: metadata.creation_timestamp.unwrap_or(UNKNOWN_AGE),
        deleting: metadata.deletion_timestamp.is_some(),
        labels: labels(metadata.labels, strings),
        annotations: annotations(metadata.annotations, strings),
        provider_id: spec.provider_id.filter(|id| !id.0.is_empty()).map(own),
        taints: tight(spec.taints),
        pod_cidrs: tight(spec.pod_cidrs),
        addresses: tight(status.addresses),
        readiness: readiness(&conditions),
        draining: draining(&conditions),
        network_unavailable: network_unavailable(&conditions, strings),
    }
}

/// Text that no other Node has: among the shared strings it would take room that nobody gains by.
fn own(text: Text<'_>) -> Arc<str> {
    Arc::from(text.0)
}

/// A list without the room that reading it left: it is kept for as long as the Node.
fn tight<T>(list: Option<Vec<T>>) -> Vec<T> {
    let mut list = list.unwrap_or_default();
    list.shrink_to_fit();
    list
}

fn labels(pairs: Option<Pairs<'_>>, strings: &Interner) -> Labels {
    let shared = pairs
        .iter()
        .flat_map(|pairs| &pairs.0)
        .map(|(key, value)| (strings.share(&key.0), strings.share(&value.0)));
    Labels::sharing(shared, |keys| strings.share_list(keys))
}

fn annotations(pairs: Option<Pairs<'_>>, strings: &Interner) -> Labels {
    let kept = pairs
        .iter()
        .flat_map(|pairs| &pairs.0)
        .filter(|(key, _)| !DROPPED.contains(&&*key.0))
        .map(|(key, value)| {
            let value = if value.0.len() <= SHARED_ANNOTATION {
                strings.share(&value.0)
            } else {
                Arc::from(&*value.0)
            };
            (strings.share(&key.0), value)
        });
    Labels::sharing(kept, |keys| strings.share_list(keys))
}

fn readiness(conditions: &[WireCondition<'_>]) -> Readiness {
    match conditions.iter().find(|condition| condition.kind.0 == "Ready") {
        None => Readiness::Missing,
        Some(condition) => match &*condition.status.0 {
            "True" => Readiness::Ready,
            "False" => Readiness::NotReady,
            _ => Readiness::Unknown,
        },
    }
}

fn draining(conditions: &[WireCondition<'_>]) -> Option<&'static str> {
    let is_true = |kind: &&str| {
        let mut all = conditions.iter();
        all.any(|condition| condition.kind.0 == *kind && condition.status.0 == "True")
    };
    keys::CONDITIONS_DRAINING.into_iter().find(is_true)
}

fn network_unavailable(conditions: &[WireCondition<'_>], strings: &Interner) -> Option<NetworkUnavailable> {
    let condition = conditions
        .iter()
        .find(|condition| condition.kind.0 == "NetworkUnavailable")?;
    Some(NetworkUnavailable {
        is_unavailable: condition.status.0 == "True",
        reason: strings.share(condition.reason.as_ref().map_or("", |reason| &*reason.0)),
    })
}

#[cfg(test)]
mod tests;
