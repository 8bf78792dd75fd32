//! A client of the phoenixNAP Bare Metal Cloud APIs: token, wire types and calls.
//!
//! Four APIs below one base URL (servers, IP blocks, networks, tags), opened by one OAuth2 token. One method per call
//! that a cloud controller manager makes, each an exchange of its own: no waiting for states, no lookups, no decisions.
//! Those belong to the provider. How calls travel (timeouts, retry of reads, budget, write gate) is `bowline-cloud-http`'s.
//!
//! - Decoding is lenient: unknown fields are ignored, unknown words are kept, and only fields that are used are required.
//!   An entry of a list that cannot be read all the same is kept apart and costs no other.
//! - A write is sent once. The one exception is a `401`: nothing was done then, so the call is made again with a new
//!   token, once.
//! - All four APIs share one token. It is fetched at the first call and never printed.
//!
//! Source of all API facts: the vendor's published API descriptions (Bare Metal Cloud, IP, Networks, Tag Manager) and
//! RFC 6749, section 4.4.

mod client;
mod error;
mod listed;
mod settings;
mod token;
pub mod wire;

pub use bowline_cloud_http::Class;
pub use client::{Client, Deleted};
pub use error::ApiError;
pub use listed::Listed;
pub use settings::{Credentials, DEFAULT_BASE_URL, DEFAULT_TOKEN_URL, Settings};
pub use wire::*;
