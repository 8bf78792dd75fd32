//! The provider against its simulator, in memory and under a stopped clock.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod balancers;
mod faults;
mod instances;
mod orphans;
mod routes;
mod world;
