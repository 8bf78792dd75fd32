//! The loops in memory, under a stopped clock.

mod cluster;
mod machines;
mod node;
mod node_lifecycle;
mod node_refresh;
mod service;
