//! The OpenStack provider: servers as the instances of Nodes, Octavia load balancers for Services, routes of a Neutron router.
//!
//! It takes the place of the Go manager: same names, tags, annotations, provider IDs and status, so that a cluster can be
//! switched over and back without any part of a load balancer being made anew.
//!
//! | room | what is in it |
//! | --- | --- |
//! | `config` | `cloud.conf` and `clouds.yaml`: sections, values, the login |
//! | `nodes` | servers, their addresses and labels, for many Nodes at once |
//! | `load_balancer` | one Service's load balancer, in five moves, below |
//! | `routes` | the router's routes, and the address pairs of the Nodes' ports |
//! | `messages` | the reasons of events |
//! | `metrics`, `provider_id` | the Go manager's series, and its IDs of servers |
//! | `allowance` | what the credentials may do, and what the quotas leave, for `doctor --pre` |
//! | `start`, `provider` | what is asked before a start, and how the rooms are put together |
//!
//! The way of one Service:
//!
//! ```text
//! intent (pure)   what it asks for: annotations, ports, nodes, and what cloud.conf adds
//! observe         one listing per kind, shared by all Services that ask together; members pool by pool
//! evidence (pure) whose load balancers, pools and listeners are
//! plan (pure)     guards, then the first step that is missing: Octavia takes one change at a time
//! apply           one write, a `step`
//! learn (pure)    what the answer told, or what it will tell
//! ```
//!
//! Octavia does what it is asked to later: a load balancer that is pending is waited for by the plan, never inside of a call.
//!
//! The way of one Node: `nodes/instances` finds its server by provider ID or name in a listing that all Nodes share, and
//! `nodes/servers` tells addresses, type, zone and region of it.

mod allowance;
mod config;
mod load_balancer;
mod messages;
mod metrics;
mod nodes;
mod provider;
pub mod provider_id;
mod routes;
mod start;

pub use bowline_openstack_client::CallObserver;
pub use bowline_openstack_client::Client;
pub use config::{
    ClassOptions, FileError, Files, FloatingOptions, LoadBalancerOptions, MonitorOptions, NodeOptions,
    OptionError, Options, OptionsError, PlacementOptions, SearchOrderError, Tls, ValueError, option_names,
};
pub use load_balancer::annotations::annotation_table;
pub use load_balancer::complaints::complaints;
pub use load_balancer::reconciler::load_balancers;
pub use messages::EVENTS;
pub use metrics::Metrics;
pub use provider::{OpenStack, SERVICE_ACCOUNT};
pub use provider_id::PROVIDER_NAME;
pub use routes::routes;
pub use start::{Offer, StartError};
