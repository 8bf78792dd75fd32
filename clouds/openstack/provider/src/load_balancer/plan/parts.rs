//! Listeners, pools, members and monitors of a load balancer that is there: which write comes next.
//!
//! Octavia takes one change of a load balancer at a time, so there is one next write. Port by port in the Service's order:
//! listener, pool, members, monitor. What takes the place of something is made before that goes, where Octavia takes both; else that
//! goes directly before it. Listeners that nobody wants go last. What Octavia refuses, or does not keep, is left out: all that does not depend on it goes on.

use bowline_openstack_client::{
    Listener, ListenerUpdate, LoadBalancer, MonitorId, NewListener, NewMonitor, NewPool, Pool, PoolUpdate,
    ProvisioningStatus,
};
use bowline_plan::{Note, Refusal, RefusedBy};

use super::{attributes, guards, pools};
use crate::load_balancer::evidence::{self, Role};
use crate::load_balancer::features::Features;
use crate::load_balancer::intent::{Identity, Wanted};
use crate::load_balancer::memory::{Memory, PartRefusals as _, Refusals, Remembered, is_late};
use crate::load_balancer::observe::confirm;
use crate::load_balancer::observe::view::View;
use crate::load_balancer::observed::Parts;
use crate::load_balancer::plan::desired::{self, DesiredPort};
use crate::load_balancer::plan::placement;
use crate::load_balancer::plan::waiting::may_carry;
use crate::load_balancer::remedies;
use crate::load_balancer::step::{PartChange, Room, port_space};
use crate::load_balancer::tags::{self, Tags};

mod members;
mod mending;
mod replaced;
mod unread;

/// The most parts that an event names one by one.
const FAILED_SHOWN: usize = 5;

/// What decides about the parts of a load balancer.
pub(crate) struct PartsPlan<'a> {
    identity: &'a Identity,
    features: Features,
    balancer: &'a LoadBalancer,
    role: Role,
    there: &'a Parts,
    desired: Vec<DesiredPort>,
    tags: &'a Tags,
    /// Whether members keep the subnets that they have.
    keeps_subnets: bool,
    /// Whether everything but members stays as it is, because the certificate or a number cannot be used.
    is_held: bool,
    own: &'a Remembered,
    refusals: &'a Refusals,
    memory: &'a Memory,
}

fn is_error(status: &ProvisioningStatus) -> bool {
    *status == ProvisioningStatus::Error
}

/// Whether a pool failed. Octavia refuses all writes of its members and its monitor then, and takes a write or the deletion of the pool.
pub(super) fn has_failed(pool: &Pool) -> bool {
    is_error(&pool.provisioning_status)
}

