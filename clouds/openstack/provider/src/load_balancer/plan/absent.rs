//! Removes what was made for a Service: the load balancer or the Service's part of it, the floating IP, the security group.

use bowline_cloud_provider::LoadBalancerStatus;
use bowline_openstack_client::{LoadBalancer, LoadBalancerUpdate, ProvisioningStatus};
use bowline_plan::{Answer, Note, Refusal, RefusedBy, refusal};

use super::guards::several;
use super::next::{Next, annotate, apply, delete_unserving, look_again};
use super::waiting::{for_change, wait_for};
use super::{floating, groups, parts, pools, rename};
use crate::load_balancer::annotations as keys;
use crate::load_balancer::evidence::{self, Found, Role};
use crate::load_balancer::intent::Identity;
use crate::load_balancer::memory::{PartRefusals as _, Refusals, is_late};
use crate::load_balancer::observe::view::View;
use crate::load_balancer::observed::{Parts, is_pending};
use crate::load_balancer::remedies;
use crate::load_balancer::step::{CloudStep, FloatingIpChange, PartChange};
use crate::messages::FOREIGN_KEPT;

/// Decides how the removal goes on.
pub(super) fn plan(identity: &Identity, seen: &View<'_>) -> Next {
    if !seen.is_listed(identity) {
        left_over(identity, seen); // goes, whatever is listed
        return look_again();
    }
    let mut held = None;
    match evidence::resolve_removed(identity, seen) {
        Found::Several(balancers) => return Answer::Refused(several(identity, &balancers)),
        Found::Going(balancer) => return wait_for(balancer, seen),
        Found::One {
            balancer,
            role,
            twins,
        } => {
            // The others are found when the one that the annotation names is gone.
            let (surplus, _) = evidence::surplus(seen, twins);
            if let Some(busy) = surplus.iter().chain([&balancer]).find(|there| is_pending(there)) {
                return wait_for(busy, seen);
            }
            let duplicates: Vec<CloudStep> = surplus.into_iter().map(delete_unserving).collect();
            if !duplicates.is_empty() {
                return apply(duplicates);
            }
            if seen.memory.own.is_busy {
                return wait_for(balancer, seen);
            }
            match of_balancer(identity, seen, balancer, role) {
                Ok(Some(step)) => return write(seen, step),
                Ok(None) => held = held_pool(identity, seen, balancer),
                Err(refusal) => return Answer::Refused(refusal),
            }
            // A person sent the Service to another one. Its own one is nobody else's.
            if let Some(own) = evidence::own_beside(identity, &seen.balancers, balancer) {
                if is_pending(own) {
                    return wait_for(own, seen);
                }
                match of_balancer(identity, seen, own, Role::Owner) {
                    Ok(Some(step)) => return write(seen, step),
                    Ok(None) => {}
                    Err(refusal) => return Answer::Refused(refusal),
                }
            }
        }
        Found::None | Found::Missing(_) | Found::OfOtherCluster(_) if seen.memory.own.is_creation_late => {
            return Answer::Refused(super::creation::late(identity, "taken for never made"));
        }
        Found::None | Found::Missing(_) | Found::OfOtherCluster(_) => {}
    }
    match of_left(identity, seen) {
        Left::None => {}
        Left::Next(next) => return next,
        Left::Stuck(refusal) => return Answer::Refused(refusal),
    }
    let rest = left_over(identity, seen);
    if !rest.is_empty() {
        apply(rest)
    } else if let Some(why) = held {
        // Nobody would find it when the Service is gone.
        Answer::Refused(why)
    } else if leads_nowhere(identity, seen) {
        annotate(keys::ID.key, None)
    } else {
        Answer::Settled(LoadBalancerStatus::empty())
    }
}

/// What is told of a load balancer that the Service names, and that another cluster made.
pub(super) fn kept_note(identity: &Identity, seen: &View<'_>) -> Option<Note> {
    if !seen.is_listed(identity) {
        return None;
    }
    let balancer = match evidence::resolve_removed(identity, seen) {
        Found::OfOtherCluster(balancer) => balancer,
        Found::One { balancer, .. } if !rename::is_borne_out(identity, seen, balancer) => balancer,
        _ => return None,
    };
    Some(FOREIGN_KEPT.note(format!(
        "load balancer {} ({}) is another cluster's, as far as its tags and description tell, and is not deleted",
        balancer.name, balancer.id
    )))
}

/// Whether the Service stays, with an id that would be taken for a person's mistake if it asked for a load balancer again: the one
/// that it names was deleted before it had an address.
fn leads_nowhere(identity: &Identity, seen: &View<'_>) -> bool {
    let is_gone = identity
        .annotated
        .as_ref()
        .is_some_and(|id| seen.gone.contains(id));
    is_gone && !identity.is_deleted && identity.recorded_address.is_none()
}

