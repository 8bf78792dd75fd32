//! The provider against its simulator, in memory and under a stopped clock.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod calls;
mod create;
mod failed_parts;
mod faults;
mod floating;
mod former;
mod groups;
mod health;
mod leaving;
mod marks;
mod members;
mod orphans;
mod projects;
mod refused_creation;
mod rename;
mod repair_traffic;
mod routes;
mod session;
mod takeover;
mod tls;
mod undone;
mod upstream;
mod world;
