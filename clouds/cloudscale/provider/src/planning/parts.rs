//! Pools, members, listeners and monitors: what is missing, what is surplus, what stands in the way.

use std::cell::OnceCell;

use bowline_cloudscale_client::{
    Listener, ListenerId, LoadBalancerId, Member, MemberId, Monitor, MonitorId, PoolId,
};
use bowline_plan::diff;

use super::{Hrefs, attributes};
use crate::desired::{self, Desired, DesiredPool, ListenerKey, MemberKey};
use crate::intent::Wanted;
use crate::names;
use crate::observe::{Observed, ObservedPool};
use crate::step::{CloudStep, Old, PartChange};

/// The comparison of the wished parts with those that are there.
pub(super) struct Parts<'a> {
    hrefs: &'a Hrefs,
    wanted: &'a Wanted,
    observed: &'a Observed,
    balancer: LoadBalancerId,
    missing: Vec<&'a DesiredPool<'a>>,
    surplus: Vec<&'a ObservedPool>,
    kept: Vec<(&'a DesiredPool<'a>, &'a ObservedPool)>,
    surplus_listeners: OnceCell<Vec<&'a Listener>>,
}

/// When a pool that is there is the wished one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Matching {
    /// Name, algorithm and protocol are equal.
    Exactly,
    /// The name is equal: for pools that may not be made anew now, but whose members have to follow the nodes.
    ByName,
}

impl<'a> Parts<'a> {
    pub(super) fn new(
        hrefs: &'a Hrefs,
        wanted: &'a Wanted,
        desired: &'a Desired<'a>,
        balancer: LoadBalancerId,
        observed: &'a Observed,
        matching: Matching,
    ) -> Self {
        let is_exact = matching == Matching::Exactly;
        let pools = diff(
            &desired.pools,
            &observed.pools,
            |wish| {
                let (name, algorithm, protocol) = wish.key();
                (name, is_exact.then_some((algorithm, protocol)))
            },
            |there| {
                let pool = &there.pool;
                (
                    pool.name.as_str(),
                    is_exact.then_some((&pool.algorithm, &pool.protocol)),
                )
            },
        );
        Self {
            hrefs,
            wanted,
            observed,
            balancer,
            missing: pools.missing,
            surplus: pools.surplus,
            kept: pools.kept,
            surplus_listeners: OnceCell::new(),
        }
    }

    fn step(&self, change: PartChange) -> CloudStep {
        CloudStep::Part {
            balancer: self.balancer,
            change,
        }
    }

