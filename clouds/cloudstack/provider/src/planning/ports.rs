//! The ports of a balancer at its home: a rule for each, its members, and its opening.

use std::collections::BTreeSet;

use bowline_plan::{Impact, Refusal};

use super::home::Home;
use super::members::{self, no_hosts};
use super::removal::Removal;
use super::{Draft, Stop, acl, firewall, router};
use crate::events::DUPLICATE_REMOVED;
use crate::intent::{Identity, Port, Wanted};
use crate::members::Members;
use crate::objects::{Abilities, Barrier, NewRule, PublicPort, Rule, RuleState};
use crate::observe::{Need, Unread};
use crate::replaced::{OpenPort, Replaced};
use crate::step::{CloudStep, RuleAttributes, RuleChange};

/// How far a port is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Progress {
    /// It has a rule, or will have one.
    Ordinary,
    /// The cloud has nothing to put in its rule's place: it was deleted, or is to be, and is made anew.
    Gap,
}

/// Plans for all ports, and for the rules at the same address that are not wanted any more.
///
/// While a port is without its rule, nothing else is written, so that no other job of the network's router comes between
/// the halves of a replacement.
pub(super) fn plan(draft: &mut Draft<'_>, wanted: &Wanted, home: &Home, abilities: Abilities) {
    let mends = router::is_mended(draft, wanted, home, abilities);
    all(draft, wanted, home, Means { abilities, mends });
}

/// What a rule is changed by.
#[derive(Debug, Clone, Copy)]
pub(super) struct Means {
    pub(super) abilities: Abilities,
    /// Whether rules that break the router are put right.
    pub(super) mends: bool,
}

/// The same, with or without putting right what breaks the router.
pub(super) fn all(draft: &mut Draft<'_>, wanted: &Wanted, home: &Home, means: Means) {
    let removal = Removal {
        identity: &wanted.identity,
        sources: &wanted.sources,
        wanted: wanted.openings(),
        home: Some(&home.address),
        absent: None,
    };
    // A gap that is open is closed before another one begins, also if the ports came in another order meanwhile. Nothing takes
    // effect before the router can read its rules.
    let mut ports: Vec<&Port> = wanted.ports.iter().collect();
    ports.sort_by_key(|port| {
        let is_broken = means.mends && breaks_router(draft, wanted, home, port);
        (!is_open_gap(draft, wanted, home, port), !is_broken)
    });
    let mut chains = Vec::new();
    for port in ports {
        chains.push(draft.apart(|draft| one(draft, wanted, home, port, means, &removal)));
    }
    let ((), rest) = draft.apart(|draft| leave(draft, wanted, home, &removal));
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
    let is_wanted = |rule: &Rule| {
        wanted
            .ports
            .iter()
            .any(|port| rule.public_port == Some(port.port))
    };
    let obsolete = draft
        .observed
        .rules
        .iter()
        .filter(|rule| rule.address.id == home.address.id && !is_wanted(rule));
    for rule in obsolete {
        removal.rule(draft, rule, Impact::Considerable);
    }
}

/// Plans for one port.
fn one(
    draft: &mut Draft<'_>,
    wanted: &Wanted,
    home: &Home,
    port: &Port,
    means: Means,
    removal: &Removal<'_>,
) -> Progress {
    let abilities = means.abilities;
    let is_replaced = is_replaced(wanted, home, port);
    let (is_standing, is_complete) = match present(draft, wanted, home, port) {
        Present { kept: None, surplus }
            if !surplus.is_empty() && is_declined(draft, wanted, home, port, abilities) =>
        {
            for rule in surplus {
                hold(draft, wanted, home, rule);
            }
            (false, true)
        }
        Present { kept, surplus } if !surplus.is_empty() => {
            let cleared = clear(draft, wanted, home, kept, &surplus, removal);
            draft.take(cleared);
            (kept.is_some(), kept.is_some())
        }
        Present { kept: None, .. } if is_declined(draft, wanted, home, port, abilities) => {
            tell_declined(draft, "");
            (false, true)
        }
        Present { kept: None, .. } => {
            let created = create(draft, wanted, home, port, abilities);
            draft.take(created);
            (false, false)
        }
        Present { kept: Some(rule), .. } => {
            let is_standing = keep(draft, wanted, home, port, rule, (means, removal));
            let has_members = draft
                .observed
                .members
                .get(&rule.id)
                .is_none_or(|members| !members.is_empty());
            (is_standing, is_standing && has_members)
        }
    };
    let is_begun = !draft.steps.is_empty() || is_pending(draft, wanted, home, port);
    // What is open has a rule, so that the rules tell what is open.
    if is_standing {
        open(draft, wanted, home, port);
    }
    if is_replaced && ((is_begun && !is_complete) || is_opening(draft, home, port)) {
        Progress::Gap
    } else {
        Progress::Ordinary
    }
}

