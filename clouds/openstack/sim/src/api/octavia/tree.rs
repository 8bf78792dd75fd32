//! The parts that come with a new load balancer, a new listener or a new pool: all of them or none.

use super::Parent;
use super::protocols::{check_pool, check_reserved, port_space, word};
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
const NESTED_POOL: &str = "members healthmonitor";

impl Call<'_> {
    /// The listeners and pools of a new load balancer, in the order in which Octavia makes them (`_graph_create`).
    pub(super) fn tree(&self, fields: &Fields, parent: &Parent) -> Result<Tree, ApiError> {
        let mut pools = fields.objects("pools")?.unwrap_or_default();
        let listeners = fields.objects("listeners")?.unwrap_or_default();
        let mut named = Vec::new();
        for listener in &listeners {
            let Some(pool) = listener.object("default_pool")? else {
                continue;
            };
            let text = "Pools must be named when creating a fully populated loadbalancer.";
            let name = pool.text("name")?.ok_or_else(|| ApiError::invalid(text))?;
            // One that has more than a name is a pool, any other one is the name of one.
            let is_name = |it: &str| ["name", "admin_state_up", "tls_enabled"].contains(&it);
            let is_named = pool.names().all(is_name);
            match is_named {
                true => named.push(name),
                false => pools.push(pool),
            }
        }
        let mut names = Vec::new();
        for pool in &pools {
            names.push(pool.text("name")?);
        }
        let is_twice = |at: usize| names[..at].contains(&names[at]);
        if (0..names.len()).any(is_twice) {
            let text = "Pool names must be unique when creating a fully populated loadbalancer.";
            return Err(ApiError::invalid(text));
        }
        if let Some(name) = named.iter().find(|it| !names.contains(&Some((*it).clone()))) {
            let text = format!("Pool '{name}' was referenced but no full definition was found.");
            return Err(ApiError::invalid(text));
        }
        let mut tree = Tree::default();
        self.check_quota::<Pool>(&parent.project, pools.len())?;
        for pool in &pools {
            self.grow_pool(&mut tree, pool, parent)?;
        }
        self.check_quota::<Listener>(&parent.project, listeners.len())?;
        for listener in &listeners {
            self.grow_listener(&mut tree, listener, parent)?;
        }
        Ok(tree)
    }

    /// A listener, and its pool if that is of the tree.
    pub(super) fn grow_listener(
        &self,
        tree: &mut Tree,
        fields: &Fields,
        parent: &Parent,
    ) -> Result<(), ApiError> {
        let mut listener = self.new_listener(fields, parent)?;
        if let Some(pool) = fields.object("default_pool")? {
            let name = pool.text("name")?;
            let pool = tree.pools.iter().find(|it| Some(&it.part.name) == name.as_ref());
            if let Some(pool) = pool {
                check_pool(listener.protocol, pool.protocol)?;
                listener.default_pool = Some(pool.part.id);
            }
        }
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
        tree.listeners.push(listener);
        Ok(())
    }

    /// A pool with its monitor and its members.
    fn grow_pool(&self, tree: &mut Tree, fields: &Fields, parent: &Parent) -> Result<(), ApiError> {
        let name = fields.text("name")?.unwrap_or_default();
        if let Some(lacking) = ["protocol", "lb_algorithm"].iter().find(|it| !fields.has(it)) {
            let text = format!("Pool definition for '{name}' missing required attribute: {lacking}");
            return Err(ApiError::invalid(text));
        }
        let pool = self.new_pool(fields, parent, NESTED_POOL)?;
        if let Some(monitor) = fields.object("healthmonitor")? {
            self.check_quota::<Monitor>(&parent.project, tree.monitors.len() + 1)?;
            tree.monitors.push(self.new_monitor(&monitor, &pool, parent)?);
        }
        let members = fields.objects("members")?.unwrap_or_default();
        self.check_quota::<Member>(&parent.project, tree.members.len() + members.len())?;
        for member in members {
            let member = self.new_member(&member, &pool, parent)?;
            check_reserved(member.address)?;
            if tree.members.iter().any(|it| it.is_like(&member)) {
                return Err(member.conflict());
            }
            tree.members.push(member);
        }
        tree.pools.push(pool);
        Ok(())
    }
}
