//! Listeners (Load Balancer API v2).

use std::collections::BTreeMap;

use bowline_cloud_http::lenient::{list, or_default};
use serde::{Deserialize, Serialize};

use super::{
    ListenerId, ListenerProtocol, LoadBalancerId, NewPool, OperatingStatus, PoolId, ProvisioningStatus,
    Reference,
};

/// A listener of a load balancer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listener {
    /// Its id.
    pub id: ListenerId,
    /// Its name; several may share one.
    #[serde(default, deserialize_with = "or_default")]
    pub name: String,
    /// What it accepts.
    pub protocol: ListenerProtocol,
    /// The port that it accepts on.
    pub protocol_port: u16,
    /// How many connections it accepts at a time; -1 is any number.
    pub connection_limit: Option<i64>,
    /// The headers that it adds to requests: `X-Forwarded-For` with `true`.
    #[serde(default, deserialize_with = "or_default")]
    pub insert_headers: BTreeMap<String, String>,
    /// Where its certificate and key are.
    pub default_tls_container_ref: Option<String>,
    /// How long a client may be silent, in milliseconds.
    pub timeout_client_data: Option<i64>,
    /// How long a connection to a member may take, in milliseconds.
    pub timeout_member_connect: Option<i64>,
    /// How long a member may be silent, in milliseconds.
    pub timeout_member_data: Option<i64>,
    /// How long more packets are waited for to inspect them, in milliseconds.
    pub timeout_tcp_inspect: Option<i64>,
    /// Whom it accepts from; empty is everyone.
    #[serde(default, deserialize_with = "list")]
    pub allowed_cidrs: Vec<String>,
    /// Whether it is switched on; `None` if the API does not tell.
    pub admin_state_up: Option<bool>,
    /// Its tags.
    #[serde(default, deserialize_with = "list")]
    pub tags: Vec<String>,
    /// Where it sends what it accepts.
    pub default_pool_id: Option<PoolId>,
    /// The policies that send some of it elsewhere.
    #[serde(default, deserialize_with = "list")]
    pub l7policies: Vec<Reference<String>>,
    /// The load balancer that it belongs to.
    #[serde(default, deserialize_with = "list")]
    pub loadbalancers: Vec<Reference<LoadBalancerId>>,
    /// Whether it takes changes.
    #[serde(default, deserialize_with = "or_default")]
    pub provisioning_status: ProvisioningStatus,
    /// Whether it carries traffic.
    #[serde(default, deserialize_with = "or_default")]
    pub operating_status: OperatingStatus,
    /// When it was made, in UTC.
    pub created_at: Option<String>,
}

/// A listener to be created.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewListener {
    /// The load balancer that it shall belong to; `None` inside of a [`NewLoadBalancer`](super::NewLoadBalancer).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loadbalancer_id: Option<LoadBalancerId>,
    /// Its name.
    pub name: String,
    /// What it shall accept.
    pub protocol: ListenerProtocol,
    /// The port that it shall accept on.
    pub protocol_port: u16,
    /// What can be changed later too; `None` gets the API's default.
    #[serde(flatten)]
    pub attributes: ListenerAttributes,
    /// The pool of the load balancer that it shall send to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_pool_id: Option<PoolId>,
    /// The same with the pool itself; only inside of a [`NewLoadBalancer`](super::NewLoadBalancer).
    #[serde(skip_serializing_if = "Option::is_none", skip_deserializing)]
    pub default_pool: Option<NewPool>,
}

/// What a call changes at a listener.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ListenerUpdate {
    /// Its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The pool of the load balancer that it sends to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_pool_id: Option<PoolId>,
    /// The rest.
    #[serde(flatten)]
    pub attributes: ListenerAttributes,
}

/// What can be set at a listener, new or not: what is `None` is not sent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListenerAttributes {
    /// Its tags, as a whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tags: Option<Vec<String>>,
    /// How many connections it accepts at a time; -1 is any number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connection_limit: Option<i64>,
    /// The headers that it adds to requests, as a whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub insert_headers: Option<BTreeMap<String, String>>,
    /// Where its certificate and key are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_tls_container_ref: Option<String>,
    /// How long a client may be silent, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_client_data: Option<i64>,
    /// How long a connection to a member may take, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_member_connect: Option<i64>,
    /// How long a member may be silent, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_member_data: Option<i64>,
    /// How long more packets are waited for to inspect them, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_tcp_inspect: Option<i64>,
    /// Whom it accepts from, as a whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allowed_cidrs: Option<Vec<String>>,
}
