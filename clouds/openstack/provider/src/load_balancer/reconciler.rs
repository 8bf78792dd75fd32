//! Load balancers as the service controller wants them.

use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bowline_cloud_provider::orphans::{Found, OrphanFacts};
use bowline_cloud_provider::{
    AnnotationSpec, Asker, BackgroundWork, CloudError, Creation, Kept, LoadBalancer, LoadBalancerPlan, Node,
    ReconcileKind, Reconciler, RefusalBook, Service, ServiceFacts, ServiceKey, facts,
};
use bowline_openstack_client::{
    Client, Listener, LoadBalancer as OctaviaLoadBalancer, Member, OperatingStatus, Pool, Port,
};
use bowline_plan::{Ailment, EventSpec, Refusal, Shown};
use futures::future::BoxFuture;
use jiff::Timestamp;

use crate::config::LoadBalancerOptions;
use crate::load_balancer::annotations::{NODE_SELECTOR, annotation_table};
use crate::load_balancer::apply::port_groups::PortGroups;
use crate::load_balancer::apply::{self, LateCreations};
use crate::load_balancer::features::is_of_ovn;
use crate::load_balancer::intent::read::read;
use crate::load_balancer::intent::{Identity, Intent};
use crate::load_balancer::learn;
use crate::load_balancer::learned::{Learned, number};
use crate::load_balancer::members::{NodeFilter, server};
use crate::load_balancer::memory::{Memory, Remembered, Seen};
use crate::load_balancer::names;
use crate::load_balancer::observe::reads::Reads;
use crate::load_balancer::observed::{Observed, Parts};
use crate::load_balancer::orphans;
use crate::load_balancer::past::Past;
use crate::load_balancer::plan;
use crate::load_balancer::reaper::Reaper;
use crate::load_balancer::step::{CloudStep, GroupChange};
use crate::messages::EVENTS;
use crate::metrics::Metrics;

/// Who records what plans note, as the Go manager has it.
const EVENT_COMPONENT: &str = "cloud-provider-openstack";

/// The load balancers that a client reaches, and the work that removes what refused creations of them leave behind. Makes no call.
#[must_use]
pub fn load_balancers(
    client: Client,
    options: LoadBalancerOptions,
    metrics: Metrics,
) -> (Arc<dyn LoadBalancer>, Arc<dyn BackgroundWork>) {
    let balancers = Balancers::new(client, options, metrics);
    let reaper = Reaper {
        client: balancers.client.clone(),
        reads: Arc::clone(&balancers.reads),
    };
    (Arc::new(balancers), Arc::new(reaper))
}

/// The load balancers of a project.
pub(crate) struct Balancers {
    client: Client,
    reads: Arc<Reads>,
    options: Arc<LoadBalancerOptions>,
    refusals: RefusalBook<CloudStep>,
    /// What is kept of the reconciles of a Service, by its UID.
    past: Kept<String, Past>,
    /// The creations of load balancers whose answers were lost. Without it, another one would be asked for before the first one shows.
    late_creations: LateCreations,
    port_groups: PortGroups,
    /// When the first Service was looked at.
    begun: OnceLock<Timestamp>,
    metrics: Metrics,
}

impl Balancers {
    /// Which Nodes a Service takes for members.
    fn node_filter(&self, service: &Service) -> NodeFilter {
        let annotated = facts::annotation(service, NODE_SELECTOR.key);
        NodeFilter::parse(annotated.unwrap_or(&self.options.node_selector))
    }

    fn new(client: Client, options: LoadBalancerOptions, metrics: Metrics) -> Self {
        Self {
            reads: Arc::new(Reads::new(&client, plan::needs)),
            client,
            options: Arc::new(options),
            refusals: RefusalBook::default(),
            past: Kept::default(),
            late_creations: LateCreations::default(),
            port_groups: PortGroups::default(),
            begun: OnceLock::new(),
            metrics,
        }
    }

    fn past<R>(&self, intent: &Intent, act: impl FnOnce(&mut Past) -> R) -> R {
        self.past.with(&intent.identity().uid, |kept| {
            let result = act(kept.get_or_insert_default());
            kept.take_if(|past| past.is_empty());
            result
        })
    }
}

impl Reconciler for Balancers {
    type Facts = ServiceFacts;
    type Intent = Intent;
    type Observed = Observed;
    type Remembered = Remembered;
    type Step = CloudStep;
    /// With the time that a change is given from now on before it is looked at.
    type Learned = (Learned, Duration);

