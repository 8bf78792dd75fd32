//! The form in which a real server would give an object back: it has been through a typed Go value, so wrong types
//! are refused, empty optional fields vanish and times have the precision of their type.

use jiff::Timestamp;
use serde_json::{Map, Value};

use crate::clock::{micros, seconds};
use crate::kind::Kind;
use crate::path;
use crate::schema::{self, Field, Fields, Presence, Shape};

/// Brings `object` into that form, or says which field does not fit its type, as Go's decoder does.
pub(crate) fn canonicalize(kind: &Kind, object: &mut Value) -> Result<(), String> {
    prune(object);
    fit(object, schema::of(kind.kind)).map_err(|misfit| misfit.to_string())?;
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

/// A value that does not fit its field.
enum Misfit {
    /// Of another type: what was found, the Go type wanted, the Go type that has the field, and its path, once known.
    Type {
        found: String,
        wanted: String,
        within: Option<String>,
        path: String,
    },
    /// A time that cannot be read, and how it is written.
    Time { found: String, layout: &'static str },
}

impl Misfit {
    fn new(found: &Value, shape: Shape) -> Self {
        let found = match found {
            Value::Bool(_) => "bool".to_owned(),
            Value::Number(number) if matches!(shape, Shape::Int | Shape::Long) => format!("number {number}"),
            Value::Number(_) => "number".to_owned(),
            Value::String(_) => "string".to_owned(),
            Value::Array(_) => "array".to_owned(),
            Value::Object(_) | Value::Null => "object".to_owned(),
        };
        Self::Type {
            found,
            wanted: go_type(shape),
            within: None,
            path: String::new(),
        }
    }

    /// The same, told from a message that has the value in this field.
    fn inside(self, message: &Fields, field: &Field) -> Self {
        match self {
            Self::Type {
                found,
                wanted,
                within,
                path,
            } => Self::Type {
                found,
                wanted,
                path: match path.as_str() {
                    "" => field.name.to_owned(),
                    rest => format!("{}.{rest}", field.name),
                },
                within: within.or_else(|| Some(message.go_name())),
            },
            time @ Self::Time { .. } => time,
        }
    }
}

impl std::fmt::Display for Misfit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Time { found, layout } => write!(f, "parsing time {found:?} as {layout:?}"),
            Self::Type { within: None, .. } => f.write_str("json: cannot unmarshal value into Go value"),
            Self::Type {
                found,
                wanted,
                within: Some(within),
                path,
            } => write!(
                f,
                "json: cannot unmarshal {found} into Go struct field {within}.{path} of type {wanted}"
            ),
        }
    }
}

/// Checks a value, gives times their precision, and takes away what is empty and optional.
fn fit(value: &mut Value, shape: Shape) -> Result<(), Misfit> {
    let fits = match (shape, &mut *value) {
        (Shape::Text, Value::String(_))
        | (Shape::Bool, Value::Bool(_))
        | (Shape::IntOrText, Value::String(_)) => true,
        (Shape::IntOrText | Shape::Long, number) => number.is_i64(),
        (Shape::Int, number) => number.as_i64().is_some_and(|it| i32::try_from(it).is_ok()),
        (Shape::TextMap | Shape::BytesMap | Shape::QuantityMap, Value::Object(map)) => {
            return map.values_mut().try_for_each(|held| fit(held, Shape::Text));
        }
        (Shape::Message(message), Value::Object(map)) => return fit_fields(map, message),
        (Shape::Time | Shape::MicroTime, time) => return fit_time(time, shape),
        _ => false,
    };
    if fits {
        Ok(())
    } else {
        Err(Misfit::new(value, shape))
    }
}

fn fit_fields(object: &mut Map<String, Value>, message: &Fields) -> Result<(), Misfit> {
    for field in message.fields {
        let Some(value) = object.get_mut(field.name) else {
            continue;
        };
        let fitted = match (field.presence, &mut *value) {
            (Presence::Many, Value::Array(items)) => {
                items.iter_mut().try_for_each(|item| fit(item, field.shape))
            }
            (Presence::Many, other) => Err(Misfit::new(other, field.shape)),
            (_, value) => fit(value, field.shape),
        };
        fitted.map_err(|misfit| misfit.inside(message, field))?;
        if field.presence == Presence::Plain && is_empty(value, field.shape) {
            object.remove(field.name);
        }
    }
    Ok(())
}

/// Whether JSON leaves a value out where it may. A time and a whole message are never left out for being empty.
fn is_empty(value: &Value, shape: Shape) -> bool {
    match (shape, value) {
        (Shape::Text, Value::String(text)) => text.is_empty(),
        (Shape::Int | Shape::Long, number) => number.as_i64() == Some(0),
        (Shape::Bool, Value::Bool(flag)) => !flag,
        (Shape::TextMap | Shape::BytesMap | Shape::QuantityMap, Value::Object(map)) => map.is_empty(),
        _ => false,
    }
}

fn fit_time(value: &mut Value, shape: Shape) -> Result<(), Misfit> {
    let text = value.as_str().unwrap_or_default();
    if text.is_empty() {
        return Ok(());
    }
    let is_micro = matches!(shape, Shape::MicroTime);
    // `metav1.MicroTime` is read with six digits of a second, neither more nor fewer.
    let time = text.parse::<Timestamp>().ok();
    let Some(time) = time.filter(|_| !is_micro || fraction_digits(text) == 6) else {
        let found = text.to_owned();
        let layout = match is_micro {
            true => "2006-01-02T15:04:05.000000Z07:00",
            false => "2006-01-02T15:04:05Z07:00",
        };
        return Err(Misfit::Time { found, layout });
    };
    *value = if is_micro { micros(time) } else { seconds(time) }.into();
    Ok(())
}

fn fraction_digits(time: &str) -> usize {
    time.split_once('.').map_or(0, |(_, fraction)| {
        fraction.bytes().take_while(u8::is_ascii_digit).count()
    })
}

fn go_type(shape: Shape) -> String {
    let name = match shape {
        Shape::Text | Shape::TextMap | Shape::BytesMap | Shape::QuantityMap => "string",
        Shape::Int => "int32",
        Shape::Long => "int64",
        Shape::Bool => "bool",
        Shape::IntOrText => "intstr.IntOrString",
        Shape::Time => "v1.Time",
        Shape::MicroTime => "v1.MicroTime",
        Shape::Message(message) => return format!("v1.{}", message.go_name()),
    };
    name.to_owned()
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
