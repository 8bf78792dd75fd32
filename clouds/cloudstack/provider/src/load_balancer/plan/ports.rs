//! The ports of a balancer at its home: a rule for each, its members, and its firewall rule.

use std::collections::BTreeMap;
use std::sync::Arc;

use bowline_plan::Impact;

use crate::load_balancer::intent::{Port, Wanted};
use crate::load_balancer::objects::{AddressRef, NetworkId, Rule};
use crate::load_balancer::plan::builder::Builder;
use crate::load_balancer::plan::home::{self, Home};
use crate::load_balancer::plan::members;
use crate::load_balancer::plan::port::At;
use crate::load_balancer::plan::removal::Removal;
use crate::load_balancer::step::CloudStep;
use crate::messages::ROUTER_CONFIG_BROKEN;
use crate::version::Abilities;

/// Plans for all ports, and for the rules at the same address that are not wanted any more.
///
/// While a port is without its rule, nothing else is written, so that no other job of the network's router comes between
/// the halves of a replacement.
///
/// The router of a network is told all of its rules at once, and cannot read a list of networks with commas. Rules that break the
/// router so are put right only if anything of the Service is to be changed, because that interrupts their ports. But whatever is
/// changed takes effect only when the router can read all of its rules.
pub(super) fn plan(plan: &mut Builder<'_>, wanted: &Wanted, home: &Home, abilities: Abilities) {
    let observed = plan.observed;
    let broken = observed.rules.iter().filter(|rule| rule.breaks_router());
    let broken: Vec<&str> = broken.map(|rule| rule.name.as_str()).collect();
    // Before 4.18 rules have no lists; what stands there comes from elsewhere.
    let is_broken = abilities.takes_cidrs != Some(false) && !broken.is_empty();
    let is_begun = !observed.pending.is_empty() || !wanted.identity.replaced.is_empty();
    if is_broken && !is_begun {
        let text = format!(
            "load balancer rule {} lists source networks with commas, which the router of network {} cannot read: no change of a load \
             balancer in this network takes effect, and none works after a restart of the router; the rule is made anew with the next \
             change of the service, such as an annotation of any name",
            broken.join(", "),
            home.network.name
        );
        plan.notes.push(ROUTER_CONFIG_BROKEN.note(text).even_at_start());
    }
    let mends = is_broken && (is_begun || observed.memory.own.known.is_changed);
    let before = (is_broken && !mends).then(|| plan.clone());
    let what = if mends { What::Mended } else { What::Wanted };
    all(plan, wanted, home, abilities, what);
    if let Some(before) = before.filter(|_| plan.has_writes()) {
        *plan = before;
        all(plan, wanted, home, abilities, What::Mended);
    }
}

/// The other addresses at which the Service is served, each with the network that it leads to. A rule that was taken away to be made anew
/// counts where the status shows its address.
pub(super) fn elsewhere<'a>(plan: &Builder<'a>, home: &Home) -> BTreeMap<&'a AddressRef, &'a NetworkId> {
    let identity = plan.identity;
    let rules = plan.observed.rules.iter().filter(|rule| !rule.state.is_going());
    let rules = rules.map(|rule| (&rule.address, &rule.network));
    let replaced = identity.replaced.iter();
    let replaced = replaced.filter(|rule| identity.published.contains(&rule.address.ip));
    let all = replaced.map(|rule| (&rule.address, &rule.network)).chain(rules);
    all.filter(|(at, _)| at.id != home.address.id).collect()
}

/// Lets what is at other addresses follow the Service, its Nodes and allowed sources: they may be shown for long. No port is added there
/// and none taken away. What is wrong there is told, and holds up nothing.
pub(super) fn follow_elsewhere(plan: &mut Builder<'_>, wanted: &Wanted, home: &Home, abilities: Abilities) {
    let found = plan.observed.members_of(&wanted.nodes);
    for (address, network) in elsewhere(plan, home) {
        if network.is_empty() {
            continue; // its rules do not tell it
        }
        let Some(Some(network)) = plan.take(plan.observed.network(network)) else {
            continue;
        };
        let there = Home {
            address: address.clone(),
            network: Arc::clone(network),
            members: found.as_ref().map(|found| found.within(&network.id)),
        };
        plan.part(|plan| all(plan, wanted, &there, abilities, What::Left));
    }
    if plan.steps.is_empty() {
        members::follow_nodes(plan, wanted); // of ports that are not wanted any more
    }
    (plan.waiting, plan.is_blind) = (None, false);
    plan.shortfalls.extend(plan.refusal.take());
}

/// Whether all jobs under way change members at other addresses.
pub(super) fn change_members_elsewhere(plan: &Builder<'_>, home: &Home) -> bool {
    let mut jobs = plan.observed.pending.iter().map(|pending| &pending.step);
    jobs.all(|step| {
        step.changes_members()
            && matches!(step, CloudStep::ChangeRule(rule, _) if rule.address.id != home.address.id)
    })
}

