//! A stateful double of the cloudscale.ch API whose load balancers carry real traffic.
//!
//! It is written from the description of the API and shares no type with the client, so that one mistake is not made
//! twice. It validates as strictly as the vendor, moves through the same asynchronous states on tokio's clock, and
//! behaves where the real API is not known as its [`Behaviour`] says.
//!
//! In a test, [`CloudscaleSim::service`] is called in memory; [`CloudscaleSim::serve`] and the program `cloudscale-sim`
//! put it on a socket.
//!
//! | to change | look in |
//! | --- | --- |
//! | what it refuses or how slow it is, and how that is known | `behaviour.rs`: one table |
//! | what a request does | `api.rs`, which routes, and `api/`: a file for each kind |
//! | how a field is read and refused | `fields.rs`, `error.rs` |
//! | how an object looks on the wire | `wire` |
//! | the objects, and what happens to them by the clock alone | `model`, `state` |
//! | what the data plane carries | `traffic.rs` |
//! | what a test or a user does by hand | `sim` |
//! | what runs are compared by, and what must never be | `snapshot.rs` |
//! | the options of the program | `bin/` |

pub mod behaviour;
pub mod model;

mod api;
mod builder;
mod error;
mod fields;
mod options;
mod sim;
mod snapshot;
mod state;
mod traffic;
mod wire;

pub use behaviour::{Behaviour, MonitorStatus, OverlapMode, PoolDelete, Quota, RefusalKeys, VipOrder};
pub use bowline_cloud_kit as kit;
pub use builder::Builder;
pub use model::{ServerStatus, Tags, Target};
pub use options::{Access, Flavor};
pub use sim::{CloudscaleSim, FloatingSpec, InterfaceSpec, ManualPool, Scope, ServerSpec, region_of};
