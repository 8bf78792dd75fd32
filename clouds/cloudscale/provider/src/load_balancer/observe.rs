//! What the cloud says about one Service's balancer.

use std::collections::BTreeMap;
use std::sync::Arc;

use bowline_cloud_provider::Creation;
use bowline_cloud_provider::effects::put;
use bowline_cloudscale_client::{
    FloatingIp, Listener, ListenerId, LoadBalancer, LoadBalancerId, LoadBalancerStatus, Member, Monitor,
    MonitorId, Pool, PoolId, ServerId, Stub,
};
use bowline_plan::AtRest;
use uuid::Uuid;

use crate::load_balancer::evidence::{self, Found};
use crate::load_balancer::floating_ips::FloatingAddress;
use crate::load_balancer::intent::{Identity, Intent};
use crate::load_balancer::refused::StillFull;
use crate::load_balancer::step::CloudStep;
use crate::nodes::servers::{self, ServerIndex};

pub(crate) mod reads;

/// One observation.
#[derive(Default)]
pub(crate) struct Observed {
    /// The balancers that the Service could mean, whomever they belong to.
    pub(crate) balancers: Vec<LoadBalancer>,
    /// Balancers that were asked for by UUID or deleted here, and are not there.
    pub(crate) gone: Vec<LoadBalancerId>,
    /// Balancers whose deletion was asked for and is not confirmed yet.
    pub(crate) deleting: Vec<LoadBalancerId>,
    /// The pools of the Service's balancer with all that hangs on them, oldest first.
    pub(crate) pools: Vec<ObservedPool>,
    /// Listeners of the balancer that lead to no pool: theirs was deleted. They keep their ports from others.
    pub(crate) loose_listeners: Vec<Listener>,
    /// The balancer that the pools are of.
    pub(crate) pools_of: Option<LoadBalancerId>,
    /// The servers of the project.
    pub(crate) servers: Arc<ServerIndex>,
    /// Servers that are not in the list and were proved absent one by one.
    pub(crate) absent_servers: Vec<ServerId>,
    /// The floating IPs of the project, or why they could not be listed, which holds up nothing else; `None` if nobody asked.
    pub(crate) floating_ips: Option<Result<Arc<Vec<FloatingIp>>, String>>,
    /// Names of pools that the API did not want beside an old one of the same name.
    pub(crate) crowded_pools: Vec<String>,
}

/// What a reconcile remembers.
pub(crate) type Memory = bowline_cloud_provider::Memory<Remembered, CloudStep>;

/// What a reconcile has seen.
pub(crate) type Seen = bowline_cloud_provider::Seen<Observed, Remembered, CloudStep>;

/// What a reconcile remembers of its writes, beyond what the API shows.
#[derive(Debug, Default)]
pub(crate) struct Remembered {
    pub(crate) busy: Busy,
    /// Something but members was written: what hangs on the pools is in doubt.
    pub(crate) is_reshaped: bool,
    /// Creations that were answered.
    pub(crate) created: Vec<Creation>,
    /// Changes and deletions that were answered.
    pub(crate) changed: Vec<CloudStep>,
    /// How often was read since the last of them.
    pub(crate) reads: u32,
    /// Where something went to make room at a quota, and there was no room after it, in this reconcile or an earlier one.
    pub(crate) still_full: StillFull,
    /// Floating IPs that led elsewhere before, in words, each with the number of its move.
    pub(crate) moved_ips: Vec<(String, u64)>,
    /// Pools whose monitor made way for another one that did not come yet, in this reconcile or an earlier one.
    pub(crate) without_monitor: Vec<PoolId>,
    /// Pools that the API did not delete with what hangs on them: that goes first, each part by a step of its own.
    pub(crate) pools_in_use: Vec<PoolId>,
    /// Changes of earlier reconciles that were not kept, as far as they are of the same balancer.
    pub(crate) not_persisted: Vec<NotPersisted>,
}

/// A change that the API answered and did not keep.
#[derive(Debug, Clone)]
pub(crate) struct NotPersisted {
    pub(crate) step: CloudStep,
    /// What was shown after it.
    pub(crate) shown: String,
    /// When that was seen.
    pub(crate) since: tokio::time::Instant,
}

/// An object of the project.
#[derive(Debug)]
pub(crate) enum Object {
    Balancer(LoadBalancer),
    Pool(Pool),
    /// A member of a pool.
    Member(PoolId, Member),
    Listener(Listener),
    Monitor(Monitor),
    FloatingIp(FloatingIp),
}

/// A pool and what hangs on it, each group oldest first.
#[derive(Debug, Clone)]
pub(crate) struct ObservedPool {
    pub(crate) pool: Pool,
    pub(crate) members: Vec<Member>,
    pub(crate) listeners: Vec<Listener>,
    pub(crate) monitors: Vec<Monitor>,
}

