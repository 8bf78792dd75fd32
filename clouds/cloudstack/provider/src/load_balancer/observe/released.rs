//! Addresses that this process released.
//!
//! An ID outlives the release of its address: whoever acquires the address next gets the same one. So what a list that is late shows as the
//! Service's may be somebody else's by now, and an address is not released twice, however long it is listed.

use std::collections::{BTreeMap, BTreeSet};

use bowline_cloud_provider::Kept;
use tokio::time::Instant;

use crate::load_balancer::claim::Subject;
use crate::load_balancer::objects::{AddressState, PublicIpId, Rule, RuleId};
use crate::load_balancer::observe::observed::{Fact, Pending, Seen};
use crate::load_balancer::observe::times::BEHIND;
use crate::load_balancer::step::CloudStep;

/// The addresses that Services gave back, by their UID.
#[derive(Debug, Default)]
pub(super) struct Releases(Kept<String, Released>);

/// Those of one Service.
#[derive(Debug, Clone, Default)]
pub(crate) struct Released {
    /// When, until it is asked for again.
    addresses: BTreeMap<PublicIpId, Instant>,
    /// The rules that went with them, and when.
    rules: BTreeMap<RuleId, Instant>,
}

impl Releases {
    /// What a Service gave back so far.
    pub(super) fn of(&self, uid: &String) -> Released {
        self.0.with(uid, |kept| kept.clone().unwrap_or_default())
    }

    /// An address is asked for: what is listed from now on may be that.
    pub(super) fn asked(&self, uid: &String, subject: &Subject) {
        self.0.with(uid, |kept| {
            let addresses = kept.as_mut().map(|kept| &mut kept.addresses);
            match (addresses, subject) {
                (Some(addresses), Subject::Address(id)) => drop(addresses.remove(id)),
                (Some(addresses), Subject::Any(_)) => addresses.clear(),
                (None, _) => {}
            }
        });
    }

    /// An address is nobody's any more, and these rules went with it.
    pub(super) fn gone(&self, uid: &String, id: &PublicIpId, rules: impl IntoIterator<Item = RuleId>) {
        let now = Instant::now();
        self.0.with(uid, |kept| {
            let Released {
                addresses,
                rules: known,
            } = kept.get_or_insert_default();
            addresses.insert(id.clone(), now);
            known.retain(|_, since| since.elapsed() < BEHIND);
            known.extend(rules.into_iter().map(|id| (id, now)));
        });
    }
}

/// Which of these jobs release an address, and the rules that go with it.
pub(super) fn releasing(jobs: &[Pending], seen: &Seen) -> Vec<(PublicIpId, BTreeSet<RuleId>)> {
    let released = jobs.iter().filter_map(|job| match &job.step {
        CloudStep::Release { address, .. } => Some(address.id.clone()),
        _ => None,
    });
    let with_rules = |id: PublicIpId| {
        let rules = rules_on(seen, &id);
        (id, rules)
    };
    released.map(with_rules).collect()
}

/// The Service's rules on an address.
pub(super) fn rules_on(seen: &Seen, id: &PublicIpId) -> BTreeSet<RuleId> {
    let rules = seen.rules.iter().filter(|rule| rule.address.id == *id);
    rules.map(|rule| rule.id.clone()).collect()
}

impl Released {
    /// Hides the rules that went with an address as long as a list may be behind; whether there were any. After that the server is one
    /// that leaves them, and they are deleted.
    pub(super) fn hide(&self, rules: &mut Vec<Rule>) -> bool {
        let count = rules.len();
        let is_behind = |since: &Instant| since.elapsed() < BEHIND;
        let went = |rule: &Rule| {
            self.rules
                .get(&rule.id)
                .or_else(|| self.addresses.get(&rule.address.id))
        };
        rules.retain(|rule| !went(rule).is_some_and(is_behind));
        rules.len() < count
    }

    /// What was read, without what is not the Service's any more. An address that is asked for by its text may be a person's by now.
    pub(super) fn lay_over(&self, fact: Fact) -> Fact {
        let is_behind = |id: &PublicIpId| {
            self.addresses
                .get(id)
                .is_some_and(|since| since.elapsed() < BEHIND)
        };
        match fact {
            Fact::Address(id, _) if self.addresses.contains_key(&id) => Fact::Address(id, None),
            Fact::LookedUp(ip, mut found) => {
                for address in found.iter_mut().filter(|it| is_behind(&it.address.id)) {
                    address.state = AddressState::Free;
                }
                Fact::LookedUp(ip, found)
            }
            Fact::Recovered(network, mut found) => {
                found.retain(|address| !is_behind(&address.address.id));
                Fact::Recovered(network, found)
            }
            fact => fact,
        }
    }
}
