//! What is in force, for people.

use crate::secret::HIDDEN;

/// What stands for a secret that is set.
const SET: &str = "<set>";

/// A setting of a provider, its value in force, and where that comes from. It holds no secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShownSetting {
    /// The name, as people write it.
    pub name: String,
    /// The value.
    pub value: String,
    /// A file, `environment`, `flag` or `default`.
    pub origin: String,
}

impl ShownSetting {
    /// A setting. Of a [`Secret`](crate::Secret) as text no more is shown than that it is set.
    pub fn new(name: impl Into<String>, value: impl Into<String>, origin: impl Into<String>) -> Self {
        let value = value.into();
        Self {
            name: name.into(),
            value: if value == HIDDEN { SET.to_owned() } else { value },
            origin: origin.into(),
        }
    }

    /// A secret that is set.
    pub fn secret(name: impl Into<String>, origin: impl Into<String>) -> Self {
        Self::new(name, SET, origin)
    }
}
