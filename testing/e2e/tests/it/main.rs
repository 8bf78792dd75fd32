//! Whole-process scenarios: the system in one process under a stopped clock, the binary as users start it, and the
//! telling ones of both against a real API server.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test ends on a surprise"
)]

mod deploy;
mod paper;
mod process;
mod real;
mod system;
mod traffic;
