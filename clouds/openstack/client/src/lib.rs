//! A client of the OpenStack APIs: login, catalog, wire types and calls.
//!
//! One method per call that a cloud controller manager makes, each an exchange of its own: no waiting for states, no
//! lookups, no decisions. Those belong to the provider. How calls travel (timeouts, retry of reads, budget, write gate)
//! is `bowline-cloud-http`'s.
//!
//! - One login serves all services. It is made with the first call, and again when a service refuses its token: once for
//!   all calls that were refused, each of which is repeated once. One that Keystone refuses is made again after a pause.
//! - A service's endpoint comes from the catalog of the last login, and is looked for once, or again if that catalog names
//!   other places.
//! - Decoding is lenient: unknown fields are ignored, unknown words are kept ([`wire::ServerStatus::Other`] and its kin),
//!   and only fields that are used are required. A list without its key is an error: it proves nothing.
//! - A read of one object answers `None` only if the service itself said that there is no such object.
//! - An update carries what it changes and nothing else.
//!
//! Source of all API facts: the API references of Keystone (v3), Nova (2.1), Neutron (v2.0), Octavia (v2) and Barbican
//! (v1), and recorded exchanges with these services of the release 2026.2.

mod client;
mod error;
mod login;
mod operation;
mod session;
mod settings;
pub mod wire;

pub use bowline_cloud_http::Class;
pub use client::{Client, Deleted, KeyKind};
pub use error::ApiError;
pub use login::{Credentials, Login, LoginError};
pub use operation::{CallObserver, Operation, Service};
pub use settings::{Interface, Settings};
pub use wire::*;
