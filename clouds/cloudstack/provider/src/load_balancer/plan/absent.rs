//! Removes a balancer.

use std::collections::BTreeSet;
use std::net::IpAddr;

use bowline_cloud_provider::LoadBalancerStatus;
use bowline_plan::{Impact, refusal};

use crate::load_balancer::evidence::UNPLACED;
use crate::load_balancer::intent::Absent;
use crate::load_balancer::objects::{AddressRef, AddressState};
use crate::load_balancer::observe::observed::{Need, Unread};
use crate::load_balancer::observe::times::SLOW;
use crate::load_balancer::plan::any_address;
use crate::load_balancer::plan::builder::{Builder, Stop};
use crate::load_balancer::plan::removal::{Removal, by_address};
use crate::load_balancer::step::CloudStep;

/// Decides how the removal goes on.
///
/// There is something to remove as long as a rule bears the Service's name, or the Service holds an address. What is gone
/// already, and what cannot be read, blocks nothing.
pub(super) fn plan(plan: &mut Builder<'_>, absent: &Absent) -> Result<(), Stop> {
    let identity = &absent.identity;
    if !identity.keeps_ip {
        any_address::adopt(plan, SLOW)?;
        // What comes after the last look would belong to nobody. The rest goes meanwhile.
        let is_blocked = plan.is_blocked();
        plan.take(is_blocked);
    }
    let rules = plan.observed.rules.iter();
    let (placeless, rules): (Vec<_>, Vec<_>) = rules.partition(|rule| rule.address.id.is_empty());
    for rule in placeless {
        plan.cloud(CloudStep::delete(rule, Impact::Major));
    }
    let mut addresses = by_address(rules.into_iter());
    for address in without_rules(plan, absent) {
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
    removal.open_ports(plan);
    for (address, rules) in addresses {
        plan.part(|plan| {
            let removed = removal.address(plan, address, &rules);
            plan.take(removed);
        });
    }
    // What is refused is still there.
    if plan.is_idle() && plan.shortfalls.is_empty() {
        prove(plan, absent)?;
    }
    if plan.is_idle() && plan.shortfalls.is_empty() {
        if identity.stays {
            (plan.claim, plan.replaced) = Default::default();
        }
        plan.settled = Some(LoadBalancerStatus::empty());
    }
    Ok(())
}

/// Proves that nothing is left of a balancer, if nothing of it was ever seen. Keys of another account, or another project, see nothing
/// either, and the API's answer is the same. So they have to see the virtual machine of one of the cluster's Nodes.
///
/// Where no Node is ready there is nobody to see, and the answer counts: a cluster that is torn down has lost its Nodes by then.
fn prove(plan: &Builder<'_>, absent: &Absent) -> Result<(), Stop> {
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
    if !was_served || nodes.is_empty() || plan.own().has_seen || plan.observed.shows_something() {
        return Ok(());
    }
    let Some(members) = plan.observed.members_of(nodes) else {
        return Err(Unread::from(Need::Instances).into());
    };
    if !members.instances.is_empty() || !members.unconnected.is_empty() {
        return Ok(());
    }
    let refusal = refusal!(
        "the API shows neither what the service has by its annotations and status, nor the virtual machine of any node that is ready, which \
         proves nothing";
        "see whether keys and project are those of the cluster; the service goes when they are, or when no node is ready"
    );
    Err(refusal.into())
}

/// Addresses that the Service may hold, found by what is written on it.
fn without_rules<'a>(plan: &mut Builder<'a>, absent: &Absent) -> BTreeSet<&'a AddressRef> {
    let (identity, observed) = (&absent.identity, plan.observed);
    let claim = &identity.claim;
    let mut found = BTreeSet::new();
    for id in claim.ids() {
        if let Some(Some(known)) = plan.take(observed.address(id))
            && !plan.came(id)
        {
            found.insert(&known.address);
        }
    }
    if let Some(id) = &claim.leaseweb.address
        && let Some(Some(known)) = plan.take(observed.address(id))
        && identity.is_leasewebs(&known.address)
    {
        found.insert(&known.address);
    }
    // It served by them, or they would be gone with the Service that they were acquired for.
    for id in claim.shared() {
        if let Some(Some(known)) = plan.take(observed.address(id))
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
            && let Some(Some(known)) = plan.take(observed.address(&at.id))
        {
            found.insert(&known.address);
        }
    }
    // An earlier manager marked the Service before it made any rule.
    if let Some(ip) = identity.requested.as_ref().filter(|_| claim.is_inherited())
        && observed.rules.is_empty()
        && let Some([known]) = plan.take(observed.looked_up(ip))
    {
        // If it served, nothing tells where it led then.
        if known.state == AddressState::Allocated && identity.shows(&known.address) {
            plan.keep(&known.address, UNPLACED);
        } else {
            found.insert(&known.address);
        }
    }
    found
}
