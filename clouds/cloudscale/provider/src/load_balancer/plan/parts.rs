//! Pools, listeners and monitors: what is missing, what is surplus, what stands in the way.

use std::cell::OnceCell;

use bowline_cloudscale_client::{Listener, ListenerId, MonitorType, PoolId};
use bowline_plan::diff;

use crate::load_balancer::intent::{Backend, Port, Wanted};
use crate::load_balancer::observe::ObservedPool;
use crate::load_balancer::plan::attributes;
use crate::load_balancer::plan::desired::{self, ListenerKey, PoolKey};
use crate::load_balancer::plan::exchange::{Exchange, Fit, Stead, Terms, Twins};
use crate::load_balancer::plan::members::{Checks, MovingChecks, Served, as_monitored};
use crate::load_balancer::refused::{self, Place, Room};
use crate::load_balancer::step::{CloudStep, Old, PartChange};

/// The comparison of the wished parts with those that are there.
pub(super) struct Parts<'a> {
    served: Served<'a>,
    wanted: &'a Wanted,
    missing: Vec<&'a Port>,
    surplus: Vec<&'a ObservedPool>,
    kept: Vec<Kept<'a>>,
    pools: Exchange<&'a Port, &'a ObservedPool>,
    listeners: OnceCell<Exchange<Kept<'a>, &'a Listener>>,
}

/// A port, and the pool that it has.
type Kept<'a> = (&'a Port, &'a ObservedPool);

impl<'a> Parts<'a> {
    pub(super) fn new(served: Served<'a>, wanted: &'a Wanted) -> Self {
        let seen = served.seen;
        let pools = diff(&wanted.ports, &seen.pools, Port::key, pool_key);
        let terms = Terms {
            room: served.room(Place::Pool),
            twins: Twins::AtOnce,
            stead: Stead::Forerunners,
        };
        let (missing, surplus) = (pools.missing, pools.surplus);
        let fit = |port: &Port, old: &ObservedPool| match fit(port, old, &missing) {
            Some(Fit::Forerunner) if seen.crowded_pools.contains(&old.pool.name) => Some(Fit::Twin),
            fit => fit,
        };
        let can_come = |port: &Port| {
            let new = port.create(served.balancer.uuid, &wanted.tags);
            let step = served.step(PartChange::Pool { new, old: None });
            !refused::has(&seen.memory.refusals, &step)
        };
        Self {
            served,
            wanted,
            pools: Exchange::new(terms, &missing, &surplus, can_come, fit),
            kept: pools.kept,
            missing,
            surplus,
            listeners: OnceCell::new(),
        }
    }

    fn step(&self, change: PartChange) -> CloudStep {
        self.served.step(change)
    }

