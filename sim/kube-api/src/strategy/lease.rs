//! Leases, by which leaders are elected and nodes show that they live.

use serde_json::Value;

use super::{Part, Strategy};
use crate::column::Column;
use crate::field::FieldError;
use crate::kind::{DEFAULT, Kind};
use crate::path;

pub(super) const LEASE: Kind = Kind {
    group: "coordination.k8s.io",
    kind: "Lease",
    plural: "leases",
    singular: "lease",
    create_on_update: true,
    unconditional_update: false,
    registry: "leases",
    ..DEFAULT
};

pub(super) struct Lease;

impl Strategy for Lease {
    fn default(&self, object: &mut Value) {
        if path::at(object, "spec").is_none() {
            path::set(object, "spec", serde_json::Map::new());
        }
    }

    fn prepare_create(&self, object: &mut Value) {
        // Coordinated leader election is behind a feature gate that is off by default.
        path::remove(object, "spec.strategy");
        path::remove(object, "spec.preferredHolder");
    }

    fn prepare_update(&self, new: &mut Value, old: &Value, _part: Part) {
        for field in ["spec.strategy", "spec.preferredHolder"] {
            if path::at(old, field).is_none() {
                path::remove(new, field);
            }
        }
    }

    fn validate(&self, object: &Value, errors: &mut Vec<FieldError>) {
        let mut at_least = |field: &str, least: i64, detail: &str| {
            if let Some(number) = path::at(object, field).and_then(Value::as_i64)
                && number < least
            {
                errors.push(FieldError::invalid(field, number, detail));
            }
        };
        at_least("spec.leaseDurationSeconds", 1, "must be greater than 0");
        at_least("spec.leaseTransitions", 0, "must be greater than or equal to 0");
    }

    fn columns(&self) -> &'static [Column] {
        const { &[Column::name(), Column::text("Holder"), Column::text("Age")] }
    }

    fn cells(&self, object: &Value, age: &dyn Fn(&str) -> String) -> Vec<Value> {
        vec![
            path::text(object, "metadata.name").into(),
            path::text(object, "spec.holderIdentity").into(),
            age(path::text(object, "metadata.creationTimestamp")).into(),
        ]
    }
}
