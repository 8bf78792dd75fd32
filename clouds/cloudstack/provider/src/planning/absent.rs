//! Removes a balancer.

use std::collections::BTreeSet;
use std::net::IpAddr;

use bowline_cloud_provider::LoadBalancerStatus;
use bowline_plan::Impact;

use super::ownership::{UNPLACED, any_address};
use super::removal::{Removal, by_address};
use super::{Draft, Stop};
use crate::intent::Absent;
use crate::objects::{AddressRef, AddressState};
use crate::observe::SLOW;
use crate::step::CloudStep;

/// Decides how the removal goes on.
///
/// There is something to remove as long as a rule bears the Service's name, or the Service holds an address. What is gone
/// already, and what cannot be read, blocks nothing.
pub(super) fn plan(draft: &mut Draft<'_>, absent: &Absent) -> Result<(), Stop> {
    let identity = &absent.identity;
    if !identity.keeps_ip {
        any_address::adopt(draft, SLOW)?;
        // What comes after the last look would belong to nobody. The rest goes meanwhile.
        draft.is_blocked();
    }
    let rules = draft.observed.rules.iter();
    let (placeless, rules): (Vec<_>, Vec<_>) = rules.partition(|rule| rule.address.id.is_empty());
    for rule in placeless {
        draft.cloud(CloudStep::delete(rule, Impact::Major));
    }
    let mut addresses = by_address(rules.into_iter());
    for address in without_rules(draft, absent) {
        if addresses.keys().all(|known| known.id != address.id) {
            addresses.insert(address, Vec::new());
        }
    }
    let removal = Removal {
        identity,
        sources: &absent.sources,
        wanted: BTreeSet::new(),
        home: None,
        absent: Some(absent),
    };
    removal.open_ports(draft);
    for (address, rules) in addresses {
        let removed = removal.address(draft, address, &rules);
        draft.take(removed);
    }
    if draft.is_idle() {
        if absent.service_stays {
            (draft.claim, draft.replaced) = Default::default();
        }
        draft.settled = Some(LoadBalancerStatus::empty());
    }
    Ok(())
}

/// Addresses that the Service may hold, found by what is written on it.
fn without_rules<'a>(draft: &mut Draft<'a>, absent: &Absent) -> BTreeSet<&'a AddressRef> {
    let (identity, observed) = (&absent.identity, draft.observed);
    let claim = &identity.claim;
    let mut found = BTreeSet::new();
    for id in claim.ids() {
        if let Some(Some(known)) = draft.take(observed.address(id))
            && !draft.came(id)
        {
            found.insert(&known.address);
        }
    }
    // It served by them, or they would be gone with the Service that they were acquired for.
    for id in claim.shared() {
        if let Some(Some(known)) = draft.take(observed.address(id))
            && identity.shows(&known.address)
        {
            found.insert(&known.address);
        }
    }
    // Its only rule was taken away to be made anew, and an earlier manager wrote down nothing.
    let mut shown = identity.published.iter();
    let shows_address = shown.any(|shown| shown.parse::<IpAddr>().is_ok());
    for replaced in identity.replaced.iter().filter(|_| claim.held.is_none()) {
        let at = &replaced.address;
        if (!shows_address || identity.shows(at))
            && let Some(Some(known)) = draft.take(observed.address(&at.id))
        {
            found.insert(&known.address);
        }
    }
    // An earlier manager marked the Service before it made any rule.
    if let Some(ip) = identity.requested.as_ref().filter(|_| claim.is_inherited())
        && observed.rules.is_empty()
        && let Some([known]) = draft.take(observed.looked_up(ip))
    {
        // If it served, nothing tells where it led then.
        if known.state == AddressState::Allocated && identity.shows(&known.address) {
            draft.keep(&known.address, UNPLACED);
        } else {
            found.insert(&known.address);
        }
    }
    found
}
