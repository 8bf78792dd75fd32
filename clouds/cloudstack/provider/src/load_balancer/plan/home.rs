//! The address at which the balancer is, or will be: the one that is asked for, the one that its rules have, or one that
//! is acquired for it.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use bowline_plan::Refusal;

use super::any_address;
use super::draft::{Draft, Stop};
use super::members;
use super::removal::{Removal, by_address};
use crate::load_balancer::claim::Claimed;
use crate::load_balancer::evidence::{self, State};
use crate::load_balancer::intent::Wanted;
use crate::load_balancer::members::{Members, named_twins};
use crate::load_balancer::objects::{AddressRef, Filtering, Network, NewRule, Place, PublicIpId, Rule};
use crate::load_balancer::observe::observed::{Need, Observed, Seen, Unread};
use crate::load_balancer::observe::times::{LOOK, STUCK};
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
pub(super) fn find(draft: &mut Draft<'_>, wanted: &Wanted) -> Result<Home, Stop> {
    let claim = &wanted.identity.claim;
    let rules = draft
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
    let members = draft.observed.members_of(&wanted.nodes);
    if let Some(missing) = members.as_ref().and_then(Members::missing) {
        draft.notes.push(NODES_LEFT_OUT.note(missing));
    }
    let twins = match &members {
        Some(members) => members.twins.clone(),
        None => named_twins(&wanted.nodes),
    };
    for [one, other] in twins {
        let text = format!("nodes {one} and {other} have the same virtual machine, which is a member once");
        draft.notes.push(ONE_INSTANCE.note(text));
    }
    let network = network(draft.observed, settled.as_ref(), members.as_ref())?;
    let settled = match settled {
        None => former(draft.observed, wanted, &network)?,
        settled => settled,
    };
    foresee(draft, wanted, &network, settled.as_ref());
    if settled.is_none() {
        finish_release(draft, wanted)?;
    }
    let address = match (settled, requested) {
        (Some(address), _) => address,
        (None, Some(ip)) => {
            // What an earlier try acquired is released later.
            any_address::adopt(draft, STUCK)?;
            requested_address(draft, wanted, &network, ip)?
        }
        (None, None) => automatic_address(draft, wanted, &network)?,
    };
    Ok(Home {
        address,
        network,
        members,
    })
}

/// Brings to its end what an earlier process began to release: it would go while the balancer serves there.
fn finish_release(draft: &mut Draft<'_>, wanted: &Wanted) -> Result<(), Stop> {
    let (identity, observed) = (&wanted.identity, draft.observed);
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
            State::Held | State::Acquiring { .. } if draft.own().unreleased.contains(id) => {
                draft.claim.insert(Claimed::Address(id.clone())); // it may serve, or is left while it is on its way
            }
            State::Held => draft.cloud(CloudStep::release(&known.address, !rules.is_empty())),
            State::Acquiring { .. } | State::Releasing => draft.wait_for_address(&known.address),
            State::GivenAway(_) => draft.claim.retain(|claimed| claimed.own_id() != Some(id)),
            // Somebody else uses it by now, or a person keeps it.
            _ => draft.claim.insert(Claimed::Address(id.clone())),
        }
        return Err(Stop::Planned);
    }
    Ok(())
}

/// Reads early what will be needed when the steps before it are done, so that the whole plan can be told in advance.
fn foresee(draft: &mut Draft<'_>, wanted: &Wanted, network: &Network, at: Option<&AddressRef>) {
    let observed = draft.observed;
    let filtering = network.filtering();
    if let Filtering::Acl(list) = filtering {
        draft.take(observed.firewall(&list.id));
        if at.is_none() && !observed.rules.is_empty() {
            draft.take(observed.neighbours(&network.id));
        }
    }
    if at.is_none() && observed.instances.is_none() && !wanted.nodes.is_empty() {
        draft.need(Need::Instances);
    }
    let left = observed.rules.iter().filter(|rule| Some(&rule.address) != at);
    for rule in left {
        let id = &rule.address.id;
        let is_open = rule
            .ingress(&wanted.identity.name)
            .is_some_and(|ingress| !wanted.ingress_ports().contains(&ingress));
        draft.take(observed.address(id));
        draft.take(observed.rules_of_others(id));
        match filtering {
            Filtering::Addresses => drop(draft.take(observed.firewall_of(id))),
            Filtering::Acl(_) if is_open => drop(draft.take(observed.neighbours(&network.id))),
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
        if draft.take(observed.address(id)).flatten().is_some() {
            draft.take(observed.rules_of_others(id));
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
        let refusal = Refusal::new(format!(
            "network {} ({id}) offers no load balancing: the service Lb is not among those of its offering",
            network.name
        ));
        let remedy = "use a network offering with the service Lb";
        return Err(refusal.with_remedy(remedy).into());
    }
    Ok(Arc::clone(network))
}

/// Removes what the balancer has at other addresses: it has moved.
pub(super) fn leave_others(draft: &mut Draft<'_>, wanted: &Wanted, home: &Home) {
    let rules = draft.observed.rules.iter();
    let elsewhere = rules.filter(|rule| rule.address.id != home.address.id);
    let removal = Removal::beside(wanted, &home.address);
    for (address, rules) in by_address(elsewhere) {
        draft.part(|draft| {
            let removed = removal.address(draft, address, &rules);
            draft.take(removed);
        });
    }
}

/// Releases what the Service claims and does not use, and takes it off the claim.
pub(super) fn tidy_claim(draft: &mut Draft<'_>, wanted: &Wanted, home: &Home) -> Result<(), Stop> {
    let (identity, claim, at) = (&wanted.identity, &wanted.identity.claim, &home.address);
    any_address::adopt(draft, STUCK)?;
    let observed = draft.observed;
    let shown = wanted.hostname.as_ref().unwrap_or(&at.ip);
    let is_shown = identity.published.contains(shown);
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
                draft.came(id);
                return Ok(());
            }
            (State::Acquiring { .. } | State::Releasing, _) if !is_shown => {
                // The balancer went on without it. First of all the Service shows where it is.
                draft.again = Some(LOOK);
                left.push(claimed.clone());
            }
            (State::Acquiring { .. } | State::Releasing, Some(address)) => {
                draft.wait_for_address(address);
                return Ok(());
            }
            (State::Held, Some(address)) => {
                draft.cloud(CloudStep::release(address, false));
                return Ok(());
            }
            (State::GivenAway(why), Some(address)) => draft.keep(address, why),
            (State::Persons(Some(why)), Some(address)) => draft.keep(address, &why),
            _ => {}
        }
    }
    if identity.is_borrowed(at) {
        left.push(Claimed::Shared(at.id.clone()));
    }
    let place = Place::of(&home.network); // the nodes may have moved within a VPC
    let is_same = left.iter().collect::<BTreeSet<_>>() == claim.all().collect();
    if !is_same || claim.place(&at.id).is_some_and(|known| *known != place) {
        draft.leads(&at.id, &home.network);
        draft.claim.held = Some(left);
    } else if let Some(left) = left.iter().filter_map(comes_within).max() {
        let left = left + Duration::from_millis(100);
        draft.again = Some(draft.again.map_or(left, |again| again.min(left)));
    }
    Ok(())
}
