//! Ports (Networking API v2.0).

use bowline_cloud_http::lenient::{list, or_default};
use serde::{Deserialize, Serialize};

use super::{NetworkId, PER_PAGE, PortId, PortStatus, SecurityGroupId, SubnetId};

/// A port of a network.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Port {
    /// Its id.
    pub id: PortId,
    /// Its name; several may share one.
    #[serde(default, deserialize_with = "or_default")]
    pub name: String,
    /// The network that it belongs to, where the API says so.
    pub network_id: Option<NetworkId>,
    /// Its state.
    #[serde(default, deserialize_with = "or_default")]
    pub status: PortStatus,
    /// The id of what it belongs to: a server, a router; empty if nothing.
    #[serde(default, deserialize_with = "or_default")]
    pub device_id: String,
    /// What kind of thing that is, e.g. `compute:nova`; empty if nothing.
    #[serde(default, deserialize_with = "or_default")]
    pub device_owner: String,
    /// Its addresses.
    #[serde(default, deserialize_with = "list")]
    pub fixed_ips: Vec<FixedIp>,
    /// The security groups that it has.
    #[serde(default, deserialize_with = "list")]
    pub security_groups: Vec<SecurityGroupId>,
    /// The ranges that it may send from beside its own addresses.
    #[serde(default, deserialize_with = "list")]
    pub allowed_address_pairs: Vec<AddressPair>,
    /// Whether security groups and allowed ranges hold; `None` if the cloud has no such switch, and they do.
    pub port_security_enabled: Option<bool>,
    /// Its tags.
    #[serde(default, deserialize_with = "list")]
    pub tags: Vec<String>,
    /// The ports that travel on it, tagged.
    #[serde(default, deserialize_with = "or_default")]
    pub trunk_details: TrunkDetails,
    /// Counts its changes; sent back, it makes a change conditional.
    pub revision_number: Option<u64>,
}

/// An address of a port.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct FixedIp {
    /// The subnet that it comes from.
    pub subnet_id: SubnetId,
    /// The address as the API writes it.
    pub ip_address: String,
}

/// A range that a port may send from.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct AddressPair {
    /// An address or a range.
    pub ip_address: String,
    /// The hardware address; the API fills in the port's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mac_address: Option<String>,
}

/// What travels on a port, tagged.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct TrunkDetails {
    /// The ports.
    #[serde(default, deserialize_with = "list")]
    pub sub_ports: Vec<SubPort>,
}

/// A port that travels on another one.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct SubPort {
    /// Its id.
    pub port_id: PortId,
}

/// Which ports are asked for; all conditions hold.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PortFilter<'a> {
    /// Those of this server or router.
    pub device_id: Option<&'a str>,
    /// Those that have this address.
    pub address: Option<&'a str>,
    /// Those of this network.
    pub network_id: Option<&'a NetworkId>,
}

impl PortFilter<'_> {
    pub(crate) fn query(&self) -> Vec<(&'static str, String)> {
        let conditions = [
            ("device_id", self.device_id.map(str::to_owned)),
            (
                "fixed_ips",
                self.address.map(|address| format!("ip_address={address}")),
            ),
            ("network_id", self.network_id.map(ToString::to_string)),
        ];
        let limit = (!self.is_narrow()).then(|| ("limit", PER_PAGE.to_string()));
        conditions
            .into_iter()
            .filter_map(|(name, value)| Some((name, value?)))
            .chain(limit)
            .collect()
    }

    /// Whether only a few ports can be meant.
    fn is_narrow(&self) -> bool {
        self.device_id.is_some() || self.address.is_some()
    }
}

/// What a call changes at a port: what is `Some` is replaced as a whole.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct PortUpdate {
    /// The security groups that it shall have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub security_groups: Option<Vec<SecurityGroupId>>,
    /// The ranges that it may send from beside its own addresses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allowed_address_pairs: Option<Vec<AddressPair>>,
}
