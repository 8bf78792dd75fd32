//! Public networks (Networks API, "Public Networks").

use serde::{Deserialize, Deserializer};

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
    pub location: Option<String>,
    /// Its VLAN.
    pub vlan_id: Option<u32>,
    /// What it is doing, as the API writes it: `BUSY`, `READY`, `DELETING` or `ERROR`.
    #[serde(default, deserialize_with = "super::text_or_none")]
    pub status: Option<String>,
    /// The blocks that are attached; `None` if the API does not say.
    #[serde(default, deserialize_with = "list_if_said")]
    pub ip_blocks: Option<Vec<NetworkBlock>>,
    /// The servers in it.
    #[serde(default, deserialize_with = "super::list")]
    pub memberships: Vec<Membership>,
}

impl PublicNetwork {
    /// Whether it changes, and takes a block later.
    pub fn is_busy(&self) -> bool {
        self.has_status(&["busy"])
    }

    /// Whether it goes or has failed, so that it takes no block any more.
    pub fn is_lost(&self) -> bool {
        self.has_status(&["deleting", "error"])
    }

    fn has_status(&self, words: &[&str]) -> bool {
        let status = self.status.as_deref().map(super::plain);
        status.is_some_and(|status| words.contains(&status.as_str()))
    }
}

/// A list of `null` is an empty one.
fn list_if_said<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<NetworkBlock>>, D::Error> {
    super::list(deserializer).map(Some)
}

/// A block that is attached to a network.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct NetworkBlock {
    /// The block's id.
    pub id: String,
    /// The block's addresses.
    pub cidr: Option<String>,
}

/// A member of a network.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Membership {
    /// The member's id.
    pub resource_id: Option<String>,
    /// The addresses that the member uses out of the network's blocks.
    #[serde(default, deserialize_with = "super::list")]
    pub ips: Vec<String>,
}
