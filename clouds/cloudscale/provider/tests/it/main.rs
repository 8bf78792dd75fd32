//! The provider against its simulator, in memory and under a stopped clock.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod calls;
mod change;
mod faults;
mod orphans;
mod predicted;
mod restored;
mod session;
mod start;
mod world;
