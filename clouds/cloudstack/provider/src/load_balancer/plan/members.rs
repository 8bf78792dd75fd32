//! Who a rule leads to: its members follow the Nodes.

use bowline_plan::Refusal;

use super::draft::Draft;
use crate::load_balancer::intent::Wanted;
use crate::load_balancer::members::{self, Members};
use crate::load_balancer::objects::Rule;
use crate::load_balancer::observe::observed::{Need, Seen, Unread};
use crate::load_balancer::step::{CloudStep, RuleChange};

/// There is nobody to balance over.
pub(super) fn no_hosts(members: Option<&Members>) -> Refusal {
    let text = "none of the hosts matched the list of VMs retrieved from CS API";
    if let Some(members) = members.filter(|members| !members.elsewhere.is_empty()) {
        let nodes = members.elsewhere.join(", ");
        let text = format!("{text}: those named like nodes {nodes} have other IDs than the nodes name");
        return Refusal::new(text).with_remedy(
            "give the API keys, and the project, of the account that has the cluster's virtual machines; if these were made anew, delete the Node objects, and their kubelets register them again",
        );
    }
    match members.filter(|members| !members.unconnected.is_empty()) {
        Some(members) => Refusal::new(format!("{text}: {}", members.missing().unwrap_or_default()))
            .with_remedy("give the virtual machines a NIC in the network of the cluster"),
        None => Refusal::new(text).with_remedy(
            "a virtual machine has the name of its node, and the API keys may see it in the project",
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
    let difference = members.compare(present);
    Ok(if !difference.missing.is_empty() {
        Some(RuleChange::Assign(difference.missing))
    } else if !difference.surplus.is_empty() {
        Some(RuleChange::Unassign(difference.surplus))
    } else {
        None
    })
}

/// Plans that the members of a rule follow the Nodes.
pub(super) fn follow(draft: &mut Draft<'_>, wanted: &Wanted, members: Option<&Members>, rule: &Rule) {
    if let Some(Some(change)) = draft.take(of_rule(draft.observed, wanted, members, rule)) {
        draft.cloud(CloudStep::change(rule, change));
    }
}

/// Lets the members of the rules that are there follow the Nodes, and nothing else: for a Service that asks for something
/// that cannot be. It must not keep traffic on Nodes that are gone.
pub(super) fn follow_nodes(draft: &mut Draft<'_>, wanted: &Wanted) {
    let found = draft.observed.members_of(&wanted.nodes);
    for rule in &draft.observed.rules {
        if rule.state.is_going() {
            continue;
        }
        let within_reach = found.as_ref().map(|found| found.within(&rule.network));
        follow(draft, wanted, within_reach.as_ref(), rule);
    }
}
