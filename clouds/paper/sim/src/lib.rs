//! A stateful double of the Paper API, the invented cloud of `docs/guides/new-provider.md`, whose balancers carry real
//! traffic.
//!
//! It shares no type with the client, so that one mistake is not made twice. In a test, [`PaperSim::service`] is called in
//! memory; [`PaperSim::serve`] and the program `paper-sim` put it on a socket. The journal of requests, faults and latency
//! are the kit's.

pub mod model;

mod api;
mod behaviour;
mod project;
mod sim;
mod snapshot;
mod traffic;

pub use behaviour::Behaviour;
pub use bowline_cloud_kit as kit;
pub use sim::{Builder, MachineSpec, PaperSim};
