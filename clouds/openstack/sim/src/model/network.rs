//! Neutron: networks and what is connected to them.

use std::net::IpAddr;

use ipnet::IpNet;
use serde::{Deserialize, Serialize};

use super::{Id, Meta};

/// A network.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Network {
    /// Its id.
    pub id: Id,
    /// Its name; not unique.
    pub name: String,
    /// Whether floating IPs come from it. All projects see it.
    pub is_external: bool,
    /// Whether all projects see it.
    pub is_shared: bool,
    /// Whether new ports have port security.
    pub port_security: bool,
    /// The rest.
    #[serde(flatten)]
    pub meta: Meta,
}

/// An address range of a network.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Subnet {
    /// Its id.
    pub id: Id,
    /// Its name; not unique.
    pub name: String,
    /// The network's id.
    pub network: Id,
    /// The range.
    pub cidr: IpNet,
    /// The router, if any.
    pub gateway: Option<IpAddr>,
    /// Whether only its own project sees it, although its network is external or shared.
    pub is_hidden: bool,
    /// The rest.
    #[serde(flatten)]
    pub meta: Meta,
}

/// An address out of a subnet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FixedIp {
    /// The subnet's id.
    pub subnet: Id,
    /// The address.
    pub address: IpAddr,
}

/// Addresses that a port may send from beside its own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AddressPair {
    /// An address or a range, as it was written.
    pub address: String,
    /// Hardware address.
    pub mac: String,
}

/// A place where something is connected to a network.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Port {
    /// Its id.
    pub id: Id,
    /// Its name; not unique.
    pub name: String,
    /// The network's id.
    pub network: Id,
    /// Hardware address.
    pub mac: String,
    /// `ACTIVE`, `DOWN`, `BUILD` or `ERROR`.
    pub status: String,
    /// What is connected: a server's, a router's or a load balancer's id; empty if nothing is.
    pub device: String,
    /// `compute:nova`, `network:router_interface`, `Octavia`, ...
    pub device_owner: String,
    /// In order.
    pub fixed_ips: Vec<FixedIp>,
    /// Ids in order.
    pub groups: Vec<Id>,
    /// Other addresses it may send from.
    pub address_pairs: Vec<AddressPair>,
    /// Whether groups and address pairs hold.
    pub port_security: bool,
    /// Ports that come in over this one, each in a network of its own.
    pub trunk: Option<Trunk>,
    /// The rest.
    #[serde(flatten)]
    pub meta: Meta,
}

/// A port that carries others.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Trunk {
    /// Its id.
    pub id: Id,
    /// The ports it carries.
    pub subports: Vec<Subport>,
}

/// A port that another one carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subport {
    /// The port's id.
    pub port: Id,
    /// The VLAN inside the trunk.
    pub segmentation_id: u16,
}

/// A router.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Router {
    /// Its id.
    pub id: Id,
    /// Its name; not unique.
    pub name: String,
    /// The external network's id, and its address there.
    pub gateway: Option<(Id, FixedIp)>,
    /// Routes beside those of its subnets, in order.
    pub routes: Vec<Route>,
    /// The rest.
    #[serde(flatten)]
    pub meta: Meta,
}

/// A route of a router.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Route {
    /// A range, as it was written.
    pub destination: String,
    /// An address in one of the router's subnets.
    pub nexthop: IpAddr,
}

/// An address of an external network that a port can be reached by.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FloatingIp {
    /// Its id.
    pub id: Id,
    /// The address and its subnet.
    pub address: FixedIp,
    /// The external network's id.
    pub network: Id,
    /// Where it leads.
    pub target: Option<FloatingTarget>,
    /// The router through which it forwards single ports, if it does.
    pub forwards_through: Option<Id>,
    /// The rest.
    #[serde(flatten)]
    pub meta: Meta,
}

/// Where a floating IP leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FloatingTarget {
    /// The port's id.
    pub port: Id,
    /// Which of its addresses.
    pub address: IpAddr,
    /// The router between.
    pub router: Id,
}

/// A group of rules about who may reach a port.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SecurityGroup {
    /// Its id.
    pub id: Id,
    /// Its name; not unique but for `default`.
    pub name: String,
    /// The rest.
    #[serde(flatten)]
    pub meta: Meta,
}

/// A rule of a security group.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Rule {
    /// Its id.
    pub id: Id,
    /// The group's id.
    pub group: Id,
    /// What it allows.
    pub content: RuleContent,
    /// For people; the rules that a group begins with have none.
    pub description: Option<String>,
    /// The rest.
    pub meta: Meta,
}

/// What a rule allows. Two rules of a group never allow the same.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct RuleContent {
    /// `ingress` or `egress`.
    pub direction: String,
    /// `IPv4` or `IPv6`.
    pub ethertype: String,
    /// `tcp`, ...; any if absent.
    pub protocol: Option<String>,
    /// First port.
    pub port_min: Option<u16>,
    /// Last port.
    pub port_max: Option<u16>,
    /// From or to where, as it was written.
    pub remote_prefix: Option<String>,
    /// From or to which group.
    pub remote_group: Option<Id>,
}
