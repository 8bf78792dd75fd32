//! Load balancers (Load Balancer API v2).

use bowline_cloud_http::lenient::{list, or_default};
use serde::{Deserialize, Serialize};

use super::{
    ListenerId, LoadBalancerId, NetworkId, NewListener, OperatingStatus, PoolId, PortId, ProvisioningStatus,
    SubnetId,
};

/// A reference to another object of the API.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Reference<Id> {
    /// The object's id.
    pub id: Id,
}

/// A load balancer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadBalancer {
    /// Its id.
    pub id: LoadBalancerId,
    /// Its name; several may share one.
    #[serde(default, deserialize_with = "or_default")]
    pub name: String,
    /// The project that it belongs to.
    pub project_id: Option<String>,
    /// What its maker wrote on it.
    #[serde(default, deserialize_with = "or_default")]
    pub description: String,
    /// Whether it takes changes.
    #[serde(default, deserialize_with = "or_default")]
    pub provisioning_status: ProvisioningStatus,
    /// Whether it carries traffic.
    #[serde(default, deserialize_with = "or_default")]
    pub operating_status: OperatingStatus,
    /// The address at which clients reach it, from inside.
    #[serde(default, deserialize_with = "or_default")]
    pub vip_address: String,
    /// The port that has the address.
    pub vip_port_id: Option<PortId>,
    /// The subnet that the address comes from.
    pub vip_subnet_id: Option<SubnetId>,
    /// The network that the address comes from.
    pub vip_network_id: Option<NetworkId>,
    /// Further addresses; always empty before API v2.26.
    #[serde(default, deserialize_with = "list")]
    pub additional_vips: Vec<AdditionalVip>,
    /// The security groups that a person set on its address; always empty before API v2.29.
    #[serde(default, deserialize_with = "list")]
    pub vip_sg_ids: Vec<String>,
    /// Whether it is switched on; `None` if the API does not tell.
    pub admin_state_up: Option<bool>,
    /// Its tags; always empty before API v2.5.
    #[serde(default, deserialize_with = "list")]
    pub tags: Vec<String>,
    /// Its listeners.
    #[serde(default, deserialize_with = "list")]
    pub listeners: Vec<Reference<ListenerId>>,
    /// Its pools.
    #[serde(default, deserialize_with = "list")]
    pub pools: Vec<Reference<PoolId>>,
    /// What makes it, e.g. `amphora`.
    #[serde(default, deserialize_with = "or_default")]
    pub provider: String,
    /// Its size.
    pub flavor_id: Option<String>,
    /// Where it stands.
    pub availability_zone: Option<String>,
    /// When it was made, in UTC: a later time is a greater text.
    pub created_at: Option<String>,
    /// When it was changed last, in UTC; while a change is under way, when that began.
    pub updated_at: Option<String>,
}

/// A load balancer to be created, with all its parts or with none.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct NewLoadBalancer {
    /// Its name.
    pub name: String,
    /// Whose it is.
    pub description: String,
    /// What shall make it, e.g. `amphora`.
    pub provider: String,
    /// Its tags; `None` where the API is older than v2.5.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tags: Option<Vec<String>>,
    /// Its size; `None` is the cloud's default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flavor_id: Option<String>,
    /// Where it shall stand; `None` is the cloud's default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub availability_zone: Option<String>,
    /// The port whose address it shall have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vip_port_id: Option<PortId>,
    /// The subnet that its address shall come from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vip_subnet_id: Option<SubnetId>,
    /// The network that its address shall come from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vip_network_id: Option<NetworkId>,
    /// The address itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vip_address: Option<String>,
    /// Further addresses, on the same network; API v2.26.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub additional_vips: Vec<NewAdditionalVip>,
    /// Its listeners.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub listeners: Vec<NewListener>,
}

/// A further address of a load balancer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AdditionalVip {
    /// The address.
    #[serde(default, deserialize_with = "or_default")]
    pub ip_address: String,
    /// The subnet that it comes from.
    pub subnet_id: Option<SubnetId>,
}

/// A further address of a load balancer to be created.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NewAdditionalVip {
    /// The subnet that it shall come from.
    pub subnet_id: SubnetId,
    /// The address itself; `None` is any of the subnet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ip_address: Option<String>,
}

/// What a call changes at a load balancer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct LoadBalancerUpdate {
    /// Its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Its tags, as a whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tags: Option<Vec<String>>,
}

/// A version of the API, from the list at its root.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct ApiVersion {
    /// Its name, e.g. `v2.30`.
    pub id: String,
    /// How the service sees it, e.g. `CURRENT`.
    #[serde(default, deserialize_with = "or_default")]
    pub status: String,
}