/// What is to be done about a load balancer that the Service was a guest of, and has left.
pub(super) enum Left {
    /// Nothing is left on any.
    None,
    /// This comes next.
    Next(Next),
    /// It takes no change.
    Stuck(Refusal),
}

/// Removes what is left of the Service on a load balancer that it does not use any more; the load balancer as a whole, if
/// nobody else uses it and it was made for a Service.
pub(super) fn of_left(identity: &Identity, seen: &View<'_>) -> Left {
    let Some((left, _)) = evidence::left_behind(identity, &seen.balancers, None).next() else {
        return Left::None;
    };
    if is_pending(left) || seen.memory.own.is_busy {
        return Left::Next(wait_for(left, seen));
    }
    match of_balancer(identity, seen, left, Role::Guest) {
        Ok(Some(step)) => Left::Next(write(seen, step)),
        Ok(None) => held_pool(identity, seen, left).map_or(Left::None, Left::Stuck),
        Err(refusal) => Left::Stuck(refusal),
    }
}

/// A write, unless it was made and does not show yet.
fn write(seen: &View<'_>, step: CloudStep) -> Next {
    match &step {
        CloudStep::Part { change, .. } if is_late(seen.memory, change) => for_change(change, seen),
        _ => apply(vec![step]),
    }
}

/// The next write to a load balancer that is there; `None` if nothing of it is the Service's any more.
fn of_balancer(
    identity: &Identity,
    seen: &View<'_>,
    balancer: &LoadBalancer,
    role: Role,
) -> Result<Option<CloudStep>, Refusal> {
    if !rename::is_borne_out(identity, seen, balancer) {
        return Ok(None); // another cluster's
    }
    if !evidence::is_to_be_deleted(identity, role, balancer)
        || is_shared_by_listener(identity, seen, balancer)
    {
        // Octavia takes no change of a load balancer that failed, and this one is somebody else's too.
        if balancer.provisioning_status == ProvisioningStatus::Error
            && is_used(identity, role, seen, balancer)
        {
            return Err(refusal!(
                "load balancer {} is in provisioning status ERROR: Octavia deletes it as a whole then, and no part of it, and it was not made for this Service, or another one uses it",
                balancer.id;
                "ask the operator of the cloud {}; then the Service's parts are deleted", remedies::failover(balancer)
            )
            .by(RefusedBy::Failure));
        }
        // The tag leads whoever comes next to what is left.
        let tag =
            || without_tag(identity, balancer).filter(|_| held_pool(identity, seen, balancer).is_none());
        let change = own_parts(identity, role, seen, balancer);
        let change = change
            .or_else(|| kept_sticky(identity, seen, balancer))
            .or_else(tag);
        return change.map(|change| part(seen, balancer, change)).transpose();
    }
    // Where nothing but the address bears out whose the load balancer is, the floating IP goes after it.
    if !identity.keeps_floating_ip
        && evidence::claimed_tag(identity, balancer).is_none()
        && let Some(there) = floating::current(seen, balancer)
        && floating::goes_with_balancer(identity, seen, balancer, there)
    {
        return Ok(Some(CloudStep::FloatingIp(FloatingIpChange::delete(there))));
    }
    let takes_changes = balancer.provisioning_status == ProvisioningStatus::Active;
    let one = match takes_changes && !identity.options.deletes_by_cascade {
        true => seen.parts(&balancer.id),
        false => None,
    };
    let one = one.and_then(|parts| one_by_one(parts, &seen.memory.refusals));
    Ok(Some(match one {
        Some(change) => part(seen, balancer, change)?,
        None => CloudStep::DeleteBalancer {
            balancer: balancer.id.clone(),
            name: balancer.name.clone(),
            // One that failed takes no other deletion.
            cascade: identity.options.deletes_by_cascade
                || balancer.provisioning_status == ProvisioningStatus::Error,
            is_live: true,
        },
    }))
}

/// Whether a listener says that another Service uses a load balancer that bears no tag of that one.
pub(super) fn is_shared_by_listener(identity: &Identity, seen: &View<'_>, balancer: &LoadBalancer) -> bool {
    let parts = seen.parts(&balancer.id);
    let mut listeners = parts.iter().flat_map(|parts| &parts.listeners);
    listeners.any(|listener| evidence::is_of_other_service(identity, balancer, listener))
}

/// A write to a part, or why Octavia does not take it.
fn part(seen: &View<'_>, balancer: &LoadBalancer, change: PartChange) -> Result<CloudStep, Refusal> {
    match seen.memory.refusals.of_change(&change) {
        Some(why) => Err(why.clone()),
        None => Ok(change.of(balancer)),
    }
}

