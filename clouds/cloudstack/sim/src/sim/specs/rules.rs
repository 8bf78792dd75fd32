//! Public addresses and the rules on them.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use crate::model::{Owner, Tag};

fn yes() -> bool {
    true
}

fn tcp() -> String {
    "tcp".to_owned()
}

fn round_robin() -> String {
    "roundrobin".to_owned()
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
    /// What for, as a person wrote it.
    #[serde(default)]
    pub reason: Option<String>,
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
            reason: None,
        }
    }

    /// With a person's words on what it is for.
    #[must_use]
    pub fn reason(mut self, text: &str) -> Self {
        self.reason = Some(text.to_owned());
        self
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
