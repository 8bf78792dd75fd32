//! The kinds that are served: one table entry each, and one [`Strategy`] for what is special about it.

mod event;
mod lease;
mod namespace;
mod node;
mod plain;
mod pod;
mod service;

use rand::rngs::StdRng;
use serde_json::Value;

use crate::column::{Column, NAME_AND_AGE};
use crate::field::FieldError;
use crate::kind::Kind;
use crate::names::NameRule;
use crate::path;
use crate::status::Status;
use crate::store::Store;

/// What allocation and validation may look at.
pub(crate) struct Context<'a> {
    pub(crate) store: &'a Store,
    pub(crate) random: &'a mut StdRng,
}

/// Which part of an object a write is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// The object itself.
    Main,
    /// Its `/status`.
    Status,
}

/// An update that is to be checked.
pub(crate) struct Change<'a> {
    pub(crate) new: &'a Value,
    pub(crate) old: &'a Value,
    pub(crate) part: Part,
    /// Minor of the Kubernetes version that is played.
    pub(crate) minor: u32,
}

/// What is special about a kind. The steps run in the order of the methods, as in the generic registry of a real
/// server.
pub(crate) trait Strategy: Sync {
    /// Fills in defaults, on every object that comes in.
    fn default(&self, _object: &mut Value) {}

    /// Clears what a client may not set on create.
    fn prepare_create(&self, object: &mut Value) {
        path::remove(object, "status");
    }

    /// Allocates what a new object needs.
    fn allocate(&self, _object: &mut Value, _cx: &mut Context<'_>) -> Result<(), Status> {
        Ok(())
    }

    /// Allocates and carries over on an update of the main part.
    fn reallocate(&self, _new: &mut Value, _old: &Value, _cx: &mut Context<'_>) -> Result<(), Status> {
        Ok(())
    }

    /// Puts back what a client may not change through this part.
    fn prepare_update(&self, new: &mut Value, old: &Value, part: Part) {
        path::copy(new, old, if part == Part::Main { "status" } else { "spec" });
    }

    /// The rule for names.
    fn name_rule(&self, declared: NameRule, _minor: u32) -> NameRule {
        declared
    }

    /// Checks an object that comes in on create or on an update of the main part.
    fn validate(&self, _object: &Value, _errors: &mut Vec<FieldError>) {}

    /// Checks a change.
    fn validate_update(&self, _change: &Change<'_>, _errors: &mut Vec<FieldError>) {}

    /// Puts in what the Go type writes even when it is empty. The last step before an object is stored.
    fn finish(&self, _object: &mut Value) {}

    /// Fields that can be selected, besides name and namespace.
    fn fields(&self, _object: &Value) -> Vec<(&'static str, String)> {
        Vec::new()
    }

    /// Names of the fields that can be selected.
    fn field_names(&self) -> &'static [&'static str] {
        &[]
    }

    /// Columns of `kubectl get`.
    fn columns(&self) -> &'static [Column] {
        NAME_AND_AGE
    }

    /// One row of `kubectl get`; `age` renders the time since a timestamp.
    fn cells(&self, object: &Value, age: &dyn Fn(&str) -> String) -> Vec<Value> {
        vec![
            path::text(object, "metadata.name").into(),
            age(path::text(object, "metadata.creationTimestamp")).into(),
        ]
    }
}

impl Kind {
    /// The kind of that name, e.g. `Node`.
    pub fn named(kind: &str) -> Option<&'static Self> {
        KINDS.iter().find(|candidate| candidate.kind == kind)
    }

    pub(crate) fn served_at(group: &str, version: &str, plural: &str) -> Option<&'static Self> {
        KINDS
            .iter()
            .find(|kind| (kind.group, kind.version, kind.plural) == (group, version, plural))
    }

    /// What is special about it.
    pub(crate) fn strategy(&self) -> &'static dyn Strategy {
        match self.kind {
            "ConfigMap" => &plain::ConfigMap,
            "Event" => &event::Event,
            "Lease" => &lease::Lease,
            "Namespace" => &namespace::Namespace,
            "Node" => &node::Node,
            "Pod" => &pod::Pod,
            "Service" => &service::Service,
            _ => &plain::Plain,
        }
    }
}

/// Every kind, in the order of discovery within its group.
pub static KINDS: &[Kind] = &[
    plain::CONFIG_MAP,
    plain::ENDPOINTS,
    event::EVENT,
    namespace::NAMESPACE,
    node::NODE,
    pod::POD,
    plain::SECRET,
    plain::SERVICE_ACCOUNT,
    service::SERVICE,
    plain::DAEMON_SET,
    plain::DEPLOYMENT,
    lease::LEASE,
    plain::ENDPOINT_SLICE,
];
