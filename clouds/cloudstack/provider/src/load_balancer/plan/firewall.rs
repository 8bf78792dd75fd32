//! The firewall of an address.
//!
//! A port is open by one rule with exactly the wanted sources, or by rules of people for several ports that let in just those and stand
//! in the way of such a rule. The API takes no two rules for one port that name the same
//! network, so a rule that shares a network with its successor has to go before that can be made. So that the port is
//! neither closed nor wide open meanwhile, a third rule stands in: the same addresses, written as other networks.
//! Every state on the way is recognised by what the rules are, so that it does not matter where a process stops:
//!
//! ```text
//! old             old + stand-in          stand-in          stand-in + new         new
//! ```
//!
//! Some servers take no two rules for one port at all, or none whose networks overlap. A conflict tells, if nothing but the rules
//! for that port can be what it is with; then all of them go before the new one is made. Every other refusal says that the new one
//! cannot be, and closes nothing.
//!
//! Single addresses cannot be written in another way; what is open for one that is in both lists is closed for a moment.
//!
//! If a rule is refused when others have gone for it, they are opened again ([`open_again`]), and are not closed for the same as long
//! as it is held back.

use bowline_plan::{Refusal, refusal};

use crate::load_balancer::cidrs::Cidrs;
use crate::load_balancer::objects::{FirewallRule, PortRange};
use crate::load_balancer::observe::observed::Unread;
use crate::load_balancer::plan::builder::Builder;
use crate::load_balancer::step::{CloudStep, Opening};

const CHANGE: &str = "change what the service asks for, which is tried at once";

/// Plans that a port is open for exactly these sources. Other rules for the same single port go, whoever made them; rules
/// for ranges of ports stay.
pub(super) fn open(plan: &mut Builder<'_>, new: Opening, wanted: &Cidrs) -> Result<(), Unread> {
    let at = &new.at;
    let present = plan.observed.allowing(at, new.ingress)?;
    // What this reconcile opened is there; one like it that a list shows may be of whoever had the address before.
    let opened = plan.own().firewalls.get(&at.id);
    let is_listed = |rule: &FirewallRule| opened.is_none_or(|opened| opened.written(&rule.id).is_none());
    let right = present
        .iter()
        .filter(|rule| !rule.is_going && rule.sources.is_same_for_ipv4(wanted));
    if let Some(right) = right.min_by_key(|rule| is_listed(rule)) {
        for surplus in present.iter().filter(|rule| rule.id != right.id) {
            plan.cloud(CloudStep::close(at, surplus, true));
        }
        return Ok(());
    }
    let ranges = plan.observed.observed.ranges(&at.id);
    let mut in_the_way = ranges
        .iter()
        .filter(|range| range.is_in_the_way(new.ingress, &new.sources));
    if let Some(range) = in_the_way.next() {
        if plan.observed.is_open_by_ranges(&at.id, new.ingress, wanted) {
            for surplus in present {
                plan.cloud(CloudStep::close(at, surplus, true));
            }
            return Ok(());
        }
        let lets_in = range.sources().covers_ipv4(wanted);
        plan.shortfalls
            .push(in_the_way_of(&new, range, (&present, lets_in)));
        return Ok(());
    }
    if let Some(why) = plan.held(&CloudStep::Open(new.clone())) {
        open_again(plan, &new, &present);
        let reason = format!("{}{}", why.reason, stays(&present));
        let told = Refusal {
            reason,
            ..why.clone()
        };
        plan.shortfalls.push(match why.by.is_failure() {
            true => told,
            false => told.with_remedy(CHANGE),
        });
        return Ok(());
    }
    let port = (at.id.clone(), new.ingress);
    let takes_one = plan.own().takes_one_firewall_rule.contains(&port);
    let is_in_the_way = |rule: &&FirewallRule| takes_one || rule.sources.shares_with(wanted);
    let in_the_way: Vec<_> = present.iter().copied().filter(is_in_the_way).collect();
    if in_the_way.is_empty() {
        plan.cloud(CloudStep::Open(new));
        return Ok(());
    }
    let stands_in = present
        .iter()
        .any(|rule| !rule.is_going && rule.sources.stands_in_for(wanted));
    let ranges = ranges.iter().map(|range| range.networks.iter().collect());
    let taken = present.iter().map(|rule| rule.sources.clone()).chain(ranges);
    let parts = wanted.divided(&taken.collect::<Vec<Cidrs>>());
    if stands_in || parts.is_empty() || takes_one {
        for rule in in_the_way {
            plan.cloud(CloudStep::close(at, rule, stands_in));
        }
    } else {
        let sources = parts.iter().map(ToString::to_string).collect();
        plan.cloud(CloudStep::Open(Opening {
            sources,
            stands_in: true,
            ..new
        }));
    }
    Ok(())
}

/// A person's rule is in the way, and stays. Nothing is closed for what cannot be. If the rule `lets_in` all who may connect, it lets in
/// more than those.
fn in_the_way_of(new: &Opening, range: &PortRange, (present, lets_in): (&[&FirewallRule], bool)) -> Refusal {
    if lets_in {
        return refusal!(
            "port {} of {} is open for more than {}: the address has the firewall rule {range}, and CloudStack takes no two rules that have \
             a port and a network in common",
            new.ingress, new.at.name, new.sources.join(",");
            "give that rule no more networks than the service asks for, or let the service ask for all of them: Bowline leaves rules for several \
             ports alone, and whoever deletes it shuts out who uses the other ports"
        );
    }
    refusal!(
        "port {} of {} cannot be opened for {}: the address has the firewall rule {range}, and CloudStack takes no two rules that have a \
         port and a network in common{}",
        new.ingress, new.at.name, new.sources.join(","), stays(present);
        "delete that rule, or give it other networks: Bowline leaves rules for several ports alone"
    )
}

/// No ID: one that was closed for a try is opened again as another one, and what is told stays the same.
fn stays(present: &[&FirewallRule]) -> &'static str {
    match present.is_empty() {
        true => "",
        false => ": the port stays open as it is",
    }
}

/// Opens a port again as it was, whose rules were closed for one that is refused: unless what is open lets in all who could and may
/// connect, as what stands in does.
fn open_again(plan: &mut Builder<'_>, new: &Opening, present: &[&FirewallRule]) {
    let sources: Cidrs = new.sources.iter().collect();
    let closed = plan.own().closed.iter();
    for (_, old) in closed.filter(|(at, old)| *at == new.at.id && old.ingress == new.ingress) {
        let open_to = present.iter().map(|rule| &rule.sources);
        if present.is_empty() || !old.sources.shares_only(&sources, open_to) {
            plan.cloud(CloudStep::Open(Opening {
                sources: old.sources.written(),
                stands_in: false,
                ..new.clone()
            }));
        }
    }
}
