//! The provider against its simulator, in memory and under a stopped clock.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod abilities;
mod bare;
mod behind;
mod calls;
mod change;
mod cloud;
mod create;
mod delete;
mod failed_parts;
mod families;
mod faults;
mod floating;
mod former;
mod former_address;
mod groups;
mod ignored;
mod instances;
mod interfaces;
mod leaving;
mod log;
mod lookup;
mod marks;
mod members;
mod mistakes;
mod orphans;
mod persistence;
mod policies;
mod projects;
mod refused;
mod refused_creation;
mod rename;
mod repair;
mod repair_traffic;
mod routes;
mod session;
mod settings;
mod shared;
mod start;
mod takeover;
mod tls;
mod twins;
mod undone;
mod world;
