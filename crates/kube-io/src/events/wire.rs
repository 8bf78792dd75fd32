//! Events as the API server takes them.

use serde_json::{Value, json};

use super::correlate::Entry;
use super::{ObjectRef, Occurrence, type_name};
use crate::patch::whole_seconds;

/// Where the events of an object are kept.
pub(super) fn namespace(object: &ObjectRef) -> &str {
    if object.namespace.is_empty() {
        "default"
    } else {
        &object.namespace
    }
}

/// The object that is created for the first of a series.
pub(super) fn event(occurrence: &Occurrence, entry: &Entry, host: &str) -> Value {
    let Occurrence {
        component,
        object,
        kind,
        reason,
        ..
    } = occurrence;
    let mut involved = json!({"kind": object.kind, "apiVersion": object.api_version, "name": &*object.name});
    if !object.namespace.is_empty() {
        involved["namespace"] = json!(&*object.namespace);
    }
    if !object.uid.is_empty() {
        involved["uid"] = json!(&*object.uid);
    }
    let mut source = json!({"component": component});
    if !host.is_empty() {
        source["host"] = json!(host);
    }
    json!({
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": entry.name, "namespace": namespace(object)},
        "involvedObject": involved,
        "type": type_name(*kind),
        "reason": reason,
        "message": entry.message,
        "source": source,
        "reportingComponent": component,
        "reportingInstance": host,
        "firstTimestamp": whole_seconds(entry.first),
        "lastTimestamp": whole_seconds(entry.last),
        "count": entry.count,
    })
}

/// The merge patch that counts a series up.
pub(super) fn repetition(entry: &Entry) -> Value {
    json!({"count": entry.count, "lastTimestamp": whole_seconds(entry.last), "message": entry.message})
}
