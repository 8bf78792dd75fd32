//! Load balancers as the service controller wants them.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bowline_cloud_provider::orphans::{Found, OrphanFacts};
use bowline_cloud_provider::{
    AnnotationSpec, Asker, BackgroundWork, CloudError, Kept, LoadBalancer, LoadBalancerPlan, Node,
    ReconcileKind, Reconciler, RefusalBook, Service, ServiceFacts, ServiceKey, facts,
};
use bowline_openstack_client::{Client, Member, OperatingStatus, Pool, PoolId};
use bowline_plan::{Ailment, EventSpec, Refusal, Shown};
use futures::future::BoxFuture;
use jiff::Timestamp;

use crate::config::LoadBalancerOptions;
use crate::load_balancer::annotations::{NODE_SELECTOR, annotation_table};
use crate::load_balancer::apply::{self, LateCreations, PortGroups};
use crate::load_balancer::intent::read::read;
use crate::load_balancer::intent::{Identity, Intent};
use crate::load_balancer::learn;
use crate::load_balancer::learned::Learned;
use crate::load_balancer::members::NodeFilter;
use crate::load_balancer::memory::{Memory, Remembered, Seen};
use crate::load_balancer::names;
use crate::load_balancer::observe::reads::Reads;
use crate::load_balancer::observed::Observed;
use crate::load_balancer::orphans;
use crate::load_balancer::past::Past;
use crate::load_balancer::plan;
use crate::load_balancer::plan::next::Next;
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
    /// The groups of ports as this process wrote them last. Without it, of several Services that read a port together all but one
    /// would read it again before they write.
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

    fn follow(&self, intent: &Intent, seen: &Seen, _: &Refusal) -> Option<Next> {
        plan::follow(intent, seen)
    }

    fn ailments(&self, intent: &Intent, observed: &Observed) -> Vec<Ailment> {
        let identity = intent.identity();
        let members = |pool: &Pool| {
            let mut all = observed.parts.values().map(|parts| &parts.members);
            all.find_map(|of| of.get(&pool.id))
        };
        let of_pool = |pool: &Pool| {
            let all = members(pool).filter(|_| pool.healthmonitor_id.is_some());
            let down = all
                .into_iter()
                .flatten()
                .filter(|it| it.operating_status == OperatingStatus::Error);
            let down = down.map(|it| Ailment::member(&it.name, &it.address, it.protocol_port, "ERROR"));
            let of_members =
                || Ailment::of_members(&pool.name, &down.collect::<Vec<_>>(), all.map_or(0, Vec::len));
            let (words, is_total, remedy) = match pool.operating_status {
                _ if pool.admin_state_up == Some(false) => {
                    ("it is switched off (admin_state_up)", true, SWITCH_ON)
                }
                OperatingStatus::Error => ("no member answers", true, ""),
                OperatingStatus::Degraded => ("some members do not answer", false, ""),
                // The members may be ahead of their pool.
                _ => return of_members(),
            };
            // Octavia may say of a pool what it does not say of its members yet.
            if let Some(named) = of_members().filter(|it| remedy.is_empty() && it.is_total == is_total) {
                return Some(named);
            }
            let text = format!("pool {}: {words}", pool.name);
            Some(Ailment {
                text,
                is_total,
                remedy,
                is_of_making: false,
            })
        };
        let pools = observed.parts.values().flat_map(|parts| &parts.pools);
        let own: Vec<&Pool> = pools.filter(|pool| is_of_service(identity, pool)).collect();
        let is_own = |id: &PoolId| own.iter().any(|pool| pool.id == *id);
        let listeners = observed.parts.values().flat_map(|parts| &parts.listeners);
        let listeners = listeners.filter(|it| it.default_pool_id.as_ref().is_some_and(is_own));
        let of_listeners = listeners.filter(|it| it.admin_state_up == Some(false));
        let of_listeners = of_listeners.map(|it| Ailment {
            text: format!("listener {}: it is switched off (admin_state_up)", it.name),
            is_total: true,
            remedy: SWITCH_ON,
            is_of_making: false,
        });
        let of_pools = own.iter().copied().filter_map(of_pool);
        let weightless = |pool: &&Pool| without_weight(intent, pool, members(pool)?);
        let of_pools = of_pools.chain(own.iter().filter_map(weightless));
        let mut balancers = observed.balancers.iter();
        let used = balancers.find(|there| identity.annotated.as_ref() == Some(&there.id));
        let off = used.filter(|there| there.admin_state_up == Some(false));
        let off = off.map(|there| Ailment {
            text: format!("load balancer {}: it is switched off (admin_state_up)", there.id),
            is_total: true,
            remedy: SWITCH_ON,
            is_of_making: false,
        });
        let has_nodes = matches!(intent, Intent::Wanted(wanted) if !wanted.nodes.is_empty());
        let empty = own
            .iter()
            .filter(|pool| has_nodes && members(pool).is_some_and(Vec::is_empty));
        let empty =
            empty.map(|pool| Ailment::leads_nowhere(format!("pool {}: it has no members", pool.name)));
        let is_reached = |pool: &&&Pool| {
            let mut all = observed.parts.values().flat_map(|parts| &parts.listeners);
            all.any(|it| it.default_pool_id.as_ref() == Some(&pool.id))
        };
        let lost = own.iter().filter(|pool| !is_reached(pool));
        let lost =
            lost.map(|pool| Ailment::leads_nowhere(format!("pool {}: no listener leads to it", pool.name)));
        let of_pools = of_pools.chain(empty).chain(lost);
        off.into_iter().chain(of_listeners).chain(of_pools).collect()
    }

    fn shown(&self, intent: &Intent, observed: &Observed) -> Shown {
        let identity = intent.identity();
        let mut balancers = observed.balancers.iter();
        let used = balancers.find(|there| identity.annotated.as_ref() == Some(&there.id));
        let mut shown = Shown {
            zone: used.and_then(|it| it.availability_zone.clone()),
            members: Vec::new(),
        };
        for parts in observed.parts.values() {
            for pool in parts.pools.iter().filter(|pool| is_of_service(identity, pool)) {
                let state = |member: &Member| match member.operating_status {
                    // A pool that nobody probes is `ONLINE` all the same.
                    _ if pool.healthmonitor_id.is_none() => "",
                    OperatingStatus::Online => "(answers)",
                    OperatingStatus::Error => "(does not answer)",
                    _ => "(health not known)",
                };
                let members = parts.members.get(&pool.id).into_iter().flatten();
                let members = members.map(|member| (member.name.as_str(), state(member)));
                shown.add_members(&format!("pool {}", pool.name), members);
                if pool.healthmonitor_id.is_none() {
                    shown.members.push(format!(
                        "pool {} has no health monitor, so nobody knows whether its members answer: see create-monitor of cloud.conf",
                        pool.name
                    ));
                }
            }
        }
        shown
    }

    fn book(&self, facts: &ServiceFacts) -> Option<(&RefusalBook<CloudStep>, Asker)> {
        Some((&self.refusals, Asker::of(facts, annotation_table())))
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

/// What to do about what is switched off.
const SWITCH_ON: &str = "whoever switched it off switches it on again: openstack loadbalancer set --enable, openstack loadbalancer listener set --enable or openstack loadbalancer pool set --enable";

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
    let is_off = |it: &&Member| it.settings.weight == Some(0) || it.settings.admin_state_up == Some(false);
    let off = members.iter().filter(|it| is_off(it) && !is_draining(it));
    let off = off.map(|it| {
        Ailment::member(
            &it.name,
            &it.address,
            it.protocol_port,
            "weight 0 or switched off",
        )
    });
    let off: Vec<String> = off.collect();
    (!off.is_empty()).then(|| Ailment {
        text: format!(
            "pool {}: {} of {} members get no new connections, as somebody set them: {}",
            pool.name,
            off.len(),
            members.len(),
            off.join(", ")
        ),
        is_total: off.len() == members.len(),
        remedy: "whoever set it sets it back, because the manager leaves what a person set on a member: openstack loadbalancer member set --weight 1 --enable POOL MEMBER",
        is_of_making: false,
    })
}

/// Whether a pool is the Service's: several may share a load balancer.
fn is_of_service(identity: &Identity, pool: &Pool) -> bool {
    names::is_pool_of(&pool.name, &identity.name)
        || names::mark_on_pool(&pool.description, &identity.service).is_some()
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
