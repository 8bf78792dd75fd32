//! Addresses that this process released.
//!
//! An ID outlives the release of its address: whoever acquires the address next gets the same one. So what a list that is late shows as the
//! Service's may be somebody else's by now, and an address is not released twice, however long it is listed.

use std::collections::BTreeMap;

use bowline_cloud_provider::Kept;
use tokio::time::Instant;

use crate::load_balancer::claim::Subject;
use crate::load_balancer::objects::{PublicIpId, Rule, RuleId};
use crate::load_balancer::observe::times::BEHIND;

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

    /// Whether an address is not the Service's any more, whatever is listed under its ID.
    pub(crate) fn has(&self, id: &PublicIpId) -> bool {
        self.addresses.contains_key(id)
    }

    /// Whether a list may still show it as it was.
    pub(super) fn is_late(&self, id: &PublicIpId) -> bool {
        self.addresses
            .get(id)
            .is_some_and(|since| since.elapsed() < BEHIND)
    }
}
