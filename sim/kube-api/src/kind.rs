//! What a kind is called, where it is served, and how its lists are merged.

use crate::names::NameRule;

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

/// What nearly every kind shares.
pub(crate) const DEFAULT: Kind = Kind {
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
};
