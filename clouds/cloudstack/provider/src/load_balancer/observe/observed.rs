//! What the cloud says about one Service's balancer.
//!
//! An observation grows: it begins with the Service's rules, and the plan says what else it needs to know. Whoever decides asks the
//! observation. If what it takes was not read yet, the answer is [`Unread`], which names it: it ends that decision by `?`, the session
//! reads what is named, and the decision is made anew. So nothing unread is taken for empty.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use bowline_cloud_provider::CloudError;
use bowline_cloudstack_client::{JobId, Made, NetworkId, PublicIpId, RuleId, VirtualMachineId};
use bowline_plan::RefusedBy;
use jiff::Timestamp;
use tokio::time::Instant;

use crate::load_balancer::cidrs::Cidrs;
use crate::load_balancer::intent::WantedNode;
use crate::load_balancer::members::Members;
use crate::load_balancer::objects::{
    Address, AddressState, Firewall, FirewallId, FirewallList, FirewallRule, FirewallRuleId, IngressPort,
    Neighbour, Network, NewRule, PortRange, Rule, StickinessPolicy,
};
use crate::load_balancer::observe::failures::Failure;
use crate::load_balancer::observe::on_the_way::OnTheWay;
use crate::load_balancer::observe::remembered::Remembered;
use crate::load_balancer::step::CloudStep;
use crate::version::Abilities;
use crate::virtual_machines::MemberIndex;

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
    /// Stickiness policies by the ID of their rule.
    pub(crate) policies: BTreeMap<RuleId, Vec<StickinessPolicy>>,
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

    /// Notes which addresses are on their way at this look.
    pub(crate) fn time(&self, way: &mut OnTheWay, waited: Duration) {
        way.look(waited, |id| self.is_known_absent(id), self.known_addresses());
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

    /// Whether something of a balancer is seen that goes.
    pub(crate) fn shows_something(&self) -> bool {
        let mut looked_up = self.looked_up.values().flatten();
        !self.rules.is_empty()
            || self.addresses.values().any(Option::is_some)
            || looked_up.any(|known| known.state != AddressState::Free)
    }

    /// A rule by its ID.
    pub(crate) fn rule_mut(&mut self, id: &RuleId) -> Option<&mut Rule> {
        self.rules.iter_mut().find(|rule| rule.id == *id)
    }
}

/// Something that can be read.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Need {
    /// What the server can do.
    Abilities,
    /// All virtual machines.
    Instances,
    /// A network.
    Network(NetworkId),
    /// An address by its ID.
    Address(PublicIpId),
    /// An address by its text.
    LookedUp(String),
    /// Addresses of a network that may have been associated for a claim that names none.
    Recovered(NetworkId),
    /// The rules of others on an address.
    RulesOfOthers(PublicIpId),
    /// What others have in networks that share the ACL list of this one.
    Neighbours(NetworkId),
    /// A firewall.
    Firewall(FirewallId),
    /// The members of a rule.
    Members(RuleId),
    /// The stickiness policies of a rule.
    Policies(RuleId),
}

impl Need {
    /// The ID of the address or the ACL list, if it is a firewall.
    pub(crate) fn opened(&self) -> Option<&str> {
        match self {
            Self::Firewall(id) => Some(id.as_str()),
            _ => None,
        }
    }
}

/// A decision lacks facts: what has to be read for it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Unread(pub(crate) BTreeSet<Need>);

impl From<Need> for Unread {
    fn from(need: Need) -> Self {
        Self(BTreeSet::from([need]))
    }
}

impl Unread {
    /// All of it, or what has to be read for all of it: that is read side by side.
    pub(crate) fn all<T>(parts: impl IntoIterator<Item = Result<T, Self>>) -> Result<Vec<T>, Self> {
        let (mut known, mut unread) = (Vec::new(), BTreeSet::new());
        for part in parts {
            match part {
                Ok(part) => known.push(part),
                Err(Self(needs)) => unread.extend(needs),
            }
        }
        match unread.is_empty() {
            true => Ok(known),
            false => Err(Self(unread)),
        }
    }
}

