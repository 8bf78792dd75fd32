//! What a reconcile remembers of itself, beside the facts: what it did, what was refused, and since when it sees what.

use std::collections::{BTreeMap, BTreeSet};

use bowline_cloud_provider::{CloudError, Recent};
use bowline_plan::{Refusal, RefusedBy};
use tokio::time::Instant;

use crate::load_balancer::objects::{
    AddressRef, Firewall, FirewallId, FirewallRule, FirewallRuleId, IngressPort, PublicIpId, Rule, RuleId,
    RuleProtocol, StickinessPolicy, StickinessPolicyId,
};
use crate::load_balancer::observe::failures::{CloseAttempts, Failure};
use crate::load_balancer::observe::known::Known;
use crate::load_balancer::observe::on_the_way::OnTheWay;
use crate::load_balancer::observe::times::BEHIND;
use crate::load_balancer::step::CloudStep;

/// What a reconcile remembers.
#[derive(Debug, Default)]
pub(crate) struct Remembered {
    /// What was known when the look began.
    pub(crate) known: Known,
    /// The jobs are an earlier sync's, and since when they are waited for. Nothing else is read before they end.
    pub(crate) inherits_since: Option<Instant>,
    /// The addresses that are on their way, by jobs that are not known.
    pub(crate) on_the_way: OnTheWay,
    /// Why nothing more is begun.
    pub(crate) failure: Option<Failure>,
    /// Whether a change of members failed.
    pub(crate) cannot_follow: bool,
    /// Something of a balancer that goes was seen: the keys are those of its account.
    pub(crate) has_seen: bool,
    /// What was made for a balancer that was not there before: it goes again after a failure.
    pub(crate) made: Made,
    /// What could not be closed.
    pub(crate) close_attempts: CloseAttempts,
    /// The IDs of addresses that the API does not take back: as long as rules are on them, or as long as they are on their way.
    pub(crate) unreleased: BTreeSet<PublicIpId>,
    /// The IDs of addresses that are on their way, and on which the API makes no rule yet.
    pub(crate) unready: BTreeSet<PublicIpId>,
    /// What addresses forward to virtual machines, by their IDs. Nobody looks before an address is to be released.
    pub(crate) forwarded: BTreeMap<PublicIpId, String>,
    /// Ports for which the API takes no firewall rule beside those that are there, whatever the sources of both.
    pub(crate) takes_one_firewall_rule: BTreeSet<(FirewallId, IngressPort)>,
    /// Ports of addresses for which the API takes no rule beside the one that is there, whatever their protocols.
    pub(crate) takes_one_rule: BTreeSet<(PublicIpId, u16)>,
    /// Firewall rules that were closed; those for which others were to come are opened again if these are refused.
    pub(crate) closed: Vec<(FirewallId, FirewallRule)>,
    /// When the last write had its effect: a list may be behind it for a while.
    pub(crate) written: Option<Instant>,
    /// Rules as they were written.
    pub(crate) rules: Recent<RuleId, Rule>,
    /// The changes of rules that were made where they stand.
    pub(crate) updates: Vec<CloudStep>,
    /// What was opened and closed in firewalls.
    pub(crate) firewalls: BTreeMap<FirewallId, Recent<FirewallRuleId, FirewallRule>>,
    /// Stickiness policies that were made and deleted, by the ID of their rule.
    pub(crate) policies: BTreeMap<RuleId, Recent<StickinessPolicyId, StickinessPolicy>>,
    /// Whether all is looked at once more, after all was written: what a list shows by now counts as it shows it from then on.
    pub(crate) verifies: bool,
    /// The address of the rule that was deleted last.
    pub(crate) cleared: Option<AddressRef>,
    /// Rules are listed whose address was released, and not looked at for a while: the list may be behind.
    pub(crate) lingers: bool,
}

/// What is taken back after a failure.
#[derive(Debug, Default)]
pub(crate) struct Made {
    /// An address that was chosen automatically.
    pub(crate) address: Option<AddressRef>,
    /// Items of ACL lists.
    pub(crate) acl_items: Vec<(Firewall, FirewallRuleId)>,
    /// The cloud refused to choose an address: none was acquired.
    pub(crate) is_refused: bool,
    /// The IDs of addresses that it refused.
    pub(crate) refused: BTreeSet<PublicIpId>,
    /// Taking it back failed too. It is not tried again in this reconcile.
    pub(crate) is_stuck: bool,
}

