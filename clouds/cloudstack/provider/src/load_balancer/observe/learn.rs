//! What a write's answer or its job told, or what they will tell. Pure.

use std::collections::BTreeSet;

use bowline_cloud_provider::{ErrorKind, Told, WriteOutcome};
use bowline_cloudstack_client::{AclItemId, Made};
use bowline_plan::{Refusal, RefusedBy};

use crate::load_balancer::cidrs::Cidrs;
use crate::load_balancer::claim::PATIENCE;
use crate::load_balancer::objects::{
    Address, AddressRef, AddressState, FirewallId, FirewallRule, FirewallRuleId, NewRule, PublicIpId, Rule,
    RuleId, RuleState, StickinessPolicyId,
};
use crate::load_balancer::observe::failures::Failure;
use crate::load_balancer::observe::observed::{Fact, Pending, Seen, conflict, see};
use crate::load_balancer::observe::remedies::refusal;
use crate::load_balancer::step::{Acquisition, Closing, CloudStep, RuleChange};

/// What the answer to a write told.
#[derive(Debug)]
pub(crate) enum Learned {
    /// A job is under way.
    Started(Box<Pending>),
    /// What was to go is gone.
    Gone,
    /// Something is not as was thought, so the write was not sent, or was refused.
    Seen(Fact),
    /// The API says no to what is asked for. The session remembers it.
    Refused(Refusal),
    /// Something else has the port, or something fails in the cloud. The session remembers it for a while.
    Held(Refusal),
    /// It failed. Data and no error, because the rest has to be brought to a good end first.
    Failed(Failure),
}

impl Told for Learned {
    fn refused(&self) -> Option<&Refusal> {
        match self {
            Self::Refused(refusal) => Some(refusal),
            _ => None,
        }
    }

    fn ends_refusal(&self) -> bool {
        !matches!(self, Self::Started(_))
    }

    /// Whether the API took the command, or had nothing to do. Whether its job succeeds is another matter.
    fn outcome(&self) -> WriteOutcome {
        match self {
            Self::Started(_) | Self::Gone => WriteOutcome::Taken,
            Self::Seen(Fact::Unready(_)) => WriteOutcome::PutOff,
            Self::Failed(failure) if failure.is_unheard => WriteOutcome::Unknown,
            Self::Seen(_) | Self::Refused(_) | Self::Held(_) | Self::Failed(_) => WriteOutcome::NotTaken,
        }
    }
}

/// Adds what an answer told.
pub(crate) fn learn(observed: &mut Seen, step: &CloudStep, learned: Learned) {
    if let Some(request) = step.address_request()
        && !matches!(learned, Learned::Seen(_))
    {
        // Until the next look tells better.
        observed.memory.own.known.standing.insert(request, PATIENCE);
    }
    match learned {
        Learned::Started(pending) => {
            observed.pending.push(*pending);
            observed.memory.new_wait();
        }
        Learned::Gone => done(observed, step, Made::Untold),
        Learned::Seen(fact) => {
            if matches!(fact, Fact::RulesOfOthers(..) | Fact::Forwarded(..)) {
                observed.memory.own.made.address = None; // others use it by now
            }
            see(observed, fact);
        }
        // The session remembers it. It is no failure, so nothing is taken back for it, and the address stays.
        Learned::Refused(_) => {}
        // With other Nodes it is another list, and not to wait for this one, unless that takes as long as an answer is waited for.
        Learned::Held(why) if step.changes_members() && why.by != RefusedBy::Silence => {
            observed.memory.refusals.hold(step.clone(), why);
        }
        Learned::Held(why) => observed.memory.refusals.add_briefly(step.clone(), why),
        Learned::Failed(failure) => failed(observed, step, failure),
    }
}

fn failed(observed: &mut Seen, step: &CloudStep, failure: Failure) {
    if let Some(closed) = step.closed()
        && observed.memory.own.known.is_removal
        && !matches!(failure.error.kind(), ErrorKind::Throttled { .. })
    {
        observed.memory.own.close_attempts.failed(closed, &failure);
        return;
    }
    if let CloudStep::Release { address, is_live } = step {
        // The balancer goes on without one that is still on its way.
        let is_left = !observed.memory.own.known.is_removal
            && observed.rules.is_empty()
            && observed.is_on_its_way(&address.id);
        if (*is_live && failure.is_definite) || is_left {
            observed.memory.own.unreleased.insert(address.id.clone());
            if failure.error.is_definite() {
                // If its rules cannot be removed either, the last look before the end would begin with it anew.
                let why = refusal(observed, step, &failure.error);
                observed.memory.refusals.add(step.clone(), why);
            }
            return;
        }
    }
    observed.memory.own.cannot_follow |= step.changes_members();
    if let Some(first) = &mut observed.memory.own.failure {
        // Writes that were made side by side may fail together: the first of them is told, and all are taken back.
        first.is_definite &= failure.is_definite || failure.is_rollback;
        observed.memory.own.made.is_stuck |= failure.is_rollback;
        return;
    }
    if let CloudStep::Associate(new) = step
        && failure.is_definite
    {
        if failure.error.is_definite() {
            let why = refusal(observed, step, &failure.error);
            observed.memory.refusals.add(step.clone(), why);
        }
        match &new.address {
            // Nobody of us has it, whoever else has.
            Some(address) => {
                observed.addresses.insert(address.id.clone(), None);
                observed.memory.own.made.refused.insert(address.id.clone());
            }
            None => observed.memory.own.made.is_refused = true,
        }
    }
    observed.memory.own.failure = Some(failure);
}

