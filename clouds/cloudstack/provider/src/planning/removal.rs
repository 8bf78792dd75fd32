//! Takes away what is not wanted any more: first the opening of a port, then its rule. So whatever is left after a crash
//! still tells which port it belongs to.
//!
//! An item of an ACL list that others rely on is left. They may be going as well, and each may see the others' rules until
//! they are gone. So who leaves an item writes its rule on the Service, and looks again when the rule is gone: of all that
//! go, the last one to lose its rule sees none of the others.

use std::collections::BTreeSet;

use bowline_plan::Impact;

use super::acl::{self, Shut};
use super::{Draft, firewall};
use crate::cidrs::Sources;
use crate::claim::Claimed;
use crate::events::ADDRESS_KEPT;
use crate::intent::Identity;
use crate::objects::{Address, AddressRef, AddressState, Barrier, Network, Opening, Rule};
use crate::observe::{GIVEN_BACK, GIVEN_BACK_AGAIN};
use crate::replaced::{OpenPort, Replaced};
use crate::step::CloudStep;

/// Why an address stays.
pub(super) const ACQUIRED_ANEW: &str = "it does not lead where it did when it was claimed for this service, so somebody has acquired it \
     anew; release it by hand if nobody needs it";

/// A removal, and what it must spare.
pub(super) struct Removal<'a> {
    pub(super) identity: &'a Identity,
    /// The sources that the Service's ports are open for.
    pub(super) sources: &'a Sources,
    /// What the Service still needs open.
    pub(super) wanted: BTreeSet<Opening>,
    /// The address at which it does.
    pub(super) home: Option<&'a AddressRef>,
}

