//! A client of the Paper API, the invented cloud that `docs/guides/new-provider.md` walks through.
//!
//! One method per call, each an exchange of its own: no waiting, no looking up, no deciding. That is the provider's. How
//! calls travel (timeouts, repeats, budget, write gate, proxies, redaction) is `bowline-cloud-http`'s.

mod client;
mod error;
mod settings;
pub mod wire;

pub use client::Client;
pub use error::ApiError;
pub use settings::{Settings, SettingsError};
pub use wire::*;
