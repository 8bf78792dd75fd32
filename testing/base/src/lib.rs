//! What every harness stands on, below all that knows Bowline.
//!
//! - [`log`]: what is logged while a test runs.
//! - [`server`]: the processes, ports and caches of real servers.
//! - [`go`]: programs of others, compiled by the Go toolchain.

pub mod go;
pub mod log;
pub mod server;