fn known<'a, I: Ord + Clone, T>(
    all: &'a BTreeMap<I, T>,
    id: &I,
    need: fn(I) -> Need,
) -> Result<&'a T, Unread> {
    all.get(id).ok_or_else(|| need(id.clone()).into())
}

impl Observed {
    /// What the server can do.
    pub(crate) fn abilities(&self) -> Result<Abilities, Unread> {
        self.abilities.ok_or_else(|| Need::Abilities.into())
    }

    /// A network by its ID.
    pub(crate) fn network(&self, id: &NetworkId) -> Result<Option<&Arc<Network>>, Unread> {
        known(&self.networks, id, Need::Network).map(Option::as_ref)
    }

    /// An address by its ID.
    pub(crate) fn address(&self, id: &PublicIpId) -> Result<Option<&Address>, Unread> {
        known(&self.addresses, id, Need::Address).map(Option::as_ref)
    }

    /// A network, as far as was looked: none if it was not, or if there is no such network.
    pub(crate) fn known_network(&self, id: &NetworkId) -> Option<&Arc<Network>> {
        self.networks.get(id)?.as_ref()
    }

    /// An address, as far as was looked: none if it was not, or if nobody has such an address.
    pub(crate) fn known_address(&self, id: &PublicIpId) -> Option<&Address> {
        self.addresses.get(id)?.as_ref()
    }

    /// Whether an address was looked for, and nobody has it.
    pub(crate) fn is_known_absent(&self, id: &PublicIpId) -> bool {
        self.addresses.get(id).is_some_and(Option::is_none)
    }

    /// What there is under an address that is asked for by its text.
    pub(crate) fn looked_up(&self, ip: &str) -> Result<&[Address], Unread> {
        known(&self.looked_up, &ip.to_owned(), Need::LookedUp).map(Vec::as_slice)
    }

    /// Addresses of a network that may have been associated for a claim that names none.
    pub(crate) fn recovered(&self, network: &NetworkId) -> Result<&[Address], Unread> {
        known(&self.recovered, network, Need::Recovered).map(Vec::as_slice)
    }

    /// The rules of others on an address.
    pub(crate) fn rules_of_others(&self, address: &PublicIpId) -> Result<&[Rule], Unread> {
        known(&self.rules_of_others, address, Need::RulesOfOthers).map(Vec::as_slice)
    }

    /// Whether nobody else has a rule on an address.
    pub(crate) fn is_alone(&self, address: &PublicIpId) -> Result<bool, Unread> {
        self.rules_of_others(address).map(<[_]>::is_empty)
    }

    /// What others have behind the ACL list of a network.
    pub(crate) fn neighbours(&self, network: &NetworkId) -> Result<&[Neighbour], Unread> {
        known(&self.neighbours, network, Need::Neighbours).map(Vec::as_slice)
    }

    /// The rules of a firewall that let a single port in.
    pub(crate) fn firewall(&self, id: &FirewallId) -> Result<&[FirewallRule], Unread> {
        known(&self.firewalls, id, Need::Firewall).map(Vec::as_slice)
    }

    /// Those of the firewall of an address.
    pub(crate) fn firewall_of(&self, address: &PublicIpId) -> Result<&[FirewallRule], Unread> {
        self.firewall(&FirewallId::Address(address.clone()))
    }

    /// Those of a firewall for one port.
    pub(crate) fn allowing(&self, at: &Firewall, ingress: IngressPort) -> Result<Vec<&FirewallRule>, Unread> {
        let all = self.firewall(&at.id)?.iter();
        Ok(all.filter(|rule| rule.ingress == ingress).collect())
    }

    /// The rules of a firewall for several ports, as they were listed with the others.
    pub(crate) fn ranges(&self, id: &FirewallId) -> &[PortRange] {
        self.ranges.get(id).map_or(&[], Vec::as_slice)
    }

