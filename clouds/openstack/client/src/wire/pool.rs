//! Pools and their members (Load Balancer API v2).

use bowline_cloud_http::lenient::{list, or_default};
use serde::{Deserialize, Deserializer, Serialize};

use super::{
    ListenerId, LoadBalancerId, MemberId, MonitorId, NewMonitor, OperatingStatus, PersistenceType, PoolId,
    PoolProtocol, ProvisioningStatus, Reference, SubnetId,
};

/// A pool of a load balancer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pool {
    /// Its id.
    pub id: PoolId,
    /// Its name; several may share one.
    #[serde(default, deserialize_with = "or_default")]
    pub name: String,
    /// What is written on it; empty if nothing is.
    #[serde(default, deserialize_with = "or_default")]
    pub description: String,
    /// Its tags; always empty before API v2.5.
    #[serde(default, deserialize_with = "list")]
    pub tags: Vec<String>,
    /// What it speaks to its members.
    pub protocol: PoolProtocol,
    /// How it chooses a member, e.g. `ROUND_ROBIN`: a word that belongs to the load balancer's provider.
    #[serde(default, deserialize_with = "or_default")]
    pub lb_algorithm: String,
    /// The listeners that send to it by default.
    #[serde(default, deserialize_with = "list")]
    pub listeners: Vec<Reference<ListenerId>>,
    /// The load balancer that it belongs to.
    #[serde(default, deserialize_with = "list")]
    pub loadbalancers: Vec<Reference<LoadBalancerId>>,
    /// Its members.
    #[serde(default, deserialize_with = "list")]
    pub members: Vec<Reference<MemberId>>,
    /// What probes its members.
    pub healthmonitor_id: Option<MonitorId>,
    /// How it keeps a client at a member; `None` is not at all.
    pub session_persistence: Option<SessionPersistence>,
    /// Whether it is switched on; `None` if the API does not tell.
    pub admin_state_up: Option<bool>,
    /// Whether it takes changes.
    #[serde(default, deserialize_with = "or_default")]
    pub provisioning_status: ProvisioningStatus,
    /// Whether it carries traffic.
    #[serde(default, deserialize_with = "or_default")]
    pub operating_status: OperatingStatus,
}

/// How a pool keeps a client at a member.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionPersistence {
    /// By what.
    #[serde(rename = "type")]
    pub kind: PersistenceType,
    /// The cookie of an application.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cookie_name: Option<String>,
    /// How long a client of UDP is remembered, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub persistence_timeout: Option<u64>,
    /// Which addresses of clients of UDP count as one: a netmask.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub persistence_granularity: Option<String>,
}

impl SessionPersistence {
    /// By the client's address, and nothing else.
    pub fn by_address() -> Self {
        Self {
            kind: PersistenceType::SourceIp,
            cookie_name: None,
            persistence_timeout: None,
            persistence_granularity: None,
        }
    }
}

/// A pool to be created.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NewPool {
    /// The load balancer that it shall belong to, where no listener sends to it yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loadbalancer_id: Option<LoadBalancerId>,
    /// The listener that shall send to it; `None` inside of a [`NewListener`](super::NewListener).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub listener_id: Option<ListenerId>,
    /// Its name.
    pub name: String,
    /// What shall be written on it.
    pub description: String,
    /// Its tags; `None` is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tags: Option<Vec<String>>,
    /// What it shall speak to its members.
    pub protocol: PoolProtocol,
    /// How it shall choose a member.
    pub lb_algorithm: String,
    /// How it shall keep a client at a member.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_persistence: Option<SessionPersistence>,
    /// Its members; only inside of a [`NewListener`](super::NewListener).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub members: Vec<NewMember>,
    /// What shall probe its members; only inside of a [`NewListener`](super::NewListener).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub healthmonitor: Option<NewMonitor>,
}

/// What a call changes at a pool.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct PoolUpdate {
    /// Its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Its tags, as a whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tags: Option<Vec<String>>,
    /// How it chooses a member.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lb_algorithm: Option<String>,
    /// How it keeps a client at a member; `Some(None)` is not at all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_persistence: Option<Option<SessionPersistence>>,
    /// Whether it is switched on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub admin_state_up: Option<bool>,
}

/// A member of a pool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    /// Its id.
    pub id: MemberId,
    /// Its name.
    #[serde(default, deserialize_with = "or_default")]
    pub name: String,
    /// Its address as the API writes it.
    pub address: String,
    /// The port that gets the traffic.
    pub protocol_port: u16,
    /// The port that is probed; `None` is the port that gets the traffic.
    pub monitor_port: Option<u16>,
    /// The subnet that its address belongs to.
    pub subnet_id: Option<SubnetId>,
    /// What a person may have set on it.
    #[serde(flatten)]
    pub settings: MemberSettings,
    /// Whether it takes changes.
    #[serde(default, deserialize_with = "or_default")]
    pub provisioning_status: ProvisioningStatus,
    /// Whether it answers the probes of its pool's monitor.
    #[serde(default, deserialize_with = "or_default")]
    pub operating_status: OperatingStatus,
}

/// What a person may set on a member, as to drain it. `None` is the API's default.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct MemberSettings {
    /// Its share of the traffic; 0 is none, and 1 the default.
    #[serde(
        default,
        deserialize_with = "unless_default::<1, _>",
        skip_serializing_if = "Option::is_none"
    )]
    pub weight: Option<u16>,
    /// `true` has it get traffic only when all others are down.
    #[serde(
        default,
        deserialize_with = "unless::<false, _>",
        skip_serializing_if = "Option::is_none"
    )]
    pub backup: Option<bool>,
    /// The address that is probed in place of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub monitor_address: Option<String>,
    /// `false` has it get no traffic.
    #[serde(
        default,
        deserialize_with = "unless::<true, _>",
        skip_serializing_if = "Option::is_none"
    )]
    pub admin_state_up: Option<bool>,
}

fn unless_default<'de, const DEFAULT: u16, D: Deserializer<'de>>(read: D) -> Result<Option<u16>, D::Error> {
    Ok(Option::deserialize(read)?.filter(|value| *value != DEFAULT))
}

fn unless<'de, const DEFAULT: bool, D: Deserializer<'de>>(read: D) -> Result<Option<bool>, D::Error> {
    Ok(Option::deserialize(read)?.filter(|value| *value != DEFAULT))
}

/// A member to be created, alone or in a list that replaces all members of a pool. In such a list the API tells members
/// apart by address and port.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct NewMember {
    /// Its name.
    pub name: String,
    /// Its address.
    pub address: String,
    /// The port that shall get the traffic.
    pub protocol_port: u16,
    /// The subnet that its address belongs to; `None` is the load balancer's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subnet_id: Option<SubnetId>,
    /// The port that shall be probed; `None` is the port that gets the traffic.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub monitor_port: Option<u16>,
    /// What a person set on the one that is there.
    #[serde(flatten)]
    pub settings: MemberSettings,
}

/// What a call changes at a member. Its address, port and subnet stay for life.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MemberUpdate {
    /// Its name.
    pub name: String,
    /// The port that shall be probed; `None` is the port that gets the traffic.
    pub monitor_port: Option<u16>,
}
