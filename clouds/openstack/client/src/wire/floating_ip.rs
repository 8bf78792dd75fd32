//! Floating IPs (Networking API v2.0).

use bowline_cloud_http::lenient::or_default;
use serde::{Deserialize, Serialize};

use super::{FloatingIpId, NetworkId, PortId, RouterId, SubnetId};

/// A floating IP.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct FloatingIp {
    /// Its id.
    pub id: FloatingIpId,
    /// The address.
    pub floating_ip_address: String,
    /// The network that it comes from.
    pub floating_network_id: NetworkId,
    /// The port that it leads to.
    pub port_id: Option<PortId>,
    /// The router that it comes through. One that has a router and no port has port forwardings: Neutron neither attaches nor deletes it
    /// (`_check_floatingip_request` in `neutron/services/portforwarding/pf_plugin.py`).
    pub router_id: Option<RouterId>,
    /// The address of that port that it leads to.
    pub fixed_ip_address: Option<String>,
    /// The project that it belongs to.
    pub project_id: Option<String>,
    /// Whether that is another one than the login's: an administrator's lists show those too.
    #[serde(skip)]
    pub is_foreign: bool,
    /// What its maker wrote on it.
    #[serde(default, deserialize_with = "or_default")]
    pub description: String,
    /// Counts its changes; sent back, it makes a change conditional.
    pub revision_number: Option<u64>,
}

/// A floating IP to be created.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NewFloatingIp {
    /// The network that it shall come from.
    pub floating_network_id: NetworkId,
    /// The port that it shall lead to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port_id: Option<PortId>,
    /// The address of that port that it shall lead to: of several, the API chooses none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fixed_ip_address: Option<String>,
    /// The subnet that it shall come from; `None` is any of the network.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subnet_id: Option<SubnetId>,
    /// The address itself. Ordinary users may not choose one in most clouds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub floating_ip_address: Option<String>,
    /// Whose it is.
    pub description: String,
}