/// Changes the observation as the write would.
pub(crate) fn predict(observed: &mut Seen, step: &CloudStep) {
    if let CloudStep::CreateRule(new) = step
        && let Some(fact) = conflict(observed, new)
    {
        return see(observed, fact);
    }
    let mut id = |kind: &str| format!("new-{kind}-{}", observed.memory.made_up());
    let made = match step {
        CloudStep::CreateRule(_) => RuleId::from(id("rule")).into(),
        CloudStep::ChangeRule(_, RuleChange::Stick(_)) => StickinessPolicyId::from(id("policy")).into(),
        CloudStep::Open(new) if new.at.is_acl() => AclItemId::from(id("acl-item")).into(),
        CloudStep::Open(_) => FirewallRuleId::from(id("firewall-rule")).into(),
        CloudStep::Associate(new) if new.address.is_none() => PublicIpId::from(id("ip")).into(),
        _ => Made::Untold,
    };
    effect(observed, step, made);
}

/// A write has had its effect.
pub(crate) fn done(observed: &mut Seen, step: &CloudStep, made: Made) {
    if let CloudStep::Release { .. } | CloudStep::ChangeRule(_, RuleChange::Delete(_)) = step {
        // Others may have gone at the same time. Whoever looks after its own rule is gone cannot miss that it was the last.
        observed.neighbours.clear();
    }
    effect(observed, step, made);
}

/// Changes the observation as a write changes the cloud.
fn effect(seen: &mut Seen, step: &CloudStep, made: Made) {
    match step {
        CloudStep::Associate(new) => associated(seen, new, made),
        CloudStep::Release { address, .. } => released(seen, address),
        CloudStep::CreateRule(new) => {
            let id = match made {
                Made::Rule(id) => id,
                _ => RuleId::default(),
            };
            rule_created(seen, created(new, id));
        }
        CloudStep::ChangeRule(rule, change) => {
            if let RuleChange::Update(_) = change {
                seen.memory.own.updates.push(step.clone());
            }
            rule_changed(seen, rule, change, made);
        }
        CloudStep::Open(new) => {
            let rule = FirewallRule {
                id: opened(made),
                ingress: new.ingress,
                sources: new.sources.iter().collect(),
                has_reason: false,
                is_new: false,
                is_going: false,
            };
            let own = &mut seen.memory.own;
            if new.at.is_acl() {
                own.made.acl_items.push((new.at.clone(), rule.id.clone()));
            }
            // Without an ID nobody could tell it from what a list shows.
            if !rule.id.is_empty() {
                let recent = own.firewalls.entry(new.at.id.clone()).or_default();
                recent.write(rule.id.clone(), rule.clone());
            }
            seen.firewalls.entry(new.at.id.clone()).or_default().push(rule);
        }
        CloudStep::Close(Closing { at, rule, .. }) => {
            let own = &mut seen.memory.own;
            own.made.acl_items.retain(|(_, known)| *known != rule.id);
            let recent = own.firewalls.entry(at.id.clone()).or_default();
            recent.delete(rule.id.clone());
            if !at.is_acl() {
                own.closed.push((at.id.clone(), rule.clone()));
            }
            if let Some(listed) = seen.firewalls.get_mut(&at.id) {
                listed.retain(|known| known.id != rule.id);
            }
        }
    }
}

/// The ID that a rule of a firewall, or an item of an ACL list, has got.
fn opened(made: Made) -> FirewallRuleId {
    match made {
        Made::FirewallRule(id) => id,
        Made::AclItem(id) => id.as_str().into(),
        _ => FirewallRuleId::default(),
    }
}

/// What a plan says in place of an address that is not known yet.
pub(crate) const TO_BE_CHOSEN: &str = "an address that CloudStack chooses";

