//! What can be put into a cloud by hand. Over HTTP, they are the bodies of the admin path.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv6Addr};

use ipnet::IpNet;
use serde::{Deserialize, Serialize};

use crate::model::{Owner, VmState};

mod rules;

pub use rules::{AclItemSpec, AddressSpec, FirewallSpec, RuleSpec};

fn running() -> VmState {
    VmState::Running
}

fn offering() -> String {
    "Medium 4c/8g".to_owned()
}

fn isolated() -> String {
    "Isolated".to_owned()
}

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

/// A virtual machine for [`crate::CloudstackSim::add_vm`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VmSpec {
    /// Its id; a new one if absent.
    #[serde(default)]
    pub id: Option<String>,
    /// Name.
    pub name: String,
    /// What it is doing.
    #[serde(default = "running")]
    pub state: VmState,
    /// Name of the compute offering.
    #[serde(default = "offering")]
    pub offering: String,
    /// The zone's id; the first zone if absent.
    #[serde(default)]
    pub zone: Option<String>,
    /// Whose it is; the first account's if absent.
    #[serde(default)]
    pub owner: Option<Owner>,
    /// Interfaces; one in the first network if absent.
    #[serde(default)]
    pub nics: Option<Vec<NicSpec>>,
}

impl VmSpec {
    /// A running one with one interface in the first network.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            id: None,
            name: name.into(),
            state: running(),
            offering: offering(),
            zone: None,
            owner: None,
            nics: None,
        }
    }

    /// With this id.
    #[must_use]
    pub fn id(mut self, id: impl Into<String>) -> Self {
        self.id = Some(id.into());
        self
    }

    /// In another state.
    #[must_use]
    pub fn state(mut self, state: VmState) -> Self {
        self.state = state;
        self
    }

    /// With another compute offering.
    #[must_use]
    pub fn offering(mut self, name: impl Into<String>) -> Self {
        self.offering = name.into();
        self
    }

    /// In another zone than the first one.
    #[must_use]
    pub fn zone(mut self, id: impl Into<String>) -> Self {
        self.zone = Some(id.into());
        self
    }

    /// Of an owner.
    #[must_use]
    pub fn owner(mut self, owner: Owner) -> Self {
        self.owner = Some(owner);
        self
    }

    /// Of a project.
    #[must_use]
    pub fn project(self, id: impl Into<String>) -> Self {
        self.owner(Owner::Project(id.into()))
    }

    /// With one more interface in a network, at its next free address.
    #[must_use]
    pub fn network(self, id: impl Into<String>) -> Self {
        self.nic(NicSpec {
            network: Some(id.into()),
            ..NicSpec::default()
        })
    }

    /// With one more interface in the first network, at this address.
    #[must_use]
    pub fn address(self, address: IpAddr) -> Self {
        self.nic(NicSpec {
            address: Some(address),
            ..NicSpec::default()
        })
    }

    /// With one more interface. The first one given replaces the one that is there otherwise.
    #[must_use]
    pub fn nic(mut self, nic: NicSpec) -> Self {
        self.nics.get_or_insert_default().push(nic);
        self
    }

    /// Without interfaces.
    #[must_use]
    pub fn without_nics(mut self) -> Self {
        self.nics = Some(Vec::new());
        self
    }
}

/// A network for [`crate::CloudstackSim::add_network`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NetworkSpec {
    /// Its id; a new one if absent.
    #[serde(default)]
    pub id: Option<String>,
    /// Name.
    pub name: String,
    /// `Isolated`, `Shared` or `L2`.
    #[serde(default = "isolated")]
    pub kind: String,
    /// Whose it is; the first account's if absent.
    #[serde(default)]
    pub owner: Option<Owner>,
    /// Its range; the next 10.N.0.0/16, or below the VPC's range the next /24, if absent.
    #[serde(default)]
    pub cidr: Option<IpNet>,
    /// Names of its services; those of its kind if absent.
    #[serde(default)]
    pub services: Option<Vec<String>>,
    /// The VPC's id, for a tier.
    #[serde(default)]
    pub vpc: Option<String>,
    /// The ACL list's id, for a tier; `default_deny` if absent.
    #[serde(default)]
    pub acl: Option<String>,
}

impl NetworkSpec {
    /// An isolated one with load balancer and firewall.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            id: None,
            name: name.into(),
            kind: isolated(),
            owner: None,
            cidr: None,
            services: None,
            vpc: None,
            acl: None,
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

    /// With this id.
    #[must_use]
    pub fn id(mut self, id: impl Into<String>) -> Self {
        self.id = Some(id.into());
        self
    }

    /// Of a project.
    #[must_use]
    pub fn project(mut self, id: impl Into<String>) -> Self {
        self.owner = Some(Owner::Project(id.into()));
        self
    }

    /// With this range.
    #[must_use]
    pub fn cidr(mut self, cidr: IpNet) -> Self {
        self.cidr = Some(cidr);
        self
    }

    /// With these services only.
    #[must_use]
    pub fn services<S: Into<String>>(mut self, services: impl IntoIterator<Item = S>) -> Self {
        self.services = Some(services.into_iter().map(Into::into).collect());
        self
    }
}

/// A VPC for [`crate::CloudstackSim::add_vpc`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VpcSpec {
    /// Its id; a new one if absent.
    #[serde(default)]
    pub id: Option<String>,
    /// Name.
    pub name: String,
    /// Whose it is; the first account's if absent.
    #[serde(default)]
    pub owner: Option<Owner>,
    /// Its range; the next 10.N.0.0/16 if absent.
    #[serde(default)]
    pub cidr: Option<IpNet>,
}

impl VpcSpec {
    /// One of the first account.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            id: None,
            name: name.into(),
            owner: None,
            cidr: None,
        }
    }

    /// Of a project.
    #[must_use]
    pub fn project(mut self, id: impl Into<String>) -> Self {
        self.owner = Some(Owner::Project(id.into()));
        self
    }

    /// With this range.
    #[must_use]
    pub fn cidr(mut self, cidr: IpNet) -> Self {
        self.cidr = Some(cidr);
        self
    }
}

/// A project for [`crate::CloudstackSim::add_project`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProjectSpec {
    /// Its id; a new one if absent.
    #[serde(default)]
    pub id: Option<String>,
    /// Name.
    pub name: String,
    /// Accounts that work in it; the first account if absent.
    #[serde(default)]
    pub accounts: Option<BTreeSet<String>>,
}

impl ProjectSpec {
    /// One that the first account works in.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            id: None,
            name: name.into(),
            accounts: None,
        }
    }
}
