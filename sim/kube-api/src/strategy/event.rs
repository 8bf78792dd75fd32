//! Events of the core group.

use serde_json::{Value, json};

use super::{Part, Strategy};
use crate::column::Column;
use crate::field::FieldError;
use crate::kind::{DEFAULT, Kind};
use crate::names::{self, NameRule};
use crate::path;

pub(super) const EVENT: Kind = Kind {
    kind: "Event",
    plural: "events",
    singular: "event",
    short_names: &["ev"],
    create_on_update: true,
    registry: "events",
    names: NameRule::PathSegment,
    ..DEFAULT
};

/// Longest names and texts of an event that has `eventTime` (`pkg/apis/core/validation/events.go`).
const REASON_LIMIT: usize = 128;
const MESSAGE_LIMIT: usize = 1024;

pub(super) struct Event;

impl Strategy for Event {
    fn default(&self, object: &mut Value) {
        for field in ["involvedObject", "source"] {
            if path::at(object, field).is_none() {
                path::set(object, field, serde_json::Map::new());
            }
        }
        for field in ["reportingComponent", "reportingInstance"] {
            if path::at(object, field).is_none() {
                path::set(object, field, "");
            }
        }
    }

    fn prepare_create(&self, _object: &mut Value) {}

    fn prepare_update(&self, _new: &mut Value, _old: &Value, _part: Part) {}

    fn validate(&self, object: &Value, errors: &mut Vec<FieldError>) {
        let namespace = path::text(object, "metadata.namespace");
        let involved = path::text(object, "involvedObject.namespace");
        let strays = || {
            FieldError::invalid(
                "involvedObject.namespace",
                involved,
                "does not match event.namespace",
            )
        };
        if path::text(object, "eventTime").is_empty() {
            let matches = if involved.is_empty() {
                namespace == "default"
            } else {
                involved == namespace
            };
            if !matches {
                errors.push(strays());
            }
            return;
        }
        if involved.is_empty() && !["default", "kube-system"].contains(&namespace) {
            errors.push(strays());
        }
        let component = path::text(object, "reportingComponent");
        if component.is_empty() {
            errors.push(FieldError::required("reportingComponent", ""));
        }
        let wrong = names::qualified_name(component);
        errors.extend(
            wrong
                .iter()
                .map(|text| FieldError::invalid("reportingComponent", component, text)),
        );
        for field in ["reportingInstance", "action", "reason"] {
            let text = path::text(object, field);
            if text.is_empty() {
                errors.push(FieldError::required(field, ""));
            } else if text.len() > REASON_LIMIT {
                let detail = format!("can have at most {REASON_LIMIT} characters");
                errors.push(FieldError::invalid(field, "", &detail));
            }
        }
        if path::text(object, "message").len() > MESSAGE_LIMIT {
            let detail = format!("can have at most {MESSAGE_LIMIT} characters");
            errors.push(FieldError::invalid("message", "", &detail));
        }
    }

    fn finish(&self, object: &mut Value) {
        for field in ["eventTime", "firstTimestamp", "lastTimestamp"] {
            if path::at(object, field).is_none() {
                path::set(object, field, Value::Null);
            }
        }
    }

    fn fields(&self, object: &Value) -> Vec<(&'static str, String)> {
        let value = |field: &'static str| match field {
            "source" if !path::text(object, "source.component").is_empty() => {
                path::text(object, "source.component")
            }
            "source" => path::text(object, "reportingComponent"),
            _ => path::text(object, field),
        };
        self.field_names()
            .iter()
            .map(|field| (*field, value(field).to_owned()))
            .collect()
    }

    fn field_names(&self) -> &'static [&'static str] {
        &[
            "involvedObject.kind",
            "involvedObject.namespace",
            "involvedObject.name",
            "involvedObject.uid",
            "involvedObject.apiVersion",
            "involvedObject.resourceVersion",
            "involvedObject.fieldPath",
            "reason",
            "reportingComponent",
            "source",
            "type",
        ]
    }

    fn columns(&self) -> &'static [Column] {
        const {
            &[
                Column::text("Last Seen"),
                Column::text("Type"),
                Column::text("Reason"),
                Column::text("Object"),
                Column::wide("Subobject"),
                Column::wide("Source"),
                Column::text("Message"),
                Column::wide("First Seen"),
                Column::wide("Count"),
                Column::wide("Name"),
            ]
        }
    }

    fn cells(&self, object: &Value, age: &dyn Fn(&str) -> String) -> Vec<Value> {
        let first_of = |fields: &[&str]| {
            let texts = fields.iter().map(|field| path::text(object, field));
            texts
                .into_iter()
                .find(|text| !text.is_empty())
                .unwrap_or_default()
                .to_owned()
        };
        let first = first_of(&["firstTimestamp", "eventTime"]);
        let last = first_of(&[
            "series.lastObservedTime",
            "lastTimestamp",
            "firstTimestamp",
            "eventTime",
        ]);
        let count = match path::number(object, "series.count") {
            0 => path::number(object, "count").max(1),
            series => series,
        };
        let kind = path::text(object, "involvedObject.kind").to_lowercase();
        let target = match path::text(object, "involvedObject.name") {
            "" => kind,
            name => format!("{kind}/{name}"),
        };
        let component = first_of(&["source.component", "reportingComponent"]);
        let source = match first_of(&["source.host", "reportingInstance"]).as_str() {
            "" => component,
            instance => format!("{component}, {instance}"),
        };
        vec![
            age(&last).into(),
            path::text(object, "type").into(),
            path::text(object, "reason").into(),
            target.into(),
            path::text(object, "involvedObject.fieldPath").into(),
            source.into(),
            path::text(object, "message").trim().into(),
            age(&first).into(),
            json!(count),
            path::text(object, "metadata.name").into(),
        ]
    }
}
