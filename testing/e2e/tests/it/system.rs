//! The whole system in one process: manager, provider, API server and cloud, on one thread, from one seed, under
//! tokio's stopped clock. What is expected is told by what reached the cloud and the API server, not by inner state.

mod budget;
mod change;
mod chaos;
mod crash;
mod create;
mod floating;
mod fuse;
mod go_manager;
mod leadership;
mod nodes;
mod objects;
mod outage;
mod removal;
mod replay;
mod takeover;
mod world;