    fn intent(&self, facts: &ServiceFacts) -> Result<Intent, Refusal> {
        self.begun.get_or_init(|| facts.now);
        read(&self.options, facts)
    }

    async fn observe(
        &self,
        intent: &Intent,
        last: Option<Observed>,
        memory: &mut Memory,
    ) -> Result<Observed, CloudError> {
        match last {
            None => {
                let Identity { name, created, .. } = intent.identity();
                memory.own.is_creation_late = self.late_creations.may_come(name);
                memory.own.is_older =
                    created.is_some_and(|created| self.begun.get().is_some_and(|begun| created <= *begun));
                self.past(intent, |past| past.recall(memory));
                let observed = self.reads.all(intent, memory).await?;
                self.past(intent, |past| past.note_failed(&observed, memory, true));
                Ok(observed)
            }
            Some(last) => self.reads.again(intent, last, memory).await,
        }
    }

    async fn verify(
        &self,
        intent: &Intent,
        last: Observed,
        memory: &mut Memory,
    ) -> Result<Observed, CloudError> {
        let observed = self.reads.after_writes(intent, last, memory).await?;
        self.past(intent, |past| past.note_failed(&observed, memory, false));
        Ok(observed)
    }

    fn plan(&self, intent: &Intent, seen: &Seen) -> LoadBalancerPlan<CloudStep> {
        plan::plan(intent, seen)
    }

    fn queued(&self, step: &CloudStep) -> Option<Box<dyn Send>> {
        match step {
            CloudStep::Group(change) => self.port_groups.queued(change),
            _ => None,
        }
    }

    async fn apply(
        &self,
        intent: &Intent,
        seen: &Seen,
        step: &CloudStep,
    ) -> Result<(Learned, Duration), CloudError> {
        let balancer = step.balancer();
        if let Some(id) = balancer {
            let is_of_part = matches!(step, CloudStep::Part { .. });
            if !self.reads.under_way.begin(id, &intent.identity().uid, is_of_part) {
                return Ok((Learned::Busy, self.reads.under_way.pause()));
            }
        }
        let (groups, late) = (&self.port_groups, &self.late_creations);
        let made = apply::apply(&self.client, groups, late, intent.settings(), step).await;
        if let Some(id) = balancer {
            match &made {
                Ok(Learned::Done(_)) => self.reads.under_way.answered(id),
                _ => self.reads.under_way.withdrawn(id),
            }
        }
        let mut learned = made?;
        if let Learned::Conflict { is_refusal, .. } = &mut learned {
            let at_rest = &seen.memory.own.at_rest;
            *is_refusal = at_rest.is_refusal(|known| known.asks_the_same(step));
        }
        let is_wanted = matches!(intent, Intent::Wanted(_));
        self.past(intent, |past| past.written(is_wanted, seen, step, &mut learned));
        if let (CloudStep::Group(change), Learned::Done(shown)) = (step, &learned) {
            let Identity { uid, service, .. } = intent.identity();
            let is_new = matches!(change, GroupChange::Create { .. });
            let made = &self.reads.made_groups;
            made.change(&names::security_group(uid, service), is_new, |groups| {
                learn::of_groups(groups, change, shown.as_deref());
            });
        }
        Ok((learned, self.reads.under_way.pause()))
    }

    fn settled(&self, intent: &Intent) {
        self.past(intent, Past::settled);
    }

