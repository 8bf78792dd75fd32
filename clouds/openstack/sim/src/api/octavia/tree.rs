//! The parts that come with a new load balancer, a new listener or a new pool: all of them or none.

use super::Parent;
use super::protocols::{check_pool, port_space, word};
use crate::api::Call;
use crate::error::ApiError;
use crate::fields::Fields;
use crate::model::balancing::{Listener, Member, Monitor, Pool};
use crate::state::State;

/// Parts that are checked and not there yet.
#[derive(Debug, Default)]
pub(super) struct Tree {
    pub(super) listeners: Vec<Listener>,
    pub(super) pools: Vec<Pool>,
    pub(super) members: Vec<Member>,
    pub(super) monitors: Vec<Monitor>,
}

impl Tree {
    pub(super) fn insert(self, state: &mut State) {
        let listeners = self.listeners.into_iter();
        state.listeners.extend(listeners.map(|it| (it.part.id, it)));
        state
            .pools
            .extend(self.pools.into_iter().map(|it| (it.part.id, it)));
        state
            .members
            .extend(self.members.into_iter().map(|it| (it.part.id, it)));
        let monitors = self.monitors.into_iter();
        state.monitors.extend(monitors.map(|it| (it.part.id, it)));
    }
}

/// What a pool within another object may have beside what any may.
const NESTED_POOL: [&str; 2] = ["members", "healthmonitor"];

impl Call<'_> {
    /// The listeners and pools of a new load balancer.
    pub(super) fn tree(&self, fields: &Fields, parent: &Parent) -> Result<Tree, ApiError> {
        let mut tree = Tree::default();
        for pool in fields.objects("pools")?.unwrap_or_default() {
            self.grow_pool(&mut tree, &pool, parent)?;
        }
        for listener in fields.objects("listeners")?.unwrap_or_default() {
            self.grow_listener(&mut tree, &listener, parent)?;
        }
        self.check_tree(&tree, parent)?;
        Ok(tree)
    }

    /// A listener, and its pool if that is within it.
    pub(super) fn grow_listener(
        &self,
        tree: &mut Tree,
        fields: &Fields,
        parent: &Parent,
    ) -> Result<(), ApiError> {
        let mut listener = self.new_listener(fields, parent)?;
        let space = port_space(listener.protocol);
        let is_there = |it: &&Listener| (port_space(it.protocol), it.port) == (space, listener.port);
        let existing = self.state.listeners_of(parent.id).chain(&tree.listeners);
        if let Some(other) = existing.into_iter().find(is_there) {
            return Err(ApiError::octavia_conflict(format!(
                "Another Listener on this Load Balancer is already using protocol {} and protocol_port {}",
                word(other.protocol),
                other.port
            )));
        }
        if let Some(pool) = fields.object("default_pool")? {
            let pool = match tree.pools.iter().position(|it| is_named(&pool, it)) {
                Some(at) => &tree.pools[at],
                None => self.grow_pool(tree, &pool, parent)?,
            };
            check_pool(listener.protocol, pool.protocol)?;
            listener.default_pool = Some(pool.part.id);
        }
        tree.listeners.push(listener);
        Ok(())
    }

    /// A pool with its members and its monitor.
    fn grow_pool<'t>(
        &self,
        tree: &'t mut Tree,
        fields: &Fields,
        parent: &Parent,
    ) -> Result<&'t Pool, ApiError> {
        let pool = self.new_pool(fields, parent, &NESTED_POOL)?;
        for member in fields.objects("members")?.unwrap_or_default() {
            let member = self.new_member(&member, &pool, parent)?;
            let twin = tree.members.iter().any(|it| it.is_like(&member));
            if twin {
                return Err(member.conflict());
            }
            tree.members.push(member);
        }
        if let Some(monitor) = fields.object("healthmonitor")? {
            tree.monitors.push(self.new_monitor(&monitor, &pool, parent)?);
        }
        let at = tree.pools.len();
        tree.pools.push(pool);
        Ok(&tree.pools[at])
    }

    /// The limits of the project.
    pub(super) fn check_tree(&self, tree: &Tree, parent: &Parent) -> Result<(), ApiError> {
        let state = &self.state;
        let quota = state.behaviour.quota;
        let own = |project: &str| usize::from(project == parent.project);
        let listeners = state
            .listeners
            .values()
            .map(|it| own(&it.part.meta.project))
            .sum();
        let pools = state.pools.values().map(|it| own(&it.part.meta.project)).sum();
        let members = state.members.values().map(|it| own(&it.part.meta.project)).sum();
        let monitors = state.monitors.values().map(|it| own(&it.part.meta.project)).sum();
        self.check_quota(quota.listeners, listeners, tree.listeners.len(), "Listener")?;
        self.check_quota(quota.pools, pools, tree.pools.len(), "Pool")?;
        self.check_quota(quota.members, members, tree.members.len(), "Member")?;
        self.check_quota(
            quota.health_monitors,
            monitors,
            tree.monitors.len(),
            "Health Monitor",
        )
    }
}

/// Whether a listener's pool is only the name of one that comes with the load balancer.
fn is_named(fields: &Fields, pool: &Pool) -> bool {
    let name = fields.text("name").ok().flatten();
    !fields.has("protocol") && name.as_ref() == Some(&pool.part.name)
}
