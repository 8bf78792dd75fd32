//! Who a rule leads to: its members follow the Nodes.

use std::collections::BTreeSet;

use bowline_plan::{Refusal, RefusedBy, refusal};

use crate::load_balancer::intent::Wanted;
use crate::load_balancer::members::{self, Difference, Members};
use crate::load_balancer::objects::{Rule, VirtualMachineId};
use crate::load_balancer::observe::observed::{Need, Seen, Unread};
use crate::load_balancer::plan::builder::Builder;
use crate::load_balancer::step::{CloudStep, RuleChange};
use crate::virtual_machines::Instance;

/// There is nobody to balance over.
pub(super) fn no_hosts(members: Option<&Members>) -> Refusal {
    let text = "none of the hosts matched the list of VMs retrieved from CS API";
    if let Some(members) = members.filter(|members| !members.elsewhere.is_empty()) {
        let nodes = members.elsewhere.join(", ");
        return refusal!(
            "{text}: those named like nodes {nodes} have other IDs than the nodes name";
            "give the API keys, and the project, of the account that has the cluster's virtual machines; if these were made anew, delete the Node objects, and their kubelets register them again"
        );
    }
    match members.filter(|members| !members.unconnected.is_empty()) {
        Some(members) => refusal!(
            "{text}: {}", members.missing().unwrap_or_default();
            "give the virtual machines a NIC in the network of the cluster"
        ),
        None => refusal!(
            "{text}";
            "a virtual machine has the name of its node, and the API keys may see it in the project"
        ),
    }
}

/// What is wrong with the members: missing ones come before surplus ones go.
pub(super) fn of_rule(
    observed: &Seen,
    wanted: &Wanted,
    members: Option<&Members>,
    rule: &Rule,
) -> Result<Option<RuleChange>, Unread> {
    let known = &observed.memory.own.known;
    let present = match observed.members(&rule.id) {
        Err(_) if known.trusted.contains(&rule.id) => return Ok(None), // they were right a moment ago
        present => present?,
    };
    let Some(members) = members else {
        let is_named =
            members::named(&wanted.nodes).is_some_and(|named| named.is_empty() || named == *present);
        if is_named || known.expected.as_ref() == Some(present) {
            return Ok(None);
        }
        return Err(Need::Instances.into());
    };
    let Difference { missing, surplus } = members.compare(present);
    if let Some(added) = assignable(observed, rule, &missing) {
        return Ok(Some(RuleChange::Assign(added)));
    }
    // Who left goes whoever is refused; but old members are better than none.
    let is_wanted = |instance: &Instance| present.contains(&instance.id);
    let may_go = missing.is_empty() || members.instances.iter().any(is_wanted);
    Ok((may_go && !surplus.is_empty()).then_some(RuleChange::Unassign(surplus)))
}

/// Which of the missing members a rule is given next, if any: all, unless the API refuses some. It refuses a whole list for one of
/// them and does not say for whom, so the list is tried by halves then. Whoever was refused alone, at whatever rule, is tried
/// alone when the others are there.
fn assignable(observed: &Seen, rule: &Rule, missing: &[VirtualMachineId]) -> Option<Vec<VirtualMachineId>> {
    let refusals = &observed.memory.refusals;
    let refused = refusals.iter().chain(refusals.tried_again());
    let alone: BTreeSet<_> = refused.filter_map(|(step, _)| refused_alone(step)).collect();
    let (last, first): (Vec<_>, Vec<_>) = missing.iter().cloned().partition(|id| alone.contains(id));
    let held: Vec<_> = held_at(observed, rule).collect();
    let lists = std::iter::once(first.as_slice()).chain(last.chunks(1));
    lists.into_iter().find_map(|list| part(list, &held))
}

/// The first part of a list that the API may take: one that holds no list which it refused.
fn part(
    list: &[VirtualMachineId],
    held: &[(&[VirtualMachineId], &Refusal)],
) -> Option<Vec<VirtualMachineId>> {
    let is_in = |refused: &[VirtualMachineId]| refused.iter().all(|id| list.contains(id));
    let mut refused = held.iter().filter(|(refused, _)| is_in(refused)).peekable();
    if refused.peek().is_none() {
        return (!list.is_empty()).then(|| list.to_vec());
    }
    if list.len() < 2 || refused.any(|(_, why)| !is_of_members(why)) {
        return None;
    }
    let (one, other) = list.split_at(list.len() / 2);
    part(one, held).or_else(|| part(other, held))
}

/// Whether members are refused for what they are: not because the keys may not assign any, a limit is reached, or the cloud is in
/// trouble.
fn is_of_members(why: &Refusal) -> bool {
    why.by == RefusedBy::Cloud && !why.is_limit
}

/// The lists of members that are refused to a rule.
fn held_at<'a>(
    observed: &'a Seen,
    rule: &Rule,
) -> impl Iterator<Item = (&'a [VirtualMachineId], &'a Refusal)> {
    observed.memory.refusals.iter().filter_map(|(step, why)| {
        let (at, added) = step.assigned()?;
        (at.id == rule.id).then_some((added, why))
    })
}

fn refused_alone(step: &CloudStep) -> Option<&VirtualMachineId> {
    match step.assigned() {
        Some((_, [only])) => Some(only),
        _ => None,
    }
}

/// What is to be done about the members of a rule, if anything. Who is refused is told.
pub(super) fn change(
    plan: &mut Builder<'_>,
    wanted: &Wanted,
    members: Option<&Members>,
    rule: &Rule,
) -> Option<RuleChange> {
    let observed = plan.observed;
    if let (Some(members), Ok(present)) = (members, observed.members(&rule.id)) {
        let missing = members.compare(present).missing;
        for (list, why) in
            held_at(observed, rule).filter(|(list, _)| list.iter().all(|id| missing.contains(id)))
        {
            match list {
                [only] if is_of_members(why) => plan.left_out.push(told(members, only, why)),
                // Those of it who are refused are told one by one.
                _ if is_of_members(why) => {}
                _ => plan.left_out.push(why.clone()),
            }
        }
    }
    plan.take(of_rule(observed, wanted, members, rule)).flatten()
}

/// Why a Node's virtual machine is no member.
fn told(members: &Members, id: &VirtualMachineId, why: &Refusal) -> Refusal {
    let mut instances = members.instances.iter();
    let name = instances
        .find(|instance| instance.id == *id)
        .map(|it| it.name.as_str());
    let reason = format!(
        "virtual machine {} ({id}) does not become a member: {}",
        name.unwrap_or_default(),
        why.reason
    );
    Refusal {
        reason,
        ..why.clone()
    }
}

/// Plans that the members of a rule follow the Nodes.
pub(super) fn follow(plan: &mut Builder<'_>, wanted: &Wanted, members: Option<&Members>, rule: &Rule) {
    if let Some(change) = change(plan, wanted, members, rule) {
        plan.cloud(CloudStep::change(rule, change));
    }
}

/// Lets the members of the rules that are there follow the Nodes, and nothing else: for a Service that asks for something
/// that cannot be. It must not keep traffic on Nodes that are gone.
pub(super) fn follow_nodes(plan: &mut Builder<'_>, wanted: &Wanted) {
    let found = plan.observed.members_of(&wanted.nodes);
    for rule in &plan.observed.rules {
        if rule.state.is_going() {
            continue;
        }
        let within_reach = found.as_ref().map(|found| found.within(&rule.network));
        follow(plan, wanted, within_reach.as_ref(), rule);
    }
}
