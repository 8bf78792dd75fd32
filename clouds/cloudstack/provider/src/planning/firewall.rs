//! The firewall of an address.
//!
//! A port is open by one rule with exactly the wanted sources. The API takes no two rules for one port that name the same
//! network, so a rule that shares a network with its successor has to go before that can be made. So that the port is
//! neither closed nor wide open meanwhile, a third rule stands in: the same addresses, written as other networks.
//! Every state on the way is recognised by what the rules are, so that it does not matter where a process stops:
//!
//! ```text
//! old             old + stand-in          stand-in          stand-in + new         new
//! ```
//!
//! Some servers take no two rules for one port at all, or none whose networks overlap. What they refuse tells, and then
//! all that is there goes before the new one is made.
//!
//! Single addresses cannot be written in another way; what is open for one that is in both lists is closed for a moment.

use super::Draft;
use crate::cidrs::Sources;
use crate::objects::{AddressRef, FirewallRule, Opening};
use crate::step::CloudStep;

/// Plans that a port is open for exactly these sources. Other rules for the same single port go, whoever made them; rules
/// for ranges of ports stay.
pub(super) fn open(draft: &mut Draft<'_>, address: &AddressRef, opening: Opening, sources: &Sources) {
    let Some(present) = rules(draft, address, opening) else {
        return;
    };
    let wanted = &sources.cidrs;
    if let Some(right) = present
        .iter()
        .find(|rule| !rule.is_going && rule.sources.is_same(wanted))
    {
        for surplus in present.iter().filter(|rule| rule.id != right.id) {
            draft.cloud(close(address, surplus, true));
        }
        return;
    }
    let in_the_way: Vec<&FirewallRule> = present
        .iter()
        .copied()
        .filter(|rule| draft.observed.takes_one_firewall_rule || rule.sources.shares_with(wanted))
        .collect();
    let step = |sources: Vec<String>, stands_in| CloudStep::OpenFirewall {
        address: address.clone(),
        opening,
        sources,
        stands_in,
    };
    if in_the_way.is_empty() {
        draft.cloud(step(sources.texts().to_vec(), false));
        return;
    }
    let stands_in = present
        .iter()
        .any(|rule| !rule.is_going && rule.sources.stands_in_for(wanted));
    let parts = wanted.divided(present.iter().map(|rule| &rule.sources));
    if stands_in || parts.is_empty() || draft.observed.takes_one_firewall_rule {
        for rule in in_the_way {
            draft.cloud(close(address, rule, stands_in));
        }
    } else {
        draft.cloud(step(parts.iter().map(ToString::to_string).collect(), true));
    }
}

/// Plans that a port of a removed rule is closed. Whether it is.
pub(super) fn shut(draft: &mut Draft<'_>, address: &AddressRef, opening: Opening) -> bool {
    if draft.has_given_up(&address.id, "the firewall of public IP", opening) {
        return true;
    }
    let Some(mut present) = rules(draft, address, opening) else {
        return false;
    };
    present.retain(|rule| !draft.has_given_up(&rule.id, "firewall rule", opening));
    for rule in &present {
        draft.cloud(close(address, rule, false));
    }
    present.is_empty()
}

fn rules<'a>(draft: &mut Draft<'a>, address: &AddressRef, opening: Opening) -> Option<Vec<&'a FirewallRule>> {
    let all = draft.firewall(&address.id)?;
    Some(all.iter().filter(|rule| rule.opening == opening).collect())
}

fn close(address: &AddressRef, rule: &FirewallRule, is_replaced: bool) -> CloudStep {
    CloudStep::CloseFirewall {
        address: address.clone(),
        opening: rule.opening,
        rule: rule.id.clone(),
        is_replaced,
    }
}
