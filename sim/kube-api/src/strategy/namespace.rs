//! Namespaces. Deleting one only marks it: emptying it is the work of another program.

use serde_json::{Value, json};

use super::{Part, Strategy};
use crate::column::Column;
use crate::kind::{DEFAULT, Kind, ListMerge};
use crate::names::NameRule;
use crate::path;

pub(super) const NAMESPACE: Kind = Kind {
    kind: "Namespace",
    plural: "namespaces",
    singular: "namespace",
    short_names: &["ns"],
    namespaced: false,
    has_status: true,
    returns_deleted: true,
    registry: "namespaces",
    names: NameRule::Label,
    merge: &[("status.conditions", ListMerge::ByKey("type"))],
    ..DEFAULT
};

pub(super) struct Namespace;

impl Strategy for Namespace {
    fn default(&self, object: &mut Value) {
        let name = path::text(object, "metadata.name").to_owned();
        if !name.is_empty()
            && let Some(metadata) = object.get_mut("metadata")
        {
            metadata["labels"]["kubernetes.io/metadata.name"] = name.into();
        }
    }

    fn prepare_create(&self, object: &mut Value) {
        path::set(object, "status", json!({"phase": "Active"}));
        path::set(object, "spec", json!({"finalizers": ["kubernetes"]}));
        self.default(object);
    }

    fn prepare_update(&self, new: &mut Value, old: &Value, part: Part) {
        path::copy(new, old, "spec");
        if part == Part::Main {
            path::copy(new, old, "status");
        }
    }

    fn fields(&self, object: &Value) -> Vec<(&'static str, String)> {
        vec![("status.phase", path::text(object, "status.phase").to_owned())]
    }

    fn field_names(&self) -> &'static [&'static str] {
        &["status.phase"]
    }

    fn columns(&self) -> &'static [Column] {
        const { &[Column::name(), Column::text("Status"), Column::text("Age")] }
    }

    fn cells(&self, object: &Value, age: &dyn Fn(&str) -> String) -> Vec<Value> {
        vec![
            path::text(object, "metadata.name").into(),
            path::text(object, "status.phase").into(),
            age(path::text(object, "metadata.creationTimestamp")).into(),
        ]
    }
}
