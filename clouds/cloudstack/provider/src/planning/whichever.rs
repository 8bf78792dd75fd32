//! The address that the cloud chose: which one it is only the cloud knows, and if its answer was lost, what came to the network
//! after the claim has to be looked for.

use std::cmp::Reverse;
use std::time::Duration;

use super::{Draft, pending};
use crate::claim::{Claimed, Whichever};
use crate::events::{ADDRESS_PENDING, ADDRESSES_UNCLEAR};
use crate::intent::Identity;
use crate::objects::{Address, AddressRef, AddressState, Barrier, Network};
use crate::observe::Need;

/// Claims by its ID what the cloud chose for an open claim. Whether there is nothing like it, so that whoever asks can go on.
///
/// One that is on its way and does not tell where to is waited for that long.
pub(super) fn adopt(draft: &mut Draft<'_>, identity: &Identity, patience: Duration) -> bool {
    let Some(claimed) = identity.claim.whichever() else {
        return true;
    };
    let Some(found) = find(draft, identity, claimed, patience) else {
        return false;
    };
    match shared(identity, claimed, found).as_slice() {
        [] => return true,
        [only] => {
            if let Some(Some(network)) = draft.network(&claimed.network) {
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
            claimed
                .known
                .extend(several.iter().map(|address| address.id.clone()));
            draft.claims.insert(Claimed::Any(claimed));
        }
    }
    false
}

/// Which of these addresses falls to a claim, where other Services have open claims for the same network too: one address
/// is as good as another, so each claim gets one. All of them if there are more than claims: then some are somebody else's.
fn shared<'a>(identity: &Identity, claimed: &Whichever, found: Vec<&'a AddressRef>) -> Vec<&'a AddressRef> {
    let mut open: Vec<(&str, &Whichever)> = vec![(&identity.uid, claimed)];
    let others = identity.claims_of_others();
    open.extend(others.iter().filter_map(|(uid, claim)| {
        let claimed = claim.whichever()?;
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

/// The addresses that can be the one: they came after the claim, and nothing is on them. None if more has to be read, or
/// waited for.
fn find<'a>(
    draft: &mut Draft<'a>,
    identity: &Identity,
    claimed: &Whichever,
    patience: Duration,
) -> Option<Vec<&'a AddressRef>> {
    // With a network its addresses are gone.
    let Some(network) = draft.network(&claimed.network)? else {
        return Some(Vec::new());
    };
    let Some(found) = draft.observed.recovered.get(&network.id) else {
        draft.need(Need::Recovered(network.id.clone()));
        return None;
    };
    let came: Vec<&Address> = found
        .iter()
        .filter(|address| may_be(draft, identity, claimed, network, address))
        .collect();
    if let Some(unclear) = came.iter().find(|address| address.is_underway_anywhere()) {
        if !draft.observed.has_waited(patience) {
            draft.wait_for_address(&unclear.address);
            return None;
        }
        draft.notes.push(ADDRESS_PENDING.note(pending(&unclear.address)));
    }
    let mut is_read = true;
    let mut found = Vec::new();
    for Address { address, .. } in came.into_iter().filter(|address| !address.is_underway_anywhere()) {
        match is_bare(draft, network, &address.id) {
            None => is_read = false,
            Some(true) => found.push(address),
            Some(false) => {}
        }
    }
    is_read.then_some(found)
}

/// Whether an address may have been acquired for a claim, by what it says of itself. It may still be on its way: then it is
/// claimed and waited for.
fn may_be(
    draft: &Draft<'_>,
    identity: &Identity,
    claimed: &Whichever,
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
        && draft.observed.rules.iter().all(|rule| rule.address.id != *id)
}

/// Whether nothing is on an address. Nothing is made there before it is claimed by its ID, so what is there is somebody
/// else's.
fn is_bare(draft: &mut Draft<'_>, network: &Network, id: &str) -> Option<bool> {
    let strangers = draft.strangers(id).map(<[_]>::is_empty);
    if network.barrier() != Barrier::Firewall {
        return strangers;
    }
    let firewall = draft.firewall(id).map(<[_]>::is_empty);
    Some(strangers? && firewall?)
}