    /// Creates pools beside those that they replace; in their place where the API wants no two of one name.
    pub(super) fn missing_pools(&self) -> Vec<CloudStep> {
        let replaced = |missing: &DesiredPool<'_>| {
            let name = &missing.port.pool_name;
            let is_crowded = self.observed.crowded_pools.contains(name);
            self.surplus
                .iter()
                .find(|old| is_crowded && old.pool.name == *name)
                .map(|old| self.old_pool(old))
        };
        self.missing
            .iter()
            .map(|missing| {
                self.step(PartChange::Pool {
                    new: missing.create(self.balancer, &self.wanted.tags),
                    old: replaced(missing),
                })
            })
            .collect()
    }

    /// Creates members; when none is missing in any pool, deletes surplus ones.
    pub(super) fn members(&self) -> Vec<CloudStep> {
        let mut creations = Vec::new();
        let mut deletions = Vec::new();
        for (pool, there) in &self.kept {
            let members = diff(
                &pool.members,
                &there.members,
                desired::DesiredMember::key,
                member_key,
            );
            let mut surplus = members.surplus;
            let mut replacements = Vec::new();
            let mut is_only = there.members.len() == 1;
            for missing in members.missing {
                // The API may refuse a second member with this address and port.
                let twin = surplus.iter().position(|old| {
                    names::spelling(&old.address) == names::spelling(&missing.address)
                        && old.protocol_port == missing.protocol_port
                });
                match twin {
                    None => {
                        is_only = false;
                        creations.push(self.member(there.pool.uuid, missing, None, false));
                    }
                    Some(index) => replacements.push((missing, surplus.remove(index))),
                }
            }
            // After the others, so that somebody is there while a member is away.
            creations.extend(replacements.into_iter().map(|(missing, old)| {
                let old = self.old_member(there.pool.uuid, old);
                self.member(there.pool.uuid, missing, Some(old), is_only)
            }));
            deletions.extend(surplus.into_iter().map(|old| {
                let old = self.old_member(there.pool.uuid, old);
                self.step(PartChange::DeleteMember {
                    pool: there.pool.uuid,
                    old,
                })
            }));
        }
        if creations.is_empty() {
            deletions
        } else {
            creations
        }
    }

    fn member(
        &self,
        pool: PoolId,
        missing: &desired::DesiredMember,
        old: Option<Old<MemberId>>,
        is_only: bool,
    ) -> CloudStep {
        let new = missing.create(&self.wanted.tags);
        self.step(PartChange::Member {
            pool,
            new,
            old,
            is_only,
        })
    }

    /// Creates listeners, each in place of the one on its port; when none is missing, deletes surplus ones.
    pub(super) fn listeners(&self) -> Vec<CloudStep> {
        let mut creations = Vec::new();
        let mut in_the_way = self.surplus_listeners().to_vec();
        for (pool, there) in &self.kept {
            let wanted = std::slice::from_ref(*pool);
            let listeners = diff(wanted, &there.listeners, DesiredPool::listener_key, listener_key);
            for missing in listeners.missing {
                let port = &missing.port;
                let blocker = in_the_way
                    .iter()
                    .position(|old| old.protocol == port.listener_protocol && old.protocol_port == port.port);
                let old = blocker.map(|index| in_the_way.remove(index));
                let changes_pool =
                    old.is_some_and(|old| old.pool.as_ref().is_none_or(|stub| stub.uuid != there.pool.uuid));
                creations.push(self.step(PartChange::Listener {
                    new: missing.create_listener(there.pool.uuid, self.wanted),
                    pool_name: there.pool.name.clone(),
                    old: old.map(|old| self.old_listener(old)),
                    changes_pool,
                }));
            }
        }
        if !creations.is_empty() {
            return creations;
        }
        // Listeners of surplus pools go with their pools.
        let is_kept = |id: Option<PoolId>| self.kept.iter().any(|(_, there)| Some(there.pool.uuid) == id);
        in_the_way
            .into_iter()
            .filter(|old| is_kept(old.pool.as_ref().map(|pool| pool.uuid)))
            .map(|old| {
                self.step(PartChange::DeleteListener {
                    old: self.old_listener(old),
                })
            })
            .collect()
    }

    /// All listeners that nobody wants, in kept pools and in surplus ones.
    fn surplus_listeners(&self) -> &[&'a Listener] {
        self.surplus_listeners.get_or_init(|| {
            let kept = self.kept.iter().flat_map(|(pool, there)| {
                diff(
                    std::slice::from_ref(*pool),
                    &there.listeners,
                    DesiredPool::listener_key,
                    listener_key,
                )
                .surplus
            });
            kept.chain(self.surplus.iter().flat_map(|pool| &pool.listeners))
                .collect()
        })
    }

    /// Creates monitors, each in place of the pool's present one; when none is missing, deletes surplus ones.
    pub(super) fn monitors(&self) -> Vec<CloudStep> {
        let settings = &self.wanted.monitor;
        let http = settings.http.resolved();
        let mut creations = Vec::new();
        let mut deletions = Vec::new();
        for (_, there) in &self.kept {
            let monitors = diff(
                std::slice::from_ref(settings),
                &there.monitors,
                |wanted| desired::monitor_key(&wanted.kind, http.as_ref()),
                |old| desired::monitor_key(&old.kind, attributes::http_of(old)),
            );
            let mut surplus = monitors.surplus.into_iter();
            for _ in monitors.missing {
                creations.push(self.step(PartChange::Monitor {
                    new: desired::create_monitor(settings, there.pool.uuid, &self.wanted.tags),
                    pool_name: there.pool.name.clone(),
                    old: surplus.next().map(|old| self.old_monitor(old)),
                }));
            }
            deletions.extend(surplus.map(|old| {
                let old = self.old_monitor(old);
                self.step(PartChange::DeleteMonitor {
                    pool_name: there.pool.name.clone(),
                    old,
                })
            }));
        }
        if creations.is_empty() {
            deletions
        } else {
            creations
        }
    }

    /// Deletes pools that nobody wants, with all that hangs on them.
    pub(super) fn surplus_pools(&self) -> Vec<CloudStep> {
        self.surplus
            .iter()
            .map(|pool| {
                self.step(PartChange::DeletePool {
                    old: self.old_pool(pool),
                    is_live: !pool.listeners.is_empty(),
                })
            })
            .collect()
    }

    /// Changes attributes where they stand.
    pub(super) fn attributes(&self) -> Vec<CloudStep> {
        let mut steps = Vec::new();
        for (pool, there) in &self.kept {
            let wanted = std::slice::from_ref(*pool);
            for (_, listener) in diff(wanted, &there.listeners, DesiredPool::listener_key, listener_key).kept
            {
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
            for monitor in there.monitors.iter().take(1) {
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
        steps
    }

    fn old_pool(&self, pool: &ObservedPool) -> Old<PoolId> {
        let id = pool.pool.uuid;
        Old {
            id,
            name: pool.pool.name.clone(),
            href: self.hrefs.pool(id),
        }
    }

    fn old_member(&self, pool: PoolId, member: &Member) -> Old<MemberId> {
        Old {
            id: member.uuid,
            name: member.name.clone(),
            href: self.hrefs.member(pool, member.uuid),
        }
    }

    fn old_listener(&self, listener: &Listener) -> Old<ListenerId> {
        Old {
            id: listener.uuid,
            name: listener.name.clone(),
            href: self.hrefs.listener(listener.uuid),
        }
    }

    fn old_monitor(&self, monitor: &Monitor) -> Old<MonitorId> {
        Old {
            id: monitor.uuid,
            name: monitor.kind.to_string(),
            href: self.hrefs.monitor(monitor.uuid),
        }
    }
}

fn member_key(member: &Member) -> MemberKey<'_> {
    (
        names::spelling(&member.name),
        member.enabled.unwrap_or(true),
        member.monitor_port.unwrap_or(member.protocol_port),
        member.protocol_port,
        names::spelling(&member.address),
        member
            .subnet
            .as_ref()
            .map_or_else(String::new, |subnet| subnet.uuid.to_ascii_lowercase()),
    )
}

fn listener_key(listener: &Listener) -> ListenerKey<'_> {
    (&listener.name, &listener.protocol, listener.protocol_port)
}
