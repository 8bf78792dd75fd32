//! What a write does to the observation: as its answer tells, or as it can be predicted. Both go the same way.

use std::sync::Arc;

use bowline_openstack_client::{
    LoadBalancer, LoadBalancerId, NewLoadBalancer, PortId, ProvisioningStatus, SecurityGroup,
    SecurityGroupId, SecurityGroupRule,
};
use bowline_plan::Refusal;

use crate::apply::{Learned, Shown};
use crate::observe::{Memory, Observed, Parts, Seen, WrittenMembers};
use crate::step::{CloudStep, FloatingIpChange, GroupChange, PartChange};

pub(crate) mod predicted;

/// Adds what a write's answer told.
pub(crate) fn learn(seen: &mut Seen, step: &CloudStep, learned: Learned) {
    let shown = match learned {
        Learned::Done(shown) => shown.map(|shown| *shown),
        busy @ (Learned::Busy | Learned::PoolLocked) => {
            // Nothing happened: the looks since the last write go on being counted.
            seen.memory.own.is_busy = true;
            seen.memory.own.is_pool_locked = matches!(busy, Learned::PoolLocked);
            return;
        }
        Learned::Refused(why) => return refused(seen, step, &why),
        // The session has noted a refusal; this counts for this reconcile alone.
        Learned::Failed(why) | Learned::Unheard(why) => {
            refused(seen, step, &why);
            seen.memory.refusals.add(step.clone(), why);
            return;
        }
    };
    if matches!(step, CloudStep::CreateBalancer { .. }) || step.balancer().is_some() {
        seen.memory.new_wait();
        (seen.memory.own.is_unseen, seen.memory.own.is_busy) = (true, false);
        seen.memory.own.is_written = true;
    }
    absorb(seen, step, shown);
    if let CloudStep::DeleteBalancer { .. } = step {
        seen.memory.own.is_creation_late = false; // it came
    }
    match step {
        CloudStep::Part { change, .. } => {
            let own = &mut seen.memory.own;
            if own.changes.contains(change) {
                own.rewritten.push(change.clone());
            }
            let changes = &mut own.changes;
            changes.retain(|earlier| earlier.object() != change.object());
            changes.push(change.clone());
        }
        CloudStep::Group(_) | CloudStep::DeletePort { .. } => {}
        CloudStep::CreateBalancer { .. } | CloudStep::DeleteBalancer { .. } | CloudStep::FloatingIp(_) => {
            seen.memory.own.is_address_changed = true;
        }
    }
    // Every change of a load balancer or of a part makes Octavia work on it, also where the answer does not show it.
    let status = match step {
        CloudStep::DeleteBalancer { .. } => ProvisioningStatus::PendingDelete,
        _ => ProvisioningStatus::PendingUpdate,
    };
    if let Some(balancer) = step.balancer().and_then(|id| seen.balancer_mut(id)) {
        balancer.provisioning_status = status;
    }
}

/// Changes the observation as applying a step will.
pub(crate) fn predict(seen: &mut Seen, step: &CloudStep) {
    if let CloudStep::DeleteBalancer {
        balancer, is_live, ..
    } = step
    {
        if *is_live {
            vacate(seen, balancer);
        }
        seen.note_freed(balancer);
        predicted::floating_ips_without(seen, balancer);
        seen.is_gone(balancer);
        return;
    }
    let shown = predicted::shown(seen, step);
    absorb(seen, step, shown);
}

/// A creation was refused: what ports there are is to be seen anew.
fn left_behind(seen: &mut Seen) {
    let before = seen.observed.ports.take();
    let own = &mut seen.memory.own;
    own.ports_before = own.ports_before.take().or(before);
    (own.is_creation_refused, own.seeks_leaks) = (true, true);
    seen.leaked = None;
}

/// A port that was left behind is gone, or cannot be deleted now.
fn without_leaked(observed: &mut Observed, port: &PortId) {
    if let Some(leaked) = &mut observed.leaked {
        leaked.ports.retain(|there| there.id != *port);
    }
}

fn refused(seen: &mut Seen, step: &CloudStep, why: &Refusal) {
    tracing::warn!(
        err = why.reason,
        "OpenStack did not take a change; what does not depend on it goes on"
    );
    match step {
        CloudStep::CreateBalancer { .. } => left_behind(seen),
        CloudStep::DeletePort { port, .. } => without_leaked(&mut seen.observed, port),
        _ => {}
    }
}

