//! Nodes (`pkg/registry/core/node`, `ValidateNode` and `ValidateNodeUpdate` in `pkg/apis/core/validation`).

use std::collections::BTreeSet;

use serde_json::Value;

use super::{Change, Part, Strategy};
use crate::column::Column;
use crate::field::FieldError;
use crate::kind::{DEFAULT, Kind, ListMerge};
use crate::names;
use crate::path;

pub(super) const NODE: Kind = Kind {
    kind: "Node",
    plural: "nodes",
    singular: "node",
    short_names: &["no"],
    namespaced: false,
    has_status: true,
    registry: "minions",
    // `spec.taints` has no patch strategy in the API types: a patch replaces the whole list.
    merge: &[
        ("spec.podCIDRs", ListMerge::Set),
        ("status.addresses", ListMerge::ByKey("type")),
        ("status.conditions", ListMerge::ByKey("type")),
    ],
    ..DEFAULT
};

const EFFECTS: &[&str] = &["NoSchedule", "PreferNoSchedule", "NoExecute"];
/// Fields of `status.nodeInfo`, which are written even when they are empty.
const NODE_INFO: &[&str] = &[
    "architecture",
    "bootID",
    "containerRuntimeVersion",
    "kernelVersion",
    "kubeProxyVersion",
    "kubeletVersion",
    "machineID",
    "operatingSystem",
    "osImage",
    "systemUUID",
];

const ROLE_PREFIX: &str = "node-role.kubernetes.io/";

/// What the server says of a provider ID that is changed or cleared.
fn changed_provider_id(is_cleared: bool, minor: u32) -> FieldError {
    let field = "spec.providerID";
    let detail = match (minor, is_cleared) {
        (..=36, _) => {
            let detail = "node updates may not change providerID except from \"\" to valid";
            return FieldError::forbidden(field, detail);
        }
        (_, true) => "field cannot be cleared once set",
        (_, false) => "field cannot be modified once set",
    };
    FieldError::invalid(field, Value::Null, detail)
}

pub(super) struct Node;

impl Strategy for Node {
    fn default(&self, object: &mut Value) {
        for part in ["spec", "status"] {
            if path::at(object, part).is_none() {
                path::set(object, part, serde_json::Map::new());
            }
        }
        if path::at(object, "status.allocatable").is_none() {
            let capacity = path::at(object, "status.capacity").cloned();
            if let Some(capacity) = capacity {
                path::set(object, "status.allocatable", capacity);
            }
        }
        // The old and the new field for pod ranges are kept in step by conversion.
        match (
            path::text(object, "spec.podCIDR"),
            path::texts(object, "spec.podCIDRs").first().copied(),
        ) {
            ("", Some(first)) => {
                let first = first.to_owned();
                path::set(object, "spec.podCIDR", first);
            }
            // The old field wins.
            (single, first) if !single.is_empty() && first != Some(single) => {
                let single = vec![single.to_owned()];
                path::set(object, "spec.podCIDRs", single);
            }
            _ => {}
        }
    }

    fn prepare_create(&self, _object: &mut Value) {
        // A Node may bring its status with it: the kubelet registers that way.
    }

