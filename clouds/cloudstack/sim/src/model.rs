//! The objects of a cloud.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv6Addr};

use ipnet::IpNet;
use serde::{Deserialize, Serialize};

/// Who owns an object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Owner {
    /// An account, by name.
    Account(String),
    /// A project, by id.
    Project(String),
}

/// What a virtual machine is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum VmState {
    /// It boots.
    Starting,
    /// It runs.
    Running,
    /// It is told to stop.
    Stopping,
    /// It does not run.
    Stopped,
    /// It was deleted and can be recovered until it is expunged.
    Destroyed,
    /// It goes for good.
    Expunging,
    /// It moves to another host.
    Migrating,
    /// It could not be made.
    Error,
    /// The server does not know.
    Unknown,
    /// It was shut down from within.
    Shutdown,
}

impl VmState {
    /// Its word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Starting => "Starting",
            Self::Running => "Running",
            Self::Stopping => "Stopping",
            Self::Stopped => "Stopped",
            Self::Destroyed => "Destroyed",
            Self::Expunging => "Expunging",
            Self::Migrating => "Migrating",
            Self::Error => "Error",
            Self::Unknown => "Unknown",
            Self::Shutdown => "Shutdown",
        }
    }

    /// Whether it is on its way out.
    pub fn is_going(self) -> bool {
        matches!(self, Self::Destroyed | Self::Expunging)
    }
}

/// A network interface.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Nic {
    /// Id.
    pub id: String,
    /// The network's id.
    pub network: String,
    /// IPv4 address.
    pub address: IpAddr,
    /// IPv6 address.
    pub ipv6: Option<Ipv6Addr>,
    /// Whether it is the default one.
    pub is_default: bool,
}

/// A virtual machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VirtualMachine {
    /// Id.
    pub id: String,
    /// The database's number, part of texts.
    pub number: u64,
    /// Name, which is the guest's host name.
    pub name: String,
    /// Name for people.
    pub display_name: String,
    /// Whose it is.
    pub owner: Owner,
    /// What it is doing.
    pub state: VmState,
    /// The zone's id.
    pub zone: String,
    /// Name of the compute offering.
    pub offering: String,
    /// Name of the hypervisor host, shown to root admins.
    pub host: String,
    /// Interfaces in order.
    pub nics: Vec<Nic>,
    /// Time of its making.
    pub created: String,
}

impl VirtualMachine {
    /// Its interface in a network.
    pub fn nic_in(&self, network: &str) -> Option<&Nic> {
        self.nics.iter().find(|nic| nic.network == network)
    }
}

/// A zone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Zone {
    /// Id.
    pub id: String,
    /// Name.
    pub name: String,
}

/// A project.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Project {
    /// Id.
    pub id: String,
    /// Name.
    pub name: String,
    /// Accounts that work in it.
    pub accounts: BTreeSet<String>,
}

/// A guest network: isolated, shared or a tier of a VPC.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Network {
    /// Id.
    pub id: String,
    /// Name.
    pub name: String,
    /// `Isolated`, `Shared` or `L2`.
    pub kind: String,
    /// Whose it is. A shared one can be seen by everybody.
    pub owner: Owner,
    /// The zone's id.
    pub zone: String,
    /// Its range.
    pub cidr: IpNet,
    /// Names of its services in order, such as `Lb`.
    pub services: Vec<String>,
    /// The VPC's id, for a tier.
    pub vpc: Option<String>,
    /// The ACL list's id, for a tier.
    pub acl: Option<String>,
}

impl Network {
    /// Whether it offers a service.
    pub fn offers(&self, service: &str) -> bool {
        self.services.iter().any(|it| it == service)
    }
}

/// A virtual private cloud.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Vpc {
    /// Id.
    pub id: String,
    /// Name.
    pub name: String,
    /// Whose it is.
    pub owner: Owner,
    /// The zone's id.
    pub zone: String,
    /// Its range.
    pub cidr: IpNet,
}

/// What a public address is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum AddressState {
    /// It is nobody's.
    Free,
    /// It becomes somebody's.
    Allocating,
    /// It is somebody's.
    Allocated,
    /// It becomes nobody's.
    Releasing,
}

impl AddressState {
    /// Its word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Free => "Free",
            Self::Allocating => "Allocating",
            Self::Allocated => "Allocated",
            Self::Releasing => "Releasing",
        }
    }
}

/// A public address of the zone's pool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PublicAddress {
    /// Id.
    pub id: String,
    /// The address.
    pub address: IpAddr,
    /// What it is doing.
    pub state: AddressState,
    /// The zone's id.
    pub zone: String,
    /// Since when it is somebody's.
    pub allocated: Option<String>,
    /// Whose it is.
    pub owner: Option<Owner>,
    /// The guest network's id.
    pub network: Option<String>,
    /// The VPC's id.
    pub vpc: Option<String>,
    /// Whether the network's own traffic leaves by it.
    pub is_source_nat: bool,
    /// The virtual machine that it belongs to altogether.
    pub static_nat: Option<String>,
    /// Tags in order.
    pub tags: Vec<Tag>,
}

