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