    /// The second halves that are owed: a listener or monitor made way, and what was to have its place did not come, because the balancer
    /// was busy, the Service changed, or the process ended. They come before anything else.
    pub(super) fn owed(&self) -> Vec<CloudStep> {
        let ports = self.wanted.ports.iter();
        let mut owed: Vec<CloudStep> = ports.filter_map(|port| self.owed_listener(port)).collect();
        let without = &self.served.seen.memory.own.without_monitor;
        let is_owed = |(_, there): &Kept<'_>| {
            without.contains(&there.pool.uuid) && there.monitors.is_empty() && !there.listeners.is_empty()
        };
        for kept in self.kept.iter().filter(|kept| is_owed(kept)) {
            let moving = self.served.moving_checks(&kept.0.backend, kept.1);
            if moving != MovingChecks::Later {
                owed.extend(self.monitors_of(std::slice::from_ref(kept), moving == MovingChecks::Now));
            }
        }
        owed
    }

    /// The listener of a port that was served and is closed: monitors come last, so a pool of its name that has one was. It leads to the
    /// pool that it is to have if that one has all its members, else to one that served.
    fn owed_listener(&self, port: &Port) -> Option<CloudStep> {
        let seen = self.served.seen;
        let is_of_port =
            |it: &Listener| it.protocol == port.listener_protocol && it.protocol_port == port.port;
        let mut listeners = seen
            .pools
            .iter()
            .flat_map(|pool| &pool.listeners)
            .chain(&seen.loose_listeners);
        let is_refused = |(step, _): (&CloudStep, _)| match step.part() {
            Some(PartChange::Listener { new, .. }) => {
                new.protocol == port.listener_protocol && new.protocol_port == port.port
            }
            _ => false,
        };
        if listeners.any(is_of_port) || seen.memory.refusals.iter().any(is_refused) {
            return None;
        }
        let all = seen
            .pools
            .iter()
            .filter(|it| it.pool.name == port.backend.pool_name);
        let all: Vec<&ObservedPool> = all.collect();
        if self.served.room(Place::Listener) != Room::Free || all.iter().all(|it| it.monitors.is_empty()) {
            return None;
        }
        let wished = self.served.desired.members(&port.backend, self.served.tags).len();
        let fitness = |it: &&ObservedPool| {
            let is_wished = pool_key(it) == port.key() && it.members.len() >= wished;
            (is_wished, !it.monitors.is_empty(), it.members.len())
        };
        let best = all
            .into_iter()
            .filter(|it| !it.members.is_empty())
            .max_by_key(fitness)?;
        Some(self.listener((port, best), None))
    }

    /// Creates pools beside those that they replace; in their place where the API wants no two of one name, or a quota leaves no
    /// room.
    pub(super) fn missing_pools(&self) -> Vec<CloudStep> {
        let steps = self.pools.coming.iter().flat_map(|(missing, old)| {
            let mut steps = old.map_or_else(Vec::new, |(old, _)| self.parts_first(old));
            steps.push(self.step(PartChange::Pool {
                new: missing.create(self.served.balancer.uuid, &self.wanted.tags),
                old: old.map(|(old, _)| self.old_pool(old)),
            }));
            steps
        });
        steps.collect()
    }

    /// What goes before a pool that the API does not delete as long as something hangs on it. Its listeners go with it.
    fn parts_first(&self, pool: &ObservedPool) -> Vec<CloudStep> {
        if !self.served.seen.memory.own.pools_in_use.contains(&pool.pool.uuid) {
            return Vec::new();
        }
        let members = pool
            .members
            .iter()
            .map(|it| self.served.deletion(pool.pool.uuid, it));
        let monitors = pool.monitors.iter().map(|it| {
            self.step(PartChange::DeleteMonitor {
                pool_name: pool.pool.name.clone(),
                old: self.served.old_monitor(it),
            })
        });
        members.chain(monitors).collect()
    }

    /// Whether a quota leaves no room for another pool.
    pub(super) fn has_no_room(&self) -> bool {
        refused::has_no(&self.served.seen.memory.refusals, Place::Pool)
    }

    /// The members of what is served now: of the pools that there shall be, and of those that missing ones are to replace. Where a
    /// monitor is not as it shall be, who comes is probed where that one finds its answer, and whoever is there stays as it is.
    pub(super) fn members_of_served(&self) -> Vec<CloudStep> {
        let kept = self.kept.iter().map(|(port, there)| {
            let (backend, is_as_wished) = self.as_monitored(port, there);
            let checks = if is_as_wished { Checks::Move } else { Checks::Stay };
            (backend, *there, checks)
        });
        let forerunners = self.missing.iter().flat_map(|missing| {
            let old = self
                .surplus
                .iter()
                .filter(|old| old.pool.name == missing.backend.pool_name);
            old.map(|old| (self.as_monitored(missing, old).0, *old, Checks::Move))
        });
        let pools: Vec<(Backend, &ObservedPool, Checks)> = kept.chain(forerunners).collect();
        let pools = pools.iter();
        self.served
            .members(pools.map(|(backend, there, checks)| (backend, *there, *checks)))
    }

    /// Where the members of a pool are probed as long as it keeps its monitor, and whether that one is as it shall be.
    fn as_monitored(&self, port: &Port, there: &ObservedPool) -> (Backend, bool) {
        let monitors = self.monitors_of(&[(port, there)], false);
        match monitors.iter().any(CloudStep::creates) {
            true => (as_monitored(&port.backend, there), false),
            false => (port.backend.clone(), true),
        }
    }

    /// The monitor of the next pool whose members are to be probed elsewhere. Until those follow, none of them may be up, so nothing
    /// else is to come in between: no other pool, and nothing that may fail for a reason of its own.
    ///
    /// The monitor goes first. It is what the API may refuse, and then all is checked as before; what is not done yet shows at the
    /// members, so that the next reconcile goes on there.
    pub(super) fn moved_monitors(&self) -> Vec<CloudStep> {
        let of_pool = |kept: &(&'a Port, &'a ObservedPool)| {
            let (port, there) = kept;
            let kept = std::slice::from_ref(kept);
            match self.served.moving_checks(&port.backend, there) {
                MovingChecks::Now => self.monitors_of(kept, true),
                MovingChecks::None if is_of_other_policy(port, there) => self.monitors_of(kept, false),
                MovingChecks::None | MovingChecks::Later => Vec::new(),
            }
        };
        let mut pools = self.kept.iter().map(of_pool);
        pools.find(|steps| !steps.is_empty()).unwrap_or_default()
    }

    /// The members of the pools that there shall be.
    pub(super) fn members(&self) -> Vec<CloudStep> {
        let pools = self.kept.iter();
        self.served
            .members(pools.map(|(port, there)| (&port.backend, *there, Checks::Move)))
    }

    /// Creates listeners, each in place of the one on its port, or where a quota leaves no room in place of the one that its pool had;
    /// when none is missing that can come, deletes surplus ones, those of surplus pools too: the API may leave them when their pool goes.
    pub(super) fn listeners(&self) -> Vec<CloudStep> {
        let exchange = self.listener_exchange();
        let creations = exchange.coming.iter();
        let creations: Vec<CloudStep> = creations.map(|(kept, old)| self.listener(*kept, *old)).collect();
        let deletion = |old: &&Listener| {
            let old = self.old_listener(old);
            self.step(PartChange::DeleteListener { old })
        };
        match creations.is_empty() {
            true => exchange.going.iter().map(deletion).collect(),
            false => creations,
        }
    }

    /// Creates the listener of a port; something may go for it.
    fn listener(&self, (port, there): Kept<'_>, old: Option<(&Listener, Fit)>) -> CloudStep {
        let is_elsewhere = |old: &Listener| old.pool.as_ref().is_none_or(|stub| stub.uuid != there.pool.uuid);
        self.step(PartChange::Listener {
            new: port.create_listener(there.pool.uuid, self.wanted),
            pool_name: there.pool.name.clone(),
            old: old.map(|(old, _)| self.old_listener(old)),
            changes_pool: old.is_some_and(|(old, _)| is_elsewhere(old)),
            makes_room: old.is_some_and(|(_, fit)| fit != Fit::Twin),
        })
    }

    /// What comes of the listeners that nobody wants, in kept pools, in surplus ones and without a pool.
    fn listener_exchange(&self) -> &Exchange<Kept<'a>, &'a Listener> {
        self.listeners.get_or_init(|| {
            let (mut missing, mut surplus) = (Vec::new(), Vec::new());
            for (port, there) in &self.kept {
                let wanted = std::slice::from_ref(*port);
                let listeners = diff(wanted, &there.listeners, Port::listener_key, listener_key);
                missing.extend(listeners.missing.iter().map(|_| (*port, *there)));
                surplus.extend(listeners.surplus);
            }
            surplus.extend(self.pools.going.iter().flat_map(|pool| &pool.listeners));
            surplus.extend(&self.served.seen.observed.loose_listeners);
            let terms = Terms {
                room: self.served.room(Place::Listener),
                twins: Twins::AtOnce,
                stead: Stead::Forerunners,
            };
            let fit = |(port, there): Kept<'_>, old: &Listener| {
                if old.protocol == port.listener_protocol && old.protocol_port == port.port {
                    return Some(Fit::Twin);
                }
                match &old.pool {
                    Some(stub) => (stub.uuid == there.pool.uuid).then_some(Fit::Forerunner),
                    None => Some(Fit::Stranger),
                }
            };
            let refusals = &self.served.seen.memory.refusals;
            let can_come = |kept: Kept<'_>| !refused::has(refusals, &self.listener(kept, None));
            Exchange::new(terms, &missing, &surplus, can_come, fit)
        })
    }

    /// Creates monitors, each in place of the pool's present one; when none is missing that can come, deletes surplus ones.
    pub(super) fn monitors(&self) -> Vec<CloudStep> {
        let kept = self.kept.iter().copied().filter(|kept| !self.waits(kept));
        self.monitors_of(&Vec::from_iter(kept), false)
    }

    /// Whether a pool keeps its monitor as it is, because its members cannot follow to where another one finds its answer.
    fn waits(&self, (port, there): &(&Port, &ObservedPool)) -> bool {
        self.served.moving_checks(&port.backend, there) == MovingChecks::Later
    }

    fn monitors_of(&self, pools: &[(&Port, &ObservedPool)], moves_checks: bool) -> Vec<CloudStep> {
        let settings = &self.wanted.monitor;
        let http = settings.http.resolved();
        let mut creations = Vec::new();
        let mut deletions = Vec::new();
        for (_, there) in pools {
            let monitors = diff(
                std::slice::from_ref(settings),
                &there.monitors,
                |wanted| desired::monitor_key(&wanted.kind, http.as_ref()),
                |old| desired::monitor_key(&old.kind, old.http()),
            );
            let mut surplus = monitors.surplus.into_iter();
            for _ in monitors.missing {
                let new = desired::create_monitor(settings, there.pool.uuid, &self.wanted.tags);
                creations.push(self.step(PartChange::Monitor {
                    new: Box::new(new),
                    pool_name: there.pool.name.clone(),
                    old: surplus.next().map(|old| self.served.old_monitor(old)),
                    moves_checks,
                }));
            }
            deletions.extend(surplus.map(|old| {
                let old = self.served.old_monitor(old);
                self.step(PartChange::DeleteMonitor {
                    pool_name: there.pool.name.clone(),
                    old,
                })
            }));
        }
        let refusals = &self.served.seen.memory.refusals;
        creations.retain(|step| !(step.is_first_monitor() && refused::has(refusals, step)));
        match creations.is_empty() {
            true => deletions,
            false => creations,
        }
    }

    /// Deletes pools that nobody wants, with all that hangs on them; not while a listener of theirs serves for one that cannot come.
    pub(super) fn surplus_pools(&self) -> Vec<CloudStep> {
        let listeners = self.listener_exchange();
        let held = listeners.held.iter().map(|(_, old)| old.uuid);
        let serving: Vec<ListenerId> = held.chain(listeners.staying.iter().map(|old| old.uuid)).collect();
        let is_needed = |pool: &ObservedPool| pool.listeners.iter().any(|it| serving.contains(&it.uuid));
        let going = self.pools.going.iter().filter(|pool| !is_needed(pool));
        going
            .flat_map(|pool| {
                let mut steps = self.parts_first(pool);
                // The API takes no pool away with parts in it.
                let memory = &self.served.seen.memory;
                if !steps.iter().any(|part| memory.is_stuck(part)) {
                    steps.push(self.step(PartChange::DeletePool {
                        old: self.old_pool(pool),
                        is_live: !pool.listeners.is_empty(),
                    }));
                }
                steps
            })
            .collect()
    }

    /// Changes attributes where they stand, but for what the API has refused.
    pub(super) fn attributes(&self) -> Vec<CloudStep> {
        let refusals = &self.served.seen.memory.refusals;
        let mut steps = Vec::new();
        for kept in &self.kept {
            let (port, there) = kept;
            let wanted = std::slice::from_ref(*port);
            for (_, listener) in diff(wanted, &there.listeners, Port::listener_key, listener_key).kept {
                let changes = attributes::listener_changes(&self.wanted.listener, listener);
                steps.extend(changes.into_iter().map(|change| {
                    self.step(PartChange::UpdateListener {
                        id: listener.uuid,
                        name: listener.name.clone(),
                        change,
                    })
                }));
            }
            // Exactly one is left by now.
            for monitor in there.monitors.iter().take(1).filter(|_| !self.waits(kept)) {
                let changes = attributes::monitor_changes(&self.wanted.monitor, monitor);
                steps.extend(changes.into_iter().map(|change| {
                    self.step(PartChange::UpdateMonitor {
                        id: monitor.uuid,
                        pool_name: there.pool.name.clone(),
                        change,
                    })
                }));
            }
        }
        steps.retain(|step| !refused::has(refusals, step));
        steps
    }

    fn old_pool(&self, pool: &ObservedPool) -> Old<PoolId> {
        let id = pool.pool.uuid;
        Old::new(id, &*pool.pool.name, self.served.hrefs.pool(id))
    }

    fn old_listener(&self, listener: &Listener) -> Old<ListenerId> {
        let href = self.served.hrefs.listener(listener.uuid);
        Old::new(listener.uuid, &*listener.name, href)
    }
}

