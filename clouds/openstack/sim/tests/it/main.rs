//! The simulator from outside: in memory and on sockets.
#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests; a wrong answer is a failed test"
)]

mod admin;
mod floating_ips;
mod instances;
mod lists;
mod login;
mod networks;
mod ovn;
mod parts;
mod program;
mod security_groups;
mod states;
mod support;
mod traffic;
mod validation;
