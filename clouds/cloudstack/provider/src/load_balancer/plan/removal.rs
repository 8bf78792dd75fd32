//! Takes away what is not wanted any more: first the firewall rule of a port, then its load balancer rule. So whatever is
//! left after a crash still tells which port it belongs to.
//!
//! An item of an ACL list that others rely on is left. They may be going as well, and each may see the others' rules until
//! they are gone. So who leaves an item writes its rule on the Service, and looks again when the rule is gone: of all that
//! go, the last one to lose its rule sees none of the others.

use std::collections::{BTreeMap, BTreeSet};

use bowline_plan::{Impact, Refusal};

use crate::load_balancer::cidrs::Sources;
use crate::load_balancer::claim::Claimed;
use crate::load_balancer::evidence::{self, State};
use crate::load_balancer::intent::{Absent, Identity, Wanted};
use crate::load_balancer::objects::{
    AddressRef, AddressState, Filtering, Firewall, FirewallRule, IngressPort, Network, NetworkId, NewRule,
    PublicIpId, Rule,
};
use crate::load_balancer::observe::observed::{Observed, Unread};
use crate::load_balancer::plan::acl;
use crate::load_balancer::plan::builder::Builder;
use crate::load_balancer::replaced_rules::OpenPort;
use crate::load_balancer::step::CloudStep;

/// How far the closing of a port is.
pub(super) enum Shut {
    /// Nothing is let in for the Service any more.
    Done,
    /// What was opened for the Service is left: others rely on it.
    Left,
    /// Nobody knows: what lets ports in cannot be listed for now.
    Unseen(Refusal),
    /// It is closed by these steps.
    By(Vec<CloudStep>),
}

/// A removal, and what it must spare.
pub(super) struct Removal<'a> {
    pub(super) identity: &'a Identity,
    /// The sources that the Service's ports are open for.
    pub(super) sources: &'a Sources,
    /// What the Service still needs open.
    pub(super) wanted: BTreeSet<IngressPort>,
    /// The address at which it does.
    pub(super) home: Option<&'a AddressRef>,
    /// That the Service goes for good.
    pub(super) absent: Option<&'a Absent>,
}

impl<'a> Removal<'a> {
    /// What goes beside what stays at this address.
    pub(super) fn beside(wanted: &'a Wanted, home: &'a AddressRef) -> Self {
        Self {
            identity: &wanted.identity,
            sources: &wanted.sources,
            wanted: wanted.ingress_ports(),
            home: Some(home),
            absent: None,
        }
    }

    /// Removes all that the Service has at an address, and releases the address if it is held.
    pub(super) fn address(
        &self,
        plan: &mut Builder<'_>,
        address: &AddressRef,
        rules: &[&Rule],
    ) -> Result<(), Unread> {
        let claim = &self.identity.claim;
        let is_own = claim.names(&address.id) || claim.shares(&address.id);
        if !rules.is_empty() {
            plan.foresee(plan.observed.rules_of_others(&address.id));
        }
        for rule in rules.iter().filter(|rule| !rule.network.is_empty()) {
            plan.foresee(plan.observed.network(&rule.network));
        }
        let state = evidence::left(self.identity, plan.observed, &address.id, rules, self.absent)?;
        match &state {
            State::Held => {}
            State::Acquiring { .. } | State::Releasing => {
                plan.wait_for_address(address);
                return Ok(());
            }
            State::GivenAway(why) => {
                plan.keep(address, why);
                // With it went what was open, and all that is open there by now is somebody else's.
                for rule in rules {
                    plan.cloud(CloudStep::delete(rule, Impact::Major));
                }
                return Ok(());
            }
            State::Shared(rule) => {
                let why = format!("others use it, such as load balancer rule {}", rule.name);
                plan.keep(address, &why);
                if !is_own {
                    // They may be going too. Who claims it looks once more when its own rules are gone: the last one sees nobody.
                    plan.claim.insert(Claimed::Address(address.id.clone()));
                    plan.leads_as_it_does(&address.id, rules);
                }
            }
            State::Persons(Some(why)) => plan.keep(address, why),
            State::Free | State::Claimed(_) | State::Come | State::Borrowed | State::Persons(None) => {}
        }
        if state != State::Held {
            for rule in rules {
                self.rule(plan, rule, Impact::Major);
            }
            return Ok(());
        }
        // The items first: with the address its rules go, and nothing tells any more which ports they had.
        let mut is_shut = true;
        for rule in rules {
            if let Some(port) = OpenPort::of(rule, &self.identity.name) {
                let closing = self.closing(plan, &port, true);
                is_shut &= self.lets_go(plan, rule, closing);
            }
        }
        let can_tell_place = rules.iter().any(|rule| !rule.network.is_empty());
        let is_told = claim.shares(&address.id) || claim.place(&address.id).is_some() || !can_tell_place;
        if is_shut && is_own && is_told {
            plan.release(address, !rules.is_empty(), self.absent.is_some());
        } else if is_shut {
            // So that a release that fails half-way, when no rule is left, is found again.
            plan.claim.insert(Claimed::Address(address.id.clone()));
            plan.leads_as_it_does(&address.id, rules);
        }
        Ok(())
    }

