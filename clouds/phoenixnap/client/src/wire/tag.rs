//! Tags (Tag Manager API), and how blocks carry and are found by them.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A tag of the account: a name that objects may then carry.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Tag {
    /// The name.
    pub name: String,
}

/// A tag to be made known to the account.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NewTag {
    /// The name.
    pub name: String,
    /// Whether it appears on bills.
    pub is_billing_tag: bool,
}

/// A tag as a block carries it: a name, and perhaps a value.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct BlockTag {
    /// The name.
    pub name: String,
    /// The value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
}

impl BlockTag {
    /// A tag with a value.
    pub fn new(name: impl Into<String>, value: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            value: Some(value.into()),
        }
    }
}

/// A condition of a listing: only objects that carry this tag with this value.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct TagFilter {
    /// The name.
    pub name: String,
    /// The value.
    pub value: String,
}

impl TagFilter {
    /// A condition.
    pub fn new(name: impl Into<String>, value: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            value: value.into(),
        }
    }

    /// Whether tags fulfil the condition, to the letter.
    pub fn is_met_by(&self, tags: &[BlockTag]) -> bool {
        tags.iter()
            .any(|tag| tag.name == self.name && tag.value.as_deref() == Some(self.value.as_str()))
    }
}

impl fmt::Display for TagFilter {
    /// As it stands in a query.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.name, self.value)
    }
}
