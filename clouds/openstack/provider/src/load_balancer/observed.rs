//! What the cloud says about one Service's load balancer, as far as it was asked.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bowline_openstack_client::{
    FloatingIp, FloatingIpId, Listener, ListenerId, LoadBalancer, LoadBalancerId, Member, Monitor, MonitorId,
    Network, Pool, PoolId, Port, PortId, ProvisioningStatus, SecurityGroup, Subnet,
};

use crate::load_balancer::features::Features;
use crate::load_balancer::intent::TlsKey;

/// What the ids begin with that are made up.
pub(crate) const PLANNED: &str = "planned-";

/// One observation. What is `None` was not asked for: a plan asks its `View`.
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
    /// Ports that were asked for one by one, and whether they are there.
    pub(crate) asked_ports: BTreeMap<PortId, bool>,
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

    /// The monitor of a pool, if it was read.
    pub(crate) fn monitor_of(&self, pool: &Pool) -> Option<&Monitor> {
        self.monitors.as_ref()?.get(pool.healthmonitor_id.as_ref()?)
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

    /// A load balancer that the list did not show is there.
    pub(crate) fn adopt(&mut self, balancer: LoadBalancer, is_candidate: bool) {
        if is_candidate {
            self.balancers.push(balancer.clone());
        }
        Arc::make_mut(self.listed.get_or_insert_default()).push(balancer);
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

/// Since when Octavia is at work on it, in words with a separator behind them; empty if it is not, or does not tell.
pub(crate) fn since(balancer: &LoadBalancer) -> String {
    let changed = balancer.updated_at.as_ref().or(balancer.created_at.as_ref());
    let since = changed.filter(|_| is_pending(balancer));
    since.map_or(String::new(), |it| {
        format!("since {} UTC; ", it.trim_end_matches('Z'))
    })
}

/// A load balancer that bears the Service's name or tag, and serves another Service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OfAnother {
    pub(crate) balancer: LoadBalancer,
    /// The UID of that Service.
    pub(crate) uid: String,
}

/// What the pools of a load balancer tell of whose it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Told {
    /// They serve another Service, of this UID, and not this one.
    OfAnother(String),
    /// They were all made for this very Service.
    Ours,
    /// Nothing, or that Services of several UIDs had it.
    Nothing,
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