    /// Removes one rule and what was opened for it.
    pub(super) fn rule(&self, plan: &mut Builder<'_>, rule: &Rule, impact: Impact) {
        // One that cannot be read, or is on its way out, goes by its ID.
        if let Some(port) = OpenPort::of(rule, &self.identity.name) {
            let closing = self.closing(plan, &port, false);
            if !self.lets_go(plan, rule, closing) {
                return;
            }
        }
        plan.cloud(CloudStep::delete(rule, impact));
    }

    /// Reads early what it takes to close a port that is open.
    pub(super) fn foresee(&self, plan: &mut Builder<'_>, port: &OpenPort) {
        let closing = self.closing(plan, port, false);
        plan.take(closing);
    }

    /// Closes what is open without a rule and is not wanted any more.
    pub(super) fn open_ports(&self, plan: &mut Builder<'_>) {
        for port in self.identity.replaced.ports() {
            let is_of_rule = |rule: &Rule| {
                OpenPort::of(rule, &self.identity.name).is_some_and(|other| {
                    other.address == port.address
                        && other.ingress == port.ingress
                        && (other.network.is_empty() || other.network == port.network)
                })
            };
            if !plan.observed.rules.iter().any(is_of_rule) {
                plan.part(|plan| {
                    let closing = self.closing(plan, port, false);
                    has_shut(plan, closing);
                });
            }
        }
    }

    /// How a port comes to be closed, in the ACL list of its network or, unless only that is to be (`acl_only`), in the firewall of
    /// its address.
    fn closing(&self, plan: &mut Builder<'_>, port: &OpenPort, acl_only: bool) -> Result<Shut, Unread> {
        let observed = plan.observed;
        let (id, ingress) = (&port.address, port.ingress);
        let is_wanted = self.wanted.contains(&ingress);
        if is_wanted && (acl_only || self.home.is_some_and(|home| home.id == *id)) {
            return Ok(Shut::Done);
        }
        let network = network_of(observed, port)?;
        match network.map(|network| (network.filtering(), &network.id)) {
            Some((Filtering::Acl(list), network)) if !is_wanted => {
                return self.shut(plan, list, network, ingress);
            }
            Some((Filtering::Addresses, _)) if !acl_only => {}
            _ => return Ok(Shut::Done),
        }
        let known = observed.known_address(id);
        let leads = known.and_then(|facts| facts.network.as_ref());
        let is_anothers = leads.is_some_and(|leads| !port.network.is_empty() && *leads != port.network);
        if is_anothers || id.is_empty() {
            return Ok(Shut::Done);
        }
        // Nobody has it: then its firewall is gone too.
        let Some(address) = self.place(observed, id)? else {
            return Ok(Shut::Done);
        };
        let mut rules_of_others = observed.rules_of_others(id)?.iter();
        if rules_of_others.any(|other| other.may_need(ingress)) {
            return Ok(Shut::Done);
        }
        self.shut(plan, &Firewall::of(address), &port.network, ingress)
    }