    /// Whether those let in just these sources at a port.
    pub(crate) fn is_open_by_ranges(&self, id: &FirewallId, ingress: IngressPort, wanted: &Cidrs) -> bool {
        let open = self.ranges(id).iter().filter(|range| range.has(ingress));
        let open: Vec<&String> = open.flat_map(|range| &range.networks).collect();
        let sources: Cidrs = open.iter().collect();
        !open.is_empty() && sources.covers_ipv4(wanted) && wanted.covers_ipv4(&sources)
    }

    /// The members of a rule.
    pub(crate) fn members(&self, rule: &RuleId) -> Result<&BTreeSet<VirtualMachineId>, Unread> {
        known(&self.members, rule, Need::Members)
    }

    /// The stickiness policies of a rule.
    pub(crate) fn policies(&self, rule: &RuleId) -> Result<&[StickinessPolicy], Unread> {
        known(&self.policies, rule, Need::Policies).map(Vec::as_slice)
    }
}

/// What a reconcile has seen: the facts, and what it remembers of itself.
pub(crate) type Seen = bowline_cloud_provider::Seen<Observed, Remembered, CloudStep>;

/// Something that was read.
#[derive(Debug)]
pub(crate) enum Fact {
    /// What the server can do.
    Abilities(Abilities),
    /// All virtual machines.
    Instances(Arc<MemberIndex>),
    /// A network by its ID; `None` if there is none.
    Network(NetworkId, Option<Arc<Network>>),
    /// An address by its ID; `None` if nobody has it.
    Address(PublicIpId, Option<Address>),
    /// What there is under an address by its text.
    LookedUp(String, Vec<Address>),
    /// Addresses that may have been associated for a claim, by the ID of its network.
    Recovered(NetworkId, Vec<Address>),
    /// The rules of others on an address.
    RulesOfOthers(PublicIpId, Vec<Rule>),
    /// What an address forwards to a virtual machine.
    Forwarded(PublicIpId, String),
    /// What others have behind the ACL list of a network.
    Neighbours(NetworkId, Vec<Neighbour>),
    /// The rules of a firewall that let ports in.
    Firewall(FirewallId, FirewallList),
    /// Another Service deletes an item of an ACL list.
    Going(FirewallRuleId),
    /// A firewall that cannot be listed, by the ID of its address or ACL list.
    Unlisted(String, CloudError),
    /// Something that could not be read.
    Unreadable(Need, CloudError),
    /// The members of a rule.
    Members(RuleId, BTreeSet<VirtualMachineId>),
    /// The stickiness policies of a rule.
    Policies(RuleId, Vec<StickinessPolicy>),
    /// An item of an ACL list is somebody else's as well by now: this relies on it.
    Needed(Firewall, FirewallRuleId, Vec<Neighbour>),
    /// A port has one firewall rule only: what is there for it has to go first.
    TakesOneFirewallRule(FirewallId, IngressPort),
    /// A port of an address has one rule only, whatever its protocol: the one that is there has to go first.
    TakesOneRule(PublicIpId, u16),
    /// An address takes no rule yet.
    Unready(PublicIpId),
    /// The rules of the Service.
    Rules(Vec<Rule>),
    /// The wall time.
    Now(Timestamp),
}

/// Whether the API refused the same before in this process, for what it asks or for what has been taken away since.
pub(crate) fn was_refused(seen: &Seen, step: &CloudStep) -> bool {
    let mut refusals = seen.memory.refusals.tried_again();
    refusals.any(|(known, why)| known.is_same(step) && why.by == RefusedBy::Cloud)
}

