//! The whole system in one process: manager, provider, API server and cloud, on one thread, from one seed, under
//! tokio's stopped clock. What is expected is told by what reached the cloud and the API server, not by inner state.
//!
//! Only what is particular to cloudscale.ch is here; what every cloud must do is in the conformance suite.

mod budget;
mod change;
mod cloudstack;
mod create;
mod floating;
mod go_manager;
mod leadership;
mod nodes;
mod objects;
mod outage;
mod phoenixnap;
mod removal;
mod takeover;
mod world;