    /// How a firewall comes to let nothing in at a port any more. Of an ACL list only what was made for the Service goes, and
    /// nothing that others rely on.
    fn shut(
        &self,
        plan: &mut Builder<'_>,
        at: &Firewall,
        network: &NetworkId,
        ingress: IngressPort,
    ) -> Result<Shut, Unread> {
        let (all, one) = match at.is_acl() {
            false => ("the firewall of public IP", "firewall rule"),
            true => ("the network ACL list", "network ACL item"),
        };
        if let Some(error) = plan.own().close_attempts.unlisted(at.id.as_str()) {
            let text = format!(
                "the load balancer is gone, and {all} cannot be listed, by which {ingress} may be open: {error}"
            );
            return Ok(Shut::Unseen(Refusal::new(text)));
        }
        if plan.has_given_up(at.id.as_str(), all, ingress) {
            return Ok(Shut::Done);
        }
        if at.is_acl() {
            plan.foresee(plan.observed.neighbours(network));
        }
        let mut open = plan.observed.allowing(at, ingress)?;
        if at.is_acl() {
            let has_sources = |item: &FirewallRule| item.sources.is_same(&self.sources.cidrs);
            let claim = &self.identity.claim;
            open.retain(|item| !item.has_reason && (has_sources(item) || acl::is_own(item, claim)));
        }
        open.retain(|rule| !plan.has_given_up(rule.id.as_str(), one, ingress));
        if open.is_empty() {
            return Ok(Shut::Done);
        }
        if at.is_acl() {
            open = acl::without_those_of_others(plan, at, network, open)?;
        }
        if open.is_empty() {
            return Ok(Shut::Left);
        }
        let close = |rule: &FirewallRule| CloudStep::close(at, rule, false);
        Ok(Shut::By(open.into_iter().map(close).collect()))
    }

    /// An address that somebody has.
    fn place<'b>(
        &'b self,
        observed: &'b Observed,
        id: &PublicIpId,
    ) -> Result<Option<&'b AddressRef>, Unread> {
        let of_rules = observed.rules.iter().map(|rule| &rule.address);
        let mut known = self.home.into_iter().chain(of_rules);
        if let Some(address) = known.find(|address| address.id == *id) {
            return Ok(Some(address));
        }
        let facts = observed.address(id)?;
        let facts = facts.filter(|facts| facts.state == AddressState::Allocated);
        Ok(facts.map(|facts| &facts.address))
    }

    /// Whether a rule may go: nothing is let in for it any more, or what is left is looked at again when the rule is gone.
    fn lets_go(&self, plan: &mut Builder<'_>, rule: &Rule, closing: Result<Shut, Unread>) -> bool {
        if !matches!(closing, Ok(Shut::Left | Shut::Unseen(_))) {
            return has_shut(plan, closing);
        }
        let Some(mut left) = NewRule::again(rule, &self.identity.name) else {
            return true; // of a rule that is strange to us
        };
        if let Ok(Some(network)) = network_of(plan.observed, &left.open_port()) {
            left.network.clone_from(&network.id); // its address may be gone by then
        }
        let is_written = self.identity.replaced.get(&left.open_port()).is_some();
        if !is_written {
            plan.replaced.insert(left);
        }
        is_written
    }
}

/// Rules by their addresses.
pub(super) fn by_address<'a>(
    rules: impl Iterator<Item = &'a Rule>,
) -> BTreeMap<&'a AddressRef, Vec<&'a Rule>> {
    let mut by_address: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for rule in rules {
        by_address.entry(&rule.address).or_default().push(rule);
    }
    by_address
}

/// Plans what is still to be closed. Whether nothing is.
fn has_shut(plan: &mut Builder<'_>, closing: Result<Shut, Unread>) -> bool {
    match plan.take(closing) {
        Some(Shut::Done | Shut::Left) => true,
        Some(Shut::Unseen(refusal)) => {
            plan.refusal.get_or_insert(refusal);
            false
        }
        Some(Shut::By(steps)) => {
            steps.into_iter().for_each(|step| plan.cloud(step));
            false
        }
        None => false,
    }
}

/// The network behind a port; `None` if it is gone.
fn network_of<'a>(observed: &'a Observed, port: &OpenPort) -> Result<Option<&'a Network>, Unread> {
    let id = if port.network.is_empty() {
        // The rule does not tell; its address does.
        let address = observed.address(&port.address)?;
        address.and_then(|address| address.network.as_ref())
    } else {
        Some(&port.network)
    };
    match id {
        Some(id) => Ok(observed.network(id)?.map(AsRef::as_ref)),
        None => Ok(None),
    }
}