impl<'a> PartsPlan<'a> {
    pub(crate) fn new(
        wanted: &'a Wanted,
        features: Features,
        seen: &View<'a>,
        (balancer, role): (&'a LoadBalancer, Role),
        there: &'a Parts,
    ) -> Self {
        let subnets = placement::member_subnets(wanted, seen, Some((balancer, role)), None);
        let plan = Self {
            identity: &wanted.identity,
            features,
            balancer,
            role,
            there,
            desired: desired::ports(wanted, features, &subnets),
            tags: &wanted.tags,
            keeps_subnets: subnets.keeps_others,
            is_held: guards::held(wanted, features, seen).is_some(),
            own: &seen.memory.own,
            refusals: &seen.memory.refusals,
            memory: seen.memory,
        };
        plan.note_unread(seen);
        plan
    }

    fn is_own(&self, listener: &Listener) -> bool {
        evidence::is_own_listener(self.identity, self.role, listener)
    }

    /// The listeners on the port of a wanted one: at most one in Octavia, whatever its protocol.
    fn on_port<'b>(&'b self, wanted: &'b NewListener) -> impl Iterator<Item = &'b Listener> {
        self.there.listeners.iter().filter(|there| {
            there.protocol_port == wanted.protocol_port
                && port_space(&there.protocol) == port_space(&wanted.protocol)
        })
    }

    /// The Service's listener on a wanted port, whatever it speaks.
    fn listener_of<'b>(&'b self, port: &'b DesiredPort) -> Option<&'b Listener> {
        self.on_port(&port.listener).find(|there| self.is_own(there))
    }

    /// The Service's listeners on wanted ports, each with the pool that it sends to.
    fn served(&self) -> impl Iterator<Item = (&Listener, Option<&Pool>)> {
        let listeners = self.desired.iter().filter_map(|port| self.listener_of(port));
        listeners.map(|listener| (listener, self.there.pool_of(&listener.id)))
    }

    /// The pool that serves a wanted port, whatever it speaks.
    fn pool_of<'b>(&'b self, port: &'b DesiredPort) -> Option<&'b Pool> {
        self.there.pool_of(&self.listener_of(port)?.id)
    }

    /// Why a port is not served as it shall be, though everything else is: its pool failed and this reconcile could not mend it, or its
    /// listener was never made.
    pub(crate) fn unmended(&self) -> Option<Refusal> {
        let mut pools = self.served().filter_map(|(_, pool)| pool);
        let mut listeners = self.served().map(|(listener, _)| listener);
        let is_unmade =
            |there: &&Listener| is_error(&there.provisioning_status) && !may_carry(&there.operating_status);
        let of = &self.balancer.id;
        let text = if let Some(pool) = pools.find(|pool| has_failed(pool)) {
            format!(
                "pool {} of load balancer {of} is in provisioning status ERROR, in which it takes neither members nor a monitor",
                pool.name
            )
        } else {
            let listener = listeners.find(is_unmade)?;
            format!(
                "listener {} of load balancer {of} is in provisioning status ERROR and takes no connections (operating status {})",
                listener.name, listener.operating_status
            )
        };
        Some(Refusal::new(text).by(RefusedBy::Failure).with_remedy(format!(
            "Bowline tries again from time to time to have Octavia mend it; if it stays so, ask the operator of the cloud to look at Octavia's workers, or {}",
            remedies::failover(self.balancer)
        )))
    }

    /// Why not all parts are as they shall be, though everything else is: a change was refused, or is undone each time.
    pub(crate) fn untaken(&self) -> Option<Refusal> {
        let mut all = self.refused();
        let first = all.next()?.clone();
        let more = match all.count() {
            0 => return Some(first),
            1 => "another change".to_owned(),
            others => format!("{others} more changes"),
        };
        let reason = format!("{} (and so for {more})", first.reason);
        Some(Refusal { reason, ..first })
    }

    /// The first wanted port that somebody else has.
    pub(crate) fn conflict(&self) -> Option<&Listener> {
        let mut ports = self.desired.iter();
        ports.find_map(|port| self.on_port(&port.listener).find(|there| !self.is_own(there)))
    }

    /// Which parts of the Service failed by themselves, the first ones by name; `None` if all are well.
    pub(crate) fn failed(&self) -> Option<String> {
        let mut failed = Vec::new();
        let mut add = |has_failed: bool, text| failed.extend(has_failed.then_some(text));
        for (listener, pool) in self.served() {
            let has_failed_itself = is_error(&listener.provisioning_status);
            add(has_failed_itself, format!("listener {} (ERROR)", listener.name));
            let Some(pool) = pool else { continue };
            add(has_failed(pool), format!("pool {} (ERROR)", pool.name));
            if let Some(monitor) = self.there.monitor_of(pool) {
                let (name, status) = (&monitor.name, &monitor.provisioning_status);
                let text = format!("health monitor {name} ({status})");
                add(self.is_monitor_stuck(monitor), text);
            }
            for it in self.there.members.get(&pool.id).into_iter().flatten() {
                let text = format!("member {} ({}:{}, ERROR)", it.name, it.address, it.protocol_port);
                add(is_error(&it.provisioning_status), text);
            }
        }
        let named = failed.iter().take(FAILED_SHOWN).map(String::as_str);
        let named = named.collect::<Vec<_>>().join(", ");
        match failed.len().saturating_sub(FAILED_SHOWN) {
            0 => (!failed.is_empty()).then_some(named),
            others => Some(format!("{named} and {others} more")),
        }
    }

    /// What is told of pools that do not become what the Service asks for.
    pub(crate) fn notes_of_pools(&self) -> Vec<Note> {
        let pools = self.desired.iter().filter(|_| !self.is_held);
        let pools = pools.filter_map(|port| Some((&port.pool, self.lasting_pool_of(port)?)));
        pools::notes(&self.balancer.id, pools, self.refusals)
    }

    /// The next write.
    pub(crate) fn next(&self) -> Option<PartChange> {
        match self.is_held {
            true => self.next_of_members(),
            false => self.wished().find(|change| !self.is_held_back(change)),
        }
    }

    /// Whether a change is not made for now: nothing comes of it.
    fn is_held_back(&self, change: &PartChange) -> bool {
        is_late(self.memory, change)
            || self.refusals.of_change(change).is_some()
            || self.memory.is_stuck(&change.clone().of(self.balancer))
    }

    /// A change that Octavia answered, and that does not show yet.
    pub(crate) fn late(&self) -> Option<PartChange> {
        self.wished().find(|change| is_late(self.memory, change))
    }

    /// Why Octavia does not take what has a place now.
    pub(crate) fn refused(&self) -> impl Iterator<Item = &Refusal> {
        let wished = self.wished_once().into_iter();
        wished.filter_map(|change| self.refusals.of_change(&change))
    }

    /// Each write that has a place now and is not held, once: the same one may have several places.
    fn wished_once(&self) -> Vec<PartChange> {
        let mut once = Vec::new();
        for change in self.wished().filter(|_| !self.is_held) {
            if !once.contains(&change) {
                once.push(change);
            }
        }
        once
    }

    /// Why a pool that no port wants any more stays: Octavia does not delete it.
    pub(crate) fn barred(&self) -> Option<&Refusal> {
        let mut pools = self.there.pools.iter();
        pools.find_map(|pool| self.refusals.of_deletion(&pool.id))
    }

    /// All writes that have a place now, in their order.
    fn wished(&self) -> impl Iterator<Item = PartChange> {
        // Its listener made way for another one, and the process ended between the two: nothing is served there.
        let is_gap = |port: &&DesiredPort| {
            let next = self.pool_to_be(port).filter(|_| self.listener_of(port).is_none());
            next.is_some_and(|next| {
                let read = self.there.members.get(&next.id);
                read.map_or(!next.members.is_empty(), |members| !members.is_empty())
            })
        };
        let (gaps, others): (Vec<_>, Vec<_>) = self.desired.iter().partition(is_gap);
        let gaps = gaps.into_iter().flat_map(|port| self.of_port(port));
        // Whatever Octavia makes of all else, nobody is balanced over who left.
        let members = self.desired.iter().flat_map(|port| {
            let pool = self.pool_of(port);
            pool.map_or_else(Vec::new, |pool| self.mended_members(port, pool))
        });
        let of_ports = others.into_iter().flat_map(|port| self.of_port(port));
        // What was to take their place is not there.
        let is_short = || {
            let mut refused = self.refusals.of_parts();
            refused.any(|(change, _)| change.room() == Some(Room::Port))
        };
        let listeners = self.surplus().map(|(_, removal)| removal);
        let listeners = listeners.filter(move |_| !is_short());
        let is_place_empty = || self.desired.iter().any(|port| self.listener_of(port).is_none());
        let orphans = orphans(self.identity, self.balancer, self.there, self.refusals);
        let orphans = orphans
            .filter(|pool| !self.is_spare(pool))
            .map(PartChange::delete_pool);
        let removals = listeners.chain(orphans.filter(move |_| !(is_short() && is_place_empty())));
        // Names of monitors hold the place of their port. Where the first port goes all others move up, and nobody's traffic
        // is to wait for that.
        let names = self.desired.iter().flat_map(|port| {
            let pools = self.pools_to_be(port).filter(|pool| !has_failed(pool));
            pools
                .flat_map(|pool| self.monitor(port, pool))
                .collect::<Vec<_>>()
        });
        let sticky = match self.features.is_ovn {
            true => pools::kept_sticky(self.there, &self.own.changes),
            false => Vec::new(),
        };
        let all = gaps.chain(members).chain(of_ports).chain(removals).chain(names);
        all.chain(sticky)
    }

    /// Whether anything of the Service is served here.
    pub(crate) fn serves(&self) -> bool {
        self.served().any(|(_, pool)| pool.is_some())
    }

    /// Whether the Service's port at this place of its list is served here.
    pub(crate) fn serves_port(&self, index: usize) -> bool {
        let port = self.desired.get(index);
        port.is_some_and(|port| self.pool_of(port).is_some())
    }

    /// The next write to the members of the ports that are served already, or to a pool that takes none because it failed.
    pub(crate) fn next_of_members(&self) -> Option<PartChange> {
        let mut changes = self.desired.iter().flat_map(|port| {
            let pool = self.pool_of(port);
            pool.map_or_else(Vec::new, |pool| match has_failed(pool) {
                true => self.touch(pool).into_iter().collect(),
                false => self.members(port, pool),
            })
        });
        changes.find(|change| !self.is_held_back(change))
    }

    /// The next write that changes what is there, and neither makes nor takes away a part.
    pub(crate) fn next_in_place(&self) -> Option<PartChange> {
        match self.is_held {
            true => self.next_of_members(),
            false => self.in_place().find(|change| !self.is_held_back(change)),
        }
    }

    /// Why such a write is not made.
    pub(crate) fn refused_in_place(&self) -> Option<&Refusal> {
        self.in_place()
            .find_map(|change| self.refusals.of_change(&change))
    }

    fn in_place(&self) -> impl Iterator<Item = PartChange> {
        self.wished().filter(|change| !confirm::makes_or_takes(change))
    }

    /// The listeners of the Service on ports that it does not want any more, each with the next write that takes it away.
    pub(crate) fn surplus(&self) -> impl Iterator<Item = (&Listener, PartChange)> {
        let is_wanted = |there: &Listener| {
            let mut wanted = self.desired.iter().flat_map(|port| self.on_port(&port.listener));
            wanted.any(|wanted| wanted.id == there.id)
        };
        let listeners = self.there.listeners.iter();
        let surplus = listeners.filter(move |there| !self.is_held && self.is_own(there) && !is_wanted(there));
        surplus.map(|there| (there, removal(self.there, there, self.refusals)))
    }

    /// The writes of a port that have a place now: those that need others to be made before come when these are.
    fn of_port(&self, port: &DesiredPort) -> Vec<PartChange> {
        let Some(listener) = self.listener_of(port) else {
            return self.or_as_it_was(self.create(port));
        };
        let write = |update| PartChange::update_listener(listener, update);
        let again = || {
            write(ListenerUpdate {
                name: Some(listener.name.clone()),
                ..ListenerUpdate::default()
            })
        };
        let is_right = listener.protocol == port.listener.protocol;
        let has_failed_itself = is_error(&listener.provisioning_status);
        let tags = self.tags_to_be(&listener.tags, Some(&self.identity.name), &self.tags.listener);
        let update = attributes::listener_update(&port.listener, listener, tags);
        let of_listener = update
            .filter(|_| is_right)
            .map(write)
            .or_else(|| self.once_more(listener.id.as_str(), has_failed_itself, again));
        let mut changes: Vec<PartChange> = of_listener.into_iter().collect();
        let serving = self.there.pool_of(&listener.id);
        if let Some(refused) = self.refused_in_place_of(port, listener) {
            changes.extend(serving.into_iter().flat_map(|pool| self.of_pool(port, pool)));
            changes.push(refused.clone()); // so that it is told
            return changes;
        }
        let Some(pool) = self.pool_to_be(port) else {
            let is_first = is_right && serving.is_none();
            changes.push(PartChange::CreatePool {
                new: Box::new(NewPool {
                    listener_id: is_first.then(|| listener.id.clone()),
                    loadbalancer_id: (!is_first).then(|| self.balancer.id.clone()),
                    ..port.pool.clone()
                }),
            });
            return changes;
        };
        changes.extend(self.of_pool(port, pool));
        let serves = serving.is_some_and(|serving| serving.id == pool.id);
        if !serves && !self.is_complete(port, pool) {
            return changes;
        }
        if !is_right {
            changes.push(PartChange::delete_listener(listener));
        } else if !serves {
            changes.push(write(ListenerUpdate {
                default_pool_id: Some(pool.id.clone()),
                ..ListenerUpdate::default()
            }));
        }
        changes
    }

    /// The tags of a part as they are to be; `None` if they are so, or Octavia has none.
    fn tags_to_be(&self, there: &[String], mark: Option<&String>, wanted: &[String]) -> Option<Vec<String>> {
        let added = &self.identity.added_tags;
        let added = added.all.union(&added.parts).collect();
        let now = tags::to_be(there, mark, wanted, &added);
        now.filter(|_| self.features.tags)
    }

    /// The tags of all parts of the Service.
    pub(crate) fn own_tags(&self) -> impl Iterator<Item = &String> {
        let listeners = self.there.listeners.iter().filter(|there| self.is_own(there));
        let pools = self.there.pools.iter();
        let pools = pools.filter(|there| evidence::is_own_pool(self.identity, self.balancer, there));
        let of_listeners = listeners.flat_map(|there| &there.tags);
        of_listeners.chain(pools.flat_map(|there| &there.tags))
    }

    fn of_pool(&self, port: &DesiredPort, pool: &Pool) -> Vec<PartChange> {
        if has_failed(pool) {
            return self.mend(pool).into_iter().collect();
        }
        let tags = self.tags_to_be(&pool.tags, None, &self.tags.pool);
        let tags = tags.map(|tags| PoolUpdate {
            tags: Some(tags),
            ..PoolUpdate::default()
        });
        let updates = pools::updates(&port.pool, pool, self.refusals, self.features.is_ovn);
        let updates = updates.chain(tags);
        let updates = updates.map(|update| PartChange::update_pool(pool, update));
        let members = self.members(port, pool);
        let monitor = self.monitor(port, pool).into_iter();
        let monitor = monitor.filter(|change| !self.is_name_only(change));
        updates.chain(members).chain(monitor).collect()
    }

    /// The next write to the members of a pool, or to one that takes none because it failed.
    fn mended_members(&self, port: &DesiredPort, pool: &Pool) -> Vec<PartChange> {
        match has_failed(pool) {
            true => self.mend(pool).into_iter().collect(),
            false => self.members(port, pool),
        }
    }

    /// Whether a change gives a monitor another name and nothing else.
    fn is_name_only(&self, change: &PartChange) -> bool {
        let PartChange::UpdateMonitor { id, update, .. } = change else {
            return false;
        };
        let there = self.there.monitors.as_ref().and_then(|monitors| monitors.get(id));
        there.is_some_and(|there| {
            update.delay == Some(there.delay)
                && update.timeout == Some(there.timeout)
                && update.max_retries == Some(there.max_retries)
                && update.max_retries_down == Some(there.max_retries_down)
        })
    }

    /// The writes of the monitor of a pool that have a place now. A pool has one only, so that another kind of monitor takes the place
    /// of one that goes first: not where such a one was refused, and the one before comes back then.
    fn monitor(&self, port: &DesiredPort, pool: &Pool) -> Vec<PartChange> {
        let delete = |id: &MonitorId, name: &str| PartChange::DeleteMonitor {
            id: id.clone(),
            name: name.to_owned(),
        };
        let create = |new: &NewMonitor| PartChange::CreateMonitor {
            new: Box::new(NewMonitor {
                pool_id: Some(pool.id.clone()),
                ..new.clone()
            }),
        };
        match (&port.monitor, &pool.healthmonitor_id) {
            (None, None) => Vec::new(),
            (None, Some(id)) => vec![delete(id, &pool.name)],
            (Some(new), None) => self.or_as_it_was(create(new)),
            (Some(wanted), Some(id)) => {
                let Some(there) = self.there.monitor_of(pool) else {
                    return Vec::new();
                };
                if there.kind != wanted.kind {
                    let refused = self.refusals.of_alike(&create(wanted)).cloned();
                    return vec![refused.unwrap_or_else(|| delete(id, &there.name))];
                }
                let other_name = wanted.name.replace(&self.identity.name, &self.balancer.name);
                let write = |update| PartChange::update_monitor(there, update);
                let again = || write(attributes::whole_monitor(wanted));
                let update = attributes::monitor_update(wanted, &other_name, there);
                let update = update
                    .map(write)
                    .or_else(|| self.once_more(id.as_str(), self.is_monitor_stuck(there), again));
                update.into_iter().collect()
            }
        }
    }
}

/// Whether no listener sends to a pool. Octavia counts one that reaches it through a policy too. Pool and listener both tell, so that no
/// pool goes because one list left that out.
fn is_unused(there: &Parts, pool: &Pool) -> bool {
    let mut named = there.listeners.iter().map(|listener| &listener.default_pool_id);
    pool.listeners.is_empty() && named.all(|named| named.as_ref() != Some(&pool.id))
}

/// The pools of the Service that no listener sends to, as when a person deleted its listener, or another pool took its place.
///
/// One that an L7 policy names although it sends nothing there is left: it may be sent there again.
pub(crate) fn orphans<'a>(
    identity: &Identity,
    balancer: &LoadBalancer,
    there: &'a Parts,
    refusals: &Refusals,
) -> impl Iterator<Item = &'a Pool> {
    there.pools.iter().filter(move |pool| {
        is_unused(there, pool)
            && refusals.of_deletion(&pool.id).is_none()
            && evidence::is_own_pool(identity, balancer, pool)
    })
}

/// The next write that takes a listener away: its pool first, unless another listener uses it, or a policy does or might: with the
/// listener its policies go, and its pool is one of the [orphans] then.
pub(crate) fn removal(there: &Parts, listener: &Listener, refusals: &Refusals) -> PartChange {
    let pool = there
        .pool_of(&listener.id)
        .filter(|pool| pool.listeners.len() <= 1 && refusals.of_deletion(&pool.id).is_none());
    match pool.filter(|_| listener.l7policies.is_empty()) {
        Some(pool) => PartChange::delete_pool(pool),
        None => PartChange::delete_listener(listener),
    }
}