/// Nobody else has anything on an address that was acquired a moment ago.
fn associated(observed: &mut Seen, new: &Acquisition, made: Made) {
    let to = &new.to;
    let (told, ip) = match made {
        Made::Address { id, ip } => (id, ip),
        _ => (None, None),
    };
    let address = new.address.clone().unwrap_or_else(|| AddressRef {
        id: told.unwrap_or_default(),
        ip: ip.unwrap_or_else(|| TO_BE_CHOSEN.to_owned()),
    });
    let id = address.id.clone();
    if id.is_empty() {
        observed.recovered.clear(); // to be looked for
        return;
    }
    observed.rules_of_others.insert(id.clone(), Vec::new());
    let firewall = FirewallId::Address(id.clone());
    observed.ranges.remove(&firewall);
    observed.firewalls.insert(firewall, Vec::new());
    let acquired = Address {
        address: address.clone(),
        state: AddressState::Allocated,
        allocated: None,
        network: to.vpc.is_none().then(|| to.network.clone()),
        vpc: to.vpc.clone(),
        is_source_nat: false,
        is_static_nat: false,
    };
    match observed.looked_up.get_mut(&address.ip) {
        Some(found) => *found = vec![acquired.clone()],
        None => observed.memory.own.made.address = Some(address),
    }
    if new.address.is_none() {
        let found = vec![acquired.clone()];
        observed.recovered.insert(to.network.clone(), found);
    }
    observed.addresses.insert(id, Some(acquired));
}

/// With an address everything on it goes.
fn released(observed: &mut Seen, address: &AddressRef) {
    let known = observed.addresses.insert(address.id.clone(), None).flatten();
    let firewall = FirewallId::Address(address.id.clone());
    let Seen {
        observed: facts,
        memory,
    } = observed;
    facts.rules.retain(|rule| {
        let stays = rule.address.id != address.id;
        if !stays {
            memory.own.rules.forget(&rule.id);
        }
        stays
    });
    memory.own.firewalls.remove(&firewall);
    observed.firewalls.remove(&firewall);
    observed.ranges.remove(&firewall);
    observed.rules_of_others.remove(&address.id);
    if let Some(mut free) = known {
        free.state = AddressState::Free;
        observed.looked_up.insert(address.ip.clone(), vec![free]);
    }
    if observed.memory.own.made.address.as_ref() == Some(address) {
        observed.memory.own.made.address = None;
    }
}

fn rule_created(observed: &mut Seen, rule: Rule) {
    observed.members.insert(rule.id.clone(), BTreeSet::new());
    observed.policies.insert(rule.id.clone(), Vec::new());
    observed.memory.own.rules.write(rule.id.clone(), rule.clone());
    // It may have been listed meanwhile.
    observed
        .rules
        .retain(|known| known.id != rule.id || rule.id.is_empty());
    observed.rules.push(rule);
}

fn rule_changed(observed: &mut Seen, rule: &Rule, change: &RuleChange, made: Made) {
    let id = &rule.id;
    match change {
        RuleChange::Update(to) => {
            if let Some(rule) = observed.rule_mut(id) {
                if let Some(algorithm) = &to.algorithm {
                    rule.algorithm.clone_from(algorithm);
                }
                if let Some(protocol) = &to.protocol {
                    rule.protocol.clone_from(protocol);
                }
                if let Some(cidrs) = &to.cidrs {
                    rule.cidrs = cidrs.iter().collect();
                    rule.has_commas = cidrs.len() > 1;
                }
                if let Some(name) = &to.name {
                    rule.name.clone_from(name);
                }
                let rule = rule.clone();
                observed.memory.own.rules.write(rule.id.clone(), rule);
            }
        }
        RuleChange::Delete(_) => {
            observed.rules.retain(|known| known.id != *id);
            observed.members.remove(id);
            observed.memory.own.rules.delete(id.clone());
            observed.memory.own.cleared = Some(rule.address.clone());
        }
        RuleChange::Assign(instances) => {
            let members = observed.members.entry(id.clone()).or_default();
            members.extend(instances.iter().cloned());
            if let Some(rule) = observed.rule_mut(id) {
                rule.state = RuleState::Active;
            }
        }
        // The server takes it in the place of what there was.
        RuleChange::Stick(new) => {
            let policy = match made {
                Made::StickinessPolicy(made) => new.created(made),
                _ => new.created(StickinessPolicyId::default()),
            };
            let recent = observed.memory.own.policies.entry(id.clone()).or_default();
            let before = observed
                .observed
                .policies
                .insert(id.clone(), vec![policy.clone()]);
            before.into_iter().flatten().for_each(|old| recent.delete(old.id));
            if !policy.id.is_empty() {
                recent.write(policy.id.clone(), policy);
            }
        }
        RuleChange::Unstick(policy) => {
            let recent = observed.memory.own.policies.entry(id.clone()).or_default();
            recent.delete(policy.id.clone());
            if let Some(listed) = observed.observed.policies.get_mut(id) {
                listed.retain(|known| known.id != policy.id);
            }
        }
        RuleChange::Unassign(instances) => {
            if let Some(members) = observed.members.get_mut(id) {
                members.retain(|member| !instances.contains(member));
            }
        }
    }
}

fn created(new: &NewRule, id: RuleId) -> Rule {
    Rule {
        id,
        name: new.name.clone(),
        algorithm: new.algorithm.clone(),
        protocol: new.protocol.as_str().into(),
        address: new.address.clone(),
        public_port: Some(new.public_port),
        private_port: Some(new.private_port),
        network: new.network.clone(),
        cidrs: new.cidrs.iter().flatten().collect::<Cidrs>(),
        has_commas: false,
        state: RuleState::Add,
    }
}
