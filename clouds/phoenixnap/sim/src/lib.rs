//! A stateful double of phoenixNAP's Bare Metal Cloud APIs whose public IP blocks carry real traffic.
//!
//! It serves the token endpoint and the BMC, IP, Network and Tag APIs at the paths of the vendor, all below one base
//! URL. It is written from the descriptions of the APIs and shares no type with the client, so that one mistake is not
//! made twice. It validates as strictly as the vendor, moves blocks through the same states on tokio's clock, and
//! behaves where the real APIs are not known as its [`Behaviour`] says.
//!
//! In a test, [`PhoenixnapSim::service`] is called in memory; [`PhoenixnapSim::serve`] and the program `phoenixnap-sim`
//! put it on a socket. Requests are journalled under the names of [`Operation`].
//!
//! The cloud announces no address itself: on real servers kube-vip does that, by ARP, on the block's network. Here a
//! stand-in is told who announces what, see [`Announcement`].
//!
//! | to change | look in |
//! | --- | --- |
//! | what it refuses or how slow it is, and how that is known | `behaviour.rs`: one table |
//! | what a request does | `operation.rs` lists the calls, `api.rs` routes them, `api/` has a file for each kind |
//! | how an object looks on the wire | `wire` |
//! | the objects, and what happens to them by the clock alone | `model`, `state` |
//! | what the data plane carries | `traffic.rs` |
//! | what a test or a user does by hand | `sim` and `by_hand.rs`, over HTTP `api/admin.rs` |
//! | what runs are compared by, and what must never be | `snapshot.rs` |
//! | the options of the program | `bin/` |

pub mod behaviour;
pub mod model;

mod announcements;
mod api;
mod builder;
mod by_hand;
mod error;
mod operation;
mod options;
mod sim;
mod snapshot;
mod specs;
mod state;
mod traffic;
mod wire;

pub use announcements::{AnnouncedPort, Announcement};
pub use behaviour::{Behaviour, CredentialForm, ExpiresIn, Quota, Spelling, TagFilter};
pub use bowline_cloud_kit as kit;
pub use builder::Builder;
pub use model::{Assignment, BlockStatus, NetworkStatus, ServerStatus, Tag};
pub use operation::Operation;
pub use options::{LOCATIONS, Scope};
pub use sim::PhoenixnapSim;
pub use specs::{BlockSpec, NetworkSpec, ServerSpec};
pub use state::TokenRequest;