/// Whether a port's rule was taken away to be made anew, and serves not yet.
fn is_open_gap(draft: &Draft<'_>, wanted: &Wanted, home: &Home, port: &Port) -> bool {
    let serves = match present(draft, wanted, home, port) {
        Present { kept: None, surplus } => !surplus.is_empty(),
        Present { kept: Some(rule), .. } => {
            let members = draft.observed.members.get(&rule.id);
            members.is_none_or(|members| !members.is_empty())
        }
    };
    !serves && is_replaced(wanted, home, port)
}

/// Whether a port takes the place of a rule that is deleted, or about to be.
fn is_replaced(wanted: &Wanted, home: &Home, port: &Port) -> bool {
    let mut replaced = wanted.identity.replaced.ports();
    replaced.any(|open| open.address == home.address.id && wanted.follows(port, open.opening))
}

/// Whether the router cannot read a port's rule.
fn breaks_router(draft: &Draft<'_>, wanted: &Wanted, home: &Home, port: &Port) -> bool {
    let kept = present(draft, wanted, home, port).kept;
    kept.is_some_and(Rule::breaks_router)
}

/// Whether a write to a port's rule is under way.
fn is_pending(draft: &Draft<'_>, wanted: &Wanted, home: &Home, port: &Port) -> bool {
    let place = place(home, port);
    let is_other = |change: &RuleChange| match change {
        RuleChange::Create(new) => new.protocol.ip() != port.protocol.ip(),
        RuleChange::Update { rule, .. }
        | RuleChange::Delete { rule, .. }
        | RuleChange::Assign { rule, .. }
        | RuleChange::Unassign { rule, .. } => {
            let mut rules = draft.observed.rules.iter();
            rules.any(|known| known.id == *rule && is_of_other_port(wanted, port, known))
        }
    };
    draft.observed.pending.iter().any(|pending| {
        matches!(&pending.step, CloudStep::Rule { port: at, change } if *at == place && !is_other(change))
    })
}

/// Whether a rule on the same number is another port's: one for TCP, one for UDP.
fn is_of_other_port(wanted: &Wanted, port: &Port, rule: &Rule) -> bool {
    let opening = rule.opening(&wanted.identity.name);
    let mut others = wanted
        .ports
        .iter()
        .filter(|other| other.opening() != port.opening());
    others.any(|other| Some(other.opening()) == opening)
}

/// Whether a port is being opened.
fn is_opening(draft: &Draft<'_>, home: &Home, port: &Port) -> bool {
    draft.observed.pending.iter().any(|pending| match &pending.step {
        CloudStep::OpenFirewall { address, opening, .. } => {
            *address == home.address && *opening == port.opening()
        }
        CloudStep::OpenAcl { network, opening, .. } => {
            *network == home.network.id && *opening == port.opening()
        }
        _ => false,
    })
}

fn open(draft: &mut Draft<'_>, wanted: &Wanted, home: &Home, port: &Port) {
    let (opening, sources) = (port.opening(), &wanted.sources);
    let opened = match home.network.barrier() {
        Barrier::Firewall => firewall::open(draft, &home.address, opening, sources),
        Barrier::Acl(list) => acl::open(draft, list, &home.network.id, opening, sources, &wanted.identity),
        Barrier::DefaultAcl(_) | Barrier::None => Ok(()),
    };
    draft.take(opened);
}

/// What there is on one port.
struct Present<'a> {
    /// The rule that is the port's, or can be made so where it stands.
    kept: Option<&'a Rule>,
    /// What is in its way.
    surplus: Vec<&'a Rule>,
}

