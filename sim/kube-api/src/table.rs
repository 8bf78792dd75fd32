//! `kind: Table`, in which `kubectl get` asks for objects.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::clock::human;
use crate::column::Column;
use crate::kind::Kind;
use crate::meta;

/// What each row carries of its object (`includeObject`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Include {
    Nothing,
    Metadata,
    Object,
}

/// A table of `objects`; `headed` says whether it names its columns, which in a watch only the first one does.
pub(crate) fn table(
    kind: &Kind,
    objects: &[&Value],
    metadata: Value,
    include: Include,
    headed: bool,
    now: Timestamp,
) -> Value {
    let age = |text: &str| match text.parse::<Timestamp>() {
        Ok(then) => human(now.duration_since(then).try_into().unwrap_or_default()),
        Err(_) => "<unknown>".to_owned(),
    };
    let rows: Vec<Value> = objects
        .iter()
        .map(|object| {
            let mut row = json!({"cells": kind.strategy().cells(object, &age)});
            match include {
                Include::Nothing => {}
                Include::Metadata => row["object"] = meta::partial(object),
                Include::Object => row["object"] = Value::clone(object),
            }
            row
        })
        .collect();
    let columns: Value = if headed {
        kind.strategy().columns().iter().map(Column::definition).collect()
    } else {
        Value::Null
    };
    json!({
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": metadata,
        "columnDefinitions": columns,
        "rows": rows,
    })
}