    fn ailments(&self, intent: &Intent, observed: &Observed) -> Vec<Ailment> {
        let parts = || observed.parts.values();
        let members = |pool: &Pool| parts().find_map(|parts| parts.members.get(&pool.id));
        let listeners = || parts().flat_map(|parts| &parts.listeners);
        let own = of_service(intent, observed);
        let leads_to = |listener: &Listener, pool: &Pool| listener.default_pool_id.as_ref() == Some(&pool.id);
        let of_pool = |pool: &&Pool| {
            if let Some(off) = switched_off("pool", &pool.name, pool.admin_state_up) {
                return Some(off);
            }
            let all = members(pool).filter(|_| pool.healthmonitor_id.is_some());
            let all = all.map_or(&[][..], Vec::as_slice);
            let down = all.iter().filter(|it| is_down(it, pool, observed));
            let down = down.map(|it| {
                let status = it.operating_status.to_string();
                Ailment::member(&it.name, &it.address, it.protocol_port, &status)
            });
            let named = Ailment::of_members(&pool.name, &down.collect::<Vec<_>>(), all.len());
            let (words, is_total) = match pool.operating_status {
                OperatingStatus::Error => ("no member answers", true),
                OperatingStatus::Degraded => ("some members do not answer", false),
                // The members may be ahead of their pool.
                _ => return named,
            };
            // Octavia may say of a pool what it does not say of its members yet.
            let named = named.filter(|it| it.is_total == is_total);
            named.or_else(|| Some(Ailment::new(format!("pool {}: {words}", pool.name), is_total, "")))
        };
        let balancer = used(intent, observed)
            .and_then(|it| switched_off("load balancer", it.id.as_str(), it.admin_state_up));
        let of_listeners = listeners()
            .filter(|it| own.iter().any(|pool| leads_to(it, pool)))
            .filter_map(|it| switched_off("listener", &it.name, it.admin_state_up));
        let of_pools = own.iter().filter_map(of_pool);
        let weightless = own
            .iter()
            .filter_map(|pool| without_weight(intent, pool, members(pool)?));
        let of_nodes = match intent {
            Intent::Wanted(wanted) if !wanted.nodes.is_empty() => Some(wanted),
            _ => None,
        };
        let empty = of_nodes.into_iter().flat_map(|wanted| {
            let has_node_ports = wanted.ports.iter().all(|it| it.node_port.is_some());
            let empty = own.iter().filter(|pool| members(pool).is_some_and(Vec::is_empty));
            empty.map(move |pool| Ailment::of_empty_pool(&pool.name, has_node_ports))
        });
        let lost = own
            .iter()
            .filter(|pool| !listeners().any(|it| leads_to(it, pool)))
            .map(|pool| Ailment::leads_nowhere(format!("pool {}: no listener leads to it", pool.name)));
        let of_pools = of_pools.chain(weightless).chain(empty).chain(lost);
        let cut_off = without_group(
            intent,
            observed,
            own.iter().copied().filter_map(members).flatten(),
        );
        balancer
            .into_iter()
            .chain(of_listeners)
            .chain(of_pools)
            .chain(cut_off)
            .collect()
    }

    fn shown(&self, intent: &Intent, observed: &Observed) -> Shown {
        let mut shown = Shown {
            zone: used(intent, observed).and_then(|it| it.availability_zone.clone()),
            members: Vec::new(),
        };
        add_members(&mut shown, &of_service(intent, observed), observed);
        shown
    }

    fn book(&self, facts: &ServiceFacts) -> Option<(&RefusalBook<CloudStep>, Asker)> {
        Some((&self.refusals, Asker::of(facts, annotation_table())))
    }

    fn creation(&self, step: &CloudStep) -> Option<Creation> {
        step.creation()
    }

    fn shows(&self, observed: &Observed, made: u128) -> bool {
        observed.balancers.iter().any(|it| number(&it.id) == Some(made))
    }

    fn is_same_request(&self, a: &CloudStep, b: &CloudStep) -> bool {
        a.asks_the_same(b)
    }

    fn learn(&self, seen: &mut Seen, step: &CloudStep, (learned, pause): (Learned, Duration)) {
        learn::learn(seen, step, learned);
        seen.memory.own.change_pause = pause;
    }

    fn predict(&self, seen: &mut Seen, step: &CloudStep) {
        learn::predict(seen, step);
    }
}

/// What to do about members that somebody took the weight of.
const SET_BACK: &str = "whoever set it sets it back, because the manager leaves what a person set on a member: openstack loadbalancer member set --weight 1 --enable POOL MEMBER";

/// What to do about what is switched off.
const SWITCH_ON: &str = "whoever switched it off switches it on again: openstack loadbalancer set --enable, openstack loadbalancer listener set --enable or openstack loadbalancer pool set --enable";

fn switched_off(what: &str, name: &str, is_up: Option<bool>) -> Option<Ailment> {
    let text = format!("{what} {name}: it is switched off (admin_state_up)");
    (is_up == Some(false)).then(|| Ailment::new(text, true, SWITCH_ON))
}

/// Whether a person or a drain took all new connections from a member.
fn is_off(member: &Member) -> bool {
    member.settings.weight == Some(0) || member.settings.admin_state_up == Some(false)
}

