//! Removes a balancer.

use std::collections::BTreeSet;
use std::net::IpAddr;

use bowline_cloud_provider::LoadBalancerStatus;
use bowline_plan::{Impact, Refusal};

use super::any_address;
use super::draft::{Draft, Stop};
use super::removal::{Removal, by_address};
use crate::load_balancer::evidence::UNPLACED;
use crate::load_balancer::intent::Absent;
use crate::load_balancer::objects::{AddressRef, AddressState};
use crate::load_balancer::observe::observed::{Need, Unread};
use crate::load_balancer::observe::times::SLOW;
use crate::load_balancer::step::CloudStep;

/// Decides how the removal goes on.
///
/// There is something to remove as long as a rule bears the Service's name, or the Service holds an address. What is gone
/// already, and what cannot be read, blocks nothing.
pub(super) fn plan(draft: &mut Draft<'_>, absent: &Absent) -> Result<(), Stop> {
    let identity = &absent.identity;
    if !identity.keeps_ip {
        any_address::adopt(draft, SLOW)?;
        // What comes after the last look would belong to nobody. The rest goes meanwhile.
        let is_blocked = draft.is_blocked();
        draft.take(is_blocked);
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
        draft.part(|draft| {
            let removed = removal.address(draft, address, &rules);
            draft.take(removed);
        });
    }
    // What is refused is still there.
    if draft.is_idle() && draft.shortfalls.is_empty() {
        prove(draft, absent)?;
    }
    if draft.is_idle() && draft.shortfalls.is_empty() {
        if identity.stays {
            (draft.claim, draft.replaced) = Default::default();
        }
        draft.settled = Some(LoadBalancerStatus::empty());
    }
    Ok(())
}

/// Proves that nothing is left of a balancer, if nothing of it was ever seen. Keys of another account, or another project, see nothing
/// either, and the API's answer is the same. So they have to see the virtual machine of one of the cluster's Nodes.
///
/// Where no Node is ready there is nobody to see, and the answer counts: a cluster that is torn down has lost its Nodes by then.
fn prove(draft: &Draft<'_>, absent: &Absent) -> Result<(), Stop> {
    let Absent { identity, nodes, .. } = absent;
    let was_served = !identity.published.is_empty()
        || !identity.replaced.is_empty()
        || identity.claim.is_marked
        || identity
            .claim
            .ids()
            .chain(identity.claim.shared())
            .next()
            .is_some();
    if !was_served || nodes.is_empty() || draft.own().has_seen || draft.observed.shows_something() {
        return Ok(());
    }
    let Some(members) = draft.observed.members_of(nodes) else {
        return Err(Unread::from(Need::Instances).into());
    };
    if !members.instances.is_empty() || !members.unconnected.is_empty() {
        return Ok(());
    }
    let refusal = Refusal::new(
        "the API shows neither what the service has by its annotations and status, nor the virtual machine of any node that is ready, which \
         proves nothing",
    );
    let remedy = "see whether keys and project are those of the cluster; the service goes when they are, or when no node is ready";
    Err(refusal.with_remedy(remedy).into())
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
