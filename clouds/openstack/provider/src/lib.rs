//! The OpenStack provider: servers as the instances of Nodes, Octavia load balancers for Services, routes of a Neutron router.
//!
//! It takes the place of the Go manager: same names, tags, annotations, provider IDs and status, so that a cluster can be
//! switched over and back without any part of a load balancer being made anew.
//!
//! ```text
//! intent (pure)   what a Service asks for: annotations, ports, nodes, and what cloud.conf adds
//! observe         one listing per kind, shared by all Services that ask together; members pool by pool
//! planning (pure) guards, then the first step that is missing: Octavia takes one change at a time
//! apply           one write
//! learn (pure)    what the answer told, or what it will tell
//! ```
//!
//! Octavia does what it is asked to later: a load balancer that is pending is waited for by the plan, never inside of a call.

mod addresses;
mod annotations;
mod apply;
mod balancers;
mod complaints;
mod desired;
mod events;
mod features;
mod instances;
mod intent;
mod labels;
mod leaks;
mod learn;
mod made_groups;
mod members;
mod metrics;
mod names;
mod observe;
mod options;
mod orphans;
mod ownership;
mod placement;
mod planning;
mod provider;
pub mod provider_id;
mod refused;
mod routes;
mod security_groups;
mod servers;
mod start;
mod status;
mod step;
mod subnets;
mod under_way;

pub use annotations::annotation_table;
pub use balancers::load_balancers;
pub use bowline_openstack_client::Client;
pub use complaints::complaints;
pub use events::EVENTS;
pub use metrics::Metrics;
pub use options::{
    ClassOptions, ContainerStore, FileError, Files, FloatingOptions, LoadBalancerOptions, MonitorOptions,
    NodeOptions, OptionError, Options, OptionsError, PlacementOptions, SearchOrderError, Tls, ValueError,
    option_names,
};
pub use provider::{OpenStack, SERVICE_ACCOUNT};
pub use provider_id::PROVIDER_NAME;
pub use routes::routes;
pub use start::{Offer, StartError};
