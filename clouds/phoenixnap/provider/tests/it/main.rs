//! The provider against its simulator, in memory and under a stopped clock.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod extensions;
mod faults;
mod histories;
mod instances;
mod logs;
mod network;
mod orphans;
mod plans;
mod release;
mod tokens;
mod world;
