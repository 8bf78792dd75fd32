//! What can be put into a cloud by hand. Over HTTP, they are the bodies of the admin path.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv6Addr};

use ipnet::IpNet;
use serde::{Deserialize, Serialize};

use crate::model::{Owner, Tag, VmState};

fn running() -> VmState {
    VmState::Running
}

fn offering() -> String {
    "Medium 4c/8g".to_owned()
}

fn isolated() -> String {
    "Isolated".to_owned()
}

fn yes() -> bool {
    true
}

fn tcp() -> String {
    "tcp".to_owned()
}

fn round_robin() -> String {
    "roundrobin".to_owned()
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

/// A public address that somebody takes by hand, for [`crate::CloudstackSim::take_address`].
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AddressSpec {
    /// This address, which is added to the pool if it is not in it; the next free one if absent.
    pub address: Option<IpAddr>,
    /// The network's id; the first network if neither this nor a VPC is named.
    pub network: Option<String>,
    /// The VPC's id.
    pub vpc: Option<String>,
    /// Whose it is; the network's or VPC's owner's if absent.
    pub owner: Option<Owner>,
    /// Tags.
    pub tags: Vec<Tag>,
}

impl AddressSpec {
    /// The next free address for the first network.
    pub fn new() -> Self {
        Self::default()
    }

    /// This address.
    #[must_use]
    pub fn address(mut self, address: IpAddr) -> Self {
        self.address = Some(address);
        self
    }

    /// For another network, no tier.
    #[must_use]
    pub fn network(mut self, id: impl Into<String>) -> Self {
        self.network = Some(id.into());
        self
    }

    /// For a VPC.
    #[must_use]
    pub fn vpc(mut self, id: impl Into<String>) -> Self {
        self.vpc = Some(id.into());
        self
    }

    /// Of an owner.
    #[must_use]
    pub fn owner(mut self, owner: Owner) -> Self {
        self.owner = Some(owner);
        self
    }

    /// With one more tag.
    #[must_use]
    pub fn tag(mut self, key: &str, value: &str) -> Self {
        self.tags.push(Tag {
            key: key.to_owned(),
            value: value.to_owned(),
        });
        self
    }
}

/// A load balancer rule for [`crate::CloudstackSim::add_rule`]: what a person, another cluster or another manager has
/// left. Nothing is checked.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RuleSpec {
    /// Its id; a new one if absent.
    #[serde(default)]
    pub id: Option<String>,
    /// Name.
    pub name: String,
    /// Description.
    #[serde(default)]
    pub description: Option<String>,
    /// Algorithm.
    #[serde(default = "round_robin")]
    pub algorithm: String,
    /// Protocol; none as in old rules if `null`.
    #[serde(default = "some_tcp")]
    pub protocol: Option<String>,
    /// The public address's id.
    pub address: String,
    /// Port of the public address.
    pub public_port: u16,
    /// Port of the members.
    pub private_port: u16,
    /// The network's id; the address's network if absent.
    #[serde(default)]
    pub network: Option<String>,
    /// The clients that may come, as it is stored.
    #[serde(default)]
    pub cidrs: Option<String>,
    /// Ids of virtual machines.
    #[serde(default)]
    pub members: Vec<String>,
    /// Whose it is; the address's owner's if absent.
    #[serde(default)]
    pub owner: Option<Owner>,
}

#[expect(clippy::unnecessary_wraps, reason = "the default of an optional field")]
fn some_tcp() -> Option<String> {
    Some(tcp())
}

impl RuleSpec {
    /// A `roundrobin` rule for TCP without members and without a list of clients.
    pub fn new(
        name: impl Into<String>,
        address: impl Into<String>,
        public_port: u16,
        private_port: u16,
    ) -> Self {
        Self {
            id: None,
            name: name.into(),
            description: None,
            algorithm: round_robin(),
            protocol: some_tcp(),
            address: address.into(),
            public_port,
            private_port,
            network: None,
            cidrs: None,
            members: Vec::new(),
            owner: None,
        }
    }

    /// As version 1.2.0 of the upstream manager leaves one: for everybody.
    pub fn of_upstream(
        name: impl Into<String>,
        address: impl Into<String>,
        public_port: u16,
        private_port: u16,
    ) -> Self {
        Self::new(name, address, public_port, private_port).cidrs("0.0.0.0/0")
    }