fn present<'a>(draft: &Draft<'a>, wanted: &Wanted, home: &Home, port: &Port) -> Present<'a> {
    let balancer = &wanted.identity.name;
    let speaks_alike =
        |rule: &Rule| rule.protocol(balancer).map(|protocol| protocol.ip()) == Some(port.protocol.ip());
    let mut own: Vec<&Rule> = draft
        .observed
        .rules
        .iter()
        .filter(|rule| rule.address.id == home.address.id && rule.public_port == Some(port.port))
        .filter(|rule| !is_of_other_port(wanted, port, rule))
        .collect();
    own.sort_by_key(|rule| {
        (
            rule.state == RuleState::Revoke,
            rule.name != port.name,
            !speaks_alike(rule),
            rule.private_port != Some(port.node_port),
            rule.state != RuleState::Active,
            rule.id.clone(),
        )
    });
    // One that speaks something else entirely cannot be changed into it.
    let is_usable =
        |rule: &Rule| rule.state != RuleState::Revoke && (rule.name == port.name || speaks_alike(rule));
    let is_kept = own.first().is_some_and(|first| is_usable(first));
    let surplus = own.split_off(usize::from(is_kept));
    Present {
        kept: own.pop(),
        surplus,
    }
}

/// Takes away what is in the way of a port's rule.
fn clear(
    draft: &mut Draft<'_>,
    wanted: &Wanted,
    home: &Home,
    kept: Option<&Rule>,
    surplus: &[&Rule],
    removal: &Removal<'_>,
) -> Result<(), Stop> {
    let is_like = |kept: &Rule, rule: &&Rule| {
        let balancer = &wanted.identity.name;
        rule.opening(balancer) == kept.opening(balancer)
    };
    let Some(kept) = kept else {
        return replace(draft, wanted, home, surplus, removal);
    };
    // One for TCP and one for UDP, of which one is wanted no more, are no duplicates.
    let impact = if surplus.iter().any(|rule| is_like(kept, rule)) {
        draft.notes.push(DUPLICATE_REMOVED.note(format!(
            "load balancer rule {} ({}) is kept, and the others on its port of {} are removed",
            kept.name, kept.id, home.address.ip
        )));
        Impact::None
    } else {
        Impact::Considerable
    };
    // What comes after it is read now, so that the whole plan can be told.
    draft.take(members::of_rule(
        draft.observed,
        wanted,
        home.members.as_ref(),
        kept,
    ));
    for rule in surplus {
        removal.rule(draft, rule, impact);
    }
    Ok(())
}

/// Deletes rules, the best of which is made anew as the port's. The port stays open, and what was there is written down
/// first.
fn replace(
    draft: &mut Draft<'_>,
    wanted: &Wanted,
    home: &Home,
    rules: &[&Rule],
    removal: &Removal<'_>,
) -> Result<(), Stop> {
    // What takes its place has to be possible.
    let members = new_members(wanted, home)?;
    let Identity { name, replaced, .. } = &wanted.identity;
    if members.is_none_or(|members| members.machines.is_empty()) {
        // The old members are better than none.
        return Err(no_hosts(members).into());
    }
    let mut is_written = true;
    let mut known: BTreeSet<OpenPort> = BTreeSet::new();
    for rule in rules {
        let Some(now) = Replaced::of(rule, name) else {
            continue; // nobody could make it again
        };
        let port = now.open_port();
        removal.foresee(draft, &port);
        if home.network.barrier() == Barrier::Firewall {
            draft.take(draft.observed.firewall(&home.address.id)); // looked at when the new rule is there
        }
        if known.insert(port.clone()) && replaced.get(&port) != Some(&now) {
            draft.replaced.insert(now);
            is_written = false;
        }
    }
    if is_written {
        for rule in rules {
            draft.cloud(CloudStep::delete(rule, Impact::Considerable));
        }
    }
    Ok(())
}

