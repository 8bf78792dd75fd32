//! A stateful double of the Apache CloudStack API whose load balancer rules carry real traffic.
//!
//! It verifies the signature of every request, runs asynchronous commands as jobs, pages its lists, hides what a caller
//! may not see, and validates as the real management server does. It is written from CloudStack's API reference and from
//! the behaviour of its server, and shares no type with the client, so that one mistake is not made twice. What differs
//! between server versions and set-ups is a switch in [`Behaviour`].
//!
//! In a test, [`CloudstackSim::service`] is called in memory; [`CloudstackSim::serve`] and the program `cloudstack-sim`
//! put it on a socket. Every call is `/client/api`, so the journal and fault rules know requests by their command.
//!
//! | to change | look in |
//! | --- | --- |
//! | what it refuses or how slow it is, and how that is known | `behaviour.rs`: one table |
//! | what a request does | `operation.rs` lists the commands, `api.rs` routes them, `api/` has a file for each kind |
//! | what a job does when its time has come | `jobs/effects.rs` |
//! | what the virtual router really runs | `router.rs` |
//! | how an object looks on the wire | `wire` |
//! | the objects, and what happens to them by the clock alone | `model`, `state` |
//! | what the data plane carries | `traffic.rs` |
//! | what a test or a user does by hand | `sim` and `by_hand.rs`, over HTTP `api/admin.rs` |
//! | what runs are compared by, and what must never be | `snapshot.rs` |
//! | the options of the program | `bin/` |

pub mod behaviour;
pub mod model;

mod api;
mod builder;
mod by_hand;
mod effects;
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
mod work;

pub use behaviour::{Behaviour, JobFault, JobFaultKind, ProtocolUpdates, Quota, RateLimit};
pub use bowline_cloud_kit as kit;
pub use builder::Builder;
pub use jobs::{JobRecord, JobStatus};
pub use model::{AddressState, Owner, RuleState, Tag, VmState};
pub use operation::Operation;
pub use options::{Role, UserSpec};
pub use sim::CloudstackSim;
pub use specs::{
    AclItemSpec, AddressSpec, FirewallSpec, NetworkSpec, NicSpec, PolicySpec, ProjectSpec, RuleSpec, VmSpec,
    VpcSpec,
};
