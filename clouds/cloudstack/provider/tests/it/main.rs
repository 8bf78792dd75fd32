//! The provider over the simulator of the API.
#![expect(clippy::unwrap_used, reason = "what helps a test may fail it")]

mod blind;
mod calls;
mod change;
mod create;
mod dialects;
mod disguise;
mod faults;
mod firewall;
mod histories;
mod instances;
mod late;
mod leaseweb;
mod left_open;
mod lookup;
mod orphans;
mod queued;
mod shared_addresses;
mod site;
mod start;
mod wishes;
mod world;
