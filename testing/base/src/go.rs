//! The programs of others that tests run, compiled by the Go toolchain from their published modules.
//!
//! Which releases they are is written in a Go module file each: `kubernetes/<minor>/go.mod`, `helm/go.mod`, `promtool/go.mod`.
//! What is built stays in the cache beside the source tree, so it takes minutes the first time and nothing then. A
//! [`GoProgram`] knows where it is kept and how it is built; what it is good for, its harness knows.

mod module;
mod program;
mod toolchain;
mod version;

pub use program::GoProgram;
pub use toolchain::{BuildError, GoError};
pub use version::{UnknownVersion, Version};
