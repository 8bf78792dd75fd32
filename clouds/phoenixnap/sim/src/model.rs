//! The objects of an account.

use std::net::IpAddr;

use ipnet::IpNet;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

/// The type of an assignment to a public network, spelled in words.
pub const PUBLIC_NETWORK: &str = "public network";

/// What a server is doing.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ServerStatus {
    /// It is being provisioned.
    Creating,
    /// It runs.
    PoweredOn,
    /// It does not.
    PoweredOff,
    /// It restarts.
    Rebooting,
    /// It gets its first state again.
    Resetting,
    /// It goes.
    Deleting,
    /// Something failed.
    Error,
    /// It is deprovisioned and kept under a reservation.
    Reserved,
    /// It comes back from that.
    Reinstating,
    /// A word that no description of the API has.
    #[serde(untagged)]
    Other(String),
}

/// What a block is doing.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BlockStatus {
    /// It is being made.
    Creating,
    /// It was divided.
    Subnetted,
    /// It is being attached.
    Assigning,
    /// That failed.
    #[serde(rename = "error assigning")]
    ErrorAssigning,
    /// It is attached.
    Assigned,
    /// It is being detached.
    Unassigning,
    /// That failed.
    #[serde(rename = "error unassigning")]
    ErrorUnassigning,
    /// It is attached to nothing.
    Unassigned,
    /// A word that no description of the API has; empty for an answer without the field.
    #[serde(untagged)]
    Other(String),
}

impl BlockStatus {
    /// Its word.
    pub fn words(&self) -> &str {
        match self {
            Self::Creating => "creating",
            Self::Subnetted => "subnetted",
            Self::Assigning => "assigning",
            Self::ErrorAssigning => "error assigning",
            Self::Assigned => "assigned",
            Self::Unassigning => "unassigning",
            Self::ErrorUnassigning => "error unassigning",
            Self::Unassigned => "unassigned",
            Self::Other(word) => word,
        }
    }
}

/// What a network is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum NetworkStatus {
    /// It changes.
    Busy,
    /// It can be changed.
    Ready,
    /// It goes.
    Deleting,
    /// Something failed.
    Error,
}

/// A tag of a server or block: a name that the account has, with or without a value.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Tag {
    /// Its name.
    pub name: String,
    /// Its value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
}

impl Tag {
    /// A tag with a value.
    pub fn new(name: impl Into<String>, value: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            value: Some(value.into()),
        }
    }
}

/// A server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Server {
    /// Id.
    pub id: String,
    /// Hostname.
    pub hostname: String,
    /// What it is doing.
    pub status: ServerStatus,
    /// Location.
    pub location: String,
    /// Type, such as `s2.c2.medium`.
    pub instance_type: String,
    /// Private addresses in order.
    pub private_addresses: Vec<String>,
    /// Public addresses in order.
    pub public_addresses: Vec<String>,
    /// Tags.
    pub tags: Vec<Tag>,
    /// RFC 3339.
    pub provisioned_on: String,
}

/// What a block is attached to. Both parts are optional in the API.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Assignment {
    /// The id of the network or server.
    pub resource_id: Option<String>,
    /// `public network`, `server` and so on, in the spelling that is shown.
    pub resource_type: Option<String>,
}

impl Assignment {
    /// Whether it is one to this public network, in any spelling.
    pub fn is_network(&self, id: &str) -> bool {
        let kind = self.resource_type.as_deref().unwrap_or_default();
        self.resource_id.as_deref() == Some(id)
            && kind.to_lowercase().replace(['_', '-'], " ") == PUBLIC_NETWORK
    }
}

/// A change under way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// When it is done.
    pub at: Instant,
    /// The status it ends in.
    pub to: BlockStatus,
    /// Whether the block is attached then.
    pub attached: bool,
}

/// A public IP block.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Block {
    /// Id.
    pub id: String,
    /// Location.
    pub location: String,
    /// The range.
    pub cidr: IpNet,
    /// What the API says instead of the range, if it is to be wrong.
    pub shown_cidr: Option<String>,
    /// What it is doing.
    pub status: BlockStatus,
    /// What will come of it by the clock alone.
    #[serde(skip)]
    pub change: Option<Change>,
    /// What it is attached to.
    pub assignment: Option<Assignment>,
    /// Description.
    pub description: Option<String>,
    /// Tags in order.
    pub tags: Vec<Tag>,
    /// RFC 3339.
    pub created_on: String,
    /// From when on lists show it; `None` is from the beginning.
    #[serde(skip)]
    pub listed_from: Option<Instant>,
}

impl Block {
    /// Whether it has this tag with this value; without a value, any fits.
    pub fn has_tag(&self, name: &str, value: Option<&str>) -> bool {
        has_tag(&self.tags, name, value)
    }

    /// The value of a tag.
    pub fn tag(&self, name: &str) -> Option<&str> {
        let found = self.tags.iter().find(|tag| tag.name == name)?;
        found.value.as_deref()
    }
}

pub(crate) fn has_tag(tags: &[Tag], name: &str, value: Option<&str>) -> bool {
    let fits = |tag: &Tag| tag.name == name && (value.is_none() || tag.value.as_deref() == value);
    tags.iter().any(fits)
}

/// A public network.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Network {
    /// Id.
    pub id: String,
    /// Name.
    pub name: String,
    /// Location.
    pub location: String,
    /// VLAN.
    pub vlan_id: u16,
    /// A status that stays; without one it is `BUSY` or `READY`.
    pub status: Option<NetworkStatus>,
    /// When it is no longer busy.
    #[serde(skip)]
    pub busy_until: Option<Instant>,
    /// Servers in it.
    pub members: Vec<Member>,
    /// RFC 3339.
    pub created_on: String,
}

/// A server in a network.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    /// The server's id.
    pub server: String,
    /// Addresses out of the network's blocks that it uses.
    pub ips: Vec<IpAddr>,
}

/// A tag name that the account has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TagName {
    /// Id.
    pub id: String,
    /// The name.
    pub name: String,
    /// Description.
    pub description: Option<String>,
    /// Whether costs are split by it.
    pub is_billing: bool,
}