impl ObservedPool {
    /// A pool on which nothing hangs.
    pub(crate) fn new(pool: Pool) -> Self {
        Self {
            pool,
            members: Vec::new(),
            listeners: Vec::new(),
            monitors: Vec::new(),
        }
    }
}

/// Whether the API said that the balancer is busy.
#[derive(Debug, Default)]
pub(crate) struct Busy {
    /// It said so just now.
    pub(crate) is_now: bool,
    /// It said so once: from then on one write is made at a time, and the balancer looked at before the next one.
    pub(crate) was_once: bool,
    /// The writes of which it said so while each look showed the balancer at rest.
    unseen: AtRest<CloudStep>,
}

impl Busy {
    pub(crate) fn set(&mut self) {
        (self.is_now, self.was_once) = (true, true);
    }

    /// A write was put off because of it, and the balancer is at rest.
    pub(crate) fn put_off(&mut self, step: &CloudStep) {
        self.unseen.met(step);
        self.set();
    }

    /// The balancer was at rest all the time: a conflict is about what was asked.
    pub(crate) fn refute(&mut self) {
        (self.is_now, self.was_once) = (false, false);
        self.unseen.refute();
    }

    /// Whether a conflict from a balancer at rest is about what this step asks: it is the second one, or another step was refused for it.
    pub(crate) fn is_refuted(&self, step: Option<&CloudStep>) -> bool {
        self.unseen
            .is_refusal(|known| step.is_some_and(|step| known == step || known.asks_the_same(step)))
    }

    /// It is seen to be so.
    pub(crate) fn is_explained(&mut self) {
        self.unseen.is_explained();
    }
}

impl Remembered {
    /// Everything is read, and what the API said of being busy is to be seen anew.
    fn read_anew(&mut self) {
        (self.busy, self.is_reshaped) = (Busy::default(), false);
    }
}

impl Observed {
    /// A balancer is gone.
    pub(crate) fn is_gone(&mut self, id: LoadBalancerId) {
        self.balancers.retain(|balancer| balancer.uuid != id);
        self.deleting.retain(|deleting| *deleting != id);
        self.gone.push(id);
        if self.pools_of == Some(id) {
            self.pools_of = None;
            self.pools.clear();
            self.loose_listeners.clear();
        }
    }

    /// An object was made, or is like this now.
    pub(crate) fn put(&mut self, object: Object) {
        let pool = match &object {
            Object::Member(pool, _) => Some(*pool),
            Object::Listener(listener) => listener.pool.as_ref().map(|stub| stub.uuid),
            Object::Monitor(monitor) => Some(monitor.pool.uuid),
            _ => None,
        };
        match (object, pool.and_then(|id| self.pool_mut(id))) {
            (Object::Balancer(balancer), _) => {
                if self.balancers.iter().all(|there| there.uuid != balancer.uuid) {
                    self.pools_of = Some(balancer.uuid);
                    self.pools.clear();
                    self.loose_listeners.clear();
                }
                put(&mut self.balancers, balancer, |there| there.uuid);
            }
            (Object::Pool(pool), _) => self.pools.push(ObservedPool::new(pool)),
            (Object::Member(_, member), Some(pool)) => put(&mut pool.members, member, |there| there.uuid),
            (Object::Listener(listener), Some(pool)) => {
                put(&mut pool.listeners, listener, |there| there.uuid);
            }
            (Object::Monitor(monitor), Some(pool)) => put(&mut pool.monitors, monitor, |there| there.uuid),
            (Object::FloatingIp(ip), _) => {
                if let Some(Ok(list)) = &mut self.floating_ips {
                    put(Arc::make_mut(list), ip, |there| there.network.clone());
                }
            }
            _ => {}
        }
    }

    /// A part of the balancer is gone, with all that hangs on it.
    pub(crate) fn remove(&mut self, part: Uuid) {
        self.pools.retain(|there| there.pool.uuid.0 != part);
        self.loose_listeners.retain(|there| there.uuid.0 != part);
        for pool in &mut self.pools {
            pool.members.retain(|there| there.uuid.0 != part);
            pool.listeners.retain(|there| there.uuid.0 != part);
            pool.monitors.retain(|there| there.uuid.0 != part);
        }
    }

    /// Whether it has a balancer or a part of one.
    pub(crate) fn shows(&self, id: Uuid) -> bool {
        let in_pool = |there: &ObservedPool| {
            there.pool.uuid.0 == id
                || there.members.iter().any(|it| it.uuid.0 == id)
                || there.listeners.iter().any(|it| it.uuid.0 == id)
                || there.monitors.iter().any(|it| it.uuid.0 == id)
        };
        self.balancers.iter().any(|it| it.uuid.0 == id)
            || self.pools.iter().any(in_pool)
            || self.loose_listeners.iter().any(|it| it.uuid.0 == id)
    }

    /// Whether a listener leads to a pool.
    pub(crate) fn serves_a_port(&self) -> bool {
        self.pools.iter().any(|pool| !pool.listeners.is_empty())
    }

