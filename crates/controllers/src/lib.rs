//! The controllers of a cloud controller manager: node, node lifecycle, service, route and node IPAM.
//!
//! Every controller goes one way: intent (pure), observe (reads of the cloud), plan (pure), apply (writes), publish
//! (status and events). What decides is a pure function beside the controller; what reads and writes is the controller.
//!
//! - [`node`]: gives a new Node its provider ID, addresses and labels, takes the `uninitialized` taint away, and
//!   keeps addresses and labels true afterwards.
//! - [`node_lifecycle`]: deletes the Node of an instance that is proved gone, taints the Node of one that is shut
//!   down.
//! - [`service`]: keeps the load balancer of each Service as its plan says.
//! - [`route`]: gives each pod network its route.
//! - [`node_ipam`]: gives each Node its pod networks.
//! - [`Controller`], [`Context`]: what all of them are, and what they work with.
//! - [`workers`]: how all of them work: they take what is due and do it side by side.
//! - [`conflict`]: how a write that conflicts is tried again.
//! - [`cluster_cidr`]: reads lists of networks.
//! - [`node_set`]: which Nodes are balanced over, and when a change of a Node concerns the balancers.
//! - [`queue`]: the ordered work queue all of them take their keys from.
//! - [`events`]: every event that may be recorded, as a table.
//! - [`trouble`]: what a Service tells of trouble with its load balancer, written and read.
//! - [`metrics`]: the series of the controllers.

pub mod advice;
pub mod cluster_cidr;
mod conflict;
mod controller;
mod credential_check;
mod event_dedup;
pub mod events;
mod last_written;
pub mod metrics;
pub mod node;
pub mod node_ipam;
pub mod node_lifecycle;
pub mod node_set;
pub mod ownership;
mod put_back;
pub mod queue;
pub mod route;
pub mod service;
pub mod trouble;
mod unreadable;
mod workers;

pub use controller::{Context, Controller};
pub use unreadable::tell_of_unreadable;
