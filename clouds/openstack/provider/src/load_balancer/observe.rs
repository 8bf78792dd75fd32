//! What the cloud says: the reads, what they are for, and how long something is waited for.

pub(crate) mod confirm;
mod patience;
pub(crate) mod reads;
pub(crate) mod view;