/// How a surplus pool stands to a missing one: its forerunner by name, the one that its port leads to now, or one that is nobody's
/// forerunner.
fn fit(missing: &Port, old: &ObservedPool, all: &[&Port]) -> Option<Fit> {
    let is_of = |missing: &Port| old.pool.name == missing.backend.pool_name;
    let is_led_to = |missing: &Port| {
        let mut listeners = old.listeners.iter();
        listeners.any(|it| it.protocol == missing.listener_protocol && it.protocol_port == missing.port)
    };
    match (is_of(missing), is_led_to(missing)) {
        (true, _) => Some(Fit::Forerunner),
        (false, true) => Some(Fit::SamePort),
        _ if all.iter().any(|other| is_of(other) || is_led_to(other)) => None,
        _ => Some(Fit::Stranger),
    }
}

/// Whether a pool's monitor looks for its answer where the members are not probed: that of the other traffic policy, which somebody left
/// half done.
fn is_of_other_policy(port: &Port, there: &ObservedPool) -> bool {
    let mut monitors = there.monitors.iter();
    match port.backend.monitor_port == port.backend.node_port {
        true => monitors.any(attributes::asks_kube_proxy),
        false => monitors.any(|monitor| monitor.kind != MonitorType::Http),
    }
}

fn pool_key(there: &ObservedPool) -> PoolKey<'_> {
    (&there.pool.name, &there.pool.algorithm, &there.pool.protocol)
}

fn listener_key(listener: &Listener) -> ListenerKey<'_> {
    (&listener.name, &listener.protocol, listener.protocol_port)
}