/// Makes a rule the port's where it stands, and gives it its members; or takes it away, if it cannot be changed. Whether it
/// stays.
fn keep(
    draft: &mut Draft<'_>,
    wanted: &Wanted,
    home: &Home,
    port: &Port,
    rule: &Rule,
    (means, removal): (Means, &Removal<'_>),
) -> bool {
    let (abilities, balancer) = (means.abilities, &wanted.identity.name);
    let is_good_enough = !wanted.says_cidrs && rule.cidrs.lets_everybody_in();
    let is_broken = means.mends && rule.breaks_router() && !wanted.nodes.is_empty();
    let cidrs_differ = is_broken || (!is_good_enough && !rule.cidrs.is_same(&wanted.cidrs.cidrs));
    let takes_cidrs = abilities.changes_cidrs && wanted.cidrs.can_be_updated_to();
    // The API changes the protocol too, and lists it from then on. The router goes on as before.
    if rule.private_port != Some(port.node_port)
        || rule.protocol(balancer) != Some(port.protocol)
        || (cidrs_differ && !takes_cidrs)
    {
        if is_declined(draft, wanted, home, port, abilities) {
            hold(draft, wanted, home, rule);
            return true;
        }
        let replaced = replace(draft, wanted, home, &[rule], removal);
        draft.take(replaced);
        return false;
    }
    let is_same = rule.algorithm == wanted.algorithm.as_str() && rule.name == port.name && !cidrs_differ;
    let members = members::of_rule(draft.observed, wanted, home.members.as_ref(), rule);
    let members = draft.take(members).flatten();
    if !is_same {
        draft.cloud(CloudStep::Rule {
            port: PublicPort::of(rule),
            change: RuleChange::Update {
                rule: rule.id.clone(),
                name: rule.name.clone(),
                to: RuleAttributes {
                    algorithm: wanted.algorithm,
                    protocol: port.protocol,
                    cidrs: cidrs_differ.then(|| wanted.cidrs.texts().to_vec()),
                    name: (rule.name != port.name).then(|| port.name.clone()),
                },
            },
        });
    } else if let Some(change) = members {
        draft.cloud(CloudStep::Rule {
            port: PublicPort::of(rule),
            change,
        });
    }
    true
}

/// The members of a new rule.
fn new_members<'a>(wanted: &Wanted, home: &'a Home) -> Result<Option<&'a Members>, Unread> {
    match &home.members {
        None if !wanted.nodes.is_empty() => Err(Need::Machines.into()),
        members => Ok(members.as_ref()),
    }
}

fn create(
    draft: &mut Draft<'_>,
    wanted: &Wanted,
    home: &Home,
    port: &Port,
    abilities: Abilities,
) -> Result<(), Stop> {
    if draft.observed.rules.is_empty() && wanted.nodes.is_empty() {
        return Err(no_hosts(home.members.as_ref()).into());
    }
    new_members(wanted, home)?;
    draft.cloud(CloudStep::Rule {
        port: place(home, port),
        change: RuleChange::Create(new_rule(wanted, home, port, abilities)),
    });
    Ok(())
}

fn place(home: &Home, port: &Port) -> PublicPort {
    PublicPort {
        address: home.address.clone(),
        port: Some(port.port),
    }
}

fn new_rule(wanted: &Wanted, home: &Home, port: &Port, abilities: Abilities) -> NewRule {
    // Servers before 4.18 refuse a list. That everybody may connect need not be said, so it is only said where it is
    // certain that it may be.
    let is_sent = abilities
        .takes_cidrs
        .unwrap_or(!wanted.cidrs.cidrs.is_everything());
    NewRule {
        name: port.name.clone(),
        algorithm: wanted.algorithm.as_str().to_owned(),
        protocol: port.protocol,
        public_port: port.port,
        private_port: port.node_port,
        network: home.network.id.clone(),
        cidrs: is_sent.then(|| wanted.cidrs.texts().to_vec()),
    }
}

/// Whether the API refused a port's new rule a moment ago, so that what is there is not taken away for it.
fn is_declined(draft: &Draft<'_>, wanted: &Wanted, home: &Home, port: &Port, abilities: Abilities) -> bool {
    let Some(declined) = &draft.observed.declined else {
        return false;
    };
    let new = (place(home, port), new_rule(wanted, home, port, abilities));
    declined.rules.contains(&new) || declined.seconds.contains(&port.name)
}

/// Says why not all is as it is wanted.
fn tell_declined(draft: &mut Draft<'_>, what_stays: &str) {
    if let Some(declined) = &draft.observed.declined {
        draft.shortfall.get_or_insert_with(|| {
            Refusal::new(format!("{}{what_stays}", declined.error))
                .with_remedy("change what the service asks for; the same is tried again from time to time")
        });
    }
}

/// Keeps a rule that should have another one in its place. Its members follow the Nodes.
fn hold(draft: &mut Draft<'_>, wanted: &Wanted, home: &Home, rule: &Rule) {
    tell_declined(draft, &format!(": rule {} stays as it is", rule.name));
    if rule.state != RuleState::Revoke {
        members::follow(draft, wanted, home.members.as_ref(), rule);
    }
}
