//! The simulator from outside: in memory and on sockets.
#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests; a wrong answer is a failed test"
)]

mod admin;
mod instances;
mod lists;
mod login;
mod program;
mod support;
mod traffic;
