//! The provider against its simulator, in memory and under a stopped clock.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod calls;
mod change;
mod create;
mod drift;
mod faults;
mod floating;
mod lookup;
mod mistakes;
mod monitors;
mod orphans;
mod owed;
mod policy;
mod predicted;
mod restored;
mod session;
mod start;
mod takeover;
mod world;
