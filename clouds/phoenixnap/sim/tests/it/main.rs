//! The simulator from outside: in memory and on sockets.
#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests; a wrong answer is a failed test"
)]

mod blocks;
mod chance;
mod networks;
mod program;
mod servers;
mod support;
mod tags;
mod traffic;
