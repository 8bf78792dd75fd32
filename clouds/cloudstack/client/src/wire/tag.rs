//! Resource tags.

use serde::Deserialize;

/// A tag of an object.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
pub struct Tag {
    /// What it is about, once per object.
    #[serde(default, deserialize_with = "super::or_default")]
    pub key: String,
    /// What it says.
    #[serde(default, deserialize_with = "super::or_default")]
    pub value: String,
}
