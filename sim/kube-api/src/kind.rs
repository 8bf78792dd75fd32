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

use crate::field::FieldError;
use crate::names::NameRule;
use crate::path;
use crate::status::Status;
use crate::store::Store;
use crate::table::Column;

/// How a strategic merge patch treats a list; lists without an entry are replaced as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ListMerge {
    /// Elements are objects told apart by this key.
    ByKey(&'static str),
    /// Elements are scalars; the list is a set.
    Set,
}

/// One kind of object.
#[derive(Clone, Copy)]
pub struct Kind {
    /// API group; empty for core.
    pub group: &'static str,
    /// API version; every kind here has `v1` only.
    pub version: &'static str,
    /// Kind, e.g. `Node`.
    pub kind: &'static str,
    /// Resource, e.g. `nodes`.
    pub plural: &'static str,
    pub(crate) singular: &'static str,
    pub(crate) short_names: &'static [&'static str],
    pub(crate) categories: &'static [&'static str],
    /// Whether objects live in namespaces.
    pub namespaced: bool,
    pub(crate) has_status: bool,
    pub(crate) create_on_update: bool,
    /// Whether a PUT may leave out `metadata.resourceVersion`.
    pub(crate) unconditional_update: bool,
    /// Whether DELETE answers with the object rather than with a Status.
    pub(crate) returns_deleted: bool,
    /// The place in etcd, which shows in some messages.
    pub(crate) registry: &'static str,
    pub(crate) names: NameRule,
    pub(crate) merge: &'static [(&'static str, ListMerge)],
    pub(crate) strategy: &'static dyn Strategy,
}

impl Kind {
    /// `nodes`, `leases.coordination.k8s.io`.
    pub fn resource(&self) -> String {
        if self.group.is_empty() {
            self.plural.to_owned()
        } else {
            format!("{}.{}", self.plural, self.group)
        }
    }

    /// `v1`, `coordination.k8s.io/v1`.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.to_owned()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    /// The key in etcd.
    pub(crate) fn storage_key(&self, namespace: &str, name: &str) -> String {
        match namespace {
            "" => format!("/registry/{}/{name}", self.registry),
            _ => format!("/registry/{}/{namespace}/{name}", self.registry),
        }
    }

    /// The kind of that name, e.g. `Node`.
    pub fn named(kind: &str) -> Option<&'static Self> {
        KINDS.iter().find(|candidate| candidate.kind == kind)
    }

    pub(crate) fn served_at(group: &str, version: &str, plural: &str) -> Option<&'static Self> {
        KINDS
            .iter()
            .find(|kind| (kind.group, kind.version, kind.plural) == (group, version, plural))
    }
}

impl PartialEq for Kind {
    fn eq(&self, other: &Self) -> bool {
        (self.group, self.plural) == (other.group, other.plural)
    }
}

impl std::fmt::Debug for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.resource())
    }
}

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
        crate::table::NAME_AND_AGE
    }

    /// One row of `kubectl get`; `age` renders the time since a timestamp.
    fn cells(&self, object: &Value, age: &dyn Fn(&str) -> String) -> Vec<Value> {
        vec![
            path::text(object, "metadata.name").into(),
            age(path::text(object, "metadata.creationTimestamp")).into(),
        ]
    }
}

/// What nearly every kind shares.
const DEFAULT: Kind = Kind {
    group: "",
    version: "v1",
    kind: "",
    plural: "",
    singular: "",
    short_names: &[],
    categories: &[],
    namespaced: true,
    has_status: false,
    create_on_update: false,
    unconditional_update: true,
    returns_deleted: false,
    registry: "",
    names: NameRule::Subdomain,
    merge: &[],
    strategy: &plain::Plain,
};

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
