//! A client of the Apache CloudStack API: signed requests, pages, jobs, wire types and calls.
//!
//! The API is one URL that takes commands: what reads is sent by `GET`, what changes something by `POST`. One method per
//! command that a cloud controller manager gives, each an exchange of its own: no waiting for jobs, no lookups, no
//! decisions. Those belong to the provider. How calls travel (timeouts, retry of reads, budget, write gate) is
//! `bowline-cloud-http`'s.
//!
//! - A command that changes something is taken by a job: its method returns what it [`Started`], and
//!   [`Client::query_job`] says what became of it.
//! - Lists are whole: pages are followed to the end, and a list that does not come to the server's own count is an
//!   error, never a short answer.
//! - With a project, every command that knows projects carries its id.
//! - Decoding is lenient: unknown members are ignored, unknown words are kept, and only members that are used are
//!   required.
//! - Neither the keys nor a signature appear in errors, logs, metrics or debug output.
//!
//! Source of all API facts: the API reference and the developer's guide ("Making API requests", "Asynchronous commands",
//! "Error handling") of Apache CloudStack 4.22.

mod accepted;
mod caller;
mod client;
mod cookies;
mod envelope;
mod error;
mod jobs;
mod paging;
mod project;
mod remedy;
mod settings;
mod sign;
pub mod wire;

pub use bowline_cloud_http::Class;
pub use client::{Client, Deleted};
pub use error::{ApiError, Missing, Said};
pub use jobs::{Job, Made, Started};
pub use paging::{Counted, Lookup};
pub use settings::{Project, Settings, SettingsError, WallClock};
pub use sign::Keys;
pub use wire::*;
