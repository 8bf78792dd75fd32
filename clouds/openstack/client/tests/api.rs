//! The client against recorded answers of the real services, over memory.
//!
//! `api/recorded` holds answers of Keystone, Nova, Neutron and Octavia of the release 2026.2, as they came.

#![expect(clippy::unwrap_used, reason = "a test ends on a surprise")]

#[path = "api/cloud.rs"]
mod cloud;
#[path = "api/errors.rs"]
mod errors;
#[path = "api/lists.rs"]
mod lists;
#[path = "api/objects.rs"]
mod objects;
#[path = "api/refused.rs"]
mod refused;
#[path = "api/session.rs"]
mod session;
#[path = "api/writes.rs"]
mod writes;
