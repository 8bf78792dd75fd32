//! What the cloud says about one Service's load balancer, as far as it was asked.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use bowline_cloud_provider::Recent;
use bowline_openstack_client::{
    FloatingIp, FloatingIpId, Listener, ListenerId, LoadBalancer, LoadBalancerId, Member, Monitor, MonitorId,
    Network, NewSecurityGroupRule, Pool, PoolId, PoolUpdate, Port, ProvisioningStatus, SecurityGroup,
    SessionPersistence, Subnet,
};
use bowline_plan::Refusal;

use crate::load_balancer::evidence::marks::{OfAnother, Told};
use crate::load_balancer::features::Features;
use crate::load_balancer::intent::TlsKey;
use crate::load_balancer::step::{CloudStep, PartChange};
use crate::load_balancer::vip_ports::{Known, Place};

mod patience;
pub(crate) mod reads;
pub(crate) mod undone;
mod view;

pub(crate) use view::{Need, View};

/// One observation. What is `None` was not asked for: a plan asks its [`View`].
#[derive(Default)]
pub(crate) struct Observed {
    /// What Octavia can do, whatever the provider of a load balancer is.
    pub(crate) features: Option<Features>,
    /// All load balancers of the project.
    pub(crate) listed: Option<Arc<Vec<LoadBalancer>>>,
    /// The load balancers that the Service could mean.
    pub(crate) balancers: Vec<LoadBalancer>,
    /// Load balancers that could be meant by their name or a tag, and are another Service's: they are in no other list here.
    pub(crate) of_others: Vec<OfAnother>,
    /// Those that could be meant and whose pools tell nothing of that kind.
    pub(crate) cleared: Vec<LoadBalancerId>,
    /// Those of them that were surely made for this very Service.
    pub(crate) marked: Vec<LoadBalancerId>,
    /// Load balancers that were asked for one by one, and are not there.
    pub(crate) gone: Vec<LoadBalancerId>,
    /// The floating IPs that led to a load balancer that could be meant, when that went.
    pub(crate) freed: Vec<FloatingIpId>,
    /// Load balancers that were waited for to go, and stay `PENDING_DELETE`. They are in no other list here.
    pub(crate) left_alone: Vec<LoadBalancerId>,
    /// The parts of load balancers: of the one that the Service uses, of one that it has left.
    pub(crate) parts: BTreeMap<LoadBalancerId, Parts>,
    /// All ports of the project.
    pub(crate) ports: Option<Arc<Vec<Port>>>,
    /// What a creation that was refused left behind, if it was looked for.
    pub(crate) leaked: Option<Leaked>,
    /// All floating IPs of the project.
    pub(crate) floating_ips: Option<Arc<Vec<FloatingIp>>>,
    /// Addresses that were asked for one by one, and that no floating IP has.
    pub(crate) absent_addresses: Vec<String>,
    /// All networks that the project sees, or why they could not be listed.
    pub(crate) networks: Option<Result<Arc<Vec<Network>>, String>>,
    /// All subnets that the project sees.
    pub(crate) subnets: Option<Arc<Vec<Subnet>>>,
    /// The security groups of the Service's name.
    pub(crate) groups: Option<Vec<SecurityGroup>>,
    /// The security groups of Services of this name that the cluster had before.
    pub(crate) former_groups: Option<Vec<SecurityGroup>>,
    /// What the store of keys says about the certificate.
    pub(crate) key: Option<(TlsKey, KeyAnswer)>,
}

/// Ports that Octavia made for load balancers that are not listed, and that no floating IP leads to.
#[derive(Debug, Default)]
pub(crate) struct Leaked {
    /// The one that has the address that the creation asked for, and whose load balancer is surely not there.
    pub(crate) in_the_way: Vec<Port>,
    /// Those that came meanwhile, where it is not known whether the creation came so far as to make one.
    pub(crate) doubtful: Vec<Port>,
}

/// A creation of a load balancer that was refused.
#[derive(Debug)]
pub(crate) struct RefusedCreation {
    /// Where its port was to be; `None` if that was there before.
    pub(crate) place: Option<Place>,
    /// Whether it was surely refused after Octavia had made the port.
    pub(crate) had_port: bool,
}

/// What the store of keys says about a certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum KeyAnswer {
    /// It is there.
    Present,
    /// It is not.
    Absent,
    /// The cloud has no such store.
    NoStore,
    /// It cannot be told, and this is why.
    Unknown(String),
}

