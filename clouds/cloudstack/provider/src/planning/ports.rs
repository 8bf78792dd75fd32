//! The ports of a balancer at its home: a rule for each, its members, and its opening.

use bowline_plan::{Impact, Refusal};

use super::home::Home;
use super::removal::Removal;
use super::{Draft, acl, firewall};
use crate::events::DUPLICATE_REMOVED;
use crate::intent::{Port, Wanted};
use crate::members::{self, Members};
use crate::objects::{Abilities, Barrier, Rule, RuleState};
use crate::observe::Need;
use crate::open_port::OpenPort;
use crate::step::{CloudStep, NewRule, PublicPort, RuleAttributes, RuleChange};

/// Plans for all ports, and for the rules at the same address that are not wanted any more.
pub(super) fn plan(draft: &mut Draft<'_>, wanted: &Wanted, home: &Home, abilities: Abilities) {
    let removal = Removal {
        identity: &wanted.identity,
        sources: &wanted.sources,
        wanted: wanted.openings(),
        home: Some(&home.address),
    };
    for port in &wanted.ports {
        let is_standing = match present(draft, wanted, home, port) {
            Present { kept, surplus } if !surplus.is_empty() => {
                clear(draft, wanted, home, kept, &surplus, &removal);
                kept.is_some()
            }
            Present { kept: None, .. } => {
                create(draft, wanted, home, port, abilities);
                false
            }
            Present { kept: Some(rule), .. } => keep(draft, wanted, home, port, rule, abilities),
        };
        // What is open has a rule, so that the rules tell what is open.
        if is_standing {
            open(draft, wanted, home, port);
        }
    }
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

fn open(draft: &mut Draft<'_>, wanted: &Wanted, home: &Home, port: &Port) {
    let (opening, sources) = (port.opening(), &wanted.sources);
    match home.network.barrier() {
        Barrier::Firewall => firewall::open(draft, &home.address, opening, sources),
        Barrier::Acl(list) => {
            let claim = &wanted.identity.claim;
            acl::open(draft, list, &home.network.id, opening, sources, claim);
        }
        Barrier::DefaultAcl(_) | Barrier::None => {}
    }
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
) {
    let impact = match kept {
        Some(kept) => {
            draft.notes.push(DUPLICATE_REMOVED.note(format!(
                "load balancer rule {} ({}) is kept, and the others on its port of {} are removed",
                kept.name, kept.id, home.address.ip
            )));
            // What comes after it is read now, so that the whole plan can be told.
            members(draft, wanted, home.members.as_ref(), kept);
            Impact::None
        }
        // What takes its place has to be possible.
        None if !may_create(draft, wanted, home) => return,
        None => Impact::Considerable,
    };
    for rule in surplus {
        match OpenPort::of(rule, &wanted.identity.name) {
            Some(port) if kept.is_none() && removal.wanted.contains(&port.opening) => {
                replace(draft, wanted, rule, port);
            }
            _ => removal.rule(draft, rule, impact),
        }
    }
}

/// Deletes a rule that will be made anew. Its port stays open.
fn replace(draft: &mut Draft<'_>, wanted: &Wanted, rule: &Rule, port: OpenPort) {
    if wanted.identity.open_ports.contains(&port) {
        draft.cloud(delete(rule, Impact::Considerable));
    } else {
        draft.open_ports.insert(port);
    }
}

/// Makes a rule the port's where it stands, and gives it its members; or takes it away, if it cannot be changed. Whether it
/// stays.
fn keep(
    draft: &mut Draft<'_>,
    wanted: &Wanted,
    home: &Home,
    port: &Port,
    rule: &Rule,
    abilities: Abilities,
) -> bool {
    let balancer = &wanted.identity.name;
    let cidrs_differ = !rule.cidrs.is_same(&wanted.cidrs.cidrs);
    if rule.private_port != Some(port.node_port) || (cidrs_differ && !abilities.changes_cidrs) {
        // What takes its place has to be possible.
        if may_create(draft, wanted, home) {
            match OpenPort::of(rule, balancer) {
                Some(port) => replace(draft, wanted, rule, port),
                None => draft.cloud(delete(rule, Impact::Considerable)),
            }
        }
        return false;
    }
    let is_same = rule.algorithm == wanted.algorithm.as_str()
        && rule.protocol(balancer) == Some(port.protocol)
        && rule.name == port.name
        && !cidrs_differ;
    let members = members(draft, wanted, home.members.as_ref(), rule);
    if !is_same {
        draft.cloud(CloudStep::Rule {
            port: public_port(rule),
            change: RuleChange::Update {
                rule: rule.id.clone(),
                name: rule.name.clone(),
                to: RuleAttributes {
                    algorithm: wanted.algorithm,
                    protocol: port.protocol,
                    cidrs: abilities.changes_cidrs.then(|| wanted.cidrs.texts().to_vec()),
                    name: (rule.name != port.name).then(|| port.name.clone()),
                },
            },
        });
    } else if let Some(change) = members {
        draft.cloud(CloudStep::Rule {
            port: public_port(rule),
            change,
        });
    }
    true
}

/// Whether the members of a new rule are known; if not, they are read first.
fn may_create(draft: &mut Draft<'_>, wanted: &Wanted, home: &Home) -> bool {
    if home.members.is_none() && !wanted.nodes.is_empty() {
        draft.need(Need::Machines);
        return false;
    }
    true
}

fn create(draft: &mut Draft<'_>, wanted: &Wanted, home: &Home, port: &Port, abilities: Abilities) {
    if draft.observed.rules.is_empty() && wanted.nodes.is_empty() {
        draft.refuse(Refusal::new(
            "none of the hosts matched the list of VMs retrieved from CS API",
        ));
        return;
    }
    if !may_create(draft, wanted, home) {
        return;
    }
    // Servers before 4.18 refuse a list. That everybody may connect need not be said, so it is only said where it is
    // certain that it may be.
    let is_sent = abilities
        .takes_cidrs
        .unwrap_or(!wanted.cidrs.cidrs.is_everything());
    draft.cloud(CloudStep::Rule {
        port: PublicPort {
            address: home.address.clone(),
            port: Some(port.port),
        },
        change: RuleChange::Create(NewRule {
            name: port.name.clone(),
            algorithm: wanted.algorithm,
            protocol: port.protocol,
            public_port: port.port,
            private_port: port.node_port,
            network: home.network.id.clone(),
            cidrs: is_sent.then(|| wanted.cidrs.texts().to_vec()),
        }),
    });
}

/// What is wrong with the members: missing ones come before surplus ones go.
fn members(
    draft: &mut Draft<'_>,
    wanted: &Wanted,
    members: Option<&Members>,
    rule: &Rule,
) -> Option<RuleChange> {
    let Some(present) = draft.observed.members.get(&rule.id) else {
        if !draft.observed.trusted.contains(&rule.id) {
            draft.need(Need::Members(rule.id.clone()));
        }
        return None;
    };
    let Some(members) = members else {
        let is_right =
            members::named(&wanted.nodes).is_some_and(|named| named.is_empty() || named == *present);
        if !is_right {
            draft.need(Need::Machines);
        }
        return None;
    };
    let difference = members.compare(present);
    let (rule, name) = (rule.id.clone(), rule.name.clone());
    if !difference.missing.is_empty() {
        let machines = difference.missing;
        Some(RuleChange::Assign { rule, name, machines })
    } else if !difference.surplus.is_empty() {
        let machines = difference.surplus;
        Some(RuleChange::Unassign { rule, name, machines })
    } else {
        None
    }
}

/// Lets the members of the rules that are there follow the Nodes, and nothing else: for a Service that asks for something
/// that cannot be. It must not keep traffic on Nodes that are gone.
pub(super) fn follow_nodes(draft: &mut Draft<'_>, wanted: &Wanted) {
    let machines = draft.observed.machines.as_ref();
    let found = machines.map(|machines| Members::find(&wanted.nodes, machines.iter()));
    for rule in &draft.observed.rules {
        let is_reachable = |found: &Members| found.network(Some(&rule.network)).is_ok();
        if rule.state == RuleState::Revoke || !found.as_ref().is_none_or(is_reachable) {
            continue;
        }
        if let Some(change) = members(draft, wanted, found.as_ref(), rule) {
            draft.cloud(CloudStep::Rule {
                port: public_port(rule),
                change,
            });
        }
    }
}

fn public_port(rule: &Rule) -> PublicPort {
    PublicPort {
        address: rule.address.clone(),
        port: rule.public_port,
    }
}

/// Deletes a rule.
pub(super) fn delete(rule: &Rule, impact: Impact) -> CloudStep {
    CloudStep::Rule {
        port: public_port(rule),
        change: RuleChange::Delete {
            rule: rule.id.clone(),
            name: rule.name.clone(),
            impact,
        },
    }
}
