//! What a write does to the observation: as its answer tells, or as it can be predicted. Both go the same way.

use std::sync::Arc;

use bowline_cloud_provider::effects::{as_shown, put};
use bowline_openstack_client::{
    Listener, ListenerId, LoadBalancer, LoadBalancerId, Member, MemberSettings, NewListener, NewLoadBalancer,
    PoolId, PortId, ProvisioningStatus, Reference, SecurityGroup,
};
use bowline_plan::Refusal;
use serde_json::json;

use crate::load_balancer::learned::{Learned, Shown};
use crate::load_balancer::members::is_at;
use crate::load_balancer::memory::{Memory, RefusedCreation, Seen};
use crate::load_balancer::observe::confirm;
use crate::load_balancer::observed::{Observed, Parts};
use crate::load_balancer::remedies;
use crate::load_balancer::step::{CloudStep, FloatingIpChange, GroupChange, PartChange};
use crate::load_balancer::vip_ports::{self, Place};

pub(crate) mod predicted;

/// Adds what a write's answer told.
pub(crate) fn learn(seen: &mut Seen, step: &CloudStep, learned: Learned) {
    let shown = match learned {
        Learned::Done(shown) => shown.map(|shown| *shown),
        // The looks since the last write go on being counted.
        Learned::Busy => return seen.memory.own.is_busy = true,
        Learned::Conflict {
            why,
            is_refusal: true,
            ..
        } => {
            seen.memory.own.at_rest.refute();
            not_taken(seen, step, &why);
            seen.memory.refusals.add_briefly(step.clone(), why);
            return;
        }
        Learned::Conflict { is_of_pool, .. } => {
            let own = &mut seen.memory.own;
            own.at_rest.met(step);
            (own.is_busy, own.is_pool_locked) = (true, is_of_pool);
            return;
        }
        Learned::Refused(why) => return not_taken(seen, step, &why),
        Learned::Failed(why) | Learned::Unheard(why) => {
            not_taken(seen, step, &why);
            seen.memory.refusals.hold(step.clone(), why);
            return;
        }
    };
    if matches!(step, CloudStep::CreateBalancer { .. }) || step.balancer().is_some() {
        seen.memory.new_wait();
        (seen.memory.own.is_unseen, seen.memory.own.is_busy) = (true, false);
        (seen.memory.own.is_written, seen.memory.own.is_verified) = (true, false);
    }
    absorb(seen, step, shown);
    if let CloudStep::DeleteBalancer { .. } = step {
        seen.memory.own.is_creation_late = false; // it came
        seen.memory.own.unconfirmed.push(step.clone());
    }
    match step {
        CloudStep::Part { change, .. } => {
            let own = &mut seen.memory.own;
            let changes = &mut own.changes;
            changes.retain(|earlier| earlier.object() != change.object());
            changes.push(change.clone());
            if confirm::makes_or_takes(change) {
                own.unconfirmed.push(step.clone());
            }
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
    let shown = predicted::shown(seen, step);
    absorb(seen, step, shown);
    if let CloudStep::DeleteBalancer { balancer, .. } = step {
        predicted::floating_ips_without(seen, balancer);
        seen.is_gone(balancer);
    }
}

/// A creation was refused: what ports there are is to be seen anew.
fn left_behind(seen: &mut Seen, new: &NewLoadBalancer, why: &Refusal) {
    let own = &mut seen.memory.own;
    if let Some(before) = seen.observed.ports.take() {
        own.ports_before = Some(vip_ports::known(&before));
    }
    own.refused_creation = Some(RefusedCreation {
        place: Place::of(new),
        had_port: remedies::had_port(why),
    });
    own.is_unseen = true; // it may be there all the same
    seen.leaked = None;
}

/// A port that was left behind is gone, or cannot be deleted now.
fn without_leaked(observed: &mut Observed, port: &PortId) {
    if let Some(leaked) = &mut observed.leaked {
        leaked.in_the_way.retain(|there| there.id != *port);
    }
}

fn not_taken(seen: &mut Seen, step: &CloudStep, why: &Refusal) {
    tracing::warn!(
        err = why.reason,
        "OpenStack did not take a change; what does not depend on it goes on"
    );
    match step {
        CloudStep::CreateBalancer { new } => left_behind(seen, new, why),
        CloudStep::DeletePort { port, .. } => without_leaked(&mut seen.observed, port),
        _ => {}
    }
}

fn absorb(seen: &mut Seen, step: &CloudStep, shown: Option<Shown>) {
    match (step, shown) {
        (CloudStep::CreateBalancer { new }, Some(Shown::Balancer(balancer))) => created(seen, new, balancer),
        (CloudStep::CreateBalancer { .. }, _) => {}
        (
            CloudStep::DeleteBalancer {
                balancer, is_live, ..
            },
            _,
        ) => {
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
        (CloudStep::Part { balancer, change }, shown) => {
            lift(&mut seen.memory, change);
            let made_way = as_it_was(seen, balancer, change);
            let kept = &mut seen.memory.own.made_way;
            kept.retain(|before| !before.has_place_of(change));
            kept.extend(made_way);
            let own = &mut seen.memory.own;
            match change {
                PartChange::SetMembers { pool, .. }
                | PartChange::AddMember { pool, .. }
                | PartChange::UpdateMember { pool, .. }
                | PartChange::RemoveMember { pool, .. } => _ = own.members_written.insert(pool.clone()),
                PartChange::UpdateBalancer { .. } => {}
                _ => _ = own.parts_written.insert(balancer.clone()),
            }
            let Seen { observed, memory } = seen;
            // What else the answer shows may lag behind.
            if let (PartChange::UpdateBalancer { update, .. }, Some(there)) =
                (change, observed.balancer_mut(balancer))
                && let Some(now) = as_shown(there, update, predicted::DEPTH)
            {
                *there = now;
            }
            if let Some(parts) = observed.parts.get_mut(balancer) {
                of_part(parts, memory, change, shown);
            }
        }
        (CloudStep::DeletePort { port, .. }, _) => {
            without_leaked(&mut seen.observed, port);
            without(&mut seen.ports, |there| there.id == *port);
        }
        // Also one that was gone when it was to lead somewhere.
        (
            CloudStep::FloatingIp(FloatingIpChange::Delete { id, .. } | FloatingIpChange::Attach { id, .. }),
            None,
        ) => {
            without(&mut seen.floating_ips, |there| there.id == *id);
            seen.memory.own.floating_ips.delete(id.clone());
        }
        (CloudStep::FloatingIp(_), Some(Shown::FloatingIp(now))) => {
            seen.memory.own.floating_ips.write(now.id.clone(), now.clone());
            let list = Arc::make_mut(seen.floating_ips.get_or_insert_default());
            put(list, now, |it| it.id.clone());
        }
        (CloudStep::FloatingIp(_), _) => {}
        (CloudStep::Group(change), shown) => of_group(seen, change, shown),
    }
}

/// The creation that makes what a change deletes as it was, of what has its place alone.
pub(crate) fn as_it_was(seen: &Seen, of: &LoadBalancerId, change: &PartChange) -> Option<PartChange> {
    let parts = seen.parts.get(of)?;
    match change {
        PartChange::DeleteListener { id, .. } => {
            let there = parts.listeners.iter().find(|there| there.id == *id)?;
            let pool = parts.pool_of(id).map(|pool| &pool.id);
            let places = json!({ "loadbalancer_id": of, "default_pool_id": pool });
            let mut new: NewListener = as_shown(there, &places, predicted::DEPTH)?;
            new.attributes.tags.take_if(|tags| tags.is_empty());
            new.attributes
                .insert_headers
                .take_if(|headers| headers.is_empty());
            new.attributes.allowed_cidrs.take_if(|cidrs| cidrs.is_empty());
            Some(PartChange::CreateListener { new: Box::new(new) })
        }
        PartChange::DeleteMonitor { id, .. } => {
            let there = parts.monitors.as_ref()?.get(id)?;
            let mut pools = parts.pools.iter();
            let pool = pools.find(|pool| pool.healthmonitor_id.as_ref() == Some(id))?;
            let new = as_shown(there, &json!({ "pool_id": pool.id }), predicted::DEPTH)?;
            Some(PartChange::CreateMonitor { new: Box::new(new) })
        }
        _ => None,
    }
}

/// What a change of a part makes room for, or takes out of the way: it is asked for again.
fn lift(memory: &mut Memory, change: &PartChange) {
    let is_deletion_of_pool = |step: &CloudStep| {
        let deletes = |change: &PartChange| matches!(change, PartChange::DeletePool { .. });
        matches!(step, CloudStep::Part { change, .. } if deletes(change))
    };
    match change {
        PartChange::SetMembers { removed: 1.., .. }
        | PartChange::RemoveMember { .. }
        | PartChange::DeletePool { .. } => {
            memory.refusals.lift(|_, why| why.is_limit);
        }
        // Its policies went with it.
        PartChange::DeleteListener { .. } => memory
            .refusals
            .lift(|step, why| why.is_limit || is_deletion_of_pool(step)),
        _ => {}
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

fn of_part(parts: &mut Parts, memory: &mut Memory, change: &PartChange, shown: Option<Shown>) {
    match (change, shown) {
        (change, Some(Shown::Listener(mut listener))) => {
            let pool = match change {
                PartChange::CreateListener { new } => new.default_pool_id.as_ref(),
                PartChange::UpdateListener { update, .. } => update.default_pool_id.as_ref(),
                _ => None,
            };
            if let Some(pool) = pool {
                listener.default_pool_id = Some(pool.clone());
                send_to(parts, &listener, pool);
            }
            put(&mut parts.listeners, listener, |it| it.id.clone());
        }
        (change, Some(Shown::Pool(mut pool))) => {
            if let PartChange::CreatePool { new } = change {
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
            }
            put(&mut parts.pools, pool, |it| it.id.clone());
        }
        (
            PartChange::AddMember { pool, .. } | PartChange::UpdateMember { pool, .. },
            Some(Shown::Member(member)),
        ) => {
            let members = parts.members.entry(pool.clone()).or_default();
            put(members, member, |it| it.id.clone());
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
        (PartChange::SetMembers { pool, members, .. }, _) => {
            let before = parts.members.remove(pool).unwrap_or_default();
            let left = before
                .iter()
                .filter(|there| members.iter().all(|new| !is_at(there, new)));
            leave(memory, pool, left);
            let now = members
                .iter()
                .filter_map(|new| predicted::listed_member(memory, new, &before));
            parts.members.insert(pool.clone(), now.collect());
        }
        (PartChange::DeleteListener { id, .. }, _) => parts.remove(id.as_str()),
        (PartChange::DeletePool { id, .. }, _) => parts.remove(id.as_str()),
        (PartChange::RemoveMember { pool, id, .. }, _) => {
            let there = parts.members.get(pool).into_iter().flatten();
            leave(memory, pool, there.filter(|there| there.id == *id));
            parts.remove(id.as_str());
        }
        (PartChange::DeleteMonitor { id, .. }, _) => parts.remove(id.as_str()),
        _ => {}
    }
}

/// A listener sends to another pool. Those that its policies lead to name it on.
fn send_to(parts: &mut Parts, listener: &Listener, pool: &PoolId) {
    let is_it = |there: &Reference<ListenerId>| there.id == listener.id;
    for there in &mut parts.pools {
        if there.id == *pool {
            there.listeners.retain(|there| !is_it(there));
            there.listeners.push(predicted::reference(listener.id.clone()));
        } else if listener.l7policies.is_empty() {
            there.listeners.retain(|there| !is_it(there));
        }
    }
}

/// Keeps what people set on members that go.
fn leave<'a>(memory: &mut Memory, pool: &PoolId, left: impl Iterator<Item = &'a Member>) {
    let left = left.filter(|member| member.settings != MemberSettings::default());
    let left = left.map(|member| (pool.clone(), member.clone()));
    memory.own.left.extend(left);
}

/// Takes an object out of a list that others may hold too.
fn without<T: Clone>(list: &mut Option<Arc<Vec<T>>>, is_it: impl Fn(&T) -> bool) {
    if let Some(list) = list {
        Arc::make_mut(list).retain(|there| !is_it(there));
    }
}

/// What a write does to the security groups that are known.
pub(crate) fn of_groups(groups: &mut Vec<SecurityGroup>, change: &GroupChange, shown: Option<&Shown>) {
    match (change, shown) {
        (_, Some(Shown::Group(group))) => put(groups, group.clone(), |it| it.id.clone()),
        (_, Some(Shown::Rule(rule))) => {
            let group = groups.iter_mut().find(|group| group.id == rule.security_group_id);
            group
                .into_iter()
                .for_each(|group| put(&mut group.rules, rule.clone(), |it| it.id.clone()));
        }
        (GroupChange::DeleteRule { id, .. }, _) => {
            let rules = groups.iter_mut().map(|group| &mut group.rules);
            rules.for_each(|rules| rules.retain(|rule| rule.id != *id));
        }
        (GroupChange::Delete { group, .. }, _) => groups.retain(|there| there.id != *group),
        _ => {}
    }
}

fn of_group(seen: &mut Seen, change: &GroupChange, shown: Option<Shown>) {
    let Seen { observed, memory } = seen;
    match (change, &shown) {
        // Where they are to be read again, because of another write of the wave, they are not known meanwhile.
        (GroupChange::Create { .. }, _) => _ = observed.groups.get_or_insert_default(),
        // It is there already, and not known here: everything is read again. Should it not be listed even then, it is not
        // asked for again, unless a rule that is listed in its place goes.
        (GroupChange::CreateRule { new }, None) => {
            memory.own.rules_there.push(new.clone());
            observed.groups = None;
        }
        (GroupChange::DeleteRule { .. }, _) => {
            memory.own.rules_there.clear();
            let is_rule = |step: &CloudStep| matches!(step, CloudStep::Group(GroupChange::CreateRule { .. }));
            memory.refusals.lift(|step, _| is_rule(step));
        }
        (GroupChange::Join { .. } | GroupChange::Leave { .. }, Some(Shown::Port(port))) => {
            let ports = Arc::make_mut(observed.ports.get_or_insert_default());
            put(ports, port.clone(), |it| it.id.clone());
        }
        (GroupChange::Join { port, .. } | GroupChange::Leave { port, .. }, _) => {
            without(&mut observed.ports, |there| there.id == port.id);
        }
        _ => {}
    }
    if let Some(groups) = &mut observed.groups {
        of_groups(groups, change, shown.as_ref());
    }
    // What is made is no former Service's.
    if let (Some(groups), None) = (&mut observed.former_groups, &shown) {
        of_groups(groups, change, None);
    }
}