/// Forgets the replaced rules in whose place there is one again, when nothing is left to do: if the new one was refused, the next try
/// asks beside the old one.
pub(super) fn forget_replaced(plan: &mut Builder<'_>) {
    if plan.is_idle() {
        let mut left = plan.identity.replaced.clone();
        left.retain(|replaced| plan.observed.rules.iter().all(|rule| rule.at() != replaced.at()));
        plan.replaced = left;
    }
}

/// Lets the openings of the ports that have their rules follow the allowed sources, whatever becomes of the others.
pub(super) fn follow_sources(plan: &mut Builder<'_>, wanted: &Wanted) {
    // What else is to be found out, or made, for the home is not for now.
    let found = home::find(&mut plan.clone(), wanted);
    let (Ok(home), Ok(abilities)) = (found, plan.observed.abilities()) else {
        return;
    };
    let removal = Removal::beside(wanted, &home.address);
    for port in &wanted.ports {
        let at = At {
            as_leaseweb: false,
            wanted,
            home: &home,
            port,
            abilities,
            mends: false,
            removal: &removal,
        };
        if at.present(plan).kept.is_some() {
            at.open(plan);
        }
    }
}

/// What is planned at an address.
#[derive(Clone, Copy, PartialEq, Eq)]
enum What {
    /// All ports.
    Wanted,
    /// The same, and what breaks the router is put right.
    Mended,
    /// Only the ports that are there, because the Service has left it.
    Left,
}

/// The same.
fn all(plan: &mut Builder<'_>, wanted: &Wanted, home: &Home, abilities: Abilities, what: What) {
    let (mends, is_left) = (what == What::Mended, what == What::Left);
    let removal = Removal::beside(wanted, &home.address);
    // A gap that is open is closed before another one begins, also if the ports came in another order meanwhile. Nothing takes
    // effect before the router can read its rules.
    let removal = &removal;
    let identity = &wanted.identity;
    let mut named = plan
        .observed
        .rules
        .iter()
        .map(|rule| (&rule.name, &rule.address))
        .chain(identity.replaced.iter().map(|rule| (&rule.name, &rule.address)));
    let as_leaseweb = named.any(|(name, at)| at.id == home.address.id && identity.is_of_leaseweb(name, at));
    let at = |port| At {
        as_leaseweb,
        wanted,
        home,
        port,
        abilities,
        mends,
        removal,
    };
    let ports = wanted.ports.iter().map(at);
    let mut ports: Vec<At<'_>> = ports.filter(|at| !is_left || at.is_there(plan)).collect();
    ports.sort_by_key(|at| {
        let is_broken = mends && at.present(plan).kept.is_some_and(Rule::breaks_router);
        (!at.is_open_gap(plan), !is_broken)
    });
    let one = |at: At<'_>| plan.apart(|plan| at.one(plan));
    let mut chains: Vec<(bool, Vec<CloudStep>)> = ports.into_iter().map(one).collect();
    let ((), rest) = plan.apart(|plan| match is_left {
        true => {}
        false => leave(plan, wanted, home, removal),
    });
    // Every port was decided on, so that what the others need is read by then.
    match chains.iter().position(|(is_gap, _)| *is_gap) {
        Some(gap) => chains = vec![chains.swap_remove(gap)],
        None => chains.push((false, rest)),
    }
    let steps = chains.into_iter().flat_map(|(_, steps)| steps);
    steps.for_each(|step| plan.add(step));
}

/// Whether a port of the balancer is served for certain: by a rule with members, and open.
pub(super) fn serves_one(plan: &Builder<'_>, wanted: &Wanted, home: &Home) -> bool {
    let observed = plan.observed;
    let at = home.network.firewall(&home.address);
    let is_open = |port: &Port| match &at {
        Some(at) => {
            let open = observed.allowing(at, port.ingress());
            let is_open = open.is_ok_and(|open| open.iter().any(|rule| !rule.is_going));
            is_open || observed.is_open_by_ranges(&at.id, port.ingress(), &wanted.sources.cidrs)
        }
        None => true,
    };
    let carries = |port: &Port| {
        let mut rules = observed.rules.iter();
        rules.any(|rule| {
            let members = observed.members.get(&rule.id);
            rule.at() == (&home.address, Some(port.port))
                && !rule.state.is_going()
                && members.is_some_and(|members| !members.is_empty())
        })
    };
    wanted.ports.iter().any(|port| carries(port) && is_open(port))
}

/// Takes away what is at the address of the balancer and not wanted any more.
fn leave(plan: &mut Builder<'_>, wanted: &Wanted, home: &Home, removal: &Removal<'_>) {
    removal.open_ports(plan);
    for rule in &plan.observed.rules {
        let mut ports = wanted.ports.iter();
        let is_wanted = ports.any(|port| rule.public_port == Some(port.port));
        if rule.address.id == home.address.id && !is_wanted {
            plan.part(|plan| removal.rule(plan, rule, Impact::Considerable));
        }
    }
}