/// Whether a rule has the port of a new one, and is to go: it is not wanted, or the new one was refused before, when it was gone. No
/// server that is known takes both.
pub(crate) fn is_in_the_way(seen: &Seen, rule: &Rule, new: &NewRule) -> bool {
    let goes = || {
        let is_unwanted = seen.memory.own.known.unwanted.contains(&rule.id);
        is_unwanted || (rule.name == new.name && was_refused(seen, &CloudStep::CreateRule(new.clone())))
    };
    rule.at() == new.at() && !rule.state.is_going() && goes()
}

/// Whether the Service itself has a rule in the way of a new one.
pub(crate) fn conflict(seen: &Seen, new: &NewRule) -> Option<Fact> {
    let is_there = seen.rules.iter().any(|rule| is_in_the_way(seen, rule, new));
    is_there.then(|| Fact::TakesOneRule(new.address.id.clone(), new.public_port))
}

/// Something was read. What this reconcile wrote is laid over a list that may be behind.
pub(crate) fn see(seen: &mut Seen, fact: Fact) {
    let Seen { observed, memory } = seen;
    let own = &mut memory.own;
    let released = &own.known.released;
    match fact {
        Fact::Abilities(abilities) => observed.abilities = Some(abilities),
        Fact::Instances(instances) => observed.instances = Some(instances),
        Fact::Network(id, network) => drop(observed.networks.insert(id, network)),
        Fact::Address(id, address) => drop(observed.addresses.insert(id, address)),
        // It may be a person's by now, or the Service asks for it again.
        Fact::LookedUp(ip, mut found) => {
            for address in found.iter_mut().filter(|it| released.is_late(&it.address.id)) {
                address.state = AddressState::Free;
            }
            observed.looked_up.insert(ip, found);
        }
        Fact::Recovered(network, mut found) => {
            found.retain(|address| !released.is_late(&address.address.id));
            observed.recovered.insert(network, found);
        }
        Fact::RulesOfOthers(address, rules) => drop(observed.rules_of_others.insert(address, rules)),
        Fact::Forwarded(address, what) => drop(own.forwarded.insert(address, what)),
        Fact::Neighbours(network, found) => drop(observed.neighbours.insert(network, found)),
        Fact::Firewall(id, FirewallList { mut rules, ranges }) => {
            if let Some(recent) = own.firewalls.get_mut(&id) {
                match own.verifies {
                    true => recent.lay_over_last(&mut rules, |rule| &rule.id),
                    false => recent.lay_over(&mut rules, |rule| &rule.id),
                }
            }
            observed.firewalls.insert(id.clone(), rules);
            observed.ranges.insert(id, ranges);
        }
        Fact::Going(item) => _ = observed.going.insert(item),
        Fact::Unlisted(id, error) => own.close_attempts.failed(&id, &Failure::new(error, true)),
        Fact::Unreadable(need, error) => drop(observed.unreadable.insert(need, error)),
        Fact::Members(rule, members) => drop(observed.members.insert(rule, members)),
        Fact::Policies(rule, mut policies) => {
            if let Some(recent) = own.policies.get_mut(&rule) {
                match own.verifies {
                    true => recent.lay_over_last(&mut policies, |policy| &policy.id),
                    false => recent.lay_over(&mut policies, |policy| &policy.id),
                }
            }
            observed.policies.insert(rule, policies);
        }
        Fact::Needed(list, item, users) => {
            own.made.acl_items.retain(|(_, known)| *known != item);
            for (network, known) in &mut observed.neighbours {
                let network = observed.networks.get(network).and_then(Option::as_ref);
                let acl = network.and_then(|network| network.acl.as_ref());
                if acl.is_some_and(|acl| acl.id == list.id) {
                    known.extend(users.iter().cloned());
                }
            }
        }
        Fact::TakesOneFirewallRule(at, ingress) => _ = own.takes_one_firewall_rule.insert((at, ingress)),
        Fact::TakesOneRule(address, port) => _ = own.takes_one_rule.insert((address, port)),
        Fact::Unready(address) => _ = own.unready.insert(address),
        Fact::Rules(rules) => observed.rules = rules,
        Fact::Now(now) => observed.now = Some(now),
    }
}
