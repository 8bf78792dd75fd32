//! What the cloud says about one Service's balancer.
//!
//! An observation grows: it begins with the Service's rules, and the planning says what else it needs to know ([`Unread`]).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use bowline_cloud_provider::{CloudError, Pauses};
use bowline_cloudstack_client::{JobId, Made, NetworkId, PublicIpId, RuleId, VirtualMachineId};
use jiff::Timestamp;
use tokio::time::Instant;

use crate::intent::WantedNode;
use crate::members::{MemberIndex, Members};
use crate::objects::{
    Abilities, Address, AddressState, FirewallId, FirewallRule, FirewallRuleId, Neighbour, Network,
    PortRange, Rule,
};
use crate::step::CloudStep;

pub(crate) mod asks;
mod facts;
mod jobs;
mod known;
pub(crate) mod lists;
mod on_the_way;
pub(crate) mod reads;
mod remembered;
mod rules;
#[cfg(test)]
mod tests;
mod trust;
mod unclosed;
mod wire;

pub(crate) use facts::{Fact, Need, Unread, see};
pub(crate) use known::Known;
pub(crate) use on_the_way::OnTheWay;
pub(crate) use remembered::Remembered;
pub(crate) use unclosed::Unclosed;
#[cfg(test)]
pub(crate) use wire::rule as rule_of;

/// What a reconcile has seen: the facts, and what it remembers of itself.
pub(crate) type Seen = bowline_cloud_provider::Seen<Observed, Remembered, CloudStep>;

/// One observation.
#[derive(Debug, Default)]
pub(crate) struct Observed {
    /// The wall time of the look.
    pub(crate) now: Option<Timestamp>,
    /// When that was.
    pub(crate) looked: Option<Instant>,
    /// What the server can do.
    pub(crate) abilities: Option<Abilities>,
    /// The rules that bear the name of the Service's balancer.
    pub(crate) rules: Vec<Rule>,
    /// Networks by ID; `None` if there is no such network.
    pub(crate) networks: BTreeMap<NetworkId, Option<Arc<Network>>>,
    /// Addresses by ID; `None` if nobody has such an address.
    pub(crate) addresses: BTreeMap<PublicIpId, Option<Address>>,
    /// What there is under an address that was asked for by its text.
    pub(crate) looked_up: BTreeMap<String, Vec<Address>>,
    /// Rules of others on an address, by its ID.
    pub(crate) rules_of_others: BTreeMap<PublicIpId, Vec<Rule>>,
    /// What others have in networks that share an ACL list, by a network's ID.
    pub(crate) neighbours: BTreeMap<NetworkId, Vec<Neighbour>>,
    /// Of firewalls the rules that let a single port in.
    pub(crate) firewalls: BTreeMap<FirewallId, Vec<FirewallRule>>,
    /// Of firewalls of addresses the rules that let several ports in.
    pub(crate) ranges: BTreeMap<FirewallId, Vec<PortRange>>,
    /// Items of ACL lists that other Services delete.
    pub(crate) going: BTreeSet<FirewallRuleId>,
    /// Members by the ID of their rule.
    pub(crate) members: BTreeMap<RuleId, BTreeSet<VirtualMachineId>>,
    /// All virtual machines.
    pub(crate) instances: Option<Arc<MemberIndex>>,
    /// Addresses that may have been associated for a claim that names none, by the ID of its network.
    pub(crate) recovered: BTreeMap<NetworkId, Vec<Address>>,
    /// What could not be read. Decisions that need it wait for another look, and the others go on.
    pub(crate) unreadable: BTreeMap<Need, CloudError>,
    /// Jobs under way.
    pub(crate) pending: Vec<Pending>,
}

/// A job under way.
#[derive(Debug, Clone)]
pub(crate) struct Pending {
    /// The job.
    pub(crate) job: JobId,
    /// What it does.
    pub(crate) step: CloudStep,
    /// What it makes, as far as the answer to the command told.
    pub(crate) makes: Made,
    /// When it was started.
    pub(crate) since: Instant,
    /// When something was heard of it for the last time.
    pub(crate) heard: Instant,
    /// How many answers in a row were none to the question.
    pub(crate) nonsense: u32,
    /// Whether it takes back what an earlier failure left.
    pub(crate) is_rollback: bool,
}

