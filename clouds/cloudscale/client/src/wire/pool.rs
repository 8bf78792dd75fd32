//! Pools and their members (cloudscale.ch API, "Load Balancer Pools" and "Load Balancer Pool Members").

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{
    LoadBalancerId, MemberId, MonitorStatus, PoolAlgorithm, PoolId, PoolProtocol, Stub, SubnetStub, Tags,
};

/// A pool of a load balancer.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Pool {
    /// Its id.
    pub uuid: PoolId,
    /// Its name; several may share one.
    pub name: String,
    /// When it was made; see [`LoadBalancer::created_at`](super::LoadBalancer::created_at).
    pub created_at: Option<String>,
    /// The load balancer that it belongs to.
    pub load_balancer: Stub<LoadBalancerId>,
    /// How it chooses a member.
    pub algorithm: PoolAlgorithm,
    /// What it speaks to its members.
    pub protocol: PoolProtocol,
}

/// A pool to be created.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NewPool {
    /// Its name.
    pub name: String,
    /// The load balancer that it shall belong to.
    pub load_balancer: LoadBalancerId,
    /// How it shall choose a member.
    pub algorithm: PoolAlgorithm,
    /// What it shall speak to its members.
    pub protocol: PoolProtocol,
    /// Tags.
    #[serde(skip_serializing_if = "super::is_empty")]
    pub tags: Arc<Tags>,
}

/// A member of a pool.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Member {
    /// Its id.
    pub uuid: MemberId,
    /// Its name.
    pub name: String,
    /// When it was made; see [`LoadBalancer::created_at`](super::LoadBalancer::created_at).
    pub created_at: Option<String>,
    /// Whether it gets traffic.
    pub enabled: Option<bool>,
    /// The port that gets the traffic.
    pub protocol_port: u16,
    /// The port that is probed; `None` is the port that gets the traffic.
    pub monitor_port: Option<u16>,
    /// Its address as the API writes it.
    pub address: String,
    /// The subnet that its address belongs to.
    pub subnet: Option<SubnetStub>,
    /// What the monitor thinks of it.
    pub monitor_status: Option<MonitorStatus>,
}

/// A member to be created.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NewMember {
    /// Its name.
    pub name: String,
    /// The port that shall get the traffic.
    pub protocol_port: u16,
    /// The port that shall be probed.
    pub monitor_port: u16,
    /// Its address.
    pub address: String,
    /// The id of the subnet that its address belongs to.
    pub subnet: String,
    /// Tags.
    #[serde(skip_serializing_if = "super::is_empty")]
    pub tags: Arc<Tags>,
}