fn absorb(seen: &mut Seen, step: &CloudStep, shown: Option<Shown>) {
    match step {
        CloudStep::CreateBalancer { new } => {
            if let Some(Shown::Balancer(balancer)) = shown {
                created(seen, new, balancer);
            }
        }
        CloudStep::DeleteBalancer {
            balancer, is_live, ..
        } => {
            seen.note_freed(balancer);
            let there = seen.balancers.iter().find(|there| there.id == *balancer);
            let has_failed =
                there.is_some_and(|there| there.provisioning_status == ProvisioningStatus::Error);
            if *is_live {
                vacate(seen, balancer);
            } else if has_failed {
                seen.memory.own.failed = Some(balancer.clone());
            }
        }
        CloudStep::Part { balancer, change } => {
            if let PartChange::SetMembers { removed: 1.., .. } | PartChange::RemoveMember { .. } = change {
                seen.memory.refusals.lift(|_, why| why.is_limit);
            }
            if let PartChange::SetMembers { pool, removed, .. } = change {
                seen.memory.own.members_written.push(WrittenMembers {
                    pool: pool.clone(),
                    removed: *removed,
                });
            }
            let Seen { observed, memory } = seen;
            of_part(observed, memory, balancer, change, shown);
        }
        CloudStep::DeletePort { port, .. } => {
            without_leaked(&mut seen.observed, port);
            if let Some(ports) = &mut seen.ports {
                Arc::make_mut(ports).retain(|there| there.id != *port);
            }
        }
        CloudStep::FloatingIp(change) => {
            let Seen { observed, memory } = seen;
            of_floating_ip(observed, memory, change, shown);
        }
        CloudStep::Group(change) => {
            let Seen { observed, memory } = seen;
            of_group(observed, memory, change, shown);
        }
    }
}

/// One that served goes. Should it come back, it is left alone: one repair at a time.
fn vacate(seen: &mut Seen, balancer: &LoadBalancerId) {
    let there = seen.balancers.iter().find(|there| there.id == *balancer);
    seen.memory.own.vacated = there.map(|there| there.vip_address.clone());
    seen.memory.own.may_repair = false;
}

fn created(seen: &mut Seen, new: &NewLoadBalancer, balancer: LoadBalancer) {
    let id = balancer.id.clone();
    let parts = match new.listeners.is_empty() {
        true => Parts::none(id.clone()),
        false => predicted::parts(&mut seen.memory, id.clone(), new),
    };
    seen.parts.insert(id.clone(), parts);
    seen.memory.own.created = Some(id);
    seen.observed.balancers.push(balancer);
}

fn is_deletion_of_pool(step: &CloudStep) -> bool {
    matches!(
        step,
        CloudStep::Part {
            change: PartChange::DeletePool { .. },
            ..
        }
    )
}

fn of_part(
    observed: &mut Observed,
    memory: &mut Memory,
    balancer: &LoadBalancerId,
    change: &PartChange,
    shown: Option<Shown>,
) {
    if let (PartChange::UpdateBalancer { update, .. }, Some(there)) =
        (change, observed.balancer_mut(balancer))
    {
        // What else the answer shows may lag behind.
        if let Some(name) = &update.name {
            there.name.clone_from(name);
        }
        if let Some(tags) = &update.tags {
            there.tags.clone_from(tags);
        }
    }
    let Some(parts) = observed.parts.get_mut(balancer) else {
        return;
    };
    match (change, shown) {
        (_, Some(Shown::Listener(listener))) => {
            replace(&mut parts.listeners, listener, |a, b| a.id == b.id);
        }
        (PartChange::CreatePool { new }, Some(Shown::Pool(mut pool))) => {
            if pool.listeners.is_empty() {
                // An old Octavia shows the listener only when it is done.
                pool.listeners
                    .extend(new.listener_id.clone().map(predicted::reference));
            }
            parts.members.insert(pool.id.clone(), Vec::new());
            let mut listeners = parts.listeners.iter_mut();
            if let Some(listener) = listeners.find(|there| Some(&there.id) == new.listener_id.as_ref()) {
                listener.default_pool_id = Some(pool.id.clone());
            }
            replace(&mut parts.pools, pool, |a, b| a.id == b.id);
        }
        (_, Some(Shown::Pool(pool))) => replace(&mut parts.pools, pool, |a, b| a.id == b.id),
        (PartChange::AddMember { pool, .. }, Some(Shown::Member(member))) => {
            parts.members.entry(pool.clone()).or_default().push(member);
        }
        (PartChange::UpdateMember { pool, .. }, Some(Shown::Member(member))) => {
            let members = parts.members.entry(pool.clone()).or_default();
            replace(members, member, |a, b| a.id == b.id);
        }
        (change, Some(Shown::Monitor(monitor))) => {
            if let PartChange::CreateMonitor { new } = change
                && let Some(pool) = new.pool_id.as_ref().and_then(|id| parts.pool_mut(id))
            {
                pool.healthmonitor_id = Some(monitor.id.clone());
            }
            let monitors = parts.monitors.get_or_insert_default();
            monitors.insert(monitor.id.clone(), monitor);
        }
        (PartChange::DeleteListener { id, .. }, _) => {
            // Its policies went with it.
            memory
                .refusals
                .lift(|step, why| why.is_limit || is_deletion_of_pool(step));
            parts.listeners.retain(|listener| listener.id != *id);
            for pool in &mut parts.pools {
                pool.listeners.retain(|reference| reference.id != *id);
            }
        }
        (PartChange::DeletePool { id, .. }, _) => parts.remove_pool(id),
        (PartChange::SetMembers { pool, members, .. }, _) => {
            let before = parts.members.remove(pool).unwrap_or_default();
            let now = members
                .iter()
                .filter_map(|new| predicted::listed_member(memory, new, &before));
            parts.members.insert(pool.clone(), now.collect());
        }
        (PartChange::RemoveMember { pool, id, .. }, _) => {
            if let Some(members) = parts.members.get_mut(pool) {
                members.retain(|member| member.id != *id);
            }
        }
        (PartChange::DeleteMonitor { id, pool, .. }, _) => {
            if let Some(pool) = parts.pool_mut(pool) {
                pool.healthmonitor_id = None;
            }
            parts.monitors.get_or_insert_default().remove(id);
        }
        _ => {}
    }
}

