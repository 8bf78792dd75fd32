//! Load balancers as the service controller wants them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bowline_cloud_http::Url;
use bowline_cloud_provider::orphans::{Found, OrphanFacts, Owner};
use bowline_cloud_provider::{
    Asker, CloudError, Kept, LoadBalancer, LoadBalancerPlan, MadeFor, Reconciler, RefusalBook, Service,
    ServiceFacts, ServiceKey, ServicesView, WriteOutcome, facts,
};
use bowline_cloudscale_client::{Client, LoadBalancerStatus, Member, MonitorStatus};
use bowline_plan::{Ailment, Refusal};
use futures::future::BoxFuture;

use crate::annotations::{NODE_SELECTOR, ZONE, annotation_table};
use crate::apply::{Learned, Writer};
use crate::intent::{self, Context, Intent};
use crate::learn;
use crate::observe::reads::Reads;
use crate::observe::refused::{self, Vain};
use crate::observe::{Memory, Observed, ObservedPool, Remembered, Seen, Unkept};
use crate::orphans;
use crate::ownership;
use crate::planning::{self, Hrefs};
use crate::step::CloudStep;

/// The load balancers of a project.
pub(crate) struct Balancers {
    client: Client,
    reads: Arc<Reads>,
    hrefs: Hrefs,
    cluster_name_annotation: String,
    /// Changes that the API answered and did not keep, by the UID of the Service. Without it, each try would write once more.
    unkept: Kept<String, Vec<Unkept>>,
    /// Where something went to make room at a quota, and there was no room after it, by the UID of the Service. Without it, each try
    /// would take one more member or pool that serves.
    vain: Kept<String, Vain>,
    /// What the API refused.
    refusals: RefusalBook<CloudStep>,
    /// How many floating IPs were led elsewhere by this process.
    moves: AtomicU64,
}

impl Balancers {
    pub(crate) fn new(
        client: Client,
        reads: Arc<Reads>,
        base: &Url,
        cluster_name_annotation: String,
    ) -> Self {
        Self {
            client,
            reads,
            hrefs: Hrefs::new(base),
            cluster_name_annotation,
            unkept: Kept::default(),
            vain: Kept::default(),
            refusals: RefusalBook::default(),
            moves: AtomicU64::default(),
        }
    }

    /// Compares what was read with what was written, in this reconcile and in earlier ones.
    fn compare(&self, intent: &Intent, observed: &Observed, memory: &mut Memory) {
        memory.own.reads += 1;
        self.unkept.with(&intent.identity().uid, |kept| {
            let mut unkept = kept.take().unwrap_or_default();
            planning::remember(&mut unkept, observed, &mut memory.own);
            *kept = Some(unkept).filter(|unkept| !unkept.is_empty());
        });
        memory.own.vain = self.vain.with(&intent.identity().uid, |kept| {
            let known = kept.take().unwrap_or_default();
            *kept = known.of_pools(|pool| observed.pool(pool).is_some());
            kept.clone().unwrap_or_default()
        });
    }
}

impl Reconciler for Balancers {
    type Facts = ServiceFacts;
    type Intent = Intent;
    type Observed = Observed;
    type Remembered = Remembered;
    type Step = CloudStep;
    type Learned = Learned;

    fn intent(&self, facts: &ServiceFacts) -> Result<Intent, Refusal> {
        intent::read(
            &Context {
                cluster_name_annotation: &self.cluster_name_annotation,
            },
            facts,
        )
    }

    async fn observe(
        &self,
        intent: &Intent,
        last: Option<Observed>,
        memory: &mut Memory,
    ) -> Result<Observed, CloudError> {
        let observed = match last {
            None => self.reads.all(intent, memory).await?,
            Some(last) => self.reads.poll(intent, last, memory).await?,
        };
        self.compare(intent, &observed, memory);
        Ok(observed)
    }

    async fn verify(
        &self,
        intent: &Intent,
        last: Observed,
        memory: &mut Memory,
    ) -> Result<Observed, CloudError> {
        let observed = self.reads.after_writes(intent, last, memory).await?;
        self.compare(intent, &observed, memory);
        Ok(observed)
    }

    fn plan(&self, intent: &Intent, seen: &Seen) -> LoadBalancerPlan<CloudStep> {
        planning::plan(&self.hrefs, intent, seen)
    }

