//! The address at which the balancer is, or will be: the one that is asked for, the one that its rules have, or one that
//! is acquired for it.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use bowline_plan::{Refusal, refusal};

use crate::load_balancer::claim::Claimed;
use crate::load_balancer::evidence::{self, State};
use crate::load_balancer::intent::Wanted;
use crate::load_balancer::members::{Members, named_twins};
use crate::load_balancer::objects::{AddressRef, Filtering, Network, NewRule, Place, PublicIpId, Rule};
use crate::load_balancer::observe::observed::{Need, Observed, Seen, Unread};
use crate::load_balancer::observe::times::{LOOK, STUCK};
use crate::load_balancer::plan::builder::{Builder, Stop};
use crate::load_balancer::plan::removal::{Removal, by_address};
use crate::load_balancer::plan::{any_address, members};
use crate::load_balancer::step::CloudStep;
use crate::messages::{NODES_LEFT_OUT, ONE_INSTANCE};
use crate::virtual_machines::LB;

mod address;

use address::{automatic_address, requested_address};

/// Where the balancer is.
pub(super) struct Home {
    pub(super) address: AddressRef,
    pub(super) network: Arc<Network>,
    /// The Nodes' virtual machines, where that had to be known.
    pub(super) members: Option<Members>,
}

/// Finds the address, or plans what has to be done to have one.
pub(super) fn find(plan: &mut Builder<'_>, wanted: &Wanted) -> Result<Home, Stop> {
    let claim = &wanted.identity.claim;
    let rules = plan
        .observed
        .rules
        .iter()
        .filter(|rule| !claim.is_going(&rule.address.id));
    let requested = wanted.identity.requested.as_deref();
    let settled = match requested {
        Some(ip) => rules
            .map(|rule| &rule.address)
            .find(|address| address.ip == ip)
            .cloned(),
        None => busiest(rules, &wanted.identity.published),
    };
    let found = plan.observed.members_of(&wanted.nodes);
    let network = network(plan.observed, settled.as_ref(), found.as_ref());
    let members = match (&network, found) {
        (Ok(network), Some(found)) => Some(found.within(&network.id)),
        (_, found) => found,
    };
    if let Some(missing) = members.as_ref().and_then(Members::missing) {
        plan.notes.push(NODES_LEFT_OUT.note(missing));
    }
    let twins = match &members {
        Some(members) => members.twins.clone(),
        None => named_twins(&wanted.nodes),
    };
    for [one, other] in twins {
        let text = format!("nodes {one} and {other} have the same virtual machine, which is a member once");
        plan.notes.push(ONE_INSTANCE.note(text));
    }
    let network = network?;
    let settled = match settled {
        None => former(plan.observed, wanted, &network)?,
        settled => settled,
    };
    foresee(plan, wanted, &network, settled.as_ref());
    if settled.is_none() {
        finish_release(plan, wanted)?;
    }
    let address = match (settled, requested) {
        (Some(address), _) => address,
        (None, Some(ip)) => {
            // What an earlier try acquired is released later.
            any_address::adopt(plan, STUCK)?;
            requested_address(plan, wanted, &network, ip)?
        }
        (None, None) => automatic_address(plan, wanted, &network)?,
    };
    Ok(Home {
        address,
        network,
        members,
    })
}

/// Brings to its end what an earlier process began to release: it would go while the balancer serves there.
fn finish_release(plan: &mut Builder<'_>, wanted: &Wanted) -> Result<(), Stop> {
    let (identity, observed) = (&wanted.identity, plan.observed);
    for id in identity.claim.going() {
        let rules: Vec<&Rule> = observed
            .rules
            .iter()
            .filter(|rule| rule.address.id == *id)
            .collect();
        let (state, Some(known)) = (
            evidence::left(identity, observed, id, &rules, None)?,
            observed.address(id)?,
        ) else {
            continue;
        };
        match state {
            State::Free => continue,
            State::Held | State::Acquiring { .. } if plan.keeps(&known.address, !rules.is_empty()) => {
                plan.claim.insert(Claimed::Address(id.clone())); // it may serve, or is left while it is on its way
            }
            State::Held => plan.cloud(CloudStep::release(&known.address, !rules.is_empty())),
            State::Acquiring { .. } | State::Releasing => plan.wait_for_address(&known.address),
            State::GivenAway(_) => plan.claim.retain(|claimed| claimed.own_id() != Some(id)),
            // Somebody else uses it by now, or a person keeps it.
            _ => plan.claim.insert(Claimed::Address(id.clone())),
        }
        return Err(Stop::Planned);
    }
    Ok(())
}

