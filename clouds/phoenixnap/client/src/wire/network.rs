//! Public networks (Networks API, "Public Networks").

use serde::Deserialize;

/// A public network.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PublicNetwork {
    /// Its id, opaque.
    pub id: String,
    /// Its name.
    #[serde(default, deserialize_with = "super::or_default")]
    pub name: String,
    /// Where it is; only blocks of the same place can be attached.
    #[serde(default)]
    pub location: Option<String>,
    /// Its VLAN.
    #[serde(default)]
    pub vlan_id: Option<u32>,
    /// The blocks that are attached.
    #[serde(default, deserialize_with = "super::list")]
    pub ip_blocks: Vec<NetworkBlock>,
    /// The servers in it.
    #[serde(default, deserialize_with = "super::list")]
    pub memberships: Vec<Membership>,
}

/// A block that is attached to a network.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct NetworkBlock {
    /// The block's id.
    pub id: String,
    /// The block's addresses.
    #[serde(default)]
    pub cidr: Option<String>,
}

/// A member of a network.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Membership {
    /// The member's id.
    #[serde(default)]
    pub resource_id: Option<String>,
    /// The addresses that the member uses out of the network's blocks.
    #[serde(default, deserialize_with = "super::list")]
    pub ips: Vec<String>,
}
