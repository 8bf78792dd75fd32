//! Barbican: certificates and their keys, without what they hold.

use super::Id;

/// A secret.
#[derive(Clone, Debug)]
pub struct Secret {
    /// Its id.
    pub id: Id,
    /// Its name.
    pub name: String,
    /// The project's id.
    pub project: String,
    /// RFC 3339.
    pub created_at: String,
}

/// A certificate with its key.
#[derive(Clone, Debug)]
pub struct Container {
    /// Its id.
    pub id: Id,
    /// Its name.
    pub name: String,
    /// The project's id.
    pub project: String,
    /// Name within the container, and the secret's id.
    pub secrets: Vec<(String, Id)>,
    /// RFC 3339.
    pub created_at: String,
}
