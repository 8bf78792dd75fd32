//! The cloud controller manager: command line, log, providers, and one function per command.
//!
//! [`args`] turns a command line into plain values, [`commands`] run on those and return an exit status. Nothing but
//! `main` ends the process.

pub mod args;
pub mod commands;
pub mod logging;
mod migration;
pub mod providers;
pub mod version;
