//! The objects of a cloud as the simulator holds them. How they look on the wire is another matter.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

pub mod balancing;
pub mod compute;
pub mod identity;
pub mod keys;
pub mod network;

/// What every Neutron object has, and Octavia's too but for the revision.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Meta {
    /// The project's id.
    pub project: String,
    /// For people.
    pub description: String,
    /// Words for people and programs, in order.
    pub tags: Vec<String>,
    /// RFC 3339.
    pub created_at: String,
    /// RFC 3339.
    pub updated_at: String,
    /// Grows with each change, for `If-Match`.
    pub revision: u64,
}

/// A reference to an object: its id.
pub type Id = Uuid;
