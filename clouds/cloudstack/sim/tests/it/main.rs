//! The simulator from outside: in memory and on sockets.
#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests; a wrong answer is a failed test"
)]

mod chance;
mod program;
mod protocol;
mod support;
mod traffic;
