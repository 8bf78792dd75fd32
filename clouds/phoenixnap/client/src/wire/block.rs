//! IP blocks (IP API, "IP Blocks").

use std::fmt;

use serde::{Deserialize, Serialize};

use super::BlockTag;

/// A block of public addresses.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct IpBlock {
    /// Its id, opaque.
    pub id: String,
    /// Its addresses, e.g. `198.51.100.8/29`; empty if the API does not say, as of a block that is being made.
    #[serde(default, deserialize_with = "super::or_default")]
    pub cidr: String,
    /// Where it can be used, e.g. `NLD`.
    pub location: Option<String>,
    /// Its state.
    #[serde(default)]
    pub status: BlockStatus,
    /// What it is attached to, if the API shows it.
    pub assigned_resource_id: Option<String>,
    /// The kind of what it is attached to.
    pub assigned_resource_type: Option<AssignedResource>,
    /// Its tags.
    #[serde(default, deserialize_with = "super::list")]
    pub tags: Vec<BlockTag>,
    /// When it was bought, as the API writes it; may be missing or odd.
    #[serde(default, deserialize_with = "super::text_or_none")]
    pub created_on: Option<String>,
}

/// The state of a block.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(from = "Option<String>")]
pub enum BlockStatus {
    /// It is being made; nothing can be done with it yet.
    Creating,
    /// It is divided into smaller ones.
    Subnetted,
    /// It is on its way to what it is attached to.
    Assigning,
    /// It could not be attached.
    ErrorAssigning,
    /// It is attached.
    Assigned,
    /// It is on its way off what it is attached to.
    Unassigning,
    /// It could not be taken off.
    ErrorUnassigning,
    /// It is attached to nothing.
    Unassigned,
    /// The API did not say.
    #[default]
    Absent,
    /// A word that this client does not know.
    Other(String),
}

impl From<Option<String>> for BlockStatus {
    fn from(word: Option<String>) -> Self {
        let Some(word) = word else { return Self::Absent };
        match super::plain(&word).as_str() {
            "" => Self::Absent,
            "creating" => Self::Creating,
            "subnetted" => Self::Subnetted,
            "assigning" => Self::Assigning,
            "error-assigning" => Self::ErrorAssigning,
            "assigned" => Self::Assigned,
            "unassigning" => Self::Unassigning,
            "error-unassigning" => Self::ErrorUnassigning,
            "unassigned" => Self::Unassigned,
            _ => Self::Other(word),
        }
    }
}

impl fmt::Display for BlockStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Creating => "creating",
            Self::Subnetted => "subnetted",
            Self::Assigning => "assigning",
            Self::ErrorAssigning => "error assigning",
            Self::Assigned => "assigned",
            Self::Unassigning => "unassigning",
            Self::ErrorUnassigning => "error unassigning",
            Self::Unassigned => "unassigned",
            Self::Absent => "no status",
            Self::Other(word) => word,
        })
    }
}

/// The kind of thing that a block is attached to.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(from = "String")]
pub enum AssignedResource {
    /// A public network.
    PublicNetwork,
    /// Something else, such as a server, as the API writes it.
    Other(String),
}

impl From<String> for AssignedResource {
    fn from(word: String) -> Self {
        if super::plain(&word) == "public-network" {
            Self::PublicNetwork
        } else {
            Self::Other(word)
        }
    }
}

impl fmt::Display for AssignedResource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::PublicNetwork => "public network",
            Self::Other(word) => word,
        })
    }
}

/// A block to be bought.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NewIpBlock {
    /// Where.
    pub location: String,
    /// How large, e.g. `/29`.
    pub cidr_block_size: &'static str,
    /// Tags that it has from its first moment. Their names must exist.
    pub tags: Vec<BlockTag>,
    /// For people, 250 characters at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_id_is_needed() {
        for text in [
            r#"{"id":"b"}"#,
            r#"{"id":"b","cidr":null,"location":null,"assignedResourceId":null,"assignedResourceType":null,"tags":null,"status":null,"createdOn":7}"#,
        ] {
            let block: IpBlock = serde_json::from_str(text).unwrap();
            assert_eq!(block.status, BlockStatus::Absent);
            assert_eq!(block.assigned_resource_type, None);
            assert!(block.tags.is_empty() && block.cidr.is_empty());
        }
    }

    #[test]
    fn words_are_known_in_every_spelling_and_unknown_ones_are_kept() {
        let status = |word: &str| BlockStatus::from(Some(word.to_owned()));
        assert_eq!(status("ERROR_ASSIGNING"), BlockStatus::ErrorAssigning);
        assert_eq!(status("error assigning"), BlockStatus::ErrorAssigning);
        assert_eq!(status("Lost In Space").to_string(), "Lost In Space");
        for word in ["public network", "PUBLIC_NETWORK", "public-network"] {
            assert_eq!(
                AssignedResource::from(word.to_owned()),
                AssignedResource::PublicNetwork
            );
        }
        assert_eq!(AssignedResource::from("server".to_owned()).to_string(), "server");
    }
}