/// The parts of a load balancer.
#[derive(Debug, Clone)]
pub(crate) struct Parts {
    /// The load balancer.
    pub(crate) of: LoadBalancerId,
    pub(crate) listeners: Vec<Listener>,
    pub(crate) pools: Vec<Pool>,
    /// The members of the pools that were asked for.
    pub(crate) members: BTreeMap<PoolId, Vec<Member>>,
    /// The monitors, if they were asked for.
    pub(crate) monitors: Option<BTreeMap<MonitorId, Monitor>>,
    /// What could not be read of them. Nothing is decided about it, and all else goes on.
    pub(crate) unread: Unread,
    /// Whether all this was only told by what was sent, so that the ids are made up.
    pub(crate) is_predicted: bool,
}

/// Why parts of a load balancer could not be read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Unread {
    /// The members of these pools.
    pub(crate) members: BTreeMap<PoolId, String>,
    /// The monitors.
    pub(crate) monitors: Option<String>,
}

/// What a reconcile remembers.
pub(crate) type Memory = bowline_cloud_provider::Memory<Remembered, CloudStep>;

/// How often a load balancer was looked at since the last write to it, or in this reconcile.
pub(crate) fn looks(memory: &Memory) -> usize {
    memory.looks() + usize::from(!memory.own.is_written)
}

/// How long after it was seen that a load balancer is at rest a change of it may come about. Of one change `ovn` makes several requests, and
/// says after each that all is done; each asks Neutron, which takes up to some seconds.
const LATE: Duration = Duration::from_secs(12);

/// Whether what this reconcile took away may be there only for a moment longer.
fn may_be_late(memory: &Memory) -> bool {
    memory.own.is_verified && memory.waited() < LATE
}

/// Whether Octavia answered a change of this reconcile that takes something away, and that may come about only now.
pub(crate) fn is_late(memory: &Memory, change: &PartChange) -> bool {
    may_be_late(memory) && memory.own.has_taken(change)
}

/// What Octavia and Neutron refused.
pub(crate) type Refusals = bowline_cloud_provider::Refusals<CloudStep>;

/// What is refused of the parts of load balancers.
pub(crate) trait PartRefusals {
    /// The changes of parts that are refused.
    fn of_parts(&self) -> impl Iterator<Item = (&PartChange, &Refusal)>;

    /// Why Octavia does not take a change. Where a quota leaves no room for one thing, it leaves none for another of its kind.
    fn of_change(&self, change: &PartChange) -> Option<&Refusal> {
        let is_full = |refused: &PartChange| change.room().is_some() && refused.room() == change.room();
        let mut refused = self.of_parts();
        let found = refused.find(|(refused, why)| *refused == change || why.is_limit && is_full(refused));
        found.map(|(_, why)| why)
    }

    /// A creation that was refused and is like another one: of what cannot stand beside what is there. Only what is of the port differs.
    fn of_alike(&self, create: &PartChange) -> Option<&PartChange> {
        let mut refused = self.of_parts().map(|(refused, _)| refused);
        refused.find(|refused| match (refused, create) {
            (PartChange::CreateListener { new: a }, PartChange::CreateListener { new: b }) => {
                (&a.protocol, &a.attributes) == (&b.protocol, &b.attributes)
            }
            (PartChange::CreateMonitor { new: a }, PartChange::CreateMonitor { new: b }) => a.kind == b.kind,
            _ => false,
        })
    }

    /// Why a pool is not deleted, as when an L7 policy names it; `None` if nothing is known to bar that.
    fn of_deletion(&self, pool: &PoolId) -> Option<&Refusal> {
        let is_it = |change: &PartChange| matches!(change, PartChange::DeletePool { id, .. } if id == pool);
        let mut refused = self.of_parts();
        refused.find(|(refused, _)| is_it(refused)).map(|(_, why)| why)
    }

    /// Why a pool does not get a setting.
    fn of_setting(&self, pool: &PoolId, setting: &PoolSetting) -> Option<&Refusal> {
        let is_it = |change: &PartChange| match change {
            PartChange::UpdatePool { id, update, .. } => {
                id == pool && PoolSetting::of(update).as_ref() == Some(setting)
            }
            _ => false,
        };
        let mut refused = self.of_parts();
        refused.find(|(refused, _)| is_it(refused)).map(|(_, why)| why)
    }
}

impl PartRefusals for Refusals {
    fn of_parts(&self) -> impl Iterator<Item = (&PartChange, &Refusal)> {
        self.iter().filter_map(|(step, why)| match step {
            CloudStep::Part { change, .. } => Some((change, why)),
            _ => None,
        })
    }
}

