//! The Apache CloudStack provider: virtual machines as the instances of Nodes, load balancer rules for Services.
//!
//! It takes the place of the Go manager 1.2.0: same file, provider IDs, labels and objects, so that a cluster can be
//! switched over and back without any of them changing. The keys of an ordinary user are enough.
//!
//! ```text
//! intent (pure)   what a Service asks for: ports, sources, nodes; all problems in one text
//! observe         the Service's rules, and whatever else the planning says that it needs to know
//! planning (pure) an address, the rules with their members and firewall rules, then what is not wanted any more
//! apply           one command, which starts a job
//! learn (pure)    what the answer and the job told
//! ```
//!
//! Every write is a job of the cloud. Its outcome is part of the observation: what depends on it waits, everything else
//! goes on. An address is claimed on the Service before it is acquired ([`claim`]), so that none is ever lost.

mod annotations;
mod apply;
mod balancers;
mod cidrs;
mod claim;
mod complaints;
mod events;
mod fingerprint;
mod instances;
mod intent;
mod labels;
mod learn;
mod members;
mod names;
mod objects;
mod observe;
mod options;
mod orphans;
mod planning;
mod provider;
pub mod provider_id;
mod replaced;
mod start;
mod status;
mod step;
mod verdict;
mod version;
mod virtual_machines;

pub use annotations::annotation_table;
pub use bowline_cloudstack_client::WallClock;
pub use bowline_gcfg::SyntaxError;
pub use complaints::complaints;
pub use events::EVENTS;
pub use options::{FileError, NodeOptions, Options, OptionsError, Setting};
pub use provider::{CloudStack, SERVICE_ACCOUNT};
pub use provider_id::PROVIDER_NAME;
pub use start::Introduction;
pub use version::{Version, VersionError};