/// What was written, and no list has to show yet.
#[derive(Debug, Clone, Default)]
pub(crate) struct Unlisted {
    written: Option<Instant>,
    rules: Recent<RuleId, Rule>,
    firewalls: BTreeMap<FirewallId, Recent<FirewallRuleId, FirewallRule>>,
    policies: BTreeMap<RuleId, Recent<StickinessPolicyId, StickinessPolicy>>,
}

impl Unlisted {
    /// Whether a list may still be behind it.
    pub(super) fn is_recent(&self) -> bool {
        self.written.is_some_and(|since| since.elapsed() < BEHIND)
    }
}

impl Remembered {
    /// What a reconcile that follows at once has to know of this one's writes.
    pub(super) fn unlisted(&self) -> Unlisted {
        Unlisted {
            written: self.written,
            rules: self.rules.clone(),
            firewalls: self.firewalls.clone(),
            policies: self.policies.clone(),
        }
    }

    /// Begins with what the reconcile before wrote a moment ago.
    pub(super) fn follows(&mut self, before: Unlisted) {
        let Unlisted {
            written,
            rules,
            firewalls,
            policies,
        } = before;
        (self.written, self.rules) = (written, rules);
        (self.firewalls, self.policies) = (firewalls, policies);
    }

    /// Everything is looked at again while something is waited for.
    pub(super) fn look_again(&mut self) {
        let before = std::mem::take(self);
        let is_behind = before.written.is_some_and(|since| since.elapsed() < BEHIND);
        let (rules, firewalls, policies) = match is_behind {
            true => (before.rules, before.firewalls, before.policies),
            false => Default::default(),
        };
        *self = Self {
            written: before.written,
            rules,
            updates: before.updates,
            firewalls,
            policies,
            on_the_way: before.on_the_way,
            made: before.made,
            close_attempts: before.close_attempts.rested(),
            unreleased: before.unreleased,
            unready: before.unready,
            forwarded: before.forwarded,
            has_seen: before.has_seen,
            closed: before.closed,
            ..Self::default()
        };
    }

    /// Everything is looked at once more, after all was written. The rules are compared with what was written: a server that does
    /// not keep a change would be told it again and again. A list may be behind what was written: then what is known counts. Answers the
    /// changes that were not kept.
    ///
    /// # Errors
    ///
    /// A rule is not as it was made.
    pub(super) fn verify(&mut self, rules: &mut Vec<Rule>) -> Result<Vec<(CloudStep, Refusal)>, CloudError> {
        let mut before = std::mem::take(self);
        let mut not_kept = Vec::new();
        for found in rules.iter() {
            // All that is changed where it stands, whatever the server's version.
            let can_be_mended = |written: &Rule| {
                (found.protocol == RuleProtocol::default() || written.protocol == found.protocol)
                    && written.private_port == found.private_port
                    && written.cidrs.is_same(&found.cidrs)
            };
            let is_kept = |written: &Rule| {
                written.name == found.name && written.algorithm == found.algorithm && can_be_mended(written)
            };
            if before.rules.written(&found.id).is_none_or(is_kept) {
                continue;
            }
            let text = format!(
                "load balancer rule {} ({}) is not as it was written: somebody else changes it, or the server does not keep the change",
                found.name, found.id
            );
            let is_its =
                |step: &&CloudStep| matches!(step, CloudStep::ChangeRule(rule, _) if rule.id == found.id);
            match before.updates.iter().rfind(is_its) {
                Some(update) => not_kept.push((update.clone(), Refusal::new(text).by(RefusedBy::Failure))),
                None if before.rules.written(&found.id).is_some_and(can_be_mended) => {}
                None => return Err(CloudError::transient(text)),
            }
        }
        before.rules.lay_over_last(rules, |rule| &rule.id);
        *self = Self {
            verifies: true,
            written: before.written,
            rules: before.rules,
            firewalls: before.firewalls,
            policies: before.policies,
            close_attempts: before.close_attempts.rested(),
            on_the_way: before.on_the_way,
            forwarded: before.forwarded,
            has_seen: before.has_seen,
            ..Self::default()
        };
        Ok(not_kept)
    }
}
