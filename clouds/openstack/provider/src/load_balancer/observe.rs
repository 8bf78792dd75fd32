//! What the cloud says: the reads, what they are for, and how long something is waited for.

mod patience;
pub(crate) mod reads;
pub(crate) mod undone;
pub(crate) mod view;
