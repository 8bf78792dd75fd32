//! Serialises an [`Instant`] to come as the nanoseconds until then, for objects that are shown and changed as JSON.

use std::time::Duration;

use serde::{Deserialize, Deserializer, Serializer};
use tokio::time::Instant;

/// Writes the nanoseconds from now on; 0 for what is over.
///
/// # Errors
///
/// What the serializer answers.
pub fn serialize<S: Serializer>(value: &Instant, serializer: S) -> Result<S::Ok, S::Error> {
    let left = value.saturating_duration_since(Instant::now());
    serializer.serialize_u64(u64::try_from(left.as_nanos()).unwrap_or(u64::MAX))
}

/// Reads nanoseconds from now on.
///
/// # Errors
///
/// If the value is no unsigned integer.
pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Instant, D::Error> {
    u64::deserialize(deserializer).map(|left| Instant::now() + Duration::from_nanos(left))
}