/// What a load balancer rule is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum RuleState {
    /// No member was applied yet.
    Add,
    /// It carries.
    Active,
    /// It goes.
    Revoke,
}

impl RuleState {
    /// Its word, as the API says it: its own one for a rule that goes never leaves the server.
    pub fn name(self) -> &'static str {
        match self {
            Self::Add => "Add",
            Self::Active => "Active",
            Self::Revoke => "Deleting",
        }
    }

    /// A new rule is in force. One whose deletion was accepted meanwhile stays on its way out.
    pub(crate) fn activate(&mut self) {
        if *self == Self::Add {
            *self = Self::Active;
        }
    }
}

/// A load balancer rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadBalancerRule {
    /// Id.
    pub id: String,
    /// The database's number, part of texts.
    pub number: u64,
    /// Name.
    pub name: String,
    /// Description.
    pub description: Option<String>,
    /// `roundrobin`, `leastconn` or `source`.
    pub algorithm: String,
    /// `tcp`, `udp`, `tcp-proxy` or `ssl`, in the letters in which it was sent; none if none was.
    pub protocol: Option<String>,
    /// The public address's id.
    pub address: String,
    /// Port of the public address.
    pub public_port: u16,
    /// Port of the members.
    pub private_port: u16,
    /// The network's id.
    pub network: String,
    /// The clients that may come, as it is stored; old rules have none.
    pub cidrs: Option<String>,
    /// What it is doing.
    pub state: RuleState,
    /// Ids of virtual machines in order.
    pub members: Vec<String>,
    /// Stickiness policies in order: one, or two while the second takes the place of the first.
    #[serde(default)]
    pub policies: Vec<StickinessPolicy>,
    /// Whose it is.
    pub owner: Owner,
    /// Tags in order.
    pub tags: Vec<Tag>,
}

/// By what a rule leads a client to the same member again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StickinessPolicy {
    /// Id.
    pub id: String,
    /// Name.
    pub name: String,
    /// Method, in the letters in which it was sent.
    pub method: String,
    /// Parameters by name.
    pub params: Vec<(String, String)>,
    /// Whether it goes with the next change that reaches the router.
    pub is_revoked: bool,
}

impl LoadBalancerRule {
    /// The word of its protocol in small letters; that of TCP if it has none.
    pub(crate) fn protocol_word(&self) -> String {
        self.protocol.as_deref().unwrap_or("tcp").to_lowercase()
    }

    /// Members go. A rule without any is as a new one.
    pub(crate) fn lose_members(&mut self, is_going: impl Fn(&str) -> bool) {
        self.members.retain(|member| !is_going(member));
        if self.members.is_empty() && self.state == RuleState::Active {
            self.state = RuleState::Add;
        }
    }
}

/// A firewall rule of a public address.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FirewallRule {
    /// Id.
    pub id: String,
    /// The database's number, part of texts.
    pub number: u64,
    /// The public address's id.
    pub address: String,
    /// The network's id.
    pub network: String,
    /// `tcp`, `udp` or `icmp`.
    pub protocol: String,
    /// First and last port; `None` for ICMP.
    pub ports: Option<(u16, u16)>,
    /// Sources in order.
    pub cidrs: Vec<String>,
    /// Whether it is in force.
    pub state: RuleState,
    /// Whose it is.
    pub owner: Owner,
    /// Tags in order.
    pub tags: Vec<Tag>,
}

/// A port forwarding rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortForwarding {
    /// Id.
    pub id: String,
    /// The database's number, part of texts.
    pub number: u64,
    /// The public address's id.
    pub address: String,
    /// First and last port of the public address.
    pub ports: (u16, u16),
    /// The virtual machine's id.
    pub vm: String,
    /// The network's id.
    pub network: String,
}

/// A list of network ACL items.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AclList {
    /// Id.
    pub id: String,
    /// Name.
    pub name: String,
    /// The VPC's id; `None` for the two that every zone has.
    pub vpc: Option<String>,
}

/// An item of an [`AclList`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AclItem {
    /// Id.
    pub id: String,
    /// The list's id.
    pub list: String,
    /// Its place: lower ones are looked at first.
    pub number: u32,
    /// `tcp`, `udp`, `icmp`, `all` or a number.
    pub protocol: String,
    /// First and last port.
    pub ports: Option<(u16, u16)>,
    /// The other side in order.
    pub cidrs: Vec<String>,
    /// Whether it lets pass.
    pub is_allow: bool,
    /// Whether it is about what comes in.
    pub is_ingress: bool,
    /// What for, as a person wrote it.
    pub reason: Option<String>,
    /// Whether it is in force.
    pub state: RuleState,
}

/// A tag of an object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Tag {
    /// Its key, once per object.
    pub key: String,
    /// Its value.
    pub value: String,
}

/// The built-in list that lets everything pass.
pub const DEFAULT_ALLOW: &str = "default_allow";

/// The built-in list that lets nothing pass.
pub const DEFAULT_DENY: &str = "default_deny";
