//! Load balancers as the service controller wants them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use bowline_cloud_provider::{
    Asker, CloudError, Kept, LoadBalancer, LoadBalancerPlan, ReconcileKind, Reconciler, RefusalBook, Service,
    ServiceFacts, WriteOutcome, facts,
};
use bowline_openstack_client::{Client, OperatingStatus, Pool, Port, PortId, ProvisioningStatus};
use bowline_plan::{Ailment, Refusal};
use tokio::time::Instant;

use crate::annotations::{NODE_SELECTOR, annotation_table};
use crate::apply::{self, LateCreations, Learned, PortGroups};
use crate::intent::{self, Identity, Intent};
use crate::learn;
use crate::members::NodeFilter;
use crate::metrics::Metrics;
use crate::names;
use crate::observe::reads::Reads;
use crate::observe::{LAST_LEAK_AGE, LEAK_AGE, Memory, Observed, Parts, Remembered, Seen};
use crate::options::LoadBalancerOptions;
use crate::planning::{self, Next};
use crate::refused::About;
use crate::step::CloudStep;

/// Who records what plans note, as the Go manager has it.
const EVENT_COMPONENT: &str = "cloud-provider-openstack";

/// The time between two load balancers of a Service that are made because the one before failed.
const BETWEEN_REPAIRS: Duration = Duration::from_secs(3600);

/// How long a part that failed is left before it is written once more. A failed change often means that an amphora does not answer:
/// Octavia replaces it within seconds, but not while another change is under way, and one that meets such an amphora takes minutes.
const BEFORE_REWRITE: Duration = Duration::from_secs(60);

/// How long a load balancer is waited for whose creation was not answered in time.
const LATE: Duration = Duration::from_secs(60);

/// The load balancers that a client reaches. Makes no call.
#[must_use]
pub fn load_balancers(
    client: Client,
    options: LoadBalancerOptions,
    metrics: Metrics,
) -> Arc<dyn LoadBalancer> {
    Arc::new(Balancers::new(client, options, metrics))
}

/// The load balancers of a project.
pub(crate) struct Balancers {
    client: Client,
    reads: Reads,
    options: Arc<LoadBalancerOptions>,
    refusals: RefusalBook<CloudStep>,
    /// Since when parts that failed by themselves are seen so, by the UID of the Service and the id of the part. Without it, Bowline
    /// would write to a load balancer that Octavia is about to repair.
    failed_parts: Kept<String, BTreeMap<String, Instant>>,
    /// When a load balancer that served and failed was deleted, by the UID of the Service. Without it, a cloud that cannot keep
    /// one up would be asked for one after the other.
    repairs: Kept<String, Instant>,
    /// When a load balancer was asked for whose creation was not answered in time, by the load balancer's name. Without it,
    /// another one would be asked for before the first one shows.
    late_creations: LateCreations,
    /// What refused creations may have left behind, by the UID of the Service. Without it, ports would stay.
    leaks: Kept<String, Leaks>,
    /// The groups of ports as this process wrote them last. Without it, of several Services that read a port together all but one
    /// would read it again before they write.
    port_groups: PortGroups,
    metrics: Metrics,
}

/// What refused creations of a Service's load balancer may have left behind.
#[derive(Default)]
struct Leaks {
    /// Since when ports are seen without their load balancer.
    since: BTreeMap<PortId, Instant>,
    /// Whether one was refused that had all its parts, and perhaps for one of these.
    is_of_parts: bool,
}

impl Balancers {
    fn new(client: Client, options: LoadBalancerOptions, metrics: Metrics) -> Self {
        Self {
            reads: Reads::new(&client),
            client,
            options: Arc::new(options),
            refusals: RefusalBook::default(),
            failed_parts: Kept::default(),
            repairs: Kept::default(),
            late_creations: LateCreations::default(),
            leaks: Kept::default(),
            port_groups: PortGroups::default(),
            metrics,
        }
    }

    /// The parts that failed and stay so: seen at a look at least [`BEFORE_REWRITE`] before this one, or since they were written for
    /// that.
    fn stuck(&self, uid: &String, observed: &Observed) -> BTreeSet<String> {
        if observed.parts.is_empty() {
            return BTreeSet::new(); // what is not known does not change
        }
        let balancers = observed.balancers.iter();
        let at_rest = balancers.filter(|there| there.provisioning_status == ProvisioningStatus::Active);
        let parts = at_rest.filter_map(|there| observed.parts.get(&there.id));
        let failed: BTreeSet<String> = parts.flat_map(Parts::failed).collect();
        self.failed_parts.with(uid, |kept| {
            let since = kept.get_or_insert_default();
            since.retain(|id, _| failed.contains(id));
            let now = Instant::now();
            let mut stuck = BTreeSet::new();
            for id in failed {
                let since = since.entry(id.clone()).or_insert(now);
                if since.elapsed() >= BEFORE_REWRITE {
                    *since = now;
                    stuck.insert(id);
                }
            }
            kept.take_if(|since| since.is_empty());
            stuck
        })
    }

