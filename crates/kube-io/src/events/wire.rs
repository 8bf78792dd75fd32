//! Events as the API server takes them.

use serde::Serialize;
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
pub(super) fn event<'a>(
    occurrence: &'a Occurrence,
    entry: &'a Entry,
    host: &'a str,
    process: Option<&'a str>,
) -> impl Serialize + 'a {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Event<'a> {
        api_version: &'static str,
        kind: &'static str,
        metadata: Metadata<'a>,
        involved_object: Involved<'a>,
        #[serde(rename = "type")]
        of: &'static str,
        reason: &'static str,
        message: &'a str,
        source: Source<'a>,
        reporting_component: &'static str,
        reporting_instance: &'a str,
        first_timestamp: String,
        last_timestamp: String,
        count: u32,
    }

    #[derive(Serialize)]
    struct Metadata<'a> {
        name: &'a str,
        namespace: &'a str,
    }

    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Involved<'a> {
        kind: &'static str,
        api_version: &'static str,
        #[serde(skip_serializing_if = "str::is_empty")]
        namespace: &'a str,
        name: &'a str,
        #[serde(skip_serializing_if = "str::is_empty")]
        uid: &'a str,
    }

    #[derive(Serialize)]
    struct Source<'a> {
        component: &'static str,
        #[serde(skip_serializing_if = "str::is_empty")]
        host: &'a str,
    }

    let object = &occurrence.object;
    Event {
        api_version: "v1",
        kind: "Event",
        metadata: Metadata {
            name: &entry.name,
            namespace: namespace(object),
        },
        involved_object: Involved {
            kind: object.kind,
            api_version: object.api_version,
            namespace: &object.namespace,
            name: &object.name,
            uid: &object.uid,
        },
        of: type_name(occurrence.kind),
        reason: occurrence.reason,
        message: &entry.message,
        source: Source {
            component: occurrence.component,
            host,
        },
        reporting_component: occurrence.component,
        reporting_instance: process.unwrap_or(host),
        first_timestamp: whole_seconds(entry.first),
        last_timestamp: whole_seconds(entry.last),
        count: entry.count,
    }
}

/// The merge patch that counts a series up.
pub(super) fn repetition(entry: &Entry) -> Value {
    json!({"count": entry.count, "lastTimestamp": whole_seconds(entry.last), "message": entry.message})
}
