//! The program as users start it: a process of its own, with a real clock, real sockets and real signals.
//!
//! It is the package's own binary target, which is made from the shipped program's main function; see `Cargo.toml`.

mod cli;
mod cloudstack;
pub(crate) mod cluster;
mod deployed;
mod doctor;
mod hostile;
mod life;
mod logs;
mod metrics;
mod orphans;
mod phoenixnap;
mod plan;
pub(crate) mod program;
mod routes;
mod several;
pub(crate) mod wire;