/// Reads early what will be needed when the steps before it are done, so that the whole plan can be told in advance.
fn foresee(plan: &mut Builder<'_>, wanted: &Wanted, network: &Network, at: Option<&AddressRef>) {
    let observed = plan.observed;
    let filtering = network.filtering();
    if let Filtering::Acl(list) = filtering {
        plan.take(observed.firewall(&list.id));
        if at.is_none() && !observed.rules.is_empty() {
            plan.take(observed.neighbours(&network.id));
        }
    }
    if at.is_none() && observed.instances.is_none() && !wanted.nodes.is_empty() {
        plan.need(Need::Instances);
    }
    let left = observed.rules.iter().filter(|rule| Some(&rule.address) != at);
    for rule in left {
        let id = &rule.address.id;
        let is_open = rule
            .ingress(&wanted.identity.name)
            .is_some_and(|ingress| !wanted.ingress_ports().contains(&ingress));
        plan.take(observed.address(id));
        plan.take(observed.rules_of_others(id));
        match filtering {
            Filtering::Addresses => drop(plan.take(observed.firewall_of(id))),
            Filtering::Acl(_) if is_open => drop(plan.take(observed.neighbours(&network.id))),
            _ => {}
        }
    }
    if observed.rules.is_empty() {
        return;
    }
    let is_known = |id: &PublicIpId| {
        let mut looked_up = observed.looked_up.values().flatten();
        at.is_some_and(|at| at.id == *id) || looked_up.any(|known| known.address.id == *id)
    };
    for id in wanted.identity.claim.ids().filter(|id| !is_known(id)) {
        if plan.take(observed.address(id)).flatten().is_some() {
            plan.take(observed.rules_of_others(id));
        }
    }
}

/// The address that the status shows, if a rule has it; else the one that most rules have, the first by ID of several.
fn busiest<'a>(rules: impl Iterator<Item = &'a Rule>, published: &[String]) -> Option<AddressRef> {
    let staying = rules.filter(|rule| !rule.state.is_going());
    let by_address = by_address(staying).into_iter().rev();
    let busiest = by_address.max_by_key(|(address, rules)| (published.contains(&address.ip), rules.len()));
    busiest.map(|(address, _)| address.clone())
}

/// The address of a rule that goes, or that was taken away to be made anew, where no other rule tells one; none if there is no
/// such one, or it can be used no more.
fn former(observed: &Seen, wanted: &Wanted, network: &Network) -> Result<Option<AddressRef>, Unread> {
    let identity = &wanted.identity;
    let going = observed.rules.iter().map(|rule| &rule.address);
    let is_shown = |at: &AddressRef| identity.published.contains(&at.ip);
    let counts = |replaced: &&NewRule| {
        let is_wanted = wanted.ports.iter().any(|port| port.port == replaced.public_port);
        is_wanted || is_shown(&replaced.address)
    };
    let replaced = identity.replaced.iter().filter(counts);
    let cleared = &observed.memory.own.cleared;
    let Some(at) = going
        .chain(replaced.map(|replaced| &replaced.address))
        .chain(cleared)
        .filter(|at| identity.requested.as_ref().is_none_or(|ip| at.ip == *ip))
        .filter(|at| !identity.claim.is_going(&at.id))
        .max_by_key(|at| is_shown(at))
    else {
        return Ok(None);
    };
    let is_read = observed.addresses.contains_key(&at.id);
    if !is_read && cleared.as_ref() == Some(at) {
        return Ok(Some(at.clone())); // a moment ago there was a rule
    }
    let address = observed.address(&at.id)?;
    let address = address.filter(|address| evidence::can_serve_again(address, network));
    Ok(address.map(|address| address.address.clone()))
}

