//! The contract between the controllers and a cloud.
//!
//! A cloud is a [`CloudProvider`]: it knows instances ([`InstancesV2`]), perhaps load balancers ([`LoadBalancer`]),
//! routes ([`Routes`]) and work of its own ([`BackgroundWork`]). The controllers know no cloud; a cloud knows no controller.
//!
//! Data goes one way, for every controller and every command:
//!
//! ```text
//! intent (pure)  ->  observe (reads)  ->  plan (pure)  ->  apply (writes)  ->  publish (status, events)
//! ```
//!
//! What a provider needs from Kubernetes comes in with the intent ([`ServiceFacts`]); what it wants written there are
//! steps of the same plan ([`KubeWrite`]), ordered with the cloud's. What a reconcile remembers of itself is its [`Memory`];
//! between reconciles nothing is remembered but what the cloud and the API server hold, and what may be lost ([`Kept`]).
//!
//! This crate is pure: no runtime, no IO, no clock. Of Kubernetes it names the Service ([`k8s`]), only as input.

/// The target of lines that say what was found of an instance or a balancer. They are shown from verbosity 2 on, where the
/// Go managers of some clouds show theirs; other lines of their level come later.
pub const ANSWER_LOG: &str = "bowline_cloud_provider::answers";

/// The target of lines with all that is known of what was found, shown from verbosity 3 on.
pub const DATA_LOG: &str = "bowline_cloud_provider::data";

mod address_change;
mod annotation;
mod asker;
mod classes;
pub mod effects;
mod erased;
mod error;
pub mod evidence;
mod instances;
pub mod k8s;
mod kept;
mod kube_write;
mod load_balancer;
mod measurement;
mod memory;
mod node;
pub mod orphans;
mod provider;
mod question;
pub mod reasons;
mod refusals;
mod routes;
mod selector;
mod sent;
mod service;
pub mod several;
pub mod spelling;

pub use address_change::{AddressBefore, AddressLoss, AddressNote};
pub use annotation::{Accepts, AnnotationSpec, Changeability, ValueKind};
pub use asker::Asker;
pub use bowline_plan as plan;
pub use bowline_plan::Pairs;
pub use classes::{ClassError, ServiceClasses};
pub use erased::{Begin, DynLearned, DynPlan, DynStep, Now, Reconcile};
pub use error::{CloudError, ErrorKind};
pub use instances::{
    AbsenceProof, FoundBy, Instance, InstanceAnswer, InstanceDirectory, InstanceIndex, InstanceMetadata,
    InstanceQuery, InstanceResult, InstanceState, InstancesV2, PowerState, Purpose, Sought, Unmatched,
};
pub use kept::{Kept, lock};
pub use kube_write::KubeWrite;
pub use load_balancer::{
    BackgroundFacts, BackgroundWork, Ingress, IngressPort, IpMode, LoadBalancer, LoadBalancerPlan,
    LoadBalancerStatus, LoadBalancerStep, MadeFor, NodeSet, ReconcileKind, Reconciler, SeenBy, Told,
    WriteOutcome,
};
pub use measurement::{GaugeSpec, Measurement};
pub use memory::{Memory, Pauses, Recent, Seen};
pub use node::{
    AddressType, Labels, NetworkUnavailable, Node, NodeAddress, NodeName, Readiness, Taint, TaintEffect, keys,
};
pub use provider::{
    Allowance, CloudConfig, CloudProvider, ClusterFacts, ClusterUid, Environment, Misfit, ServerVersion,
};
pub use question::{Question, Unanswered, ask_all};
pub use refusals::{RefusalBook, Refusals, held_back_for};
pub use routes::{Route, RouteChange, Routes};
pub use selector::{Selector, SelectorError};
pub use sent::{Creation, OF_ANOTHER_PROCESS};
pub use service::{Service, ServiceFacts, ServiceKey, ServiceList, ServicesView, facts};
