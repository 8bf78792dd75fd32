//! After a failure: nothing new is begun but that members follow the Nodes and openings the allowed sources, what is under way
//! is waited for, and an address that was acquired for a balancer which was never complete is released, with everything that was
//! made on it. What the API refuses is no failure: see [`crate::load_balancer::observe::verdict`].
//!
//! Only if the API itself said that the write failed. If its answer was lost, the write may have had its effect; the claim
//! on the address and the names of the rules find it at the next try.

use crate::load_balancer::claim::Claimed;
use crate::load_balancer::evidence;
use crate::load_balancer::intent::{Intent, Wanted};
use crate::load_balancer::plan::builder::Builder;
use crate::load_balancer::plan::{members, ports};
use crate::load_balancer::step::CloudStep;

/// Decides what is taken back.
pub(super) fn plan(plan: &mut Builder<'_>, intent: &Intent) {
    let observed = plan.observed;
    let own = &observed.memory.own;
    let (Some(failure), Intent::Wanted(wanted)) = (&own.failure, intent) else {
        return;
    };
    plan.notes.extend(wanted.notes.iter().cloned());
    if !observed.pending.is_empty() || !failure.is_definite {
        return;
    }
    if !own.made.is_stuck {
        take_back(plan, wanted);
    }
    // What the API does not take back may serve.
    if own.made.is_stuck || own.made.address.is_none() && wanted.identity.published.is_empty() {
        for id in wanted
            .identity
            .claim
            .going()
            .filter(|id| !observed.is_known_absent(id))
        {
            plan.claim.insert(Claimed::Address(id.clone()));
        }
    }
    // Whatever is refused, nobody is balanced over who left.
    if !plan.has_writes() && !own.cannot_follow {
        members::follow_nodes(plan, wanted);
    }
    // Nor is anybody let in who may not come any more.
    if !plan.has_writes() {
        ports::follow_sources(plan, wanted);
    }
    plan.shortfalls.clear(); // the failure is told
    plan.left_out.clear();
}

fn take_back(plan: &mut Builder<'_>, wanted: &Wanted) {
    let observed = plan.observed;
    let own = &observed.memory.own;
    let claim = &wanted.identity.claim;
    if let Some(address) = evidence::never_served(&wanted.identity, observed) {
        let items = own.made.acl_items.iter().filter_map(|(list, id)| {
            let mut known = observed.firewalls.get(&list.id)?.iter();
            let item = known.find(|item| item.id == *id && !observed.going.contains(id))?;
            Some(CloudStep::close(list, item, true))
        });
        let items: Vec<CloudStep> = items.collect();
        if items.is_empty() {
            plan.release(address, false, true);
        }
        items.into_iter().for_each(|item| plan.cloud(item));
        return;
    }
    // What is known to be nobody's is not held.
    let is_nobodys = |claimed: &Claimed| evidence::is_nobodys(observed, claimed);
    if claim.all().any(is_nobodys) {
        plan.claim.retain(|claimed| !is_nobodys(claimed));
        plan.claim.is_marked &= !claim.all().all(is_nobodys);
    }
}
