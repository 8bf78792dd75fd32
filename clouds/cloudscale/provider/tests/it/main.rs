//! The provider against its simulator, in memory and under a stopped clock.

#![expect(clippy::unwrap_used, reason = "a test may panic")]
#![expect(dead_code, reason = "further tests use the rest of the world")]

mod create;
mod world;
