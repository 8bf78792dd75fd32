//! A stateful double of the Apache CloudStack API whose load balancer rules carry real traffic.
//!
//! It verifies the signature of every request, runs asynchronous commands as jobs, pages its lists, hides what a caller
//! may not see, and validates as the real management server does. It is written from CloudStack's API reference and from
//! the behaviour of its server, and shares no type with the client, so that one mistake is not made twice. What differs
//! between server versions and set-ups is a switch in [`Behaviour`].
//!
//! In a test, [`CloudstackSim::service`] is called in memory; [`CloudstackSim::serve`] and the program `cloudstack-sim`
//! put it on a socket. Every call is `/client/api`, so the journal and fault rules know requests by their command.

pub mod behaviour;
pub mod model;

mod api;
mod builder;
mod by_hand;
mod error;
mod jobs;
mod operation;
mod options;
mod params;
mod router;
mod signature;
mod sim;
mod snapshot;
mod specs;
mod state;
mod traffic;
mod wire;

pub use behaviour::{Behaviour, JobFault, JobFaultKind, ProtocolUpdates, Quota, RateLimit};
pub use bowline_cloud_kit as kit;
pub use builder::Builder;
pub use jobs::{JobRecord, JobStatus};
pub use model::{AddressState, Owner, RuleState, Tag, VmState};
pub use operation::Operation;
pub use options::{Role, UserSpec};
pub use sim::CloudstackSim;
pub use specs::{
    AclItemSpec, AddressSpec, FirewallSpec, NetworkSpec, NicSpec, ProjectSpec, RuleSpec, VmSpec, VpcSpec,
};