/// Whether a health monitor says that a member does not answer. OVN says `OFFLINE` of one whose port was taken off its server
/// (`hm_update_event` in `helper.py` of ovn-octavia-provider), and counts it among those that are well in the status of its pool;
/// elsewhere that is one that was not probed yet.
fn is_down(member: &Member, pool: &Pool, observed: &Observed) -> bool {
    match member.operating_status {
        OperatingStatus::Error => true,
        OperatingStatus::Offline if !is_off(member) => {
            let is_its = |of: &&OctaviaLoadBalancer| {
                let parts = observed.parts.get(&of.id);
                parts.is_some_and(|parts| parts.pools.iter().any(|it| it.id == pool.id))
            };
            observed.balancers.iter().find(is_its).is_some_and(is_of_ovn)
        }
        _ => false,
    }
}

/// Members whose ports lack the Service's security group: nothing gets to them, although the step that gives it has no impact.
fn without_group<'a>(
    intent: &Intent,
    observed: &Observed,
    members: impl Iterator<Item = &'a Member>,
) -> Option<Ailment> {
    let Intent::Wanted(wanted) = intent else {
        return None;
    };
    let is_managed = wanted.identity.options.manages_security_groups;
    let groups = observed.groups.as_ref().filter(|_| is_managed)?;
    let (group, ports) = (groups.first()?, observed.ports.as_ref()?);
    let lacks = |port: &Port, address: &str| {
        port.port_security_enabled != Some(false)
            && port.fixed_ips.iter().any(|it| it.ip_address == address)
            && !groups.iter().any(|it| port.security_groups.contains(&it.id))
    };
    let (mut all, mut cut_off) = (BTreeSet::new(), BTreeSet::new());
    for member in members {
        let has_address = |node: &&Node| node.addresses.iter().any(|it| it.address == member.address);
        let Some(node) = wanted.nodes.iter().map(|it| &**it).find(has_address) else {
            continue;
        };
        let Some(server) = server(node) else { continue };
        all.insert(node.name.as_str());
        let mut own = ports.iter().filter(|it| it.device_id == server.as_str());
        if own.any(|port| lacks(port, &member.address)) {
            cut_off.insert(node.name.as_str());
        }
    }
    (!cut_off.is_empty()).then(|| Ailment {
        is_total: cut_off.len() == all.len(),
        ..Ailment::leads_nowhere(format!(
            "Nodes are cut off: their ports lack the security group {}, which lets the load balancer in: {}",
            group.id,
            cut_off.into_iter().collect::<Vec<_>>().join(", ")
        ))
    })
}

/// Members that a person took the weight of: no new connection goes there. Those of Nodes that are about to go have it from Bowline.
fn without_weight(intent: &Intent, pool: &Pool, members: &[Member]) -> Option<Ailment> {
    let Intent::Wanted(wanted) = intent else {
        return None;
    };
    let is_draining = |member: &Member| {
        let mut nodes = wanted.all_nodes.iter();
        nodes.any(|node| {
            node.draining.is_some() && node.addresses.iter().any(|it| it.address == member.address)
        })
    };
    let off = members.iter().filter(|it| is_off(it) && !is_draining(it));
    let why = "weight 0 or switched off";
    let off = off.map(|it| Ailment::member(&it.name, &it.address, it.protocol_port, why));
    let off: Vec<String> = off.collect();
    let (count, of) = (off.len(), members.len());
    (count > 0).then(|| {
        let text = format!(
            "pool {}: {count} of {of} members get no new connections, as somebody set them: {}",
            pool.name,
            off.join(", ")
        );
        Ailment::new(text, count == of, SET_BACK)
    })
}

/// Adds the members of the Service's pools, with the load balancer of each where it has pools on several: these have the same names.
fn add_members(shown: &mut Shown, own: &[&Pool], observed: &Observed) {
    let all = || observed.parts.values();
    let has_own = |parts: &&Parts| parts.pools.iter().any(|pool| own.contains(&pool));
    let is_one = all().filter(has_own).count() < 2;
    for (parts, pool) in all().flat_map(|parts| parts.pools.iter().map(move |pool| (parts, pool))) {
        if !own.contains(&pool) {
            continue;
        }
        let name = match is_one {
            true => format!("pool {}", pool.name),
            false => format!("pool {} of load balancer {}", pool.name, parts.of),
        };
        let state = |member: &Member| match member.operating_status {
            _ if is_off(member) => "(gets no new connections)",
            // A pool that nobody probes is `ONLINE` all the same.
            _ if pool.healthmonitor_id.is_none() => "",
            OperatingStatus::Online => "(answers)",
            _ if is_down(member, pool, observed) => "(does not answer)",
            _ => "(health not known)",
        };
        match parts.members.get(&pool.id) {
            None if !pool.members.is_empty() => shown
                .members
                .push(format!("members of {name}: {} (not read)", pool.members.len())),
            read => {
                let members = read.into_iter().flatten();
                let members = members.map(|member| (member.name.as_str(), state(member)));
                shown.add_members(&name, members);
            }
        }
        if pool.healthmonitor_id.is_none() {
            shown.members.push(format!(
                "{name} has no health monitor, so nobody knows whether its members answer: see create-monitor of cloud.conf"
            ));
        }
    }
}

