//! What can be put into a cloud by hand. Over HTTP, they are the bodies of the admin path.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv6Addr};

use ipnet::IpNet;
use serde::{Deserialize, Serialize};

use crate::model::{Owner, VmState};

mod rules;

pub use rules::{AclItemSpec, AddressSpec, FirewallSpec, PolicySpec, RuleSpec};

/// An interface of a [`VmSpec`].
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NicSpec {
    /// The network's id; the first network if absent.
    pub network: Option<String>,
    /// IPv4 address; the network's next free one if absent.
    pub address: Option<IpAddr>,
    /// IPv6 address.
    pub ipv6: Option<Ipv6Addr>,
    /// Whether it is the default one; the first one if none is.
    pub is_default: bool,
}

impl NicSpec {
    /// One in a network, at its next free address.
    pub fn on(network: impl Into<String>) -> Self {
        Self {
            network: Some(network.into()),
            ..Self::default()
        }
    }

    /// One in the first network, at this address.
    pub fn at(address: IpAddr) -> Self {
        Self {
            address: Some(address),
            ..Self::default()
        }
    }
}

/// A virtual machine for [`crate::CloudstackSim::add_vm`].
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VmSpec {
    /// Its id; a new one if absent.
    pub id: Option<String>,
    /// Name.
    pub name: String,
    /// What it is doing; it runs if absent.
    pub state: Option<VmState>,
    /// Name of the compute offering; `Medium 4c/8g` if absent.
    pub offering: Option<String>,
    /// The zone's id; the first zone if absent.
    pub zone: Option<String>,
    /// Whose it is; the first account's if absent.
    pub owner: Option<Owner>,
    /// Interfaces; one in the first network if absent.
    pub nics: Option<Vec<NicSpec>>,
}

impl VmSpec {
    /// A running one with one interface in the first network.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            ..Self::default()
        }
    }

    /// A running one with these interfaces.
    pub fn with_nics(name: impl Into<String>, nics: impl Into<Vec<NicSpec>>) -> Self {
        Self {
            nics: Some(nics.into()),
            ..Self::new(name)
        }
    }

    /// A running one of a project.
    pub fn of_project(name: impl Into<String>, project: impl Into<String>) -> Self {
        Self {
            owner: Some(Owner::Project(project.into())),
            ..Self::new(name)
        }
    }
}

/// A network for [`crate::CloudstackSim::add_network`].
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NetworkSpec {
    /// Its id; a new one if absent.
    pub id: Option<String>,
    /// Name.
    pub name: String,
    /// `Isolated`, which it is if absent, `Shared` or `L2`.
    pub kind: Option<String>,
    /// Whose it is; the first account's if absent.
    pub owner: Option<Owner>,
    /// Its range; the next 10.N.0.0/16, or below the VPC's range the next /24, if absent.
    pub cidr: Option<IpNet>,
    /// Names of its services; those of its kind if absent.
    pub services: Option<Vec<String>>,
    /// The VPC's id, for a tier.
    pub vpc: Option<String>,
    /// The ACL list's id, for a tier; `default_deny` if absent.
    pub acl: Option<String>,
}

impl NetworkSpec {
    /// An isolated one with load balancer and firewall.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            ..Self::default()
        }
    }

    /// An isolated one of a project.
    pub fn of_project(name: impl Into<String>, project: impl Into<String>) -> Self {
        Self {
            owner: Some(Owner::Project(project.into())),
            ..Self::new(name)
        }
    }

    /// A tier of a VPC with an ACL list.
    pub fn tier(name: impl Into<String>, vpc: impl Into<String>, acl: impl Into<String>) -> Self {
        Self {
            vpc: Some(vpc.into()),
            acl: Some(acl.into()),
            ..Self::new(name)
        }
    }
}

/// A VPC for [`crate::CloudstackSim::add_vpc`].
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VpcSpec {
    /// Its id; a new one if absent.
    pub id: Option<String>,
    /// Name.
    pub name: String,
    /// Whose it is; the first account's if absent.
    pub owner: Option<Owner>,
    /// Its range; the next 10.N.0.0/16 if absent.
    pub cidr: Option<IpNet>,
}

impl VpcSpec {
    /// One of the first account.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            ..Self::default()
        }
    }
}

/// A project for [`crate::CloudstackSim::add_project`].
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProjectSpec {
    /// Its id; a new one if absent.
    pub id: Option<String>,
    /// Name.
    pub name: String,
    /// Accounts that work in it; the first account if absent.
    pub accounts: Option<BTreeSet<String>>,
}

impl ProjectSpec {
    /// One that the first account works in.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            ..Self::default()
        }
    }
}
