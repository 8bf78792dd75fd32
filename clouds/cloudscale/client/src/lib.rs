//! A client of the cloudscale.ch API: wire types and calls.
//!
//! One method per call that a cloud controller manager makes, each an exchange of its own: no waiting for states, no
//! lookups, no decisions. Those belong to the provider. How calls travel (timeouts, retry of reads, budget, write gate)
//! is `bowline-cloud-http`'s.
//!
//! - Decoding is lenient: unknown fields are ignored, unknown words are kept ([`wire::ServerStatus::Other`] and its kin),
//!   and only fields that are used are required.
//! - URLs are built from ids and the configured base, never from the `href` of an answer.
//! - A write carries exactly one change; the types allow no other.
//!
//! Source of all API facts: the cloudscale.ch API documentation (version 1) and the vendor's public SDK and clients.

mod client;
mod error;
mod settings;
pub mod wire;

pub use bowline_cloud_http::Class;
pub use client::{Client, Deleted};
pub use error::ApiError;
pub use settings::{Settings, SettingsError};
pub use wire::*;