/// A failed write.
#[derive(Debug, Clone)]
pub(crate) struct Failure {
    /// What to say of it.
    pub(crate) error: CloudError,
    /// Whether the API itself said so. If not, the write may have had its effect.
    pub(crate) is_definite: bool,
    /// Whether the write was sent, and no answer of the API came.
    pub(crate) is_unheard: bool,
    /// Whether the write was to take back what an earlier failure left.
    pub(crate) is_rollback: bool,
}

impl Failure {
    pub(crate) fn new(error: CloudError, is_definite: bool) -> Self {
        Self {
            error,
            is_definite,
            is_unheard: false,
            is_rollback: false,
        }
    }

    /// The same, of a write that was sent without an answer of the API if `is_unheard`.
    pub(crate) fn unheard(self, is_unheard: bool) -> Self {
        Self { is_unheard, ..self }
    }
}

/// The time between two looks at something that the cloud does by itself.
pub(crate) const LOOK: Duration = Duration::from_secs(2);

/// How old a look may be for an address to be released by it: somebody may have released it and acquired it anew since.
pub(crate) const RECENT: Duration = Duration::from_secs(5);

/// The time between two looks for an address that was asked for without an answer.
pub(crate) const SEARCH: Duration = Duration::from_secs(10);

/// How long an address may be on its way before it is tried to use it as it is. Some servers go on with a job only when it is
/// asked after, and whoever comes after a restart does not know the job.
pub(crate) const TRIED: Duration = Duration::from_secs(4);

/// How long an address may be on its way before it is released: to be acquired anew, if it is needed. Its job began before
/// whoever looks, and should it still end, the server releases the address then.
pub(crate) const RELEASED: Duration = Duration::from_secs(10);

/// How long the jobs of an earlier sync are waited for that make something. Then it is found as after a restart. Those that
/// take something away are waited for until they end, because before they begin nothing tells that it goes; the first address of a
/// Service for as long as one whose job is not known.
pub(crate) const INHERITED: Duration = Duration::from_secs(10);

/// How long an address may be on its way back before it is released once more. That fails if the first time is still to come,
/// so it is not tried as soon.
pub(crate) const RELEASED_AGAIN: Duration = Duration::from_secs(20);

/// How long an address may be on its way before people are told.
pub(crate) const SLOW: Duration = Duration::from_secs(30);

/// How long an address may be on its way before a balancer goes on without it. Its job is not known any more: it may have been
/// lost with the server's process, or the server may work on it only when it is asked after.
pub(crate) const STUCK: Duration = Duration::from_secs(60);

/// How long a list may be behind what was done.
const BEHIND: Duration = Duration::from_secs(10);

/// How long a job, or anything else that the cloud does by itself, may take.
const PATIENCE: Duration = Duration::from_secs(300);

/// How long a job may be unheard of while the cloud is in trouble, or out of reach.
const SILENCE: Duration = Duration::from_secs(60);

/// How many answers in a row may be none to the question after a job, as a refusal is, or a page of something in between. The
/// Go manager asked as often.
const TRIES: u32 = 3;

/// How long to wait before each look at jobs since the last one was started: half as long again each time.
pub(crate) const POLLS: Pauses = Pauses::of_micros(&[
    200_000, 300_000, 450_000, 675_000, 1_012_500, 1_518_750, 2_278_125, 3_417_188, 5_000_000,
]);

impl Observed {
    /// Whether something is being written there.
    pub(crate) fn is_pending(&self, target: &str) -> bool {
        self.pending.iter().any(|pending| pending.step.target() == target)
    }

    /// All addresses that were read.
    pub(crate) fn known_addresses(&self) -> impl Iterator<Item = &Address> {
        let read = self.addresses.values().flatten();
        let found = self.looked_up.values().chain(self.recovered.values());
        read.chain(found.flatten())
    }

    /// Whether an address is on its way to somebody, as far as is known.
    pub(crate) fn is_on_its_way(&self, id: &PublicIpId) -> bool {
        let read = self.addresses.values().flatten();
        let mut known = read.chain(self.looked_up.values().flatten());
        known.any(|known| known.address.id == *id && known.state == AddressState::Allocating)
    }

    /// The virtual machines of Nodes, if all were listed.
    pub(crate) fn members_of(&self, nodes: &[WantedNode]) -> Option<Members> {
        let instances = self.instances.as_ref()?;
        Some(Members::find(nodes, instances))
    }

    /// A rule by its ID.
    pub(crate) fn rule_mut(&mut self, id: &RuleId) -> Option<&mut Rule> {
        self.rules.iter_mut().find(|rule| rule.id == *id)
    }
}