/// What a reconcile has seen.
pub(crate) type Seen = bowline_cloud_provider::Seen<Observed, Remembered, CloudStep>;

/// What a reconcile remembers of its writes, beyond what the API shows.
#[derive(Debug, Default)]
pub(crate) struct Remembered {
    /// The load balancer was written to in this reconcile: before that, the reconcile's own first look counts.
    pub(crate) is_written: bool,
    /// What the last write came to was read, and nothing was written since.
    pub(crate) is_verified: bool,
    /// The load balancer was written to and not looked at since.
    pub(crate) is_unseen: bool,
    /// How long a change of a part is given before it is looked at.
    pub(crate) change_pause: Duration,
    /// Octavia refused the last write to the load balancer because another change is under way.
    pub(crate) is_busy: bool,
    /// It was a pool of it that Octavia refused that for: it may have failed, which the load balancer does not show.
    pub(crate) is_pool_locked: bool,
    /// The creation of the load balancer was not answered in time, so it may still show.
    pub(crate) is_creation_late: bool,
    /// The load balancer that this reconcile created.
    pub(crate) created: Option<LoadBalancerId>,
    /// The load balancer that failed and that this reconcile therefore deleted.
    pub(crate) failed: Option<LoadBalancerId>,
    /// Whether one that served and failed may be deleted, so that another one takes its place.
    pub(crate) may_repair: bool,
    /// The address of one that this reconcile deleted for that: the other one is to have it too.
    pub(crate) vacated: Option<String>,
    /// Octavia refused the Service's load balancer with all its parts before, so an empty one comes first.
    pub(crate) is_tree_doubtful: bool,
    /// The Service is older than this process: its load balancer may have been refused with all its parts before.
    pub(crate) is_older: bool,
    /// Octavia refused this creation in this reconcile, so a port may be left behind.
    pub(crate) refused_creation: Option<RefusedCreation>,
    /// The ports of load balancers that there were before that, if they were read.
    pub(crate) ports_before: Option<Known>,
    /// A load balancer or a floating IP was made, deleted or sent elsewhere: what leads where is to be seen anew.
    pub(crate) is_address_changed: bool,
    /// Floating IPs as they were written, or found where a list did not show them.
    pub(crate) floating_ips: Recent<FloatingIpId, FloatingIp>,
    /// The last change of each part that was answered, the very last one at the end.
    pub(crate) changes: Vec<PartChange>,
    /// The creations of what was deleted because something else was to have its place, as it was.
    pub(crate) made_way: Vec<PartChange>,
    /// Those that were answered twice.
    pub(crate) rewritten: Vec<PartChange>,
    /// The deletions of load balancers, and the writes that made parts or took them away, of which no look has shown what came of them.
    pub(crate) unconfirmed: Vec<CloudStep>,
    /// Pools whose members were written: the answer does not show them.
    pub(crate) members_written: Vec<WrittenMembers>,
    /// Members on which people set something, and that went: those that come back, in another subnet, get it too.
    pub(crate) left: Vec<(PoolId, Member)>,
    /// Rules that Neutron says are there already, in whatever words it lists them.
    pub(crate) rules_there: Vec<NewSecurityGroupRule>,
    /// The parts that failed by themselves and have been so for a while, by id: these are written once more.
    pub(crate) stuck: BTreeSet<String>,
}

/// A list of members that was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WrittenMembers {
    pub(crate) pool: PoolId,
    /// How many of the members before went.
    pub(crate) removed: usize,
}

/// What is asked of a pool, and may be refused by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PoolSetting {
    /// How it chooses a member.
    Method(String),
    /// How it keeps a client at a member.
    Persistence(Option<SessionPersistence>),
}

impl PoolSetting {
    /// The setting that an update changes; `None` if it changes something else.
    pub(crate) fn of(update: &PoolUpdate) -> Option<Self> {
        let method = update.lb_algorithm.clone().map(Self::Method);
        method.or_else(|| update.session_persistence.clone().map(Self::Persistence))
    }
}

impl Remembered {
    /// Whether Octavia answered a change that is to be made, and did not keep it. A list of members is written once more if others were
    /// written after it: Octavia may take one and fail to make it, and the answer shows none.
    pub(crate) fn is_unkept(&self, change: &PartChange) -> bool {
        match change {
            PartChange::SetMembers { .. } => {
                self.changes.last() == Some(change) || self.rewritten.contains(change)
            }
            _ => self.changes.contains(change),
        }
    }

