//! A stateful double of the OpenStack APIs that a cloud controller manager uses, whose load balancers carry real traffic.
//!
//! Keystone, Nova, Neutron, Octavia and Barbican lie under a path each on one address: `/identity`, `/compute`,
//! `/network`, `/load-balancer` and `/key-manager`. They are written from recorded answers of the real services and from
//! their API references, and share no type with the client, so that one mistake is not made twice. They validate as
//! strictly as the real ones, move through the same states on tokio's clock, and differ from each other as clouds do as
//! [`Behaviour`] says.
//!
//! In a test, [`OpenstackSim::service`] is called in memory; [`OpenstackSim::serve`] and the program `openstack-sim` put
//! it on a socket.
//!
//! | to change | look in |
//! | --- | --- |
//! | what it refuses or how slow it is, and how that is known | `behaviour.rs`: one table |
//! | what a request does | `place.rs` reads its path, `api.rs` finds the service, `api/` has a file for each kind |
//! | what all kinds of Octavia have in common | `api/octavia/kind.rs` |
//! | how a field is read and refused | `fields.rs`, `error.rs` |
//! | filters and pages of lists | `query.rs` |
//! | how an object looks on the wire | `wire` |
//! | the objects, and what happens to them by the clock alone | `model`, `state` |
//! | what the data plane carries | `traffic.rs` |
//! | what a test or a user does by hand | `sim`, over HTTP `api/admin.rs` |
//! | what runs are compared by, and what must never be | `snapshot.rs` |
//! | the options of the program | `bin/` |

pub mod behaviour;
pub mod model;

mod api;
mod builder;
mod error;
mod fields;
mod options;
mod place;
mod query;
mod sim;
mod snapshot;
mod state;
mod traffic;
mod wire;

pub use behaviour::{Behaviour, Quota};
pub use bowline_cloud_kit as kit;
pub use builder::Builder;
pub use model::Id;
pub use model::balancing::Provisioning;
pub use options::{CatalogUrls, Service};
pub use sim::{FloatingIpSpec, NetworkSpec, NicSpec, OpenstackSim, ServerSpec, SubnetSpec, UserSpec};
pub use state::Home;
