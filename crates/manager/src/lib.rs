//! Process life: leadership, fencing, health, metrics and shutdown.
//!
//! The manager puts the controllers, the API server and a provider together and keeps them running while this process
//! leads. It knows no cloud and no command line; everything it needs is an argument, also the signal to stop, so that
//! it runs in memory under a stopped clock as it does in a cluster.

pub mod bundle;
pub mod cluster;
pub mod config;
pub mod controllers;
pub mod deployed;
pub mod doctor;
mod fencing;
pub mod health;
mod identities;
mod leadership;
mod manager;
mod manifest;
pub mod metrics;
pub mod migration;
pub mod orphans;
mod outcome;
mod parts;
pub mod plan;
mod reviews;
pub mod serving;
mod tasks;
pub mod traffic;
pub mod why;

pub use fencing::FencingGate;
pub use leadership::Leadership;
pub use manager::{End, Identity, Manager};
pub use reviews::KubeReviews;

/// The target of log lines about HTTP requests to the secure port: shown from verbosity 3 on.
pub const HTTP_LOG: &str = "bowline_manager::http";
