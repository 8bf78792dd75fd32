//! The cloudscale.ch provider: servers as the instances of Nodes, load balancers for Services.
//!
//! It takes the place of the vendor's cloud controller manager: same names, annotations, provider IDs and status, so that
//! a cluster can be switched over and back without any part of a load balancer being made anew.
//!
//! | room | what is in it |
//! | --- | --- |
//! | [`provider`] | how the rooms are wired: the contract's `CloudProvider` |
//! | [`config`] | what the operator sets beyond how the API is reached |
//! | [`messages`] | the events that tell people something, with their remedies |
//! | [`nodes`] | servers as instances: found by ID or name, addresses, zone and region, power |
//! | [`load_balancer`] | a Service's load balancer, move by move |
//!
//! *A Service*: `load_balancer/intent` reads what it asks for: annotations, ports, Nodes; all problems in one text. `observe` reads one listing
//! per kind, shared by all Services that ask together, and members pool by pool. `evidence` tells whose a load balancer is. `plan` decides, purely:
//! `guards`, then the first wave that has a step; `desired` is how parts shall be, `exchange` what goes for what comes, `refused` what the API
//! refused and what room its quotas leave, `persisted` what it answered and did not keep. `apply` makes one `step`, or the two halves of a
//! replacement. `learn` adds what the answer told, or will tell. Then the `status` shows the addresses.
//!
//! *A Node*: `nodes` finds its server in one listing of the project (`nodes/servers`), or asks for it by its [`provider_id`].
//!
//! Only the API's own words prove that something is gone; what bears the mark of another Service is never touched.

mod config;
mod load_balancer;
mod messages;
mod nodes;
mod provider;

pub use config::Options;
pub use load_balancer::annotations::annotation_table;
pub use load_balancer::complaints::complaints;
pub use messages::EVENTS;
pub use nodes::provider_id::{self, PROVIDER_NAME};
pub use provider::{Cloudscale, SERVICE_ACCOUNT};
