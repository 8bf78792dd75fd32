//! The address at which the balancer is, or will be: the one that is asked for, the one that its rules have, or one that
//! is acquired for it.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use bowline_plan::Refusal;

use super::ownership::{self, State, any_address};
use super::removal::{Removal, by_address};
use super::{Draft, Stop, members};
use crate::claim::Claimed;
use crate::events::NODES_LEFT_OUT;
use crate::intent::Wanted;
use crate::members::Members;
use crate::objects::{
    Address, AddressRef, AddressState, Filtering, LB, Network, NewRule, Place, PublicIpId, Rule,
};
use crate::observe::{LOOK, Need, Observed, STUCK, Seen, Unread};
use crate::step::CloudStep;

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
    let rules = &draft.observed.rules;
    let requested = wanted.identity.requested.as_deref();
    let mut addresses = rules.iter().map(|rule| &rule.address);
    let settled = match requested {
        Some(ip) => addresses.find(|address| address.ip == ip).cloned(),
        None => busiest(rules, &wanted.identity.published),
    };
    let members = draft.observed.members_of(&wanted.nodes);
    if let Some(missing) = members.as_ref().and_then(Members::missing) {
        draft.notes.push(NODES_LEFT_OUT.note(missing));
    }
    let network = network(draft.observed, settled.as_ref(), members.as_ref())?;
    let settled = match settled {
        None => former(draft.observed, wanted, &network)?,
        settled => settled,
    };
    foresee(draft, wanted, &network, settled.as_ref());
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
fn busiest(rules: &[Rule], published: &[String]) -> Option<AddressRef> {
    let staying = rules.iter().filter(|rule| !rule.state.is_going());
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
        .max_by_key(|at| is_shown(at))
    else {
        return Ok(None);
    };
    let is_read = observed.addresses.contains_key(&at.id);
    if !is_read && cleared.as_ref() == Some(at) {
        return Ok(Some(at.clone())); // a moment ago there was a rule
    }
    // It served, so it may be one for source NAT as well.
    let is_usable = |address: &&Address| {
        address.state == AddressState::Allocated && address.is_of(network) && !address.is_static_nat
    };
    let address = observed.address(&at.id)?.filter(is_usable);
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
        if !wanted.identity.is_held(address, false) && !wanted.identity.keeps_ip {
            draft.keep(address, "nothing proves that it was acquired for this service");
        }
        let removed = removal.address(draft, address, &rules);
        draft.take(removed);
    }
}

/// Releases what the Service claims and does not use, and takes it off the claim.
pub(super) fn tidy_claim(draft: &mut Draft<'_>, wanted: &Wanted, home: &Home) -> Result<(), Stop> {
    let (identity, claim) = (&wanted.identity, &wanted.identity.claim);
    any_address::adopt(draft, STUCK)?;
    let shown = wanted.hostname.as_ref().unwrap_or(&home.address.ip);
    // What was asked for and may still come stays claimed, and is looked for once more.
    let standing = &draft.own().known.standing;
    let stands = |claimed: &Claimed| standing.get(&claimed.asked()?).filter(|_| !identity.keeps_ip);
    let may_come = claim.those(|claimed| stands(claimed).is_some());
    let comes_until = may_come.iter().filter_map(stands).max();
    let is_any = |claimed: &Claimed| matches!(claimed, Claimed::Any(_));
    let mut is_dropped = claim.any_address().is_some() != may_come.iter().any(is_any)
        || claim.asked(&home.address.id).is_some();
    // The nodes may have moved within a VPC.
    let place = Place::of(&home.network);
    is_dropped |= claim.place(&home.address.id).is_some_and(|known| *known != place);
    let mut is_kept = BTreeSet::new();
    let others = claim.ids().chain(claim.shared());
    for id in others.filter(|id| **id != home.address.id) {
        let address = draft.observed.address(id)?;
        let address = address.filter(|address| address.state != AddressState::Free);
        let Some(address) = address else {
            let is_it = |claimed: &Claimed| matches!(claimed, Claimed::Asked(asked, _) if asked == id);
            if may_come.iter().any(is_it) {
                is_kept.insert(id);
            } else {
                is_dropped = true;
            }
            continue;
        };
        if draft.came(id) {
            return Ok(());
        }
        let is_moving = matches!(address.state, AddressState::Allocating | AddressState::Releasing);
        if is_moving && !identity.published.contains(shown) {
            // The balancer went on without it. First of all the Service shows where it is.
            draft.again = Some(LOOK);
            is_kept.insert(id);
            continue;
        }
        if ownership::is_waited_for(draft.observed, address, false) {
            draft.wait_for_address(&address.address);
            return Ok(());
        }
        match ownership::unused(identity, draft.observed, address, &home.network)? {
            State::Held => {
                draft.cloud(CloudStep::release(&address.address, false));
                return Ok(());
            }
            State::GivenAway(why) => draft.keep(&address.address, why),
            State::Persons(Some(why)) => draft.keep(&address.address, &why),
            _ => {}
        }
        is_dropped = true;
    }
    let at = &home.address;
    let shares = identity.is_borrowed(at);
    if is_dropped || shares != claim.shares(&at.id) {
        let mut left = claim.those(|kept| match kept {
            Claimed::Address(id) | Claimed::Asked(id, _) => is_kept.contains(id),
            Claimed::Shared(_) => false,
            Claimed::Any(_) => may_come.contains(kept),
        });
        if claim.names(&at.id) {
            left.insert(0, Claimed::Address(at.id.clone()));
        }
        if shares {
            left.push(Claimed::Shared(at.id.clone()));
        }
        draft.leads(&at.id, &home.network);
        draft.claim.held = Some(left);
    } else if let Some(left) = comes_until {
        let left = *left + Duration::from_millis(100);
        draft.again = Some(draft.again.map_or(left, |again| again.min(left)));
    }
    Ok(())
}
