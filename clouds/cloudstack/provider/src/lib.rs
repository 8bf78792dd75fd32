//! The Apache CloudStack provider: virtual machines as the instances of Nodes, load balancer rules for Services.
//!
//! It takes the place of the Go manager 1.2.0: same file, provider IDs, labels and objects, so that a cluster can be
//! switched over and back without any of them changing. The keys of an ordinary user are enough.
//!
//! | room | what is in it |
//! | --- | --- |
//! | `config` | the file that `--cloud-config` names, and what is asked of the server at the start |
//! | `nodes` | what a virtual machine tells of its Node, and what proves that it is gone |
//! | `load_balancer` | the rules, the address and the firewall of a Service |
//! | `messages` | the events, in one table |
//! | `provider_id`, `version`, `virtual_machines` | what several rooms need |
//! | `provider` | how the rooms are wired |
//!
//! A Node: `nodes` reads its provider ID, asks `virtual_machines` for it by ID or in a list of all, and answers with addresses and labels.
//!
//! A Service goes through the rooms of `load_balancer`, each of which knows only those above it:
//!
//! | room | what it does |
//! | --- | --- |
//! | `annotations`, `names`, `objects`, `claim`, `replaced_rules` | what is written on the Service and in the cloud |
//! | `intent` (pure) | what a Service asks for: ports, sources, Nodes; all problems in one text |
//! | `step` | a write, as data: one command, which starts a job |
//! | `observe` | reads the Service's rules, and whatever else the plan says that it needs to know; asks after jobs |
//! | `evidence` (pure) | whose an address is |
//! | `plan` (pure) | an address, the rules with their members and firewall rules, then what is not wanted any more |
//! | `apply` | looks once more at what a step requires, and sends it |
//! | `status` | what the Service shows |
//!
//! Every write is a job of the cloud. Its outcome is part of the observation: what depends on it waits, everything else
//! goes on. An address is claimed on the Service before it is acquired (`claim`), so that none is ever lost.

mod config;
mod load_balancer;
mod messages;
mod nodes;
mod provider;
pub mod provider_id;
mod version;
mod virtual_machines;

pub use bowline_cloudstack_client::WallClock;
pub use config::file::Setting;
pub use config::start::Introduction;
pub use config::{NodeOptions, Options, OptionsError};
pub use load_balancer::annotations::annotation_table;
pub use load_balancer::complaints::complaints;
pub use messages::EVENTS;
pub use provider::{CloudStack, SERVICE_ACCOUNT};
pub use provider_id::PROVIDER_NAME;
pub use version::{Version, VersionError};
