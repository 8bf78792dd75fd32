//! The provider against its simulator, in memory and under a stopped clock.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod calls;
mod change;
mod create;
mod delete;
mod families;
mod faults;
mod floating;
mod groups;
mod lookup;
mod members;
mod rename;
mod routes;
mod session;
mod shared;
mod takeover;
mod tls;
mod world;
