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
use super::home::Home;
use crate::cidrs::Sources;
use crate::objects::{Firewall, FirewallRule, IngressPort};
use crate::observe::Unread;
use crate::step::CloudStep;

/// Plans that a port is open for exactly these sources. Other rules for the same single port go, whoever made them; rules
/// for ranges of ports stay.
pub(super) fn open(
    draft: &mut Draft<'_>,
    home: &Home,
    ingress: IngressPort,
    sources: &Sources,
) -> Result<(), Unread> {
    let at = Firewall::Address(home.address.clone());
    let present = draft.observed.allowing(&at, ingress)?;
    let wanted = &sources.cidrs;
    if let Some(right) = present
        .iter()
        .find(|rule| !rule.is_going && rule.sources.is_same(wanted))
    {
        for surplus in present.iter().filter(|rule| rule.id != right.id) {
            draft.cloud(CloudStep::close(&at, surplus, true));
        }
        return Ok(());
    }
    let in_the_way: Vec<&FirewallRule> = present
        .iter()
        .copied()
        .filter(|rule| draft.observed.memory.own.takes_one_firewall_rule || rule.sources.shares_with(wanted))
        .collect();
    let step = |sources: Vec<String>, stands_in| CloudStep::Open {
        at: at.clone(),
        network: home.network.id.clone(),
        ingress,
        sources,
        stands_in,
    };
    if in_the_way.is_empty() {
        draft.cloud(step(sources.texts().to_vec(), false));
        return Ok(());
    }
    let stands_in = present
        .iter()
        .any(|rule| !rule.is_going && rule.sources.stands_in_for(wanted));
    let parts = wanted.divided(present.iter().map(|rule| &rule.sources));
    if stands_in || parts.is_empty() || draft.observed.memory.own.takes_one_firewall_rule {
        for rule in in_the_way {
            draft.cloud(CloudStep::close(&at, rule, stands_in));
        }
    } else {
        draft.cloud(step(parts.iter().map(ToString::to_string).collect(), true));
    }
    Ok(())
}
