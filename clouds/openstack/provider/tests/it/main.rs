//! The provider against its simulator, in memory and under a stopped clock.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod calls;
mod faults;
mod health;
mod orphans;
mod routes;
mod session;
#[expect(dead_code, reason = "some of it is for the scenarios only")]
mod world;
