//! What cannot be changed where it stands: a pool or a listener that shall speak another protocol, and with `ovn` a pool that shall not keep
//! clients at a member any more.
//!
//! Octavia takes a pool that no listener sends to, and sends a listener elsewhere in one write. So the new pool is made with its members
//! beside the one that serves. A port has one listener and a pool one monitor: there the old one goes first, for one port at a time. Should
//! Octavia then refuse the new one, the old one is made again as it was, and the other ports keep theirs.

use bowline_openstack_client::{Listener, NewListener, Pool, PoolId};

use super::{PartsPlan, has_failed, is_unused};
use crate::load_balancer::memory::PartRefusals as _;
use crate::load_balancer::plan::desired::DesiredPort;
use crate::load_balancer::plan::pools;
use crate::load_balancer::step::PartChange;

impl PartsPlan<'_> {
    /// The pool that shall serve a port, if it is there: the one that does, or one that is to take its place.
    pub(super) fn pool_to_be<'b>(&'b self, port: &'b DesiredPort) -> Option<&'b Pool> {
        self.lasting_pool_of(port).or_else(|| self.spare(port))
    }

    /// The pools that serve a port, and shall.
    pub(super) fn pools_to_be<'b>(&'b self, port: &'b DesiredPort) -> impl Iterator<Item = &'b Pool> {
        let serving = self.pool_of(port);
        let next = self.pool_to_be(port).filter(|_| !self.is_held);
        let next = next.filter(|next| serving.is_none_or(|serving| serving.id != next.id));
        serving.into_iter().chain(next)
    }

    /// The pool that serves a port, if it can go on with that.
    pub(super) fn lasting_pool_of<'b>(&'b self, port: &'b DesiredPort) -> Option<&'b Pool> {
        let sticks = |pool: &Pool| self.features.is_ovn && pools::sticks(&port.pool, pool);
        self.pool_of(port)
            .filter(|pool| self.is_held || pool.protocol == port.pool.protocol && !sticks(pool))
    }

    /// A pool that was made for a port, and that no listener sends to yet.
    fn spare<'b>(&'b self, port: &'b DesiredPort) -> Option<&'b Pool> {
        let sticks = |pool: &Pool| self.features.is_ovn && pools::sticks(&port.pool, pool);
        let mut pools = self.there.pools.iter();
        pools.find(|pool| {
            let (protocol, name, description) = (&pool.protocol, &pool.name, &pool.description);
            (protocol, name, description) == (&port.pool.protocol, &port.pool.name, &port.pool.description)
                && is_unused(self.there, pool)
                && !sticks(pool)
        })
    }

    /// Whether a pool that no listener sends to is to take the place of one, or would if Octavia took the listener.
    pub(super) fn is_spare(&self, pool: &Pool) -> bool {
        self.desired.iter().any(|port| {
            let there = self.listener_of(port);
            let is_refused = there.is_some_and(|there| self.refused_in_place_of(port, there).is_some());
            let next = self.pool_to_be(port).filter(|_| !is_refused);
            next.is_some_and(|next| next.id == pool.id)
        })
    }

    /// Whether a pool can take the place of another one: it has all its members.
    pub(super) fn is_complete(&self, port: &DesiredPort, pool: &Pool) -> bool {
        let is_read = self.there.members.contains_key(&pool.id);
        is_read && !has_failed(pool) && self.members(port, pool).is_empty()
    }

    /// The creation of the listener of a port, which sends to the pool that was made for it, if there is one.
    pub(super) fn create(&self, port: &DesiredPort) -> PartChange {
        PartChange::CreateListener {
            new: Box::new(NewListener {
                loadbalancer_id: Some(self.balancer.id.clone()),
                default_pool_id: self.pool_to_be(port).map(|pool| pool.id.clone()),
                ..port.listener.clone()
            }),
        }
    }

    /// The listener that was to take the place of one of another protocol, and that Octavia refused, for this port or another one.
    pub(super) fn refused_in_place_of(&self, port: &DesiredPort, there: &Listener) -> Option<&PartChange> {
        let is_other = there.protocol != port.listener.protocol;
        is_other
            .then(|| self.refusals.of_alike(&self.create(port)))
            .flatten()
    }

    /// A creation, and where it was refused, that of what had its place before.
    pub(super) fn or_as_it_was(&self, create: PartChange) -> Vec<PartChange> {
        let is_refused = self.refusals.of_change(&create).is_some();
        let before = self.own.made_way.iter().filter(|_| is_refused);
        let before = before.filter(|before| before.has_place_of(&create)).cloned();
        let before: Vec<PartChange> = before.map(|before| self.with_pool(before)).collect();
        [create].into_iter().chain(before).collect()
    }

    /// The creation of a listener as it was, without its pool if that is gone.
    fn with_pool(&self, mut create: PartChange) -> PartChange {
        if let PartChange::CreateListener { new } = &mut create {
            let mut pools = self.there.pools.iter();
            let is_there = |id: &PoolId| pools.any(|pool| pool.id == *id);
            new.default_pool_id = new.default_pool_id.take().filter(is_there);
        }
        create
    }
}
