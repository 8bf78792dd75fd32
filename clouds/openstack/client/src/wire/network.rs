//! Extensions, networks, subnets and routers (Networking API v2.0).

use bowline_cloud_http::lenient::{list, or_default};
use serde::{Deserialize, Serialize};

use super::{NetworkId, Resource, RouterId, SubnetId};

/// A part of the API that not every cloud has.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Extension {
    /// Its short name, e.g. `extraroute-atomic`.
    pub alias: String,
}

impl Resource for Extension {
    const ONE: &'static str = "extension";
    const MANY: &'static str = "extensions";

    fn id(&self) -> &str {
        &self.alias
    }
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

impl Resource for Network {
    const ONE: &'static str = "network";
    const MANY: &'static str = "networks";

    fn id(&self) -> &str {
        self.id.as_str()
    }
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

impl Resource for Subnet {
    const ONE: &'static str = "subnet";
    const MANY: &'static str = "subnets";

    fn id(&self) -> &str {
        self.id.as_str()
    }
}

/// Which subnets are asked for; all conditions hold. Tags are joined as they stand: none may hold a comma.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SubnetFilter<'a> {
    /// Those of this network.
    pub network_id: Option<&'a NetworkId>,
    /// Those that have all of these tags.
    pub tags: &'a [String],
    /// Those that have at least one of these tags.
    pub tags_any: &'a [String],
    /// Those that do not have all of these tags.
    pub not_tags: &'a [String],
    /// Those that have none of these tags.
    pub not_tags_any: &'a [String],
}

impl SubnetFilter<'_> {
    pub(crate) fn query(&self) -> Vec<(&'static str, String)> {
        let network = self.network_id.map(|id| ("network_id", id.to_string()));
        let tags = [
            ("tags", self.tags),
            ("tags-any", self.tags_any),
            ("not-tags", self.not_tags),
            ("not-tags-any", self.not_tags_any),
        ];
        let tags = tags.into_iter().filter(|(_, tags)| !tags.is_empty());
        network
            .into_iter()
            .chain(tags.map(|(name, tags)| (name, tags.join(","))))
            .collect()
    }
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
    #[serde(default)]
    pub revision_number: Option<u64>,
}

impl Resource for Router {
    const ONE: &'static str = "router";
    const MANY: &'static str = "routers";

    fn id(&self) -> &str {
        self.id.as_str()
    }
}

/// A static route of a router.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct RouterRoute {
    /// The range that it leads to.
    pub destination: String,
    /// The address that it leads through.
    pub nexthop: String,
}
