//! Extensions, networks, subnets and routers (Networking API v2.0).

use bowline_cloud_http::lenient::{list, or_default};
use serde::{Deserialize, Serialize};

use super::{NetworkId, RouterId, SubnetId};

/// A part of the API that not every cloud has.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Extension {
    /// Its short name, e.g. `extraroute-atomic`.
    pub alias: String,
}

/// A network.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Network {
    /// Its id.
    pub id: NetworkId,
    /// Its name; several may share one.
    #[serde(default, deserialize_with = "or_default")]
    pub name: String,
    /// The ids of its subnets, also of those that the project cannot see.
    #[serde(default, deserialize_with = "list")]
    pub subnets: Vec<SubnetId>,
    /// Whether it leads outside, so that floating IPs come from it.
    #[serde(rename = "router:external", default, deserialize_with = "or_default")]
    pub is_external: bool,
}

/// A subnet of a network.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Subnet {
    /// Its id.
    pub id: SubnetId,
    /// Its name; several may share one.
    #[serde(default, deserialize_with = "or_default")]
    pub name: String,
    /// The network that it belongs to.
    pub network_id: NetworkId,
    /// 4 or 6.
    #[serde(default, deserialize_with = "or_default")]
    pub ip_version: u8,
    /// Its range, e.g. `10.0.0.0/24`.
    #[serde(default, deserialize_with = "or_default")]
    pub cidr: String,
    /// Its tags.
    #[serde(default, deserialize_with = "list")]
    pub tags: Vec<String>,
}

/// A router.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Router {
    /// Its id.
    pub id: RouterId,
    /// Its name.
    #[serde(default, deserialize_with = "or_default")]
    pub name: String,
    /// Its static routes. An answer that does not name them is none: all would be created.
    #[serde(deserialize_with = "list")]
    pub routes: Vec<RouterRoute>,
    /// Counts its changes; sent back, it makes a change conditional.
    pub revision_number: Option<u64>,
}

/// A static route of a router.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct RouterRoute {
    /// The range that it leads to.
    pub destination: String,
    /// The address that it leads through.
    pub nexthop: String,
}
