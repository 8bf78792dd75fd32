//! The ports of a balancer at its home: a rule for each, its members, and its firewall rule.

use bowline_plan::Impact;

use super::home::Home;
use super::port::{At, Progress};
use super::removal::Removal;
use super::{Draft, router};
use crate::intent::Wanted;
use crate::objects::{Abilities, Rule};
use crate::step::CloudStep;

/// Plans for all ports, and for the rules at the same address that are not wanted any more.
///
/// While a port is without its rule, nothing else is written, so that no other job of the network's router comes between
/// the halves of a replacement.
///
/// Rules that break the router are put right only if anything of the Service is to be changed, because that interrupts their ports.
/// But whatever is changed takes effect only when the router can read all of its rules.
pub(super) fn plan(draft: &mut Draft<'_>, wanted: &Wanted, home: &Home, abilities: Abilities) {
    let observed = draft.observed;
    let is_broken = router::is_broken(observed, abilities);
    let is_begun = !observed.pending.is_empty() || !wanted.identity.replaced.is_empty();
    if is_broken && !is_begun {
        draft.notes.push(router::note(observed, home));
    }
    let mends = is_broken && (is_begun || observed.is_changed);
    let before = (is_broken && !mends).then(|| draft.clone());
    all(draft, wanted, home, abilities, mends);
    if let Some(before) = before.filter(|_| draft.has_writes()) {
        *draft = before;
        all(draft, wanted, home, abilities, true);
    }
}

/// The same. `mends`: what breaks the router is put right.
fn all(draft: &mut Draft<'_>, wanted: &Wanted, home: &Home, abilities: Abilities, mends: bool) {
    let removal = Removal::beside(wanted, &home.address);
    // A gap that is open is closed before another one begins, also if the ports came in another order meanwhile. Nothing takes
    // effect before the router can read its rules.
    let removal = &removal;
    let at = |port| At {
        wanted,
        home,
        port,
        abilities,
        mends,
        removal,
    };
    let mut ports: Vec<At<'_>> = wanted.ports.iter().map(at).collect();
    ports.sort_by_key(|at| {
        let is_broken = mends && at.present(draft).kept.is_some_and(Rule::breaks_router);
        (!at.is_open_gap(draft), !is_broken)
    });
    let one = |at: At<'_>| draft.apart(|draft| at.one(draft));
    let mut chains: Vec<(Progress, Vec<CloudStep>)> = ports.into_iter().map(one).collect();
    let ((), rest) = draft.apart(|draft| leave(draft, wanted, home, removal));
    // Every port was decided on, so that what the others need is read by then.
    let gap = chains.iter().position(|(progress, _)| *progress == Progress::Gap);
    let steps: Vec<_> = match gap {
        Some(gap) => chains.swap_remove(gap).1,
        None => chains
            .into_iter()
            .flat_map(|(_, steps)| steps)
            .chain(rest)
            .collect(),
    };
    steps.into_iter().for_each(|step| draft.plan(step));
}

/// Takes away what is at the address of the balancer and not wanted any more.
fn leave(draft: &mut Draft<'_>, wanted: &Wanted, home: &Home, removal: &Removal<'_>) {
    removal.open_ports(draft);
    for rule in &draft.observed.rules {
        let is_here = rule.address.id == home.address.id;
        if is_here
            && wanted
                .ports
                .iter()
                .all(|port| rule.public_port != Some(port.port))
        {
            removal.rule(draft, rule, Impact::Considerable);
        }
    }
}
