//! The address that the cloud chose: which one it is only the cloud knows, and if its answer was lost, what came to the network
//! after the claim has to be looked for.

use std::cmp::Reverse;
use std::time::Duration;

use super::draft::{Draft, Stop, pending};
use crate::load_balancer::claim::{AnyAddress, Claimed};
use crate::load_balancer::intent::Identity;
use crate::load_balancer::objects::{Address, AddressRef, AddressState, Filtering, Network, PublicIpId};
use crate::load_balancer::observe::observed::{Observed, Unread};
use crate::messages::{ADDRESS_PENDING, ADDRESSES_UNCLEAR};

/// Claims by its ID what the cloud chose for an open claim. If there is nothing like it, whoever asks goes on.
///
/// One that is on its way and does not tell where to is waited for that long.
pub(super) fn adopt(draft: &mut Draft<'_>, patience: Duration) -> Result<(), Stop> {
    let identity = draft.identity;
    let Some(claimed) = identity.claim.any_address() else {
        return Ok(());
    };
    let found = find(draft, claimed, patience)?;
    match shared(identity, claimed, found).as_slice() {
        [] => return Ok(()),
        [only] => {
            if let Ok(Some(network)) = draft.observed.network(&claimed.network) {
                draft.choose(&only.id, network);
            }
        }
        several => {
            let list: Vec<&str> = several.iter().map(|address| address.ip.as_str()).collect();
            draft.notes.push(ADDRESSES_UNCLEAR.note(format!(
                "one of these public IPs was acquired for the service, and nobody can tell which: {}",
                list.join(", ")
            )));
            let mut claimed = claimed.clone();
            let ids = several.iter().map(|address| address.id.clone());
            claimed.known.extend(ids);
            draft.claim.insert(Claimed::Any(claimed));
        }
    }
    Err(Stop::Planned)
}

/// Which of these addresses falls to a claim, where other Services have open claims for the same network too: one address
/// is as good as another, so each claim gets one. All of them if there are more than claims: then some are somebody else's.
fn shared<'a>(identity: &Identity, claimed: &AnyAddress, found: Vec<&'a AddressRef>) -> Vec<&'a AddressRef> {
    let mut open: Vec<(&str, &AnyAddress)> = vec![(&identity.uid, claimed)];
    let others = identity.claims_of_others();
    open.extend(others.iter().filter_map(|(uid, claim)| {
        let claimed = claim.any_address()?;
        Some((uid.as_str(), claimed))
    }));
    open.retain(|(_, other)| other.network == claimed.network);
    if found.len() > open.len() {
        return found;
    }
    // Who claimed later knows more and has less to choose from.
    open.sort_by_key(|(uid, claimed)| (Reverse(claimed.known.len()), *uid));
    let mut left = found;
    for (uid, claimed) in open {
        let place = left
            .iter()
            .position(|address| !claimed.known.contains(&address.id));
        let taken = place.map(|place| left.remove(place));
        if uid == identity.uid {
            return taken.into_iter().collect();
        }
    }
    Vec::new()
}

/// The addresses that can be the one: they came after the claim, and nothing is on them.
fn find<'a>(
    draft: &mut Draft<'a>,
    claimed: &AnyAddress,
    patience: Duration,
) -> Result<Vec<&'a AddressRef>, Stop> {
    let (identity, observed) = (draft.identity, draft.observed);
    // With a network its addresses are gone.
    let Some(network) = observed.network(&claimed.network)? else {
        return Ok(Vec::new());
    };
    let found = observed.recovered(&network.id)?.iter();
    let came: Vec<&Address> = found
        .filter(|address| may_be(observed, identity, claimed, network, address))
        .collect();
    if let Some(unclear) = came.iter().find(|address| address.is_underway_anywhere()) {
        if observed.memory.own.on_the_way.time(&unclear.address.id) < patience {
            draft.wait_for_address(&unclear.address);
            return Err(Stop::Planned);
        }
        draft.notes.push(ADDRESS_PENDING.note(pending(&unclear.address)));
    }
    let came = came.into_iter().filter(|address| !address.is_underway_anywhere());
    let bare = came.map(|Address { address, .. }| {
        let is_bare = is_bare(observed, network, &address.id)?;
        Ok(is_bare.then_some(address))
    });
    Ok(Unread::all(bare)?.into_iter().flatten().collect())
}

/// Whether an address may have been acquired for a claim, by what it says of itself. It may still be on its way: then it is
/// claimed and waited for.
fn may_be(
    observed: &Observed,
    identity: &Identity,
    claimed: &AnyAddress,
    network: &Network,
    address: &Address,
) -> bool {
    let id = &address.address.id;
    let is_somebodys = matches!(address.state, AddressState::Allocating | AddressState::Allocated);
    is_somebodys
        && (address.is_fit(network) || address.is_underway_anywhere())
        && !claimed.known.contains(id)
        && !claimed.is_over(address.allocated)
        && !identity.claim.names(id)
        && !identity.is_claimed_by_others(id)
        && !identity.is_published_by_others(&address.address)
        && observed.rules.iter().all(|rule| rule.address.id != *id)
}

/// Whether nothing is on an address. Nothing is made there before it is claimed by its ID, so what is there is somebody
/// else's.
fn is_bare(observed: &Observed, network: &Network, id: &PublicIpId) -> Result<bool, Unread> {
    let mut parts = vec![observed.is_alone(id)];
    if network.filtering() == Filtering::Addresses {
        parts.push(observed.firewall_of(id).map(<[_]>::is_empty));
    }
    Ok(!Unread::all(parts)?.contains(&false))
}
