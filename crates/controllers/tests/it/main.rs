//! The controllers in memory, under a stopped clock.

#![expect(clippy::unwrap_used, reason = "a test ends on a surprise")]

mod cluster;
mod instances;
mod node;
mod node_ipam;
mod node_lifecycle;
mod node_refresh;
mod node_witnesses;
mod route;
mod route_table;
mod series;
mod unreadable;
