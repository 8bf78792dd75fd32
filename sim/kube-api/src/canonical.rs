//! The form in which a real server would give an object back: it has been through a typed Go value, so wrong types
//! are refused, empty optional fields vanish and times have the precision of their type.

use jiff::Timestamp;
use serde_json::{Map, Value};

use crate::clock::{micros, seconds};
use crate::kind::{Kind, Type};
use crate::path;

const META: &[(&str, Type)] = &[
    ("metadata", Type::Object),
    ("metadata.name", Type::Text),
    ("metadata.generateName", Type::Text),
    ("metadata.namespace", Type::Text),
    ("metadata.uid", Type::Text),
    ("metadata.resourceVersion", Type::Text),
    ("metadata.labels", Type::TextMap),
    ("metadata.annotations", Type::TextMap),
    ("metadata.finalizers", Type::Texts),
    ("metadata.ownerReferences", Type::Objects),
    ("metadata.creationTimestamp", Type::Time),
    ("metadata.deletionTimestamp", Type::Time),
];

const META_OMIT_ZERO: &[&str] = &[
    "metadata.generateName",
    "metadata.namespace",
    "metadata.selfLink",
    "metadata.uid",
    "metadata.resourceVersion",
    "metadata.generation",
];

/// Brings `object` into that form, or says which field does not fit its type, as Go's decoder does.
pub(crate) fn canonicalize(kind: &Kind, object: &mut Value) -> Result<(), String> {
    prune(object);
    if !object.is_object() {
        return Err("json: cannot unmarshal value into Go value".to_owned());
    }
    for (field, expected) in META.iter().chain(kind.types) {
        let mut problem = None;
        path::visit(object, field, &mut |parent, key| {
            if let Some(value) = parent.get_mut(key)
                && let Err(found) = fit(value, *expected)
            {
                problem.get_or_insert(found);
            }
        });
        if let Some(found) = problem {
            let field = field.replace("[]", "");
            let scope = field.split('.').next_back().unwrap_or_default();
            return Err(match *expected {
                Type::Time => format!("parsing time {found:?} as \"2006-01-02T15:04:05Z07:00\""),
                Type::MicroTime => format!("parsing time {found:?} as \"2006-01-02T15:04:05.000000Z07:00\""),
                _ => format!(
                    "json: cannot unmarshal {found} into Go struct field {}.{field} of type {}",
                    go_struct(kind, &field),
                    go_type(*expected, scope)
                ),
            });
        }
    }
    for field in META_OMIT_ZERO.iter().chain(kind.omit_zero) {
        path::visit(object, field, &mut |parent, key| {
            if parent.get(key).is_some_and(is_zero) {
                parent.remove(key);
            }
        });
    }
    for (field, expected) in META.iter().chain(kind.types) {
        if *expected == Type::TextMap {
            path::visit(object, field, &mut |parent, key| {
                if parent
                    .get(key)
                    .and_then(Value::as_object)
                    .is_some_and(Map::is_empty)
                {
                    parent.remove(key);
                }
            });
        }
    }
    path::set(object, "apiVersion", kind.api_version());
    path::set(object, "kind", kind.kind);
    if !object["metadata"].is_object() {
        path::set(object, "metadata", Value::Object(Map::new()));
    }
    Ok(())
}

/// Drops nulls and empty lists.
fn prune(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|_, child| {
                prune(child);
                !child.is_null() && !child.as_array().is_some_and(Vec::is_empty)
            });
        }
        Value::Array(items) => items.iter_mut().for_each(prune),
        _ => {}
    }
}

fn is_zero(value: &Value) -> bool {
    match value {
        Value::String(text) => text.is_empty(),
        Value::Number(number) => number.as_i64() == Some(0),
        Value::Bool(flag) => !flag,
        _ => false,
    }
}

/// Checks one value and gives times their precision; the error names what was found instead.
fn fit(value: &mut Value, expected: Type) -> Result<(), String> {
    let fits = match expected {
        Type::Text => value.is_string(),
        Type::Bool => value.is_boolean(),
        Type::Int32 => value.as_i64().is_some_and(|number| i32::try_from(number).is_ok()),
        Type::Object => value.is_object(),
        Type::Objects => value
            .as_array()
            .is_some_and(|items| items.iter().all(Value::is_object)),
        Type::Texts => value
            .as_array()
            .is_some_and(|items| items.iter().all(Value::is_string)),
        Type::TextMap => value
            .as_object()
            .is_some_and(|map| map.values().all(Value::is_string)),
        Type::IntOrText => value.is_string() || value.is_i64(),
        Type::Time | Type::MicroTime => {
            let text = value.as_str().unwrap_or_default();
            if text.is_empty() {
                return Ok(());
            }
            let Ok(time) = text.parse::<Timestamp>() else {
                return Err(text.to_owned());
            };
            if expected == Type::MicroTime && fraction_digits(text) != 6 {
                return Err(text.to_owned());
            }
            *value = if expected == Type::Time {
                seconds(time)
            } else {
                micros(time)
            }
            .into();
            true
        }
    };
    if fits {
        Ok(())
    } else {
        Err(go_kind(value, expected))
    }
}

/// Digits of the fraction of a second. `metav1.MicroTime` is read with six, neither more nor fewer.
fn fraction_digits(time: &str) -> usize {
    time.split_once('.').map_or(0, |(_, fraction)| {
        fraction.bytes().take_while(u8::is_ascii_digit).count()
    })
}

