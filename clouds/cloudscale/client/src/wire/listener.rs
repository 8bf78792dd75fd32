//! Listeners (cloudscale.ch API, "Load Balancer Listeners").

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{ListenerId, ListenerProtocol, LoadBalancerId, PoolId, Stub, Tags};

/// A listener of a load balancer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listener {
    /// Its id.
    pub uuid: ListenerId,
    /// Its name.
    pub name: String,
    /// When it was made; see [`LoadBalancer::created_at`](super::LoadBalancer::created_at).
    pub created_at: Option<String>,
    /// Where it sends what it accepts. The API's data model allows none.
    pub pool: Option<Stub<PoolId>>,
    /// The load balancer that it belongs to.
    pub load_balancer: Option<Stub<LoadBalancerId>>,
    /// What it accepts.
    pub protocol: ListenerProtocol,
    /// The port that it accepts on.
    pub protocol_port: u16,
    /// Whom it accepts from, in the order given; empty is everyone.
    #[serde(default, deserialize_with = "super::list")]
    pub allowed_cidrs: Vec<String>,
    /// How long a client may be silent, in milliseconds.
    pub timeout_client_data_ms: Option<i64>,
    /// How long a connection to a member may take, in milliseconds.
    pub timeout_member_connect_ms: Option<i64>,
    /// How long a member may be silent, in milliseconds.
    pub timeout_member_data_ms: Option<i64>,
}

/// A listener to be created.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NewListener {
    /// Its name.
    pub name: String,
    /// Where it shall send what it accepts.
    pub pool: PoolId,
    /// What it shall accept.
    pub protocol: ListenerProtocol,
    /// The port that it shall accept on.
    pub protocol_port: u16,
    /// Whom it shall accept from; empty is everyone. Sent also when empty.
    pub allowed_cidrs: Vec<String>,
    /// How long a client may be silent, in milliseconds.
    pub timeout_client_data_ms: i64,
    /// How long a connection to a member may take, in milliseconds.
    pub timeout_member_connect_ms: i64,
    /// How long a member may be silent, in milliseconds.
    pub timeout_member_data_ms: i64,
    /// Tags.
    #[serde(skip_serializing_if = "super::is_empty")]
    pub tags: Arc<Tags>,
}

/// The one attribute of a listener that a call changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ListenerChange {
    /// Whom it accepts from; empty is everyone.
    AllowedCidrs(Vec<String>),
    /// How long a client may be silent, in milliseconds.
    TimeoutClientDataMs(i64),
    /// How long a connection to a member may take, in milliseconds.
    TimeoutMemberConnectMs(i64),
    /// How long a member may be silent, in milliseconds.
    TimeoutMemberDataMs(i64),
}
