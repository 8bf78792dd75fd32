//! What every cloud simulator needs and no cloud owns.
//!
//! A simulator implements [`Cloud`], which is the behaviour of one API, and puts it into a [`CloudService`]. The service
//! adds what all of them share: a [`Journal`] of every request, [`Faults`] on demand, latency, and an admin path. It can
//! be called in memory as a `tower::Service` or served on a socket with [`serve()`].
//!
//! A simulator is written with these:
//!
//! | a simulator's | is made with |
//! | --- | --- |
//! | switches, with how each is known | [`switches!`] |
//! | names of calls | [`operations!`] |
//! | builder | [`builder!`] |
//! | handle for tests, and its kinds of objects | [`handle!`], [`double!`] |
//! | state, and what the data plane carries of it | [`Simulated`], [`dataplane::Carrier`] |
//! | snapshot and invariants | [`Inspect`] |
//! | addresses | [`addresses::Leases`] |
//! | paths below `/_sim/` | [`admin::paths`] |
//! | program | [`options!`], [`program`] |
//!
//! Nothing here reads the system clock or a source of randomness of its own: time is [`Clock`], which follows tokio's
//! (and so stops with it), and every id comes from a [`Seed`]. The same seed and the same calls give the same history.

pub mod addresses;
pub mod admin;
pub mod behaviour;
pub mod clock;
pub mod dataplane;
pub mod faults;
mod handle;
pub mod journal;
pub mod millis;
pub mod moment;
mod operation;
pub mod pattern;
pub mod program;
pub mod project;
mod reply;
pub mod seed;
pub mod serve;
pub mod service;
mod shared;
pub mod simulator;
pub mod snapshot;

pub use behaviour::{Basis, Behaves, World};
pub use clock::Clock;
pub use dataplane::{DataPlane, Moved};
pub use faults::{Fault, FaultId, Faults};
pub use handle::Double;
pub use journal::{Entry, Journal, Mark, Outcome, Overlap};
pub use pattern::PathPattern;
pub use seed::Seed;
pub use serde_json::Value;
pub use serve::{ClientEnd, Server, serve, serve_connection};
pub use service::{Arrival, Body, Cloud, CloudService, Reply, TransportError};
pub use shared::{Shared, Simulated};
pub use simulator::{Running, Settings};
pub use snapshot::Inspect;