fn go_kind(value: &Value, expected: Type) -> String {
    let inner = match (value, expected) {
        (Value::Object(map), Type::TextMap) => map.values().find(|child| !child.is_string()),
        (Value::Array(items), Type::Texts) => items.iter().find(|child| !child.is_string()),
        (Value::Array(items), Type::Objects) => items.iter().find(|child| !child.is_object()),
        _ => None,
    };
    match inner.unwrap_or(value) {
        Value::Bool(_) => "bool".to_owned(),
        Value::Number(number) if expected == Type::Int32 => format!("number {number}"),
        Value::Number(_) => "number".to_owned(),
        Value::String(_) => "string".to_owned(),
        Value::Array(_) => "array".to_owned(),
        Value::Object(_) | Value::Null => "object".to_owned(),
    }
}

/// The Go type that has a field of this path.
fn go_struct(kind: &Kind, field: &str) -> String {
    let parent = field.rsplit_once('.').map_or("", |(parent, _)| parent);
    match parent {
        "" => kind.kind.to_owned(),
        "metadata" => "ObjectMeta".to_owned(),
        "spec" => format!("{}Spec", kind.kind),
        "status" => format!("{}Status", kind.kind),
        "spec.ports" => "ServicePort".to_owned(),
        "spec.taints" => "Taint".to_owned(),
        "status.addresses" => "NodeAddress".to_owned(),
        "status.conditions" => format!("{}Condition", kind.kind),
        "status.loadBalancer" => "LoadBalancerStatus".to_owned(),
        "status.loadBalancer.ingress" => "LoadBalancerIngress".to_owned(),
        other => other.to_owned(),
    }
}

fn go_type(expected: Type, field: &str) -> String {
    match expected {
        Type::Text | Type::TextMap | Type::Texts => "string".to_owned(),
        Type::Int32 => "int32".to_owned(),
        Type::Bool => "bool".to_owned(),
        Type::IntOrText => "intstr.IntOrString".to_owned(),
        Type::Time => "v1.Time".to_owned(),
        Type::MicroTime => "v1.MicroTime".to_owned(),
        Type::Object | Type::Objects => format!("v1.{}{}", field[..1].to_uppercase(), &field[1..]),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn kind(name: &str) -> &'static Kind {
        Kind::named(name).unwrap()
    }

    #[test]
    fn empty_optional_fields_vanish_and_meaningful_zeros_stay() {
        let mut node = json!({
            "metadata": {"name": "a", "labels": {"role": ""}, "annotations": {}, "finalizers": []},
            "spec": {"unschedulable": false, "taints": [{"key": "k", "value": "", "effect": "NoSchedule"}]},
            "status": {"addresses": null},
        });
        canonicalize(kind("Node"), &mut node).unwrap();
        assert_eq!(
            node,
            json!({
                "apiVersion": "v1", "kind": "Node",
                "metadata": {"name": "a", "labels": {"role": ""}},
                "spec": {"taints": [{"key": "k", "effect": "NoSchedule"}]},
                "status": {},
            })
        );
        let mut lease = json!({"spec": {"holderIdentity": "", "leaseTransitions": 0}});
        canonicalize(kind("Lease"), &mut lease).unwrap();
        assert_eq!(
            lease["spec"],
            json!({"holderIdentity": "", "leaseTransitions": 0})
        );
        let mut service = json!({"spec": {"allocateLoadBalancerNodePorts": false, "healthCheckNodePort": 0}});
        canonicalize(kind("Service"), &mut service).unwrap();
        assert_eq!(service["spec"], json!({"allocateLoadBalancerNodePorts": false}));
    }

    #[test]
    fn times_get_the_precision_of_their_type() {
        let mut lease = json!({"spec": {"renewTime": "2026-01-02T05:04:05.123456+02:00"}});
        canonicalize(kind("Lease"), &mut lease).unwrap();
        assert_eq!(lease["spec"]["renewTime"], "2026-01-02T03:04:05.123456Z");
        for time in [
            "2026-01-02T03:04:05Z",
            "2026-01-02T03:04:05.5Z",
            "2026-01-02T03:04:05.123456789Z",
        ] {
            let mut lease = json!({"spec": {"renewTime": time}});
            canonicalize(kind("Lease"), &mut lease).unwrap_err();
        }
        let mut node =
            json!({"status": {"conditions": [{"lastHeartbeatTime": "2026-01-02T05:04:05.9+02:00"}]}});
        canonicalize(kind("Node"), &mut node).unwrap();
        assert_eq!(
            node["status"]["conditions"][0]["lastHeartbeatTime"],
            "2026-01-02T03:04:05Z"
        );
    }

    #[test]
    fn wrong_types_are_refused_with_the_words_of_the_go_decoder() {
        let mut service = json!({"spec": {"ports": [{"port": "80"}]}});
        assert_eq!(
            canonicalize(kind("Service"), &mut service).unwrap_err(),
            "json: cannot unmarshal string into Go struct field ServicePort.spec.ports.port of type int32"
        );
        let mut node = json!({"metadata": {"labels": {"a": 1}}});
        assert_eq!(
            canonicalize(kind("Node"), &mut node).unwrap_err(),
            "json: cannot unmarshal number into Go struct field ObjectMeta.metadata.labels of type string"
        );
    }
}