/// The network of the members, with all that has to be right about it before anything is made.
fn network(
    observed: &Observed,
    at: Option<&AddressRef>,
    members: Option<&Members>,
) -> Result<Arc<Network>, Stop> {
    let rules = observed.rules.iter().filter(|rule| !rule.network.is_empty());
    let given = rules.min_by_key(|rule| Some(&rule.address) != at);
    let given = given.map(|rule| &rule.network);
    let is_new = observed.rules.is_empty();
    let id = match (given, members) {
        (Some(network), None) => network.clone(),
        (None, None) => return Err(Unread::from(Need::Instances).into()),
        (given, Some(members)) => match members.network(given)? {
            Some(network) if !is_new || !members.instances.is_empty() => network,
            _ => return Err(members::no_hosts(Some(members)).into()),
        },
    };
    let Some(network) = observed.network(&id)? else {
        return Err(Refusal::new(format!("could not find network ID {id}")).into());
    };
    if is_new && !network.offers(LB) {
        let refusal = refusal!(
            "network {} ({id}) offers no load balancing: the service Lb is not among those of its offering", network.name;
            "use a network offering with the service Lb"
        );
        return Err(refusal.into());
    }
    Ok(Arc::clone(network))
}

/// Whether the Service's status shows the balancer at an address.
pub(super) fn is_shown(wanted: &Wanted, at: &AddressRef) -> bool {
    let shown = wanted.hostname.as_ref().unwrap_or(&at.ip);
    wanted.identity.published.contains(shown)
}

/// Removes what the balancer has at other addresses: it has moved.
pub(super) fn leave_others(plan: &mut Builder<'_>, wanted: &Wanted, home: &Home) {
    let rules = plan.observed.rules.iter();
    let elsewhere = rules.filter(|rule| rule.address.id != home.address.id);
    let removal = Removal::beside(wanted, &home.address);
    for (address, rules) in by_address(elsewhere) {
        plan.part(|plan| {
            let removed = removal.address(plan, address, &rules);
            plan.take(removed);
        });
    }
}

/// Releases what the Service claims and does not use, and takes it off the claim.
pub(super) fn tidy_claim(plan: &mut Builder<'_>, wanted: &Wanted, home: &Home) -> Result<(), Stop> {
    let (identity, claim, at) = (&wanted.identity, &wanted.identity.claim, &home.address);
    any_address::adopt(plan, STUCK)?;
    let observed = plan.observed;
    let is_shown = is_shown(wanted, at);
    // What was asked for and may still come stays claimed, and is looked for once more.
    let comes_within = |claimed: &Claimed| evidence::comes_within(identity, observed, claimed);
    let mut left = Vec::new();
    if claim.names(&at.id) {
        left.push(Claimed::Address(at.id.clone()));
    }
    for claimed in claim.all() {
        let Some(id) = claimed.id() else {
            left.extend(comes_within(claimed).map(|_| claimed.clone()));
            continue;
        };
        if *id == at.id {
            continue;
        }
        let state = evidence::unused(identity, observed, id, (&home.network, is_shown))?;
        let known = observed.known_address(id).map(|known| &known.address);
        match (state, known) {
            (State::Claimed(_), _) => left.push(claimed.clone()),
            (State::Come, _) => {
                plan.came(id);
                return Ok(());
            }
            (State::Acquiring { .. } | State::Releasing, _) if !is_shown => {
                // The balancer went on without it. First of all the Service shows where it is.
                plan.again = Some(LOOK);
                left.push(claimed.clone());
            }
            (State::Acquiring { .. } | State::Releasing, Some(address)) => {
                plan.wait_for_address(address);
                return Ok(());
            }
            (State::Held, Some(address)) => {
                plan.cloud(CloudStep::release(address, false));
                return Ok(());
            }
            (State::GivenAway(why), Some(address)) => plan.keep(address, why),
            (State::Persons(Some(why)), Some(address)) => plan.keep(address, &why),
            _ => {}
        }
    }
    if identity.is_borrowed(at) {
        left.push(Claimed::Shared(at.id.clone()));
    }
    let place = Place::of(&home.network); // the nodes may have moved within a VPC
    let is_same = left.iter().collect::<BTreeSet<_>>() == claim.all().collect();
    if !is_same || claim.place(&at.id).is_some_and(|known| *known != place) {
        plan.leads(&at.id, &home.network);
        plan.claim.held = Some(left);
    } else if let Some(left) = left.iter().filter_map(comes_within).max() {
        let left = left + Duration::from_millis(100);
        plan.again = Some(plan.again.map_or(left, |again| again.min(left)));
    }
    Ok(())
}
