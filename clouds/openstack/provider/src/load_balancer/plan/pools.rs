//! What differs at a pool and can be changed where it stands: how it chooses a member, and how it keeps a client at one. Each is
//! written by itself, because Octavia may refuse either.

use bowline_openstack_client::{LoadBalancerId, NewPool, Pool, PoolProtocol, PoolUpdate, SessionPersistence};
use bowline_plan::Note;

use crate::load_balancer::memory::{PartRefusals as _, Refusals};
use crate::load_balancer::observed::Parts;
use crate::load_balancer::step::{PartChange, PoolSetting};
use crate::messages::{CHANGE_IGNORED, LB_METHOD_UNKNOWN};

/// The updates. What Octavia refused is left out; so is a method where none is asked for.
pub(super) fn updates(
    wanted: &NewPool,
    there: &Pool,
    refusals: &Refusals,
    is_ovn: bool,
) -> impl Iterator<Item = PoolUpdate> {
    let is_refused = |setting: &PoolSetting| refusals.of_setting(&there.id, setting).is_some();
    let settings = [method(wanted, there), persistence(wanted, there)];
    let settings = settings.into_iter().flatten();
    settings
        .filter(move |setting| !is_refused(setting))
        .map(move |setting| match setting {
            PoolSetting::Method(method) => PoolUpdate {
                lb_algorithm: Some(method),
                ..PoolUpdate::default()
            },
            PoolSetting::Persistence(persistence) => PoolUpdate {
                session_persistence: Some(persistence),
                // Without it, what `ovn` does breaks off (`pool_update` in its `helper.py`), and the pool is in `ERROR`.
                admin_state_up: is_ovn.then_some(there.admin_state_up.unwrap_or(true)),
                ..PoolUpdate::default()
            },
        })
}

/// Whether a pool keeps clients at a member, shall not, and is made anew for that: `ovn` does not take it back where the pool stands
/// (`pool_update` in its `helper.py`), and ends it with the pool.
pub(super) fn sticks(wanted: &NewPool, there: &Pool) -> bool {
    wanted.session_persistence.is_none() && there.session_persistence.is_some() && !is_of_person(there)
}

/// The writes that have clients kept at a member on, where a pool went in this reconcile. `ovn` does that for all pools of a protocol or for
/// none, and ends it with any of them (`pool_delete` in its `helper.py`, `affinity_timeout`).
pub(super) fn kept_sticky(there: &Parts, changes: &[PartChange]) -> Vec<PartChange> {
    let ends = |change: &PartChange| matches!(change, PartChange::DeletePool { .. });
    let Some(end) = changes.iter().rposition(ends) else {
        return Vec::new();
    };
    let mut protocols: Vec<&PoolProtocol> = Vec::new();
    let mut writes = Vec::new();
    // One that is on its way out may still be shown.
    let goes = |pool: &Pool| {
        let is_it =
            |change: &PartChange| matches!(change, PartChange::DeletePool { id, .. } if *id == pool.id);
        changes.iter().any(is_it)
    };
    let stays = |pool: &&Pool| !pool.listeners.is_empty() && !goes(pool);
    let pools = there.pools.iter().filter(stays);
    let sticky = pools.filter(|pool| pool.session_persistence.is_some());
    for pool in sticky {
        if protocols.contains(&&pool.protocol) {
            continue;
        }
        protocols.push(&pool.protocol);
        let update = PoolUpdate {
            name: Some(pool.name.clone()), // another write than that which began it
            session_persistence: Some(pool.session_persistence.clone()),
            admin_state_up: Some(pool.admin_state_up.unwrap_or(true)),
            ..PoolUpdate::default()
        };
        writes.push(PartChange::update_pool(pool, update));
    }
    writes.retain(|write| !changes[end..].contains(write));
    writes
}

fn method(wanted: &NewPool, there: &Pool) -> Option<PoolSetting> {
    let wanted = &wanted.lb_algorithm;
    let differs = !wanted.is_empty() && *wanted != there.lb_algorithm;
    differs.then(|| PoolSetting::Method(wanted.clone()))
}

/// Session persistence that no `spec.sessionAffinity` asks for is a person's, and stays.
fn persistence(wanted: &NewPool, there: &Pool) -> Option<PoolSetting> {
    let wanted = &wanted.session_persistence;
    let differs = *wanted != there.session_persistence && !is_of_person(there);
    differs.then(|| PoolSetting::Persistence(wanted.clone()))
}

fn is_of_person(there: &Pool) -> bool {
    let there = there.session_persistence.as_ref();
    there.is_some_and(|there| *there != SessionPersistence::by_address())
}

/// What is told of the pools that do not become what the Service asks for.
pub(super) fn notes<'a>(
    balancer: &LoadBalancerId,
    pools: impl Iterator<Item = (&'a NewPool, &'a Pool)>,
    refusals: &Refusals,
) -> Vec<Note> {
    let mut of_method = None;
    let mut kept = Vec::new();
    for (wanted, there) in pools {
        let why = |setting: Option<PoolSetting>| {
            let refusal = refusals.of_setting(&there.id, &setting?);
            refusal.map(|why| &why.reason)
        };
        of_method = of_method.or(why(method(wanted, there)));
        if let Some(set) = there.session_persistence.as_ref().filter(|_| is_of_person(there)) {
            let is_asked_for =
                wanted.session_persistence.as_ref().map(|wanted| &wanted.kind) == Some(&set.kind);
            kept.extend((!is_asked_for).then(|| {
                format!(
                    "pool {} keeps the session persistence {} that somebody set",
                    there.name, set.kind
                )
            }));
        } else if let Some(why) = why(persistence(wanted, there)) {
            kept.push(format!("pool {} keeps its own: {why}", there.name));
        }
    }
    let of_method = of_method
        .map(|why| LB_METHOD_UNKNOWN.note(format!("Error updating LB method for LoadBalancer: {why}")));
    let kept = (!kept.is_empty()).then(|| {
        CHANGE_IGNORED.note(format!(
            "load balancer {balancer} does not follow spec.sessionAffinity: {}",
            kept.join("; ")
        ))
    });
    of_method.into_iter().chain(kept).collect()
}
