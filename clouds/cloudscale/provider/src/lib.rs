//! The cloudscale.ch provider: servers as the instances of Nodes, load balancers for Services.
//!
//! It takes the place of the vendor's cloud controller manager: same names, annotations, provider IDs and status, so that
//! a cluster can be switched over and back without any part of a load balancer being made anew.
//!
//! ```text
//! intent (pure)   what a Service asks for: annotations, ports, nodes; all problems in one text
//! observe         one listing per kind, shared by all Services that ask together; members pool by pool
//! planning (pure) guards, then the first wave that has a step
//! apply           one write, or the two halves of a replacement
//! learn (pure)    what the answer told, or what it will tell
//! ```
//!
//! Only the API's own words prove that something is gone; what bears the mark of another Service is never touched.

mod annotations;
mod apply;
mod balancers;
mod complaints;
mod desired;
mod events;
mod floating_ips;
mod instances;
mod intent;
mod learn;
mod names;
mod observe;
mod orphans;
mod ownership;
mod planning;
mod provider;
pub mod provider_id;
mod servers;
mod status;
mod step;

pub use annotations::annotation_table;
pub use complaints::complaints;
pub use events::EVENTS;
pub use provider::{Cloudscale, Options, SERVICE_ACCOUNT};
pub use provider_id::PROVIDER_NAME;
