//! The phoenixNAP Bare Metal Cloud provider: servers as the instances of Nodes, IP blocks for Services.
//!
//! The cloud has no load balancers. A Service of type `LoadBalancer` gets a `/29` block of public addresses, attached to
//! one public network; its third address goes into `spec.loadBalancerIP`, and kube-vip announces it from a node.
//!
//! ```text
//! intent (pure)   what a Service asks for: address, location, families, a claim to buy
//! observe         the Service's active blocks, found by their tags; the tag names only before a purchase
//! planning (pure) refusals, purchase, attachment, the address, in this order
//! apply           one write
//! learn (pure)    what the answer told
//! ```
//!
//! A block costs money. It is bought only under a claim on the Service ([`claim`]), it bears its tags from its first
//! moment, and it is looked for by them before another one could be bought. A release marks the block; the
//! [`sweeper`] takes marked blocks off their network and gives them back.
//!
//! It takes the place of the vendor's manager 1.0.0: same tags, provider IDs and fields, so that a cluster can be switched
//! over and back without any block or address changing.

mod annotations;
mod apply;
mod balancers;
mod blocks;
mod claim;
mod events;
mod gauges;
mod instances;
mod intent;
mod learn;
mod observe;
mod options;
mod orphans;
mod planning;
mod provider;
pub mod provider_id;
mod servers;
mod status;
mod step;
mod sweeper;
mod tags;
mod vip;
mod watch;

pub use annotations::annotation_table;
pub use events::{EVENTS, SWEEPER_EVENTS};
pub use gauges::gauge_table;
pub use options::{BlockDescription, DEBUG_VARIABLE, Given, LoadBalancing, Options, OptionsError, Setting};
pub use provider::{PhoenixNap, SERVICE_ACCOUNT};
pub use provider_id::PROVIDER_NAME;