    /// The balancer that serves the Service, if exactly one was found.
    pub(crate) fn balancer(&self, identity: &Identity) -> Option<&LoadBalancer> {
        match evidence::resolve(identity, &self.balancers) {
            Found::One { balancer, .. } => Some(balancer),
            Found::Foreign { own, .. } | Found::Several { own } => own,
            Found::None => None,
        }
    }

    /// Whether the observation answers what the intent needs. Not if the intent is newer and asks for more: then it takes
    /// a full read.
    pub(crate) fn covers(&self, intent: &Intent) -> bool {
        let identity = intent.identity();
        let names_something_known = identity.annotated.is_none_or(|id| {
            self.gone.contains(&id) || self.balancers.iter().any(|balancer| balancer.uuid == id)
        });
        let Some(needs) = intent.needs() else {
            return names_something_known;
        };
        let pools_are_known = self.balancer(identity).map(|balancer| balancer.uuid) == self.pools_of;
        let nodes_are_known = needs
            .nodes
            .iter()
            .all(|node| servers::unproven(&self.servers, node, &self.absent_servers).is_none());
        let ips_are_known = needs.floating_ips.is_empty() || self.floating_ips.is_some();
        names_something_known && pools_are_known && nodes_are_known && ips_are_known
    }

    pub(crate) fn floating_ip(&self, address: FloatingAddress) -> Option<&FloatingIp> {
        let mut listed = self.floating_ips.iter().flatten().flat_map(|list| list.iter());
        listed.find(|there| address.is(there))
    }

    /// Why the floating IPs could not be listed.
    pub(crate) fn floating_failure(&self) -> Option<&String> {
        self.floating_ips.as_ref()?.as_ref().err()
    }

    pub(crate) fn pool(&self, id: PoolId) -> Option<&ObservedPool> {
        self.pools.iter().find(|pool| pool.pool.uuid == id)
    }

    pub(crate) fn listener(&self, id: ListenerId) -> Option<&Listener> {
        let mut all = self.pools.iter().flat_map(|pool| &pool.listeners);
        all.find(|listener| listener.uuid == id)
    }

    pub(crate) fn monitor(&self, id: MonitorId) -> Option<&Monitor> {
        let mut all = self.pools.iter().flat_map(|pool| &pool.monitors);
        all.find(|monitor| monitor.uuid == id)
    }

    fn pool_mut(&mut self, id: PoolId) -> Option<&mut ObservedPool> {
        self.pools.iter_mut().find(|pool| pool.pool.uuid == id)
    }
}

/// Whether the API is at work on a balancer, so that nothing may be written to it.
pub(crate) fn is_changing(balancer: &LoadBalancer) -> bool {
    balancer.status == LoadBalancerStatus::Changing
}

/// Puts listeners and monitors to their pools, everything oldest first, and adds the listeners that lead to no pool.
pub(crate) fn assemble(
    balancer: LoadBalancerId,
    pools: &[Pool],
    listeners: &[Listener],
    monitors: &[Monitor],
) -> (Vec<ObservedPool>, Vec<Listener>) {
    let mut assembled: Vec<ObservedPool> = pools
        .iter()
        .filter(|pool| pool.load_balancer.uuid == balancer)
        .map(|pool| ObservedPool::new(pool.clone()))
        .collect();
    assembled.sort_by_cached_key(|pool| evidence::by_age(pool.pool.created_at.as_deref(), pool.pool.uuid));
    let position: BTreeMap<PoolId, usize> = assembled
        .iter()
        .enumerate()
        .map(|(index, pool)| (pool.pool.uuid, index))
        .collect();
    let mut loose = Vec::new();
    for listener in listeners {
        let is_of_balancer = |stub: &Stub<LoadBalancerId>| stub.uuid == balancer;
        match &listener.pool {
            Some(pool) => {
                if let Some(index) = position.get(&pool.uuid) {
                    assembled[*index].listeners.push(listener.clone());
                }
            }
            None if listener.load_balancer.as_ref().is_some_and(is_of_balancer) => {
                loose.push(listener.clone())
            }
            None => {}
        }
    }
    for monitor in monitors {
        if let Some(index) = position.get(&monitor.pool.uuid) {
            assembled[*index].monitors.push(monitor.clone());
        }
    }
    for pool in &mut assembled {
        pool.listeners
            .sort_by_cached_key(|part| evidence::by_age(part.created_at.as_deref(), part.uuid));
        pool.monitors
            .sort_by_cached_key(|part| evidence::by_age(part.created_at.as_deref(), part.uuid));
    }
    loose.sort_by_cached_key(|part| evidence::by_age(part.created_at.as_deref(), part.uuid));
    (assembled, loose)
}

/// Members oldest first.
pub(crate) fn sort_members(members: &mut [Member]) {
    members.sort_by_cached_key(|member| evidence::by_age(member.created_at.as_deref(), member.uuid));
}
