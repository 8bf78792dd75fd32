//! Load balancers as the service controller wants them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bowline_cloud_provider::orphans::{Found, OrphanFacts};
use bowline_cloud_provider::{
    AnnotationSpec, Asker, BackgroundWork, CloudError, Kept, LoadBalancer, LoadBalancerPlan, ReconcileKind,
    Reconciler, RefusalBook, Service, ServiceFacts, ServiceKey, facts,
};
use bowline_openstack_client::{Client, Member, OperatingStatus, Pool, PoolId, ProvisioningStatus};
use bowline_plan::{Ailment, EventSpec, Refusal, Shown};
use futures::future::BoxFuture;
use jiff::Timestamp;
use tokio::time::Instant;

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
use crate::load_balancer::observed::{Observed, Parts};
use crate::load_balancer::orphans;
use crate::load_balancer::plan;
use crate::load_balancer::plan::next::Next;
use crate::load_balancer::reaper::Reaper;
use crate::load_balancer::remedies::About;
use crate::load_balancer::step::{CloudStep, GroupChange, PartChange};
use crate::messages::EVENTS;
use crate::metrics::Metrics;

/// Who records what plans note, as the Go manager has it.
const EVENT_COMPONENT: &str = "cloud-provider-openstack";

/// The time between two load balancers of a Service that are made because the one before failed.
const BETWEEN_REPAIRS: Duration = Duration::from_secs(3600);

/// How long a part that failed is left before it is written once more. A failed change often means that an amphora does not answer:
/// Octavia replaces it within seconds, but not while another change is under way, and one that meets such an amphora takes minutes.
const BEFORE_REWRITE: Duration = Duration::from_secs(60);

/// The longest time between two looks at a part that fails again and again.
const BETWEEN_REWRITES: Duration = Duration::from_secs(10 * 60);

/// The time between two tries to put something in the place of what has to go first: the longest pause between two tries of what was refused.
const BETWEEN_REPLACEMENTS: Duration = Duration::from_secs(30 * 60);

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
    /// Since when parts that failed by themselves are seen so, by the UID of the Service and the id of the part. Without it, Bowline
    /// would write to a load balancer that Octavia is about to repair.
    failed_parts: Kept<String, BTreeMap<String, Failed>>,
    /// When a load balancer that served and failed was deleted, by the UID of the Service. Without it, a cloud that cannot keep
    /// one up would be asked for one after the other.
    repairs: Kept<String, Instant>,
    /// The creations of load balancers whose answers were lost. Without it, another one would be asked for before the first one shows.
    late_creations: LateCreations,
    /// The UIDs of Services whose load balancer was refused with all its parts, and perhaps for one of these. Without it, that would be
    /// tried again, and leave a port.
    doubtful_trees: Kept<String, ()>,
    /// What made way for something else and was not settled since, by the UID of the Service. Without it, what made way for what is
    /// refused would not come back, and would go again soon.
    replaced: Kept<String, Replaced>,
    /// The groups of ports as this process wrote them last. Without it, of several Services that read a port together all but one
    /// would read it again before they write.
    port_groups: PortGroups,
    /// When the first Service was looked at.
    begun: OnceLock<Timestamp>,
    metrics: Metrics,
}

/// A part that failed.
#[derive(Clone, Copy)]
struct Failed {
    /// Since when it is seen so, or since it was written for that.
    since: Instant,
    /// How often it was written for that.
    rewritten: u32,
}

impl Failed {
    /// How long it is left alone from now on, before it is looked at for its own sake.
    fn rest(self) -> Duration {
        let pause = BEFORE_REWRITE.saturating_mul(1 << self.rewritten.min(8));
        pause.min(BETWEEN_REWRITES).saturating_sub(self.since.elapsed())
    }
}

/// What was deleted because something else was to have its place.
#[derive(Default)]
struct Replaced {
    /// The creations that make it as it was.
    made_way: Vec<PartChange>,
    /// What was to have its place and was refused, and when.
    refused: Vec<(Instant, CloudStep, Refusal)>,
}

impl Replaced {
    /// A step was written.
    fn written(&mut self, seen: &Seen, step: &CloudStep, learned: &mut Learned) {
        let CloudStep::Part { balancer, change } = step else {
            return;
        };
        let has_place = |before: &PartChange| before.has_place_of(change);
        match learned {
            Learned::Done(_) => {
                self.made_way.retain(|before| !has_place(before));
                self.made_way.extend(learn::as_it_was(seen, balancer, change));
            }
            Learned::Refused(why) if self.made_way.iter().any(has_place) => {
                why.is_limit = false; // there was room for what comes back
                why.reason.push_str("; what was deleted for it is made again as it was, and the change is tried again after half an hour, or when the Service asks for another one");
                self.refused.push((Instant::now(), step.clone(), why.clone()));
            }
            _ => {}
        }
    }
}

