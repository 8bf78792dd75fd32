//! Which network and which subnets floating IPs come from (pure).
//!
//! ```text
//! subnets/matching.rs   names and tags that a subnet must have
//! subnets/floating.rs   the floating network and its subnets
//! ```

pub(crate) mod floating;
pub(crate) mod matching;
