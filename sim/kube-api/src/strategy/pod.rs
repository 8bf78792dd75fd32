//! Pods, as far as `kubectl describe node` asks for them. Nothing runs them.

use serde_json::Value;

use super::Strategy;
use crate::kind::{DEFAULT, Kind, ListMerge};
use crate::path;

pub(super) const POD: Kind = Kind {
    kind: "Pod",
    plural: "pods",
    singular: "pod",
    short_names: &["po"],
    categories: &["all"],
    has_status: true,
    returns_deleted: true,
    registry: "pods",
    merge: &[
        ("spec.containers", ListMerge::ByKey("name")),
        ("spec.containers.env", ListMerge::ByKey("name")),
        ("spec.containers.ports", ListMerge::ByKey("containerPort")),
        ("spec.initContainers", ListMerge::ByKey("name")),
        ("spec.volumes", ListMerge::ByKey("name")),
        ("status.conditions", ListMerge::ByKey("type")),
        ("status.podIPs", ListMerge::ByKey("ip")),
    ],
    ..DEFAULT
};

pub(super) struct Pod;

impl Strategy for Pod {
    fn prepare_create(&self, object: &mut Value) {
        path::set(object, "status", serde_json::json!({"phase": "Pending"}));
    }

    fn fields(&self, object: &Value) -> Vec<(&'static str, String)> {
        self.field_names()
            .iter()
            .map(|field| (*field, path::text(object, field).to_owned()))
            .collect()
    }

    fn field_names(&self) -> &'static [&'static str] {
        &[
            "spec.nodeName",
            "spec.restartPolicy",
            "spec.schedulerName",
            "spec.serviceAccountName",
            "status.phase",
            "status.podIP",
        ]
    }
}