impl Removal<'_> {
    /// Removes all that the Service has at an address, and gives the address back if it is held.
    pub(super) fn address(
        &self,
        draft: &mut Draft<'_>,
        address: &AddressRef,
        rules: &[&Rule],
        is_held: bool,
    ) {
        let Some(facts) = draft.address(&address.id) else {
            return;
        };
        // Nothing needs it any more, so it is not waited for as long as by a balancer; and not at all if it came to serve. Nobody may
        // ask after the job by which it goes: then it is given back once more.
        let observed = draft.observed;
        let is_waited_for = facts.is_some_and(|facts| match facts.state {
            AddressState::Allocating => rules.is_empty() && !observed.has_waited(GIVEN_BACK),
            AddressState::Releasing => !observed.has_waited(GIVEN_BACK_AGAIN),
            AddressState::Free | AddressState::Allocated => false,
        });
        if is_waited_for {
            draft.wait_for_address(address);
            return;
        }
        let can_be_released = facts.is_some_and(|facts| {
            facts.state != AddressState::Free && !facts.is_source_nat && !facts.is_static_nat
        });
        if facts.is_some_and(|facts| self.is_anothers(facts, rules)) {
            draft.keep(address, ACQUIRED_ANEW);
            // With it went what was open, and all that is open there by now is somebody else's.
            for rule in rules {
                draft.cloud(CloudStep::delete(rule, Impact::Major));
            }
            return;
        }
        // Without a rule on it, only the claim tells whose it is.
        let claim = &self.identity.claim;
        let is_own = claim.names(&address.id) || claim.shares(&address.id);
        let is_others =
            rules.is_empty() && !claim.shares(&address.id) && self.identity.is_claimed_by_others(&address.id);
        let goes_bare = !rules.is_empty() && draft.observed.unreleased.contains(&address.id);
        let is_released = if is_held && can_be_released && !is_others && !goes_bare {
            let Some(strangers) = draft.strangers(&address.id) else {
                return;
            };
            if let Some(stranger) = strangers.first() {
                draft.notes.push(ADDRESS_KEPT.note(format!(
                    "public IP {} is not released: others use it, such as load balancer rule {}",
                    address.ip, stranger.name
                )));
                if !is_own {
                    // They may be going too. Who claims it looks once more when its own rules are gone: the last one sees nobody.
                    draft.claims.insert(Claimed::Address(address.id.clone()));
                    draft.leads_as_it_does(&address.id, rules);
                }
            }
            strangers.is_empty()
        } else {
            false
        };
        if !is_released {
            for rule in rules {
                self.rule(draft, rule, Impact::Major);
            }
            return;
        }
        // The items first: with the address its rules go, and nothing tells any more which ports they had.
        let shut = |rule: &&Rule| match OpenPort::of(rule, &self.identity.name) {
            Some(port) => self.has_shut_acl(draft, rule, &port),
            None => true,
        };
        let closed: Vec<bool> = rules.iter().map(shut).collect();
        if closed.contains(&false) {
            return;
        }
        let can_tell_place = rules.iter().any(|rule| !rule.network.is_empty());
        if is_own && (claim.shares(&address.id) || claim.place(&address.id).is_some() || !can_tell_place) {
            draft.cloud(CloudStep::Release {
                address: address.clone(),
                is_live: !rules.is_empty(),
            });
        } else {
            // So that a release that fails half-way, when no rule is left, is found again.
            draft.claims.insert(Claimed::Address(address.id.clone()));
            draft.leads_as_it_does(&address.id, rules);
        }
    }

    /// Whether somebody acquired an address anew for something else than its rules, and what is written, were for.
    fn is_anothers(&self, facts: &Address, rules: &[&Rule]) -> bool {
        let id = &facts.address.id;
        let mut led = rules.iter().map(|rule| rule.network.as_str());
        match (&facts.network, led.find(|network| !network.is_empty())) {
            _ if facts.state != AddressState::Allocated => false,
            (Some(leads), Some(led)) => leads != led,
            _ => self
                .identity
                .claim
                .place(id)
                .is_some_and(|place| !facts.is_at(place)),
        }
    }

    /// Removes one rule and what was opened for it.
    pub(super) fn rule(&self, draft: &mut Draft<'_>, rule: &Rule, impact: Impact) {
        if self.shut(draft, rule) {
            draft.cloud(CloudStep::delete(rule, impact));
        }
    }

    /// Reads early what it takes to close a port that is open.
    pub(super) fn foresee(&self, draft: &mut Draft<'_>, port: &OpenPort) {
        let steps = draft.steps.len();
        self.shut_firewall(draft, port);
        self.shut_acl(draft, port);
        draft.steps.truncate(steps);
    }

    /// Closes what is open without a rule and is not wanted any more.
    pub(super) fn open_ports(&self, draft: &mut Draft<'_>) {
        for port in self.identity.replaced.ports() {
            let is_of_rule = |rule: &Rule| {
                OpenPort::of(rule, &self.identity.name).is_some_and(|other| {
                    other.address == port.address
                        && other.opening == port.opening
                        && (other.network.is_empty() || other.network == port.network)
                })
            };
            if !draft.observed.rules.iter().any(is_of_rule) {
                self.shut_firewall(draft, port);
                self.shut_acl(draft, port);
            }
        }
    }

    /// Whether nothing is let in for a rule any more.
    fn shut(&self, draft: &mut Draft<'_>, rule: &Rule) -> bool {
        match OpenPort::of(rule, &self.identity.name) {
            // Unreadable, or on its way out: the rule goes by its ID.
            None => true,
            Some(port) => self.shut_firewall(draft, &port) && self.has_shut_acl(draft, rule, &port),
        }
    }

    /// Whether the firewall lets nothing in at a port any more.
    fn shut_firewall(&self, draft: &mut Draft<'_>, port: &OpenPort) -> bool {
        let OpenPort {
            address,
            network,
            opening,
        } = port;
        let known = draft.observed.addresses.get(address).and_then(Option::as_ref);
        if known
            .and_then(|facts| facts.network.as_ref())
            .is_some_and(|leads| !network.is_empty() && leads != network)
        {
            return true; // somebody else's by now
        }
        let is_at_home = self.home.is_some_and(|home| home.id == *address);
        if address.is_empty() || (is_at_home && self.wanted.contains(opening)) {
            return true;
        }
        match self.network(draft, port) {
            None => return false,
            Some(Some(network)) if network.barrier() == Barrier::Firewall => {}
            Some(_) => return true,
        }
        let Some(address) = self.place(draft, address) else {
            return false;
        };
        // Nobody has it: then its firewall is gone too.
        let Some(address) = address else {
            return true;
        };
        let Some(strangers) = draft.strangers(&address.id) else {
            return false;
        };
        if strangers
            .iter()
            .any(|stranger| stranger.opening("") == Some(*opening))
        {
            return true;
        }
        firewall::shut(draft, &address, *opening)
    }

    /// An address that somebody has. The outer none: it has to be read first.
    fn place(&self, draft: &mut Draft<'_>, id: &str) -> Option<Option<AddressRef>> {
        let of_rules = draft.observed.rules.iter().map(|rule| &rule.address);
        if let Some(address) = self
            .home
            .into_iter()
            .chain(of_rules)
            .find(|address| address.id == id)
        {
            return Some(Some(address.clone()));
        }
        let facts = draft.address(id)?;
        let facts = facts.filter(|facts| facts.state == AddressState::Allocated);
        Some(facts.map(|facts| facts.address.clone()))
    }

    /// Whether a rule may go, as far as the ACL list is concerned: nothing is let in for it any more, or what is left is
    /// looked at again when the rule is gone.
    fn has_shut_acl(&self, draft: &mut Draft<'_>, rule: &Rule, port: &OpenPort) -> bool {
        match self.shut_acl(draft, port) {
            Shut::Done => true,
            Shut::NotYet => false,
            Shut::Left => {
                let Some(mut left) = Replaced::of(rule, &self.identity.name) else {
                    return true; // of a rule that is strange to us
                };
                if let Some(Some(network)) = self.network(draft, port) {
                    left.rule.network.clone_from(&network.id); // its address may be gone by then
                }
                let is_written = self.identity.replaced.get(&left.open_port()).is_some();
                if !is_written {
                    draft.replaced.insert(left);
                }
                is_written
            }
        }
    }

    /// Plans that the ACL list lets nothing in at a port any more.
    fn shut_acl(&self, draft: &mut Draft<'_>, port: &OpenPort) -> Shut {
        if self.wanted.contains(&port.opening) {
            return Shut::Done;
        }
        match self.network(draft, port) {
            None => Shut::NotYet,
            Some(Some(network)) => match network.barrier() {
                Barrier::Acl(list) => acl::shut(
                    draft,
                    list,
                    &network.id,
                    port.opening,
                    self.sources,
                    self.identity,
                ),
                _ => Shut::Done,
            },
            Some(None) => Shut::Done,
        }
    }

    /// The network behind a port: none if it is gone. The outer none: it has to be read first.
    fn network<'b>(&self, draft: &mut Draft<'b>, port: &OpenPort) -> Option<Option<&'b Network>> {
        let id = if port.network.is_empty() {
            // The rule does not tell; its address does.
            let address = draft.address(&port.address)?;
            address.and_then(|address| address.network.clone())
        } else {
            Some(port.network.clone())
        };
        let Some(id) = id else {
            return Some(None);
        };
        draft.network(&id)
    }
}
