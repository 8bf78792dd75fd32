//! Public addresses and the rules on them.

use std::collections::BTreeMap;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use crate::model::{Owner, Tag};

fn yes() -> bool {
    true
}

fn tcp() -> String {
    "tcp".to_owned()
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
    /// This address, for the first network.
    pub fn at(address: IpAddr) -> Self {
        Self {
            address: Some(address),
            ..Self::default()
        }
    }

    /// The next free address, for a VPC.
    pub fn in_vpc(vpc: impl Into<String>) -> Self {
        Self {
            vpc: Some(vpc.into()),
            ..Self::default()
        }
    }
}

/// A stickiness policy for [`crate::CloudstackSim::add_policy`]. Nothing is checked.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PolicySpec {
    /// The id of its rule.
    pub rule: String,
    /// Name.
    pub name: String,
    /// Method.
    pub method: String,
    /// Parameters by name.
    #[serde(default)]
    pub params: BTreeMap<String, String>,
}

/// A load balancer rule for [`crate::CloudstackSim::add_rule`]: what a person, another cluster or another manager has
/// left. Nothing is checked.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RuleSpec {
    /// Its id; a new one if absent.
    pub id: Option<String>,
    /// Name.
    pub name: String,
    /// Description.
    pub description: Option<String>,
    /// Algorithm; `roundrobin` if absent.
    pub algorithm: Option<String>,
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
    pub network: Option<String>,
    /// The clients that may come, as it is stored.
    pub cidrs: Option<String>,
    /// Ids of virtual machines.
    #[serde(default)]
    pub members: Vec<String>,
    /// Whose it is; the address's owner's if absent.
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
            name: name.into(),
            address: address.into(),
            protocol: some_tcp(),
            public_port,
            private_port,
            ..Self::default()
        }
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
    pub fn cidrs<C: Into<String>>(mut self, cidrs: impl IntoIterator<Item = C>) -> Self {
        self.cidrs = cidrs.into_iter().map(Into::into).collect();
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
    pub number: Option<u32>,
    /// `tcp`, `udp`, `icmp`, `all` or a number.
    #[serde(default = "tcp")]
    pub protocol: String,
    /// First and last port.
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

    /// With these addresses of the other side.
    pub fn cidrs<C: Into<String>>(mut self, cidrs: impl IntoIterator<Item = C>) -> Self {
        self.cidrs = cidrs.into_iter().map(Into::into).collect();
        self
    }
}
