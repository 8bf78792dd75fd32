//! What is known beside what the cloud says.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::load_balancer::claim::AddressRequest;
use crate::load_balancer::objects::{PublicIpId, RuleId, VirtualMachineId};
use crate::load_balancer::observe::released::Released;

/// What the process knew of a Service when a look began, and what the look took: no fact of the cloud. Each look from the beginning
/// has its own.
#[derive(Debug, Default)]
pub(crate) struct Known {
    /// What may have been asked for under the Service's claim, and how long each stands in the way of another one.
    pub(crate) standing: BTreeMap<AddressRequest, Duration>,
    /// Rules whose members were found to be right a moment ago, for the same Nodes.
    pub(crate) trusted: BTreeSet<RuleId>,
    /// The virtual machines of the same Nodes a moment ago, where not all Nodes name theirs.
    pub(crate) expected: Option<BTreeSet<VirtualMachineId>>,
    /// Whether the Service was changed since a rule of it was seen that breaks its router.
    pub(crate) is_changed: bool,
    /// For how long something may go that was deleted without an answer, and is listed as if it stayed.
    pub(crate) may_go: Option<Duration>,
    /// Rules for what the Service does not ask for, or not in their protocol.
    pub(crate) unwanted: BTreeSet<RuleId>,
    /// Whether the balancer is to go: then what cannot be closed does not keep it.
    pub(crate) is_removal: bool,
    /// What the Service gave back, and lists may show as if it were its own.
    pub(crate) released: Released,
    /// The addresses with rules that are not the Service's own, as is written on it.
    pub(crate) persons: BTreeSet<PublicIpId>,
    /// How many syncs have failed since the Service settled last.
    pub(crate) failures: u32,
    /// How many calls the reading took.
    pub(crate) calls: usize,
}
