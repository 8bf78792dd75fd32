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
use crate::cidrs::Cidrs;
use crate::objects::FirewallRule;
use crate::observe::Unread;
use crate::step::{CloudStep, Opening};

/// Plans that a port is open for exactly these sources. Other rules for the same single port go, whoever made them; rules
/// for ranges of ports stay.
pub(super) fn open(draft: &mut Draft<'_>, new: Opening, wanted: &Cidrs) -> Result<(), Unread> {
    let at = &new.at;
    let present = draft.observed.allowing(at, new.ingress)?;
    if let Some(right) = present
        .iter()
        .find(|rule| !rule.is_going && rule.sources.is_same(wanted))
    {
        for surplus in present.iter().filter(|rule| rule.id != right.id) {
            draft.cloud(CloudStep::close(at, surplus, true));
        }
        return Ok(());
    }
    let takes_one = draft.own().takes_one_firewall_rule;
    let is_in_the_way = |rule: &&FirewallRule| takes_one || rule.sources.shares_with(wanted);
    let in_the_way: Vec<_> = present.iter().copied().filter(is_in_the_way).collect();
    if in_the_way.is_empty() {
        draft.cloud(CloudStep::Open(new));
        return Ok(());
    }
    let stands_in = present
        .iter()
        .any(|rule| !rule.is_going && rule.sources.stands_in_for(wanted));
    let parts = wanted.divided(present.iter().map(|rule| &rule.sources));
    if stands_in || parts.is_empty() || takes_one {
        for rule in in_the_way {
            draft.cloud(CloudStep::close(at, rule, stands_in));
        }
    } else {
        let sources = parts.iter().map(ToString::to_string).collect();
        draft.cloud(CloudStep::Open(Opening {
            sources,
            stands_in: true,
            ..new
        }));
    }
    Ok(())
}
