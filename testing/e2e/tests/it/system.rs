//! The whole system in one process: manager, provider, API server and cloud, on one thread, from one seed, under
//! tokio's stopped clock. What is expected is told by what reached the cloud and the API server, not by inner state.
//!
//! Only what takes a whole manager and is particular to a cloud is here. What every cloud must do is in the conformance
//! suite, what a provider does for one Service or Node beside the provider.

mod broken;
mod budget;
mod cloudstack;
mod go_manager;
mod incidents;
mod objects;
mod openstack;
mod phoenixnap;
mod quotas;
mod services;
mod staged;
mod takeover;
mod world;
