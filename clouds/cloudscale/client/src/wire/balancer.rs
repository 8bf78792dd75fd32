//! Load balancers (cloudscale.ch API, "Load Balancers").

use std::sync::Arc;

use bowline_cloud_http::Pairs;
use serde::{Deserialize, Serialize};

use super::{LoadBalancerId, LoadBalancerStatus, Slug, SubnetStub, Tags};

/// A load balancer.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct LoadBalancer {
    /// Its id.
    pub uuid: LoadBalancerId,
    /// Its name; several may share one.
    pub name: String,
    /// When it was made: RFC 3339, UTC, microseconds, so the order of texts is the order of times.
    pub created_at: Option<String>,
    /// Its state.
    pub status: LoadBalancerStatus,
    /// Where it stands.
    pub zone: Slug,
    /// Its size, e.g. `lb-standard`.
    pub flavor: Slug,
    /// Where clients reach it.
    #[serde(default, deserialize_with = "super::list")]
    pub vip_addresses: Vec<VipAddress>,
    /// Its tags.
    #[serde(default, deserialize_with = "super::or_default")]
    pub tags: Pairs<String>,
}

/// An address of a load balancer.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct VipAddress {
    /// The address as the API writes it.
    pub address: String,
    /// 4 or 6.
    pub version: Option<u8>,
    /// The subnet that it belongs to.
    pub subnet: Option<SubnetStub>,
}

/// A load balancer to be created.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NewLoadBalancer {
    /// Its name.
    pub name: String,
    /// Its size.
    pub flavor: String,
    /// Where clients shall reach it; none gives one public address per IP version. Sent also when empty.
    pub vip_addresses: Vec<NewVipAddress>,
    /// Where it shall stand; `None` is the project's default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
    /// Tags, among them the mark of ownership.
    #[serde(skip_serializing_if = "super::is_empty")]
    pub tags: Arc<Tags>,
}

/// An address asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct NewVipAddress {
    /// The address itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// The id of the subnet to take it from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subnet: Option<String>,
}
