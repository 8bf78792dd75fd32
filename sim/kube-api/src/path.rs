//! Reading and writing JSON objects by dotted paths such as `spec.loadBalancerClass`.
//!
//! A path here never crosses a list. Absent and `null` read the same, as they do for the typed objects of a real
//! server.

use serde_json::{Map, Value};

/// The value at `path`, unless it is absent or `null`.
pub(crate) fn at<'a>(object: &'a Value, path: &str) -> Option<&'a Value> {
    let mut here = object;
    for key in path.split('.') {
        here = here.get(key)?;
    }
    (!here.is_null()).then_some(here)
}

/// The text at `path`; empty if there is none.
pub(crate) fn text<'a>(object: &'a Value, path: &str) -> &'a str {
    at(object, path).and_then(Value::as_str).unwrap_or_default()
}

/// The whole number at `path`; 0 if there is none.
pub(crate) fn number(object: &Value, path: &str) -> i64 {
    at(object, path).and_then(Value::as_i64).unwrap_or_default()
}

/// Whether `true` stands at `path`.
pub(crate) fn flag(object: &Value, path: &str) -> bool {
    at(object, path).and_then(Value::as_bool).unwrap_or_default()
}

/// The list at `path`; empty if there is none.
pub(crate) fn list<'a>(object: &'a Value, path: &str) -> &'a [Value] {
    at(object, path)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

/// The list of texts at `path`.
pub(crate) fn texts<'a>(object: &'a Value, path: &str) -> Vec<&'a str> {
    list(object, path).iter().filter_map(Value::as_str).collect()
}

/// The list at `path`, to be changed in place.
pub(crate) fn list_mut<'a>(object: &'a mut Value, path: &str) -> Option<&'a mut Vec<Value>> {
    let mut here = object;
    for key in path.split('.') {
        here = here.get_mut(key)?;
    }
    here.as_array_mut()
}

/// Puts `value` at `path`, making the objects on the way.
pub(crate) fn set(object: &mut Value, path: &str, value: impl Into<Value>) {
    let mut here = object;
    for key in path.split('.') {
        if !here.is_object() {
            *here = Value::Object(Map::new());
        }
        let Value::Object(map) = here else { return };
        here = map.entry(key).or_insert(Value::Null);
    }
    *here = value.into();
}

/// Takes away what is at `path`.
pub(crate) fn remove(object: &mut Value, path: &str) -> Option<Value> {
    let (parent, key) = match path.rsplit_once('.') {
        Some((parent, key)) => (
            parent
                .split('.')
                .try_fold(object, |here, key| here.get_mut(key))?,
            key,
        ),
        None => (object, path),
    };
    parent.as_object_mut()?.remove(key)
}

/// Copies what is at `path` in `from`, absence included.
pub(crate) fn copy(object: &mut Value, from: &Value, path: &str) {
    match at(from, path) {
        Some(value) => set(object, path, value.clone()),
        None => {
            remove(object, path);
        }
    }
}