    /// For another protocol.
    #[must_use]
    pub fn protocol(mut self, protocol: &str) -> Self {
        self.protocol = Some(protocol.to_owned());
        self
    }

    /// With another algorithm.
    #[must_use]
    pub fn algorithm(mut self, algorithm: &str) -> Self {
        self.algorithm = algorithm.to_owned();
        self
    }

    /// With a description.
    #[must_use]
    pub fn description(mut self, text: impl Into<String>) -> Self {
        self.description = Some(text.into());
        self
    }

    /// In a network, for an address of a VPC.
    #[must_use]
    pub fn network(mut self, id: impl Into<String>) -> Self {
        self.network = Some(id.into());
        self
    }

    /// For these clients, as it is stored.
    #[must_use]
    pub fn cidrs(mut self, text: &str) -> Self {
        self.cidrs = Some(text.to_owned());
        self
    }

    /// With these members.
    #[must_use]
    pub fn members<I: Into<String>>(mut self, ids: impl IntoIterator<Item = I>) -> Self {
        self.members = ids.into_iter().map(Into::into).collect();
        self
    }

    /// Of an owner.
    #[must_use]
    pub fn owner(mut self, owner: Owner) -> Self {
        self.owner = Some(owner);
        self
    }
}

/// A firewall rule for [`crate::CloudstackSim::add_firewall_rule`]. Nothing is checked.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FirewallSpec {
    /// The public address's id.
    pub address: String,
    /// `tcp`, `udp` or `icmp`.
    #[serde(default = "tcp")]
    pub protocol: String,
    /// First and last port.
    #[serde(default)]
    pub ports: Option<(u16, u16)>,
    /// Sources.
    pub cidrs: Vec<String>,
}

impl FirewallSpec {
    /// One port for everybody.
    pub fn new(address: impl Into<String>, protocol: &str, port: u16) -> Self {
        Self {
            address: address.into(),
            protocol: protocol.to_owned(),
            ports: Some((port, port)),
            cidrs: vec!["0.0.0.0/0".to_owned()],
        }
    }

    /// From these sources.
    #[must_use]
    pub fn cidrs<C: Into<String>>(mut self, cidrs: impl IntoIterator<Item = C>) -> Self {
        self.cidrs = cidrs.into_iter().map(Into::into).collect();
        self
    }

    /// For a range of ports.
    #[must_use]
    pub fn ports(mut self, first: u16, last: u16) -> Self {
        self.ports = Some((first, last));
        self
    }
}

/// A network ACL item for [`crate::CloudstackSim::add_acl_item`]. Nothing is checked.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AclItemSpec {
    /// The list's id.
    pub list: String,
    /// Its place; behind all others if absent.
    #[serde(default)]
    pub number: Option<u32>,
    /// `tcp`, `udp`, `icmp`, `all` or a number.
    #[serde(default = "tcp")]
    pub protocol: String,
    /// First and last port.
    #[serde(default)]
    pub ports: Option<(u16, u16)>,
    /// The other side.
    pub cidrs: Vec<String>,
    /// Whether it lets pass.
    #[serde(default = "yes")]
    pub is_allow: bool,
    /// Whether it is about what comes in.
    #[serde(default = "yes")]
    pub is_ingress: bool,
}

impl AclItemSpec {
    /// Lets everybody come in to one port.
    pub fn new(list: impl Into<String>, protocol: &str, port: u16) -> Self {
        Self {
            list: list.into(),
            number: None,
            protocol: protocol.to_owned(),
            ports: Some((port, port)),
            cidrs: vec!["0.0.0.0/0".to_owned()],
            is_allow: true,
            is_ingress: true,
        }
    }

    /// With these addresses of the other side.
    #[must_use]
    pub fn cidrs<C: Into<String>>(mut self, cidrs: impl IntoIterator<Item = C>) -> Self {
        self.cidrs = cidrs.into_iter().map(Into::into).collect();
        self
    }

    /// Lets nobody pass.
    #[must_use]
    pub fn deny(mut self) -> Self {
        self.is_allow = false;
        self
    }

    /// About what goes out.
    #[must_use]
    pub fn egress(mut self) -> Self {
        self.is_ingress = false;
        self
    }

    /// At this place.
    #[must_use]
    pub fn number(mut self, number: u32) -> Self {
        self.number = Some(number);
        self
    }
}
