//! Octavia's part of the state: the life of a load balancer, which its parts share.

use std::time::Duration;

use tokio::time::Instant;

use super::State;
use crate::model::balancing::{
    Change, Forwarder, Listener, LoadBalancer, Member, Monitor, Part, Pool, Provisioning,
};
use crate::model::{Id, Meta};

/// Longer than any test or demonstration lasts.
const FAR: Duration = Duration::from_secs(365 * 86_400);

impl State {
    /// What a new part begins with.
    pub(crate) fn part(&self, project: &str, name: String, description: String, tags: Vec<String>) -> Part {
        Part {
            id: self.seed.uuid(),
            name,
            status: Provisioning::PendingCreate,
            is_up: true,
            is_made: false,
            meta: Meta {
                description,
                tags,
                ..self.meta(project)
            },
        }
    }

    /// Puts a load balancer into a `PENDING_...` state, which its parts leave together with it.
    pub(crate) fn begin(&mut self, balancer: Id, status: Provisioning) {
        self.end_now(balancer);
        let behaviour = &mut self.behaviour;
        let (wait, failing) = match status {
            Provisioning::PendingCreate => (behaviour.lb_create_time, Some(&mut behaviour.failing_creates)),
            Provisioning::PendingDelete => (behaviour.lb_delete_time, Some(&mut behaviour.failing_deletes)),
            _ => (behaviour.lb_change_time, Some(&mut behaviour.failing_changes)),
        };
        let fails = failing.is_some_and(|left| {
            let fails = *left > 0;
            *left = left.saturating_sub(1);
            fails
        });
        let until = Instant::now() + wait.min(FAR);
        let now = self.clock.rfc3339_seconds();
        if let Some(balancer) = self.load_balancers.get_mut(&balancer) {
            balancer.part.status = status;
            balancer.part.meta.touch(&now);
            balancer.change = Some(Change {
                until,
                fails,
                part_fails: false,
            });
        }
    }

    /// These go in a request of their own each: OVN's driver makes several of a batch of members and of the deletion of a pool
    /// (`member_batch_update` and `pool_delete` in its `driver.py`), and after each says that load balancer, pool and all members are
    /// `ACTIVE`, also those that are to go (`_get_current_operating_statuses` in its `helper.py`).
    pub(crate) fn end_in_steps(&mut self, balancer: Id, going: impl IntoIterator<Item = Id>) {
        let found = self.load_balancers.get_mut(&balancer);
        if let Some(balancer) = found.filter(|it| it.provider == "ovn") {
            balancer.ending.extend(going);
        }
    }

    /// What `ovn` was to take away is gone before it does anything else: it has one queue.
    fn end_now(&mut self, balancer: Id) {
        let found = self.load_balancers.get_mut(&balancer);
        for part in found.map(|it| std::mem::take(&mut it.ending)).unwrap_or_default() {
            self.members.shift_remove(&part);
            self.remove_pool(part);
        }
    }

    /// OVN keeps clients at a member for all pools of a protocol as soon as one pool asks for it, and until one goes (`pool_create`,
    /// `pool_update` and `pool_delete` in `helper.py` of ovn-octavia-provider, `affinity_timeout`).
    pub(crate) fn keep_clients(&mut self, id: Id) {
        let sticky = self.pools_of(id).filter(|it| it.persistence.is_some());
        let sticky: Vec<_> = sticky.map(|it| it.protocol).collect();
        let found = self.load_balancers.get_mut(&id);
        if let Some(balancer) = found.filter(|it| it.provider == "ovn") {
            balancer.sticky.extend(sticky);
        }
    }

    /// The part that is being written fails.
    pub(crate) fn fail_part(&mut self, balancer: Id) {
        let found = self.load_balancers.get_mut(&balancer);
        if let Some(change) = found.and_then(|it| it.change.as_mut()) {
            change.part_fails = true;
        }
    }

    /// A part of a load balancer was written.
    pub(crate) fn begin_part(&mut self, balancer: Id) {
        self.begin(balancer, Provisioning::PendingUpdate);
        let left = &mut self.behaviour.failing_part_changes;
        if let Some(balancer) = self.load_balancers.get_mut(&balancer)
            && let Some(change) = &mut balancer.change
        {
            change.part_fails = *left > 0;
            *left = left.saturating_sub(1);
        }
    }

