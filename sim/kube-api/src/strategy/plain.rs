//! Kinds without behaviour of their own.

use serde_json::Value;

use super::Strategy;
use crate::column::Column;
use crate::kind::{DEFAULT, Kind, ListMerge};
use crate::path;

pub(super) struct Plain;

impl Strategy for Plain {
    fn prepare_create(&self, _object: &mut Value) {}
}

pub(super) const CONFIG_MAP: Kind = Kind {
    kind: "ConfigMap",
    plural: "configmaps",
    singular: "configmap",
    short_names: &["cm"],
    registry: "configmaps",
    ..DEFAULT
};

pub(super) struct ConfigMap;

impl Strategy for ConfigMap {
    fn prepare_create(&self, _object: &mut Value) {}

    fn columns(&self) -> &'static [Column] {
        const { &[Column::name(), Column::text("Data"), Column::text("Age")] }
    }

    fn cells(&self, object: &Value, age: &dyn Fn(&str) -> String) -> Vec<Value> {
        let size = |field| {
            path::at(object, field)
                .and_then(Value::as_object)
                .map_or(0, serde_json::Map::len)
        };
        vec![
            path::text(object, "metadata.name").into(),
            (size("data") + size("binaryData")).into(),
            age(path::text(object, "metadata.creationTimestamp")).into(),
        ]
    }
}

pub(super) const SERVICE_ACCOUNT: Kind = Kind {
    kind: "ServiceAccount",
    plural: "serviceaccounts",
    singular: "serviceaccount",
    short_names: &["sa"],
    returns_deleted: true,
    registry: "serviceaccounts",
    merge: &[("secrets", ListMerge::ByKey("name"))],
    ..DEFAULT
};

/// Kept as they come: nothing is encrypted, and `stringData` is not read.
pub(super) const SECRET: Kind = Kind {
    kind: "Secret",
    plural: "secrets",
    singular: "secret",
    returns_deleted: true,
    registry: "secrets",
    ..DEFAULT
};

pub(super) const ENDPOINTS: Kind = Kind {
    kind: "Endpoints",
    plural: "endpoints",
    singular: "endpoints",
    short_names: &["ep"],
    create_on_update: true,
    registry: "services/endpoints",
    ..DEFAULT
};

pub(super) const ENDPOINT_SLICE: Kind = Kind {
    group: "discovery.k8s.io",
    kind: "EndpointSlice",
    plural: "endpointslices",
    singular: "endpointslice",
    registry: "endpointslices",
    ..DEFAULT
};

/// Nothing runs its pods.
pub(super) const DAEMON_SET: Kind = Kind {
    group: "apps",
    kind: "DaemonSet",
    plural: "daemonsets",
    singular: "daemonset",
    short_names: &["ds"],
    categories: &["all"],
    has_status: true,
    registry: "daemonsets",
    ..DEFAULT
};

/// Nothing runs its pods.
pub(super) const DEPLOYMENT: Kind = Kind {
    group: "apps",
    kind: "Deployment",
    plural: "deployments",
    singular: "deployment",
    short_names: &["deploy"],
    categories: &["all"],
    has_status: true,
    registry: "deployments",
    ..DEFAULT
};
