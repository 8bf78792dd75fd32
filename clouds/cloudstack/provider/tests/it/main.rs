//! The provider over the simulator of the API.
#![expect(clippy::unwrap_used, reason = "what helps a test may fail it")]

mod instances;
mod site;
mod start;