fn is_used(identity: &Identity, role: Role, seen: &View<'_>, balancer: &LoadBalancer) -> bool {
    own_parts(identity, role, seen, balancer).is_some() || without_tag(identity, balancer).is_some()
}

/// The next write that takes the Service's listeners and pools off a load balancer that stays.
pub(super) fn own_parts(
    identity: &Identity,
    role: Role,
    seen: &View<'_>,
    balancer: &LoadBalancer,
) -> Option<PartChange> {
    let parts = seen.parts(&balancer.id)?;
    let mut listeners = parts.listeners.iter();
    let own = listeners.find(|listener| evidence::is_own_part(identity, role, balancer, listener));
    let refusals = &seen.memory.refusals;
    own.map(|listener| parts::removal(parts, listener, refusals))
        .or_else(|| {
            let mut orphans = parts::orphans(identity, balancer, parts, refusals);
            orphans.next().map(PartChange::delete_pool)
        })
}

/// The next write that has the clients of those who stay kept at a member on.
fn kept_sticky(identity: &Identity, seen: &View<'_>, balancer: &LoadBalancer) -> Option<PartChange> {
    let writes = pools::kept_sticky(seen.parts(&balancer.id)?, &seen.memory.own.changes);
    let write = writes.into_iter().next()?;
    let features = seen.features().of_balancer(&identity.options, Some(balancer));
    let is_refused = seen.memory.refusals.of_change(&write).is_some();
    (features.is_ovn && !is_refused).then_some(write)
}

/// Why a pool of the Service stays on a load balancer that stays, where all else that could go is gone: Octavia deletes none that an L7
/// policy names, and none is taken from a listener of somebody else.
fn held_pool(identity: &Identity, seen: &View<'_>, balancer: &LoadBalancer) -> Option<Refusal> {
    if !rename::is_borne_out(identity, seen, balancer) {
        return None; // another cluster's
    }
    let parts = seen.parts(&balancer.id)?;
    let mut own = parts
        .pools
        .iter()
        .filter(|pool| evidence::is_own_pool(identity, balancer, pool));
    let pool = own.next()?;
    Some(match seen.memory.refusals.of_deletion(&pool.id) {
        Some(why) => why.clone(),
        None => {
            let users: Vec<&str> = pool.listeners.iter().map(|there| there.id.as_str()).collect();
            refusal!(
                "pool {} of load balancer {} is in use by listener {}, by an L7 policy or as the default pool",
                pool.name, balancer.id, users.join(", ");
                "somebody sent that listener there: have it lead elsewhere"
            )
        }
    })
}

/// The write that takes the Service's tag off a load balancer.
pub(super) fn without_tag(identity: &Identity, balancer: &LoadBalancer) -> Option<PartChange> {
    let is_ours = |tag: &&String| evidence::is_our_tag(identity, balancer, tag);
    balancer.tags.iter().find(is_ours)?;
    let removable = evidence::removable_tags(identity, balancer);
    let stays = |tag: &&String| !is_ours(tag) && !removable.contains(tag);
    let tags = Some(balancer.tags.iter().filter(stays).cloned().collect());
    let update = LoadBalancerUpdate { name: None, tags };
    Some(PartChange::update_balancer(balancer, update))
}

/// The next write that takes all parts off, one by one: monitors, pools, listeners. The monitor of a pool that failed goes with the pool:
/// by itself it takes no change. A pool that a policy names goes when the listener is gone that the policy goes with.
fn one_by_one(parts: &Parts, refusals: &Refusals) -> Option<PartChange> {
    let mut watched = parts.pools.iter().filter(|pool| !parts::has_failed(pool));
    let monitor = watched.find_map(|pool| {
        Some(PartChange::DeleteMonitor {
            id: pool.healthmonitor_id.clone()?,
            name: pool.name.clone(),
        })
    });
    let pool = || {
        let mut pools = parts.pools.iter();
        let pool = pools.find(|pool| refusals.of_deletion(&pool.id).is_none());
        pool.map(PartChange::delete_pool)
    };
    let listener = || parts.listeners.first().map(PartChange::delete_listener);
    monitor.or_else(pool).or_else(listener)
}

/// What goes with the Service, whether there was a load balancer or not.
fn left_over(identity: &Identity, seen: &View<'_>) -> Vec<CloudStep> {
    let mut steps: Vec<CloudStep> = Vec::new();
    if !identity.keeps_floating_ip {
        let all = seen.floating_ips().iter();
        let own = all.filter(|there| floating::goes_with(identity, seen, there));
        steps.extend(own.map(FloatingIpChange::delete).map(CloudStep::FloatingIp));
    }
    steps.extend(groups::removal(identity, seen).into_iter().map(CloudStep::Group));
    steps
}