    /// The parts that a change under way is made to, rather than what is only locked with them.
    fn changing(&self, balancer: Id, pools: &[Id]) -> Vec<Id> {
        let is_under_way = |part: &&Part| !matches!(part.status, Provisioning::Active | Provisioning::Error);
        let members = self.members.values().filter(|it| pools.contains(&it.pool));
        let monitors = self.monitors.values().filter(|it| pools.contains(&it.pool));
        let lower = members.map(|it| &it.part).chain(monitors.map(|it| &it.part));
        let own = self.pools_of(balancer).map(|it| &it.part);
        let listeners = self.listeners_of(balancer).map(|it| &it.part);
        let levels: [Vec<&Part>; 3] = [
            lower.filter(is_under_way).collect(),
            own.filter(is_under_way).collect(),
            listeners.filter(is_under_way).collect(),
        ];
        let deepest = levels.into_iter().find(|level| !level.is_empty());
        deepest.into_iter().flatten().map(|part| part.id).collect()
    }

    /// Ends what is under way and due.
    pub(super) fn finish_changes(&mut self) {
        let now = Instant::now();
        let due = |it: &&LoadBalancer| it.change.is_some_and(|change| change.until <= now);
        let due: Vec<Id> = self
            .load_balancers
            .values()
            .filter(due)
            .map(|it| it.part.id)
            .collect();
        for balancer in due {
            self.finish(balancer);
        }
    }

    /// Ends what is under way on a load balancer.
    pub(crate) fn finish(&mut self, id: Id) {
        let Some(balancer) = self.load_balancers.get_mut(&id).filter(|it| it.change.is_some()) else {
            return;
        };
        let change = balancer.change.take();
        if balancer.part.status == Provisioning::PendingCreate && balancer.provider == "ovn" {
            return self.finish_ahead(id, change.is_some_and(|change| change.fails));
        }
        if balancer.part.status == Provisioning::PendingUpdate
            && !balancer.ending.is_empty()
            && change.is_some_and(|change| !change.fails && !change.part_fails)
        {
            return self.finish_a_step(id);
        }
        let ending = std::mem::take(&mut balancer.ending);
        let fails = change.is_some_and(|change| change.fails);
        let part_fails = change.is_some_and(|change| change.part_fails);
        if balancer.part.status == Provisioning::PendingDelete && !fails {
            return self.remove_load_balancer(id);
        }
        let end = match fails {
            true => Provisioning::Error,
            false => Provisioning::Active,
        };
        if !fails && balancer.forwarder == Forwarder::Absent {
            balancer.forwarder = Forwarder::Working;
        }
        balancer.part.status = end;
        let leaving = |part: &Part| {
            let goes = part.status == Provisioning::PendingDelete || ending.contains(&part.id);
            goes && !fails && !part_fails
        };
        let pools: Vec<Id> = self.pools_of(id).map(|it| it.part.id).collect();
        let failed = match part_fails {
            true => self.changing(id, &pools),
            false => Vec::new(),
        };
        let gone: Vec<Id> = self
            .pools_of(id)
            .filter(|it| leaving(&it.part))
            .map(|it| it.part.id)
            .collect();
        for pool in gone {
            self.remove_pool(pool);
        }
        self.listeners
            .retain(|_, it| it.load_balancer != id || !leaving(&it.part));
        self.members
            .retain(|_, it| !pools.contains(&it.pool) || !leaving(&it.part));
        self.monitors
            .retain(|_, it| !pools.contains(&it.pool) || !leaving(&it.part));
        for part in self.parts_mut(id, &pools) {
            // One in `ERROR` stays so until it is written itself.
            if !matches!(part.status, Provisioning::Active | Provisioning::Error) {
                part.status = match failed.contains(&part.id) {
                    true => Provisioning::Error,
                    false => end,
                };
            }
            part.is_made |= part.status == Provisioning::Active;
        }
    }

    /// OVN's driver tells of a new load balancer before it makes its parts (`loadbalancer_create` of ovn-octavia-provider): it is `ACTIVE`, and
    /// takes changes, as long as they are `PENDING_CREATE`.
    fn finish_ahead(&mut self, id: Id, fails: bool) {
        let until = Instant::now() + self.behaviour.lb_change_time.min(FAR);
        if let Some(balancer) = self.load_balancers.get_mut(&id) {
            (balancer.part.status, balancer.forwarder) = match fails {
                true => (Provisioning::Error, balancer.forwarder),
                false => (Provisioning::Active, Forwarder::Working),
            };
            balancer.change = Some(Change {
                until,
                fails,
                part_fails: false,
            });
        }
        self.finish_changes();
    }