impl Balancers {
    fn new(client: Client, options: LoadBalancerOptions, metrics: Metrics) -> Self {
        Self {
            reads: Arc::new(Reads::new(&client, plan::needs)),
            client,
            options: Arc::new(options),
            refusals: RefusalBook::default(),
            failed_parts: Kept::default(),
            repairs: Kept::default(),
            late_creations: LateCreations::default(),
            doubtful_trees: Kept::default(),
            replaced: Kept::default(),
            port_groups: PortGroups::default(),
            begun: OnceLock::new(),
            metrics,
        }
    }

    /// Keeps which parts failed, and says when they are to be looked at again. At the first look of a reconcile, those that stay so are
    /// due to be written once more: seen at a look at least [`BEFORE_REWRITE`] before this one, or since they were written for that.
    fn note_failed(&self, uid: &String, observed: &Observed, memory: &mut Memory, is_first: bool) {
        if observed.parts.is_empty() {
            return; // what is not known does not change
        }
        let balancers = observed.balancers.iter();
        let at_rest = balancers.filter(|there| there.provisioning_status == ProvisioningStatus::Active);
        let parts = at_rest.filter_map(|there| observed.parts.get(&there.id));
        let failed: BTreeSet<String> = parts.flat_map(Parts::failed).collect();
        let own = &mut memory.own;
        self.failed_parts.with(uid, |kept| {
            let known = kept.get_or_insert_default();
            known.retain(|id, _| failed.contains(id));
            let since = Instant::now();
            for id in failed {
                let rewritten = 0;
                let one = known.entry(id.clone()).or_insert(Failed { since, rewritten });
                if is_first && one.since.elapsed() >= BEFORE_REWRITE {
                    let rewritten = one.rewritten.saturating_add(1);
                    *one = Failed { since, rewritten };
                    own.stuck.insert(id);
                }
            }
            own.mend_after = known.values().map(|one| one.rest()).min();
            kept.take_if(|known| known.is_empty());
        });
    }

    /// What a reconcile has to know of what made way before: what was refused in its place is not tried for a while, because the place
    /// is empty meanwhile.
    fn recall_replaced(&self, uid: &String, memory: &mut Memory) {
        self.replaced.with(uid, |kept| {
            let Some(kept) = kept else { return };
            memory.own.made_way.clone_from(&kept.made_way);
            kept.refused
                .retain(|(since, ..)| since.elapsed() < BETWEEN_REPLACEMENTS);
            for (_, step, why) in &kept.refused {
                memory.refusals.hold(step.clone(), why.clone());
            }
        });
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
                let uid = &intent.identity().uid;
                memory.own.may_repair = self.repairs.with(uid, |last| {
                    last.is_none_or(|last| last.elapsed() >= BETWEEN_REPAIRS)
                });
                memory.own.is_creation_late = self.late_creations.may_come(&intent.identity().name);
                let created = intent.identity().created;
                memory.own.is_older =
                    created.is_some_and(|created| self.begun.get().is_some_and(|begun| created <= *begun));
                memory.own.is_tree_doubtful = self.doubtful_trees.with(uid, |kept| kept.is_some());
                self.recall_replaced(uid, memory);
                let observed = self.reads.all(intent, memory).await?;
                self.note_failed(uid, &observed, memory, true);
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
        self.note_failed(&intent.identity().uid, &observed, memory, false);
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
        if let (CloudStep::CreateBalancer { .. }, Ok(Learned::Refused(why))) = (step, &made)
            && About::of(why) == About::Parts
        {
            self.doubtful_trees
                .with(&intent.identity().uid, |kept| *kept = Some(()));
        }
        let mut learned = made?;
        if let (Intent::Wanted(_), CloudStep::Part { .. }) = (intent, step) {
            self.replaced.with(&intent.identity().uid, |kept| {
                kept.get_or_insert_default().written(seen, step, &mut learned);
                kept.take_if(|kept| kept.made_way.is_empty() && kept.refused.is_empty());
            });
        }
        if let (CloudStep::Group(change), Learned::Done(shown)) = (step, &learned) {
            let Identity { uid, service, .. } = intent.identity();
            let is_new = matches!(change, GroupChange::Create { .. });
            let made = &self.reads.made_groups;
            made.change(&names::security_group(uid, service), is_new, |groups| {
                learn::of_groups(groups, change, shown.as_deref());
            });
        }
        let is_repair = matches!(step, CloudStep::DeleteBalancer { is_live: true, .. });
        if let (Intent::Wanted(_), true) = (intent, is_repair) {
            let now = Some(Instant::now());
            self.repairs.with(&intent.identity().uid, |last| *last = now);
        }
        Ok((learned, self.reads.under_way.pause()))
    }

    fn settled(&self, intent: &Intent) {
        let uid = &intent.identity().uid;
        self.replaced.with(uid, |kept| *kept = None);
        self.doubtful_trees.with(uid, |kept| *kept = None);
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
        let annotated = facts::annotation(service, NODE_SELECTOR.key);
        !NodeFilter::parse(annotated.unwrap_or(&self.options.node_selector)).is_empty()
    }
}
