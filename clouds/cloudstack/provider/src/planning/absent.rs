//! Removes a balancer.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use bowline_cloud_provider::LoadBalancerStatus;
use bowline_plan::Impact;

use super::removal::{ACQUIRED_ANEW, Removal};
use super::{Draft, Stop, whichever};
use crate::intent::{Absent, Identity};
use crate::objects::{Address, AddressRef, AddressState, Place, Rule};
use crate::observe::{Observed, SLOW, Unread};
use crate::replaced::ReplacedRules;
use crate::step::CloudStep;

/// Why an address stays.
const UNPLACED: &str = "no rule of this service is on it any more, and nothing tells for which network it was acquired, so it may be \
     somebody else's by now; release it by hand if nobody needs it";

/// Decides how the removal goes on.
///
/// There is something to remove as long as a rule bears the Service's name, or the Service holds an address. What is gone
/// already, and what cannot be read, blocks nothing.
pub(super) fn plan(draft: &mut Draft<'_>, absent: &Absent) -> Result<(), Stop> {
    let identity = &absent.identity;
    if !identity.keeps_ip {
        whichever::adopt(draft, identity, SLOW)?;
        // What comes after the last look would belong to nobody. The rest goes meanwhile.
        draft.is_barred(&identity.claim);
    }
    let mut addresses: BTreeMap<AddressRef, Vec<&Rule>> = BTreeMap::new();
    for rule in &draft.observed.rules {
        if rule.address.id.is_empty() {
            draft.cloud(CloudStep::delete(rule, Impact::Major));
        } else {
            addresses.entry(rule.address.clone()).or_default().push(rule);
        }
    }
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
    };
    removal.open_ports(draft);
    for (address, rules) in &addresses {
        let is_held = identity.is_held(address, true);
        let removed = removal.address(draft, address, rules, is_held);
        draft.take(removed);
    }
    if draft.is_idle() {
        if absent.service_stays && (identity.claim.is_written() || !identity.replaced.is_empty()) {
            draft.annotate(identity.claim.clear());
            draft.annotate(ReplacedRules::clear());
        } else {
            draft.settled = Some(LoadBalancerStatus::empty());
        }
    }
    Ok(())
}

/// Addresses that the Service holds, found by what is written on it.
fn without_rules(draft: &mut Draft<'_>, absent: &Absent) -> Vec<AddressRef> {
    let (identity, observed) = (&absent.identity, draft.observed);
    let claim = &identity.claim;
    let mut found: Vec<&str> = Vec::new();
    for id in claim.ids() {
        if let Some(Some(_)) = draft.take(observed.address(id))
            && !draft.came(claim, id)
        {
            found.push(id);
        }
    }
    // It served by them, or they would be gone with the Service that they were acquired for.
    for id in claim.shared() {
        if let Some(Some(address)) = draft.take(observed.address(id))
            && identity.published.contains(&address.address.ip)
        {
            found.push(id);
        }
    }
    // Its only rule was taken away to be made anew, and an earlier manager wrote down nothing.
    let shown = &identity.published;
    let shows_address = shown.iter().any(|shown| shown.parse::<IpAddr>().is_ok());
    for replaced in identity.replaced.iter().filter(|_| claim.held.is_none()) {
        let at = &replaced.place.address;
        if !shows_address || shown.contains(&at.ip) {
            found.push(&at.id);
        }
    }
    let mut held = Vec::new();
    for id in found {
        if let Some(Some(address)) = draft.take(observed.address(id)) {
            let ours = is_ours(draft, absent, address);
            if draft.take(ours) == Some(true) {
                held.push(address.address.clone());
            }
        }
    }
    // An earlier manager marked the Service before it made any rule.
    if let Some(ip) = identity.requested.as_ref().filter(|_| claim.is_marked)
        && claim.held.is_none()
        && observed.rules.is_empty()
    {
        match draft.take(observed.looked_up(ip)) {
            // It served, and nothing tells where it led then.
            Some([address])
                if address.state == AddressState::Allocated && identity.published.contains(ip) =>
            {
                draft.keep(&address.address, UNPLACED);
            }
            Some([address]) => held.push(address.address.clone()),
            _ => {}
        }
    }
    held.sort();
    held.dedup();
    held
}

/// Whether an address without a rule is the Service's, as far as can be told. It was free when it was claimed; if it never came to
/// serve, somebody else may have been faster; and if it served, somebody may have acquired it anew since.
fn is_ours(draft: &mut Draft<'_>, absent: &Absent, address: &Address) -> Result<bool, Unread> {
    let (identity, observed) = (&absent.identity, draft.observed);
    let id = &address.address.id;
    let has_rule = observed.rules.iter().any(|rule| rule.address.id == *id);
    if has_rule || address.is_underway_anywhere() {
        return Ok(true);
    }
    match place(observed, identity, id)? {
        Some(place) if address.is_at(&place) => {}
        place => {
            let why = place.map_or(UNPLACED, |_| ACQUIRED_ANEW);
            draft.keep(&address.address, why);
            return Ok(false);
        }
    }
    let may_be_anothers = address.state == AddressState::Allocated
        && address.vpc.is_none()
        && !identity.published.contains(&address.address.ip);
    if !may_be_anothers {
        return Ok(true);
    }
    let mut firewall = observed.firewall(id)?.iter();
    let theirs = firewall.find(|rule| !absent.openings.contains(&rule.opening));
    if let Some(rule) = theirs {
        let why = format!(
            "others use it, such as firewall rule {} for {}",
            rule.id, rule.opening
        );
        draft.keep(&address.address, &why);
    }
    Ok(theirs.is_none())
}

/// Where an address led when it was the Service's; `None` if nothing tells.
fn place(observed: &Observed, identity: &Identity, id: &str) -> Result<Option<Place>, Unread> {
    if let Some(place) = identity.claim.place(id) {
        return Ok(Some(place.clone()));
    }
    let mut replaced = identity.replaced.iter();
    let Some(replaced) = replaced.find(|replaced| replaced.place.address.id == id) else {
        return Ok(None);
    };
    let network = &replaced.rule.network;
    let vpc = observed.network(network)?.and_then(|network| network.vpc.clone());
    Ok((!network.is_empty()).then(|| Place {
        network: network.clone(),
        vpc,
    }))
}