    /// Whether Octavia answered a change that takes something away, whatever it came to.
    fn has_taken(&self, change: &PartChange) -> bool {
        let is_it = |before: &PartChange| match (before, change) {
            (
                PartChange::SetMembers { pool, members, .. },
                PartChange::SetMembers {
                    pool: of,
                    members: wanted,
                    ..
                },
            ) => (pool, members) == (of, wanted),
            _ => before == change,
        };
        let takes = matches!(
            change,
            PartChange::SetMembers { .. } | PartChange::RemoveMember { .. }
        ) || undone::takes(change);
        takes && self.changes.iter().any(is_it)
    }

    /// A list of floating IPs, with what is known to be newer: lists may be behind.
    pub(crate) fn over(&self, mut listed: Arc<Vec<FloatingIp>>) -> Arc<Vec<FloatingIp>> {
        if !self.is_address_changed {
            return listed; // nothing was written
        }
        let all = Arc::make_mut(&mut listed);
        self.floating_ips.lay_over(all, |there| &there.id);
        for there in all {
            let written = self.floating_ips.written(&there.id);
            if let Some(newer) = written.filter(|written| written.revision_number > there.revision_number) {
                there.clone_from(newer);
            }
        }
        listed
    }
}

impl Parts {
    /// No part yet.
    pub(crate) fn none(of: LoadBalancerId) -> Self {
        Self {
            of,
            listeners: Vec::new(),
            pools: Vec::new(),
            members: BTreeMap::new(),
            monitors: Some(BTreeMap::new()),
            unread: Unread::default(),
            is_predicted: false,
        }
    }

    /// The pool that a listener sends to by default. Among the listeners that a pool names are those that reach it through a policy,
    /// so that counts only of a listener that has none, and names no pool itself.
    pub(crate) fn pool_of(&self, listener: &ListenerId) -> Option<&Pool> {
        let listener = self.listeners.iter().find(|there| there.id == *listener)?;
        let names_it = |pool: &&Pool| pool.listeners.iter().any(|there| there.id == listener.id);
        let mut pools = self.pools.iter();
        match &listener.default_pool_id {
            Some(default) => pools.find(|pool| pool.id == *default),
            None => pools.find(names_it).filter(|_| listener.l7policies.is_empty()),
        }
    }

    pub(crate) fn pool_mut(&mut self, id: &PoolId) -> Option<&mut Pool> {
        self.pools.iter_mut().find(|pool| pool.id == *id)
    }

    /// The ids of the parts that failed by themselves. Octavia may leave a monitor whose change failed `PENDING_UPDATE`: that counts
    /// of a load balancer that was at rest before its parts were read.
    pub(crate) fn failed(&self) -> BTreeSet<String> {
        let listeners = self.listeners.iter();
        let listeners = listeners.map(|it| (it.id.as_str(), &it.provisioning_status));
        let pools = self.pools.iter();
        let pools = pools.map(|it| (it.id.as_str(), &it.provisioning_status));
        let members = self.members.values().flatten();
        let members = members.map(|it| (it.id.as_str(), &it.provisioning_status));
        let others = listeners.chain(pools).chain(members);
        let others = others.filter(|(_, status)| **status == ProvisioningStatus::Error);
        let monitors = self.monitors.iter().flat_map(BTreeMap::values).filter(|it| {
            matches!(
                it.provisioning_status,
                ProvisioningStatus::Error
                    | ProvisioningStatus::PendingCreate
                    | ProvisioningStatus::PendingUpdate
            )
        });
        let ids = others.map(|(id, _)| id);
        let ids = ids.chain(monitors.map(|it| it.id.as_str()));
        ids.map(str::to_owned).collect()
    }

    /// The part of this id is gone, and with a pool its members.
    pub(crate) fn remove(&mut self, id: &str) {
        self.listeners.retain(|listener| listener.id.as_str() != id);
        for listener in &mut self.listeners {
            listener.default_pool_id.take_if(|pool| pool.as_str() == id);
        }
        self.pools.retain(|pool| pool.id.as_str() != id);
        for pool in &mut self.pools {
            pool.listeners.retain(|listener| listener.id.as_str() != id);
            pool.healthmonitor_id.take_if(|monitor| monitor.as_str() == id);
        }
        self.members.retain(|pool, _| pool.as_str() != id);
        for members in self.members.values_mut() {
            members.retain(|member| member.id.as_str() != id);
        }
        if let Some(monitors) = &mut self.monitors {
            monitors.retain(|monitor, _| monitor.as_str() != id);
        }
    }
}