    /// Notes which ports came with a creation that this reconcile was refused, and for how long others have been seen.
    fn look_for_leaks(&self, intent: &Intent, observed: &Observed, own: &mut Remembered) {
        let age = match intent {
            Intent::Wanted(_) => LEAK_AGE,
            Intent::Absent(_) => LAST_LEAK_AGE,
        };
        self.leaks.with(&intent.identity().uid, |kept| {
            let now = Instant::now();
            if let (Some(Leaks { since, .. }), Some(leaked)) = (kept.as_mut(), &observed.leaked) {
                since.retain(|id, _| leaked.ports.iter().any(|port| port.id == *id));
                let before = own.ports_before.as_deref().map(Vec::as_slice).unwrap_or_default();
                let is_new = |port: &&Port| before.iter().all(|there| there.id != port.id);
                let came = |port: &&Port| own.is_creation_refused && is_new(port);
                for port in leaked.ports.iter().filter(came) {
                    since.entry(port.id.clone()).or_insert(now);
                }
                let is_ripe = |since: &Instant| leaked.is_credible && now.duration_since(*since) >= age;
                let ripe = since.iter().filter(|(_, since)| is_ripe(since));
                own.ripe_leaks = ripe.map(|(id, _)| id.clone()).collect();
                kept.take_if(|kept| kept.since.is_empty());
            }
            own.seeks_leaks = kept.is_some();
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
        intent::read(&self.options, facts)
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
                memory.own.is_creation_late = self.late_creations.with(&intent.identity().name, |late| {
                    *late = late.filter(|late| late.elapsed() < LATE);
                    late.is_some()
                });
                (memory.own.seeks_leaks, memory.own.is_tree_doubtful) = self.leaks.with(uid, |kept| {
                    let is_of_parts = |kept: &Leaks| kept.is_of_parts;
                    (kept.is_some(), kept.as_ref().is_some_and(is_of_parts))
                });
                let observed = self.reads.all(intent, memory).await?;
                memory.own.stuck = self.stuck(uid, &observed);
                self.look_for_leaks(intent, &observed, &mut memory.own);
                Ok(observed)
            }
            Some(last) => {
                let observed = self.reads.again(intent, last, memory).await?;
                self.look_for_leaks(intent, &observed, &mut memory.own);
                Ok(observed)
            }
        }
    }

    async fn verify(
        &self,
        intent: &Intent,
        last: Observed,
        memory: &mut Memory,
    ) -> Result<Observed, CloudError> {
        self.reads.after_writes(intent, last, memory).await
    }

    fn plan(&self, intent: &Intent, seen: &Seen) -> LoadBalancerPlan<CloudStep> {
        planning::plan(intent, seen)
    }

    async fn apply(
        &self,
        intent: &Intent,
        _: &Seen,
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
            && About::of(why) != About::Number
        {
            self.leaks.with(&intent.identity().uid, |kept| {
                kept.get_or_insert_default().is_of_parts |= About::of(why) == About::Parts;
            });
        }
        let learned = made?;
        if let CloudStep::Group(_) = step {
            let Identity { uid, service, .. } = intent.identity();
            let name = names::security_group(uid, service);
            self.reads.made_groups.learn(&name, step, &learned);
        }
        let is_repair = matches!(step, CloudStep::DeleteBalancer { is_live: true, .. });
        if let (Intent::Wanted(_), true) = (intent, is_repair) {
            let now = Some(Instant::now());
            self.repairs.with(&intent.identity().uid, |last| *last = now);
        }
        Ok((learned, self.reads.under_way.pause()))
    }

    fn follow(&self, intent: &Intent, seen: &Seen, _: &Refusal) -> Option<Next> {
        planning::follow(intent, seen)
    }

    fn ailments(&self, intent: &Intent, observed: &Observed) -> Vec<Ailment> {
        let identity = intent.identity();
        // Several Services may share a load balancer.
        let is_of_service = |pool: &&Pool| {
            names::is_pool_of(&pool.name, &identity.name)
                || names::mark_on_pool(&pool.description, &identity.service).is_some()
        };
        let of_pool = |pool: &Pool| {
            let (words, is_total) = match pool.operating_status {
                OperatingStatus::Error => ("no member answers", true),
                OperatingStatus::Degraded => ("some members do not answer", false),
                _ => return None,
            };
            let text = format!("pool {}: {words}", pool.name);
            Some(Ailment { text, is_total })
        };
        let pools = observed.parts.values().flat_map(|parts| &parts.pools);
        pools.filter(is_of_service).filter_map(of_pool).collect()
    }

    fn refusals(&self) -> Option<&RefusalBook<CloudStep>> {
        Some(&self.refusals)
    }

    fn asker(&self, facts: &ServiceFacts) -> Option<Asker> {
        Some(Asker::of(facts, annotation_table()))
    }

    fn is_same_request(&self, a: &CloudStep, b: &CloudStep) -> bool {
        a.asks_the_same(b)
    }

    fn refused<'a>(&self, (learned, _): &'a (Learned, Duration)) -> Option<&'a Refusal> {
        match learned {
            Learned::Refused(why) => Some(why),
            _ => None,
        }
    }

    fn outcome(&self, (learned, _): &(Learned, Duration)) -> WriteOutcome {
        learned.outcome()
    }

    fn learn(&self, seen: &mut Seen, step: &CloudStep, (learned, pause): (Learned, Duration)) {
        learn::learn(seen, step, learned);
        seen.memory.own.change_pause = pause;
    }

    fn predict(&self, seen: &mut Seen, step: &CloudStep) {
        learn::predict(seen, step);
    }
}

impl LoadBalancer for Balancers {
    fn event_component(&self) -> Option<&'static str> {
        Some(EVENT_COMPONENT)
    }

    fn load_balancer_name(&self, facts: &ServiceFacts) -> String {
        names::balancer(&facts.cluster.name, &facts.key())
    }

    fn reconciled(&self, kind: ReconcileKind, took: Duration, has_failed: bool) {
        self.metrics.reconciled(kind, took, has_failed);
    }

    fn selects_nodes_by_label(&self, service: &Service) -> bool {
        let annotated = facts::annotation(service, NODE_SELECTOR.key);
        !NodeFilter::parse(annotated.unwrap_or(&self.options.node_selector)).is_empty()
    }
}