    /// What `ovn` takes away later is `ACTIVE` like all else.
    fn finish_a_step(&mut self, id: Id) {
        let until = Instant::now() + self.behaviour.lb_change_time.min(FAR);
        let pools: Vec<Id> = self.pools_of(id).map(|it| it.part.id).collect();
        let ending = match self.load_balancers.get_mut(&id) {
            Some(balancer) => {
                balancer.part.status = Provisioning::Active;
                balancer.change = Some(Change {
                    until,
                    fails: false,
                    part_fails: false,
                });
                balancer.ending.clone()
            }
            None => Vec::new(),
        };
        for part in self.parts_mut(id, &pools) {
            if part.status != Provisioning::PendingDelete || ending.contains(&part.id) {
                part.status = Provisioning::Active;
                part.is_made = true;
            }
        }
        self.finish_changes();
    }

    /// Everything below a load balancer that has these pools.
    pub(crate) fn parts_mut<'a>(
        &'a mut self,
        balancer: Id,
        pools: &'a [Id],
    ) -> impl Iterator<Item = &'a mut Part> {
        let listeners = self.listeners.values_mut();
        let listeners = listeners.filter(move |it| it.load_balancer == balancer);
        let own = self
            .pools
            .values_mut()
            .filter(move |it| it.load_balancer == balancer);
        let members = self.members.values_mut().filter(|it| pools.contains(&it.pool));
        let monitors = self.monitors.values_mut().filter(|it| pools.contains(&it.pool));
        let upper = listeners.map(|it| &mut it.part).chain(own.map(|it| &mut it.part));
        let lower = members
            .map(|it| &mut it.part)
            .chain(monitors.map(|it| &mut it.part));
        upper.chain(lower)
    }

    /// Removes a load balancer with all its parts, and its port if Octavia made it.
    pub(crate) fn remove_load_balancer(&mut self, id: Id) {
        let Some(balancer) = self.load_balancers.shift_remove(&id) else {
            return;
        };
        let pools: Vec<Id> = self.pools_of(id).map(|it| it.part.id).collect();
        for pool in pools {
            self.remove_pool(pool);
        }
        self.listeners.retain(|_, it| it.load_balancer != id);
        if balancer.owns_port && !self.behaviour.keeps_vip_ports {
            self.remove_port(balancer.vip.port);
        }
    }

    /// Removes a pool with its members and monitor. Its listeners stay.
    pub(crate) fn remove_pool(&mut self, id: Id) {
        let removed = self.pools.shift_remove(&id);
        let balancer = removed
            .as_ref()
            .and_then(|it| self.load_balancers.get_mut(&it.load_balancer));
        if let (Some(balancer), Some(removed)) = (balancer, removed) {
            balancer.sticky.remove(&removed.protocol);
        }
        self.members.retain(|_, it| it.pool != id);
        self.monitors.retain(|_, it| it.pool != id);
        for listener in self.listeners.values_mut() {
            listener.default_pool = listener.default_pool.filter(|pool| *pool != id);
        }
    }

    pub(crate) fn listeners_of(&self, balancer: Id) -> impl Iterator<Item = &Listener> {
        let listeners = self.listeners.values();
        listeners.filter(move |it| it.load_balancer == balancer)
    }

    pub(crate) fn pools_of(&self, balancer: Id) -> impl Iterator<Item = &Pool> {
        self.pools.values().filter(move |it| it.load_balancer == balancer)
    }

    pub(crate) fn members_of(&self, pool: Id) -> impl Iterator<Item = &Member> {
        self.members.values().filter(move |it| it.pool == pool)
    }

    pub(crate) fn monitor_of(&self, pool: Id) -> Option<&Monitor> {
        self.monitors.values().find(|it| it.pool == pool)
    }

    /// The load balancer that a pool belongs to.
    pub(crate) fn balancer_of_pool(&self, pool: Id) -> Option<Id> {
        self.pools.get(&pool).map(|it| it.load_balancer)
    }
}