/// The load balancer that the Service uses.
fn used<'a>(intent: &Intent, observed: &'a Observed) -> Option<&'a OctaviaLoadBalancer> {
    let mut balancers = observed.balancers.iter();
    balancers.find(|there| intent.identity().annotated.as_ref() == Some(&there.id))
}

/// The Service's pools: several Services may share a load balancer.
fn of_service<'a>(intent: &Intent, observed: &'a Observed) -> Vec<&'a Pool> {
    let Identity { name, service, .. } = intent.identity();
    let pools = observed.parts.values().flat_map(|parts| &parts.pools);
    let is_own = |pool: &&Pool| {
        names::is_pool_of(&pool.name, name) || names::mark_on_pool(&pool.description, service).is_some()
    };
    pools.filter(is_own).collect()
}

impl LoadBalancer for Balancers {
    fn annotations(&self) -> &'static [AnnotationSpec] {
        annotation_table()
    }

    fn event(&self, reason: &str) -> Option<&'static EventSpec> {
        EVENTS.iter().find(|it| it.reason == reason)
    }

    fn room_was_made(&self) {
        self.refusals.room_was_made();
    }

    fn marked<'a>(&'a self, facts: &'a OrphanFacts) -> BoxFuture<'a, Result<Vec<Found>, CloudError>> {
        Box::pin(orphans::marked(&self.client, &self.options, facts))
    }

    fn takes_addresses(&self) -> bool {
        true
    }

    fn keeps_drained(&self) -> bool {
        true
    }

    fn event_component(&self) -> Option<&'static str> {
        Some(EVENT_COMPONENT)
    }

    fn load_balancer_name(&self, facts: &ServiceFacts) -> String {
        names::balancer(&facts.cluster.name, &facts.key())
    }

    fn reconciled(&self, _: &ServiceKey, kind: ReconcileKind, took: Duration, has_failed: bool) {
        self.metrics.reconciled(kind, took, has_failed);
    }

    fn selects_nodes_by_label(&self, service: &Service) -> bool {
        !self.node_filter(service).is_empty()
    }

    fn selects(&self, service: &Service, node: &Node) -> bool {
        self.node_filter(service).matches(node)
    }
}

#[cfg(test)]
mod tests {
    use bowline_openstack_client::{LoadBalancerId, Reference};
    use serde_json::json;

    use super::*;

    #[test]
    fn each_pool_is_shown_with_its_load_balancer_and_members_that_were_not_read_are_counted() {
        let pool = |id: &str| -> Pool {
            serde_json::from_value(json!({
                "id": id, "name": "pool_0_web", "protocol": "TCP", "healthmonitor_id": "m",
            }))
            .unwrap()
        };
        let parts = |of: &str, pool: Pool| {
            let mut parts = Parts::none(of.into());
            parts.pools.push(pool);
            (of.into(), parts)
        };
        let mut unread = pool("b");
        unread.members = vec![Reference { id: "one".into() }, Reference { id: "two".into() }];
        let mut observed = Observed {
            parts: [parts("lb-1", pool("a")), parts("lb-2", unread)].into(),
            ..Observed::default()
        };
        let shown = |observed: &Observed| {
            let own: Vec<&Pool> = observed.parts.values().flat_map(|parts| &parts.pools).collect();
            let mut shown = Shown::default();
            add_members(&mut shown, &own, observed);
            shown.members
        };
        assert_eq!(
            shown(&observed),
            [
                "members of pool pool_0_web of load balancer lb-1: none",
                "members of pool pool_0_web of load balancer lb-2: 2 (not read)",
            ]
        );
        observed.parts.remove(&LoadBalancerId::from("lb-2"));
        assert_eq!(shown(&observed), ["members of pool pool_0_web: none"]);
    }
}