/// Puts an object in the place of the one that it is, or behind all others.
fn replace<T>(list: &mut Vec<T>, now: T, is_same: impl Fn(&T, &T) -> bool) {
    match list.iter_mut().find(|there| is_same(there, &now)) {
        Some(there) => *there = now,
        None => list.push(now),
    }
}

fn of_floating_ip(
    observed: &mut Observed,
    memory: &mut Memory,
    change: &FloatingIpChange,
    shown: Option<Shown>,
) {
    let list = Arc::make_mut(observed.floating_ips.get_or_insert_default());
    match (change, shown) {
        // Also one that was gone when it was to lead somewhere.
        (FloatingIpChange::Delete { id, .. }, _) | (FloatingIpChange::Attach { id, .. }, None) => {
            list.retain(|there| there.id != *id);
            memory.own.floating_ips.delete(id.clone());
        }
        (_, Some(Shown::FloatingIp(now))) => {
            memory.own.floating_ips.write(now.id.clone(), now.clone());
            replace(list, now, |a, b| a.id == b.id);
        }
        _ => {}
    }
}

fn rules_of<'a>(
    groups: &'a mut [SecurityGroup],
    id: &SecurityGroupId,
) -> Option<&'a mut Vec<SecurityGroupRule>> {
    let group = groups.iter_mut().find(|there| there.id == *id);
    group.map(|there| &mut there.rules)
}

fn of_group(observed: &mut Observed, memory: &mut Memory, change: &GroupChange, shown: Option<Shown>) {
    // Where they are to be read again, because of another write of the wave, they are not known meanwhile.
    let groups = match (&mut observed.groups, change) {
        (Some(groups), _) => groups,
        (unknown @ None, GroupChange::Create { .. }) => unknown.insert(Vec::new()),
        (None, _) => &mut Vec::new(),
    };
    match (change, shown) {
        (GroupChange::Create { .. }, Some(Shown::Group(group))) => groups.push(group),
        (GroupChange::CreateRule { new }, Some(Shown::Rule(rule))) => {
            if let Some(rules) = rules_of(groups, &new.security_group_id) {
                rules.push(rule);
            }
        }
        // It is there already, and not known here: everything is read again. Should it not be listed even then, it is not
        // asked for again, unless a rule that is listed in its place goes.
        (GroupChange::CreateRule { new }, _) => {
            memory.own.rules_there.push(new.clone());
            observed.groups = None;
        }
        (GroupChange::DeleteRule { group, id, .. }, _) => {
            memory.own.rules_there.clear();
            let is_rule = |step: &CloudStep| matches!(step, CloudStep::Group(GroupChange::CreateRule { .. }));
            memory.refusals.lift(|step, _| is_rule(step));
            if let Some(rules) = rules_of(groups, group) {
                rules.retain(|rule| rule.id != *id);
            }
        }
        (GroupChange::Join { .. } | GroupChange::Leave { .. }, Some(Shown::Port(port))) => {
            let ports = Arc::make_mut(observed.ports.get_or_insert_default());
            replace(ports, port, |a, b| a.id == b.id);
        }
        (GroupChange::Join { port, .. } | GroupChange::Leave { port, .. }, _) => {
            let ports = Arc::make_mut(observed.ports.get_or_insert_default());
            ports.retain(|there| there.id != port.id);
        }
        (GroupChange::Delete { group, .. }, _) => {
            for groups in [&mut observed.groups, &mut observed.former_groups] {
                groups
                    .iter_mut()
                    .for_each(|groups| groups.retain(|there| there.id != *group));
            }
        }
        _ => {}
    }
}
