//! The phoenixNAP Bare Metal Cloud provider: servers as the instances of Nodes, IP blocks for Services.
//!
//! The cloud has no load balancers. A Service of type `LoadBalancer` gets a `/29` block of public addresses, attached to
//! one public network; its third address goes into `spec.loadBalancerIP`, and kube-vip announces it from a node.
//!
//! | room | what is in it |
//! | --- | --- |
//! | [`provider`] | how the rooms are wired: the contract's `CloudProvider` |
//! | [`config`] | what the operator sets: flag, environment, file, default; one table of all options |
//! | [`messages`] | the events and the lines of the log that tell people something, with their remedies |
//! | [`annotations`] | every annotation: the configuration names one of them, too |
//! | [`nodes`] | servers as instances: found by ID or host name, addresses, labels, power |
//! | [`load_balancer`] | a Service's block, move by move, and the background work on blocks |
//!
//! *A Service*: `load_balancer/intent` reads what it asks for (address, location, families, a [claim] to buy). `observe` reads its active
//! blocks, which are known by their tags (`evidence`), and before a purchase the public `network` and the names of tags. `plan` decides, purely:
//! `purchase` without a block, `attach` with one, `absent` where it goes. `apply` makes one `step`, and `learn` adds what the answer
//! told. Then the `status` shows the address, and kube-vip announces it.
//!
//! *A Node*: `nodes` finds its server in one listing of the account (`nodes/servers`), or asks for it by its [`provider_id`], and tells
//! type, region, addresses and power. That a server is gone takes the API's own word.
//!
//! A block costs money. It is bought only under a claim on the Service, it bears its tags from its first
//! moment, and it is looked for by them before another one could be bought. A release marks the block; the
//! `sweeper` takes marked blocks off their network and gives them back.
//!
//! It takes the place of the vendor's manager 1.0.0: same tags, provider IDs and fields, so that a cluster can be switched
//! over and back without any block or address changing.
//!
//! [claim]: load_balancer

mod annotations;
mod config;
mod load_balancer;
mod messages;
mod nodes;
mod provider;

pub use annotations::annotation_table;
pub use config::{BlockDescription, DEBUG_VARIABLE, Given, LoadBalancing, Options, OptionsError, Setting};
pub use load_balancer::sweeper::gauges::gauge_table;
pub use messages::{EVENTS, SWEEPER_EVENTS};
pub use nodes::provider_id::{self, PROVIDER_NAME};
pub use provider::{PhoenixNap, SERVICE_ACCOUNT};
