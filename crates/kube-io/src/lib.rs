//! The Kubernetes API: watches, caches, patches, events and the lease.
//!
//! Everything that this program says to an API server goes through [`Kube`], which knows the few requests that a cloud
//! controller manager makes and no others:
//!
//! - reads: pages of at most 100 objects, converted at once to the small [`Node`](bowline_cloud_provider::Node) of the
//!   contract, and watches that feed a [`Cache`];
//! - writes: merge and strategic patches that carry the UID of the object they were decided for. No PUT of Nodes or
//!   Services, so nobody else's fields are written back. Immediately before a write is sent, a [`Gate`] is asked;
//! - [events](EventSink), written and counted up as core/v1 objects, behind everything else;
//! - the [lease](LeaseLock) of leader election, and the pure rules of who may take it ([`Election`]).
//!
//! It does not decide anything about clouds, nodes or balancers. Nothing here depends on a hash map's order, on chance
//! or on a clock that was not handed in, so a test can replay it.

mod account;
mod cache;
mod client;
mod clock;
mod connect;
mod drain;
mod error;
mod events;
mod exchange;
mod intern;
mod lease;
mod metrics;
mod node;
mod patch;
mod plain;
mod rank;
pub mod rbac;
mod reads;
mod reviews;
mod service;
mod shape;
mod shown;
mod trial;
mod waits;
mod watch;
pub mod workloads;
mod writers;
mod writes;
mod written;

pub use cache::{Cache, CacheKey, Change, Listener, NodeCache, ServiceCache, Unreadable};
pub use client::{Body, Kube, KubeOptions};
pub use clock::{Clock, SystemClock, TokioClock};
pub use connect::{ConnectError, ConnectOptions, MAX_SOCKETS};
pub use drain::Writes;
pub use error::KubeError;
pub use events::{EventSink, EventWriter, ObjectRef, Recorder, shortened};
pub use lease::{
    DELETIONS, Decision, DeletionNote, Election, FoundNote, LeaseLock, LeaseNote, LeaseRecord, LeaseTimings,
    LeaseWatch, PROGRAM,
};
pub use metrics::KubeMetrics;
pub use patch::NodePatch;
pub use reviews::UserInfo;
pub use shown::{Endpoints, SeenEvent, SeenLease};
pub use trial::{TrialKind, TrialObject};
pub use watch::{watch_config_map, watch_nodes, watch_services};
pub use written::Written;

// What this stack and the one to clouds have in common.
pub use bowline_transport::{Dates, Gate, GateClosed, OpenGate, Rate};
