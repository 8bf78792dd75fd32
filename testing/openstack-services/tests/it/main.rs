//! The real services: the harness itself, and whether the simulator answers as they do.
//!
//! All of it needs a cloud: `cargo xtask test --openstack real`. Without one the tests say that they were left out.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod compare;
mod ground;
mod life;
mod projects;
mod provider;
mod walk;
mod walks;
