//! The provider over the simulator of the API.
#![expect(clippy::unwrap_used, reason = "what helps a test may fail it")]

mod calls;
mod faults;
mod histories;
mod late;
mod orphans;
mod queued;
mod shared_addresses;
mod shown;
mod site;
mod wishes;
mod world;
