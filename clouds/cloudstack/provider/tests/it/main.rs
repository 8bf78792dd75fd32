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
mod going;
mod histories;
mod instances;
mod late;
mod leaseweb;
mod left_open;
mod lookup;
mod one_part;
mod orphans;
mod queued;
mod reacquired;
mod release;
mod replace;
mod router;
mod shared_addresses;
mod shared_ports;
mod site;
mod start;
mod stuck;
mod takeover;
mod unheard;
mod wishes;
mod world;