impl Observed {
    pub(crate) fn balancer_mut(&mut self, id: &LoadBalancerId) -> Option<&mut LoadBalancer> {
        self.balancers.iter_mut().find(|balancer| balancer.id == *id)
    }

    /// Whether a load balancer is another Service's.
    pub(crate) fn is_of_another(&self, id: &LoadBalancerId) -> bool {
        self.of_others.iter().any(|other| other.balancer.id == *id)
    }

    /// Whether it is known what a load balancer is to the Service.
    pub(crate) fn is_known(&self, id: &LoadBalancerId) -> bool {
        self.gone.contains(id)
            || self.left_alone.contains(id)
            || self.is_of_another(id)
            || self.balancers.iter().any(|there| there.id == *id)
    }

    /// A load balancer was waited for to go for long enough.
    pub(crate) fn leave_alone(&mut self, id: LoadBalancerId) {
        self.balancers.retain(|balancer| balancer.id != id);
        self.left_alone.push(id);
    }

    /// The pools of a load balancer were seen.
    pub(crate) fn tell_apart(&mut self, id: LoadBalancerId, told: Told) {
        match told {
            Told::OfAnother(uid) => self.are_of_another(&id, &uid),
            Told::Ours => {
                self.cleared.push(id.clone());
                self.marked.push(id);
            }
            Told::Nothing => self.cleared.push(id),
        }
    }

    fn are_of_another(&mut self, id: &LoadBalancerId, uid: &str) {
        let others = self.balancers.extract_if(.., |balancer| balancer.id == *id);
        self.of_others.extend(others.map(|balancer| OfAnother {
            balancer,
            uid: uid.to_owned(),
        }));
    }

    /// Notes which floating IPs lead to a load balancer that goes.
    pub(crate) fn note_freed(&mut self, id: &LoadBalancerId) {
        let balancer = self.balancers.iter().find(|balancer| balancer.id == *id);
        let Some(port) = balancer.and_then(|balancer| balancer.vip_port_id.as_ref()) else {
            return;
        };
        let listed = self.floating_ips.iter().flat_map(|list| list.iter());
        let leading = listed.filter(|there| there.port_id.as_ref() == Some(port));
        self.freed.extend(leading.map(|there| there.id.clone()));
    }

    /// A load balancer is gone.
    pub(crate) fn is_gone(&mut self, id: &LoadBalancerId) {
        self.note_freed(id);
        self.balancers.retain(|balancer| balancer.id != *id);
        if !self.gone.contains(id) {
            self.gone.push(id.clone());
        }
        self.parts.remove(id);
    }
}

/// Whether Octavia is at work on a load balancer, so that it takes no change.
pub(crate) fn is_pending(balancer: &LoadBalancer) -> bool {
    matches!(
        balancer.provisioning_status,
        ProvisioningStatus::PendingCreate
            | ProvisioningStatus::PendingUpdate
            | ProvisioningStatus::PendingDelete
    )
}

#[cfg(test)]
mod tests {
    use serde::de::DeserializeOwned;
    use serde_json::{Value, json};

    use super::*;

    fn read<T: DeserializeOwned>(object: Value) -> T {
        serde_json::from_value(object).unwrap()
    }

    #[test]
    fn the_pool_of_a_listener_is_the_one_it_names_or_else_the_one_that_names_it() {
        let pool = |id: &str| json!({"id": id, "name": id, "protocol": "TCP", "lb_algorithm": "ROUND_ROBIN", "listeners": [{"id": "web"}]});
        let policies = json!([{"id": "by-host"}]);
        for (default, policies, expected) in [
            (json!("b"), json!([]), Some("b")),
            (json!("b"), policies.clone(), Some("b")),
            // As of a service that leaves the field out.
            (json!(null), json!([]), Some("a")),
            (json!(null), policies, None),
        ] {
            let listener = json!({"id": "web", "name": "web", "protocol": "TCP", "protocol_port": 80, "default_pool_id": default, "l7policies": policies});
            let parts = Parts {
                of: read(json!("lb")),
                listeners: vec![read(listener)],
                pools: vec![read(pool("a")), read(pool("b"))],
                members: BTreeMap::new(),
                monitors: None,
                unread: Unread::default(),
                is_predicted: false,
            };
            let found = parts.pool_of(&read(json!("web")));
            assert_eq!(found.map(|pool| pool.name.as_str()), expected);
        }
    }
}
