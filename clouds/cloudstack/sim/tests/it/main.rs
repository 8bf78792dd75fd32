//! The simulator from outside: in memory and on sockets.
#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests; a wrong answer is a failed test"
)]

mod acls;
mod addresses;
mod admin;
mod chance;
mod firewall;
mod jobs;
mod lists;
mod members;
mod program;
mod protocol;
mod rules;
mod support;
mod tags;
mod traffic;
