//! Installs and starts the real OpenStack services for tests.
//!
//! Keystone, Neutron, Octavia and, where servers are wanted, Placement, Glance and Nova: the published Python packages,
//! with a MariaDB and a RabbitMQ of their own, on free ports of the loopback address. Everything that answers a manager is
//! real. What would need machines is not: Nova has its fake driver, Neutron a mechanism driver of its own tests that
//! binds ports without agents, and Octavia's worker drives load balancers that do not exist. So objects have all their states, quotas,
//! policies and conflicts, and no packet ever flows.
//!
//! - [`install`] puts packages and prepared databases into the cache, once ([`Installation`] finds them again).
//! - [`OpenStack::start`] is a cloud of one's own, which is gone when the value is dropped or the process dies.
//! - [`Cloud`] is how tests speak to it: isolated [`Project`]s with an ordinary user, servers, quotas, and plain calls
//!   ([`Session::call`]). [`Cloud::wanted`] is the cloud that `cargo xtask test --openstack real` has started for all tests.

mod cloud;
mod config;
mod database;
mod deadline;
mod install;
mod installation;
mod network;
mod openstack;
mod programs;
mod project;
mod rest;
mod seed;
mod servers;
mod service;
mod site;

pub use cloud::{Access, Cloud, CloudError, cloud_or_skip};
pub use deadline::NotInTime;
pub use install::{InstallError, install};
pub use installation::{Installation, Missing};
pub use network::ExternalNetwork;
pub use openstack::{OpenStack, Options, StartError};
pub use project::{ApplicationCredential, Project, Server, Trust};
pub use rest::{Answer, Login, RestError, Session, log_in};
pub use service::{Mode, Service};
pub use site::Workers;
