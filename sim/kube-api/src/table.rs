//! `kind: Table`, in which `kubectl get` asks for objects.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::clock::human;
use crate::kind::Kind;
use crate::meta;

/// One column.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Column {
    name: &'static str,
    format: &'static str,
    priority: u8,
}

/// The columns of kinds that have nothing of their own to show.
pub(crate) const NAME_AND_AGE: &[Column] = &[Column::name(), Column::text("Age")];

impl Column {
    pub(crate) const fn name() -> Self {
        Self {
            name: "Name",
            format: "name",
            priority: 0,
        }
    }

    pub(crate) const fn text(name: &'static str) -> Self {
        Self {
            name,
            format: "",
            priority: 0,
        }
    }

    /// Shown by `-o wide` only.
    pub(crate) const fn wide(name: &'static str) -> Self {
        Self {
            name,
            format: "",
            priority: 1,
        }
    }

    fn definition(&self) -> Value {
        json!({
            "name": self.name,
            "type": "string",
            "format": self.format,
            "description": "",
            "priority": self.priority,
        })
    }
}

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
            let mut row = json!({"cells": kind.strategy.cells(object, &age)});
            match include {
                Include::Nothing => {}
                Include::Metadata => row["object"] = meta::partial(object),
                Include::Object => row["object"] = Value::clone(object),
            }
            row
        })
        .collect();
    let columns: Value = if headed {
        kind.strategy.columns().iter().map(Column::definition).collect()
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