    fn validate(&self, object: &Value, errors: &mut Vec<FieldError>) {
        validate_taints(object, errors);
        for (index, range) in path::texts(object, "spec.podCIDRs").into_iter().enumerate() {
            if !super::service::is_cidr(range) {
                let field = format!("spec.podCIDRs[{index}]");
                let detail = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)";
                errors.push(FieldError::invalid(field, range, detail));
            }
        }
    }

    fn validate_update(&self, change: &Change<'_>, errors: &mut Vec<FieldError>) {
        let Change {
            new,
            old,
            part,
            minor,
            ..
        } = *change;
        let mut seen = BTreeSet::new();
        for (index, address) in path::list(new, "status.addresses").iter().enumerate() {
            if !seen.insert((path::text(address, "type"), path::text(address, "address"))) {
                let field = format!("status.addresses[{index}]");
                errors.push(FieldError::duplicate(field, address.clone(), ""));
            }
        }
        let had = path::list(old, "spec.podCIDRs");
        if !had.is_empty() && had != path::list(new, "spec.podCIDRs") {
            let detail = "node updates may not change podCIDR except from \"\" to valid";
            errors.push(FieldError::forbidden("spec.podCIDRs", detail));
        }
        let (had, has) = (
            path::text(old, "spec.providerID"),
            path::text(new, "spec.providerID"),
        );
        if !had.is_empty() && had != has {
            errors.push(changed_provider_id(has.is_empty(), minor));
        }
        if part == Part::Status {
            validate_taints(new, errors);
        }
    }

    fn finish(&self, object: &mut Value) {
        for field in NODE_INFO {
            let field = format!("status.nodeInfo.{field}");
            if path::at(object, &field).is_none() {
                path::set(object, &field, "");
            }
        }
        if path::at(object, "status.daemonEndpoints.kubeletEndpoint").is_none() {
            path::set(
                object,
                "status.daemonEndpoints.kubeletEndpoint",
                serde_json::json!({"Port": 0}),
            );
        }
        for condition in path::list_mut(object, "status.conditions").into_iter().flatten() {
            for field in ["lastHeartbeatTime", "lastTransitionTime"] {
                if path::at(condition, field).is_none() {
                    path::set(condition, field, Value::Null);
                }
            }
        }
    }

    fn fields(&self, object: &Value) -> Vec<(&'static str, String)> {
        vec![(
            "spec.unschedulable",
            path::flag(object, "spec.unschedulable").to_string(),
        )]
    }

    fn field_names(&self) -> &'static [&'static str] {
        &["spec.unschedulable"]
    }

    fn columns(&self) -> &'static [Column] {
        const {
            &[
                Column::name(),
                Column::text("Status"),
                Column::text("Roles"),
                Column::text("Age"),
                Column::text("Version"),
                Column::wide("Internal-IP"),
                Column::wide("External-IP"),
                Column::wide("OS-Image"),
                Column::wide("Kernel-Version"),
                Column::wide("Container-Runtime"),
            ]
        }
    }

    fn cells(&self, object: &Value, age: &dyn Fn(&str) -> String) -> Vec<Value> {
        let ready = path::list(object, "status.conditions")
            .iter()
            .find(|c| path::text(c, "type") == "Ready");
        let mut status = match ready.map(|condition| path::text(condition, "status")) {
            Some("True") => "Ready",
            Some(_) => "NotReady",
            None => "Unknown",
        }
        .to_owned();
        if path::flag(object, "spec.unschedulable") {
            status.push_str(",SchedulingDisabled");
        }
        let info = |field: &str| path::text(object, &format!("status.nodeInfo.{field}")).to_owned();
        let known = |field: &str| match info(field) {
            text if text.is_empty() => "<unknown>".to_owned(),
            text => text,
        };
        let mut kernel = known("kernelVersion");
        let architecture = info("architecture");
        if !architecture.is_empty() {
            kernel = format!("{kernel} ({architecture})");
        }
        vec![
            path::text(object, "metadata.name").into(),
            status.into(),
            roles(object).into(),
            age(path::text(object, "metadata.creationTimestamp")).into(),
            info("kubeletVersion").into(),
            address(object, "InternalIP").into(),
            address(object, "ExternalIP").into(),
            known("osImage").into(),
            kernel.into(),
            known("containerRuntimeVersion").into(),
        ]
    }
}

fn roles(object: &Value) -> String {
    let labels = path::at(object, "metadata.labels").and_then(Value::as_object);
    let mut roles = BTreeSet::new();
    for (key, value) in labels.into_iter().flatten() {
        let role = match key.strip_prefix(ROLE_PREFIX) {
            Some(role) => role,
            None if key == "kubernetes.io/role" => value.as_str().unwrap_or_default(),
            None => "",
        };
        if !role.is_empty() {
            roles.insert(role);
        }
    }
    if roles.is_empty() {
        "<none>".to_owned()
    } else {
        roles.into_iter().collect::<Vec<_>>().join(",")
    }
}

fn address<'a>(object: &'a Value, wanted: &str) -> &'a str {
    let found = path::list(object, "status.addresses")
        .iter()
        .find(|a| path::text(a, "type") == wanted);
    found.map_or("<none>", |address| path::text(address, "address"))
}

/// Upstream reports taints under `metadata.taints`, so this does too.
fn validate_taints(object: &Value, errors: &mut Vec<FieldError>) {
    let mut seen = BTreeSet::new();
    for (index, taint) in path::list(object, "spec.taints").iter().enumerate() {
        let field = format!("metadata.taints[{index}]");
        let (key, value, effect) = (
            path::text(taint, "key"),
            path::text(taint, "value"),
            path::text(taint, "effect"),
        );
        let wrong = names::qualified_name(key);
        errors.extend(
            wrong
                .iter()
                .map(|text| FieldError::invalid(format!("{field}.key"), key, text)),
        );
        let wrong = names::label_value(value);
        if !wrong.is_empty() {
            errors.push(FieldError::invalid(
                format!("{field}.value"),
                value,
                &wrong.join(";"),
            ));
        }
        if effect.is_empty() {
            errors.push(FieldError::required(format!("{field}.effect"), ""));
        } else if !EFFECTS.contains(&effect) {
            errors.push(FieldError::not_supported(
                format!("{field}.effect"),
                effect,
                EFFECTS,
            ));
        }
        if !seen.insert((effect, key)) {
            errors.push(FieldError::duplicate(
                field,
                taint.clone(),
                "taints must be unique by key and effect pair",
            ));
        }
    }
}
