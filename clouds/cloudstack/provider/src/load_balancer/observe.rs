//! What the cloud says about one Service's load balancer, and what came of the writes.
//!
//! [`observed`] holds what was read, [`remembered`] what the reconcile knows of itself. [`reads`] reads what a plan needs, and [`jobs`] asks
//! after the jobs that writes began. What the answer to a write, or its job, told is [`learn`]; what it means that the API said no is
//! told by [`refused`] and [`verdict`].

pub(crate) mod address_requests;
pub(crate) mod failures;
mod jobs;
mod known;
pub(crate) mod learn;
pub(crate) mod lists;
pub(crate) mod observed;
mod on_the_way;
pub(crate) mod reads;
pub(crate) mod refused;
mod released;
pub(crate) mod remedies;
pub(crate) mod remembered;
mod rules;
#[cfg(test)]
mod tests;
pub(crate) mod times;
mod trust;
pub(crate) mod verdict;
pub(crate) mod wire;