    async fn apply(&self, intent: &Intent, seen: &Seen, step: &CloudStep) -> Result<Learned, CloudError> {
        let client = &self.client;
        let mut outcome = Writer { client, seen }.apply(step).await;
        let is_vain = refused::is_room_vain(&seen.memory.refusals, step, outcome.as_ref());
        if let Some((place, is_vain)) = is_vain {
            let uid = &intent.identity().uid;
            self.vain
                .with(uid, |kept| kept.get_or_insert_default().learn(place, is_vain));
        }
        if let Ok(learned) = &mut outcome {
            learned.is_room_vain = is_vain;
            if matches!(step, CloudStep::AssignFloatingIp { .. }) {
                learned.move_number = self.moves.fetch_add(1, Ordering::Relaxed) + 1;
            }
        }
        outcome
    }

    fn ailments(&self, _: &Intent, observed: &Observed) -> Vec<Ailment> {
        let of_pool = |it: &ObservedPool| {
            let is_down = |member: &&Member| member.monitor_status == Some(MonitorStatus::Down);
            let down = it.members.iter().filter(is_down);
            let down: Vec<&str> = down.map(|member| member.name.as_str()).collect();
            Ailment::of_members(&it.pool.name, &down, it.members.len())
        };
        let mut all: Vec<Ailment> = observed.pools.iter().filter_map(of_pool).collect();
        let balancer = observed
            .balancers
            .iter()
            .find(|it| Some(&it.uuid) == observed.pools_of.as_ref());
        // Without a monitor nobody tells which member it is.
        if let (true, Some(balancer)) = (all.is_empty(), balancer) {
            let (word, is_total) = match balancer.status {
                LoadBalancerStatus::Error => ("error", true),
                LoadBalancerStatus::Degraded => ("degraded", false),
                _ => return all,
            };
            all.push(Ailment {
                text: format!(
                    "load balancer {}: its status at cloudscale.ch is {word}",
                    balancer.name
                ),
                is_total,
            });
        }
        all
    }

    fn refusals(&self) -> Option<&RefusalBook<CloudStep>> {
        Some(&self.refusals)
    }

    fn asker(&self, facts: &ServiceFacts) -> Option<Asker> {
        // The zone is written here too, and a load balancer in another one is another request.
        let table = annotation_table().iter().filter(|spec| spec.key != ZONE.key);
        Some(Asker::of(facts, &table.copied().collect::<Vec<_>>()))
    }

    /// What a quota refuses is another request where room is made for it.
    fn is_same_request(&self, a: &CloudStep, b: &CloudStep) -> bool {
        a.asks_the_same(b) && a.has_room_made() == b.has_room_made()
    }

    fn creates_again(&self, step: &CloudStep, sent: &CloudStep) -> bool {
        step.creates() && step.asks_the_same(sent)
    }

    /// Most writes are of several calls. What of them is a refusal, their answer tells.
    fn refusal_of(&self, _: &CloudStep, _: &CloudError) -> Option<Refusal> {
        None
    }

    fn refused<'a>(&self, learned: &'a Learned) -> Option<&'a Refusal> {
        learned.refused.as_ref()
    }

    fn outcome(&self, learned: &Learned) -> WriteOutcome {
        learned.outcome()
    }

    fn ends_wave(&self, learned: &Learned) -> bool {
        learned.ends_wave()
    }

    fn learn(&self, seen: &mut Seen, step: &CloudStep, learned: Learned) {
        learn::learn(seen, step, learned);
    }

    fn predict(&self, seen: &mut Seen, step: &CloudStep) {
        learn::predict(seen, step);
    }
}

impl LoadBalancer for Balancers {
    fn load_balancer_name(&self, facts: &ServiceFacts) -> String {
        intent::effective_name(&facts.service)
    }

    fn made_for<'a>(
        &'a self,
        services: &'a dyn ServicesView,
    ) -> BoxFuture<'a, Result<Vec<MadeFor>, CloudError>> {
        Box::pin(async {
            if services.cluster_uid().is_none() {
                return Ok(Vec::new());
            }
            let balancers = self.reads.balancers().await?;
            Ok(ownership::made_by_cluster(&balancers, services))
        })
    }

    fn marked<'a>(&'a self, facts: &'a OrphanFacts) -> BoxFuture<'a, Result<Vec<Found>, CloudError>> {
        Box::pin(async {
            let nobody = Owner {
                key: Some(ServiceKey::new("", "")),
                ..Owner::default()
            };
            // What a Service's tags would tell.
            let intent = facts.removal(&nobody).and_then(|removal| self.intent(&removal));
            let cluster_name = intent.ok().and_then(|it| it.identity().cluster_name.clone());
            let balancers = self.reads.balancers().await?;
            Ok(orphans::marked(&balancers, facts, cluster_name))
        })
    }

    fn selects_nodes_by_label(&self, service: &Service) -> bool {
        facts::annotation(service, NODE_SELECTOR.key).is_some_and(|selector| !selector.trim().is_empty())
    }
}
