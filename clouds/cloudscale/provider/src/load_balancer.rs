//! Load balancers as the service controller wants them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bowline_cloud_http::Url;
use bowline_cloud_provider::orphans::{Found, OrphanFacts, Owner};
use bowline_cloud_provider::{
    AnnotationSpec, Asker, CloudError, Creation, ErrorKind, Kept, LoadBalancer, LoadBalancerPlan, MadeFor,
    Node, Question, Reconciler, RefusalBook, Selector, Service, ServiceFacts, ServiceKey, ServicesView,
    facts,
};
use bowline_cloudscale_client::{Client, LoadBalancerStatus, Member, MonitorStatus, PoolId};
use bowline_plan::{Ailment, EventSpec, Refusal, Shown, Step as _};
use futures::future::BoxFuture;
use tokio::time::Instant;
use uuid::Uuid;

use crate::load_balancer::annotations::{NODE_SELECTOR, ZONE, annotation_table};
use crate::load_balancer::apply::{Learned, Writer};
use crate::load_balancer::intent::Intent;
use crate::load_balancer::intent::read::{self, Context};
use crate::load_balancer::observe::reads::Reads;
use crate::load_balancer::observe::{Memory, NotPersisted, Observed, ObservedPool, Remembered, Seen};
use crate::load_balancer::plan::hrefs::Hrefs;
use crate::load_balancer::plan::persisted;
use crate::load_balancer::refused::StillFull;
use crate::load_balancer::step::{CloudStep, PartChange};
use crate::messages::EVENTS;
use crate::nodes::provider_id::{self, ProviderIdError};
use crate::nodes::servers::ServerReads;

pub(crate) mod annotations;
mod apply;
pub(crate) mod complaints;
mod evidence;
mod floating_ips;
mod http_codes;
mod intent;
mod learn;
mod names;
mod observe;
mod orphans;
mod plan;
mod refused;
mod status;
mod step;

/// The load balancers of a project.
pub(crate) struct Balancers {
    client: Client,
    reads: Reads,
    hrefs: Hrefs,
    cluster_name_annotation: String,
    /// Changes that the API answered and did not keep, by the UID of the Service. Without it, each try would write once more.
    not_persisted: Kept<String, Vec<NotPersisted>>,
    /// Where something went to make room at a quota, and there was no room after it, by the UID of the Service. Without it, each try
    /// would take one more member or pool that serves.
    still_full: Kept<String, StillFull>,
    /// Pools whose monitor made way for one that did not come yet, by the UID of the Service. Without it, that one comes in its turn.
    without_monitor: Kept<String, Vec<PoolId>>,
    /// What the API refused.
    refusals: RefusalBook<CloudStep>,
    /// How many floating IPs were led elsewhere by this process.
    moves: AtomicU64,
}

impl Balancers {
    pub(crate) fn new(
        client: Client,
        servers: Arc<ServerReads>,
        base: &Url,
        cluster_name_annotation: String,
    ) -> Self {
        Self {
            reads: Reads::new(&client, servers),
            client,
            hrefs: Hrefs::new(base),
            cluster_name_annotation,
            not_persisted: Kept::default(),
            still_full: Kept::default(),
            without_monitor: Kept::default(),
            refusals: RefusalBook::default(),
            moves: AtomicU64::default(),
        }
    }

    /// Compares what was read with what was written, in this reconcile and in earlier ones.
    fn compare(&self, intent: &Intent, observed: &Observed, memory: &mut Memory) {
        memory.own.reads += 1;
        self.not_persisted.with(&intent.identity().uid, |kept| {
            let mut not_persisted = kept.take().unwrap_or_default();
            persisted::remember(&mut not_persisted, observed, &mut memory.own, Instant::now());
            *kept = Some(not_persisted).filter(|not_persisted| !not_persisted.is_empty());
        });
        memory.own.still_full = self.still_full.with(&intent.identity().uid, |kept| {
            let known = kept.take().unwrap_or_default();
            *kept = known.of_pools(|pool| observed.pool(pool).is_some());
            kept.clone().unwrap_or_default()
        });
        memory.own.without_monitor = self
            .without_monitor
            .with(&intent.identity().uid, |kept| kept.clone().unwrap_or_default());
    }

    /// Remembers whether a pool has no monitor because one made way. Where the API refuses the new one, it comes in its turn.
    fn remember_owed(&self, uid: &String, step: &CloudStep, outcome: &Result<Learned, CloudError>) {
        let Some(PartChange::Monitor { new, .. }) = step.part() else {
            return;
        };
        let (is_busy, is_gone) = outcome
            .as_ref()
            .map_or((false, false), |learned| (learned.is_busy, learned.old_is_gone));
        self.without_monitor.with(uid, |kept| match (is_busy, is_gone) {
            (true, true) => kept.get_or_insert_default().push(new.pool),
            (true, false) => {}
            (false, _) => {
                let pools = kept.get_or_insert_default();
                pools.retain(|pool| *pool != new.pool);
                kept.take_if(|pools| pools.is_empty());
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
    type Learned = Learned;

    fn intent(&self, facts: &ServiceFacts) -> Result<Intent, Refusal> {
        read::read(
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
        plan::plan(&self.hrefs, intent, seen)
    }

    async fn apply(&self, intent: &Intent, seen: &Seen, step: &CloudStep) -> Result<Learned, CloudError> {
        let client = &self.client;
        let mut outcome = Writer { client, seen }.apply(step).await;
        let came_of_it = match &outcome {
            Ok(learned) => (
                learned.told.is_some(),
                learned.refused.as_ref().is_some_and(|why| why.is_limit),
            ),
            Err(error) => (false, error.kind() == ErrorKind::Exhausted),
        };
        self.remember_owed(&intent.identity().uid, step, &outcome);
        let still_full = refused::is_still_full(&seen.memory.refusals, step, came_of_it);
        if let Some((place, is_so)) = still_full {
            let uid = &intent.identity().uid;
            self.still_full
                .with(uid, |kept| kept.get_or_insert_default().learn(place, is_so));
        }
        if let Ok(learned) = &mut outcome {
            learned.is_still_full = still_full;
            if matches!(step, CloudStep::AssignFloatingIp { .. }) {
                learned.move_number = self.moves.fetch_add(1, Ordering::Relaxed) + 1;
            }
        }
        outcome
    }

    fn ailments(&self, intent: &Intent, observed: &Observed) -> Vec<Ailment> {
        let of_pool = |it: &ObservedPool| {
            let is_down = |member: &&Member| member.monitor_status == Some(MonitorStatus::Down);
            let down = it.members.iter().filter(is_down);
            let down =
                down.map(|it| Ailment::member(name_of(intent, it), &it.address, it.protocol_port, "down"));
            let down: Vec<String> = down.collect();
            let is_empty =
                it.members.is_empty() && intent.needs().is_some_and(|needs| !needs.nodes.is_empty());
            match is_empty {
                true => Some(Ailment::of_empty_pool(&it.pool.name, true)),
                false => Ailment::of_members(&it.pool.name, &down, it.members.len()),
            }
        };
        let mut all: Vec<Ailment> = observed.pools.iter().filter_map(of_pool).collect();
        // Without a monitor nobody tells which member it is.
        if let (true, Some(balancer)) = (all.is_empty(), used(observed)) {
            let (word, is_total, remedy) = match balancer.status {
                LoadBalancerStatus::Error => ("error", true, REPAIR),
                LoadBalancerStatus::Degraded => ("degraded", false, ""),
                _ => return all,
            };
            let text = format!(
                "load balancer {}: its status at cloudscale.ch is {word}",
                balancer.name
            );
            all.push(Ailment::new(text, is_total, remedy));
        }
        all
    }

    fn shown(&self, intent: &Intent, observed: &Observed) -> Shown {
        let mut shown = Shown {
            zone: used(observed).map(|it| it.zone.slug.to_string()),
            members: Vec::new(),
        };
        for it in &observed.pools {
            let state = |member: &Member| match (member.enabled, &member.monitor_status) {
                (Some(false), _) => "(switched off)",
                (_, Some(MonitorStatus::Up)) => "(answers)",
                (_, Some(MonitorStatus::Down)) => "(does not answer)",
                _ => "(health not known)",
            };
            let members = it.members.iter();
            let members = members.map(|member| (name_of(intent, member), state(member)));
            shown.add_members(&format!("pool {}", it.pool.name), members);
        }
        shown
    }

    fn book(&self, facts: &ServiceFacts) -> Option<(&RefusalBook<CloudStep>, Asker)> {
        // The zone is written here too, and a load balancer in another one is another request.
        let table = annotation_table().iter().filter(|spec| spec.key != ZONE.key);
        let asker = Asker::of(facts, &table.copied().collect::<Vec<_>>());
        Some((&self.refusals, asker))
    }

    /// What a quota refuses is another request where room is made for it.
    fn is_same_request(&self, a: &CloudStep, b: &CloudStep) -> bool {
        a.asks_the_same(b) && a.has_room_made() == b.has_room_made()
    }

    fn creation(&self, step: &CloudStep) -> Option<Creation> {
        step.creation()
    }

    /// Most writes are of several calls. What of them is a refusal, their answer tells. What fails for one port or member holds up no other
    /// one; but the API is not waited for again and again that does not answer.
    fn refusal_of(&self, seen: &Seen, step: &CloudStep, error: &CloudError) -> Option<Refusal> {
        let is_borne = matches!(error.kind(), ErrorKind::Throttled { .. })
            || error.can_wait() && (step.is_of_member() || !error.is_unheard() || seen.memory.unheard() == 0);
        (is_borne && step.is_of_one_port()).then(|| {
            let reason = format!("error during {}: {error}", step.label());
            Refusal::new(reason).by(error.failed_by())
        })
    }

    fn shows(&self, observed: &Observed, made: u128) -> bool {
        observed.shows(Uuid::from_u128(made))
    }

    fn learn(&self, seen: &mut Seen, step: &CloudStep, learned: Learned) {
        learn::learn(seen, step, learned);
    }

    fn predict(&self, seen: &mut Seen, step: &CloudStep) {
        learn::predict(seen, step);
    }
}

impl LoadBalancer for Balancers {
    fn annotations(&self) -> &'static [AnnotationSpec] {
        annotation_table()
    }

    fn event(&self, reason: &str) -> Option<&'static EventSpec> {
        EVENTS.iter().find(|it| it.reason == reason)
    }

    /// An annotation decides, as with the Go manager.
    fn heeds_source_ranges(&self, _: &Service) -> bool {
        false
    }

    fn room_was_made(&self) {
        self.refusals.room_was_made();
    }

    fn load_balancer_name(&self, facts: &ServiceFacts) -> String {
        read::effective_name(&facts.service)
    }

    fn made_for<'a>(&'a self, services: &'a dyn ServicesView) -> Vec<Question<'a, MadeFor>> {
        let made = || async {
            let balancers = self.reads.balancers().await?;
            Ok(evidence::made_by_cluster(&balancers, services))
        };
        let cluster = services.cluster_uid().into_iter();
        cluster.map(|_| Question::new(made())).collect()
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

    fn may_lead_to(&self, _: &Service, node: &Node) -> bool {
        let id = node.provider_id.as_deref().map(provider_id::parse);
        !matches!(id, Some(Err(ProviderIdError::Foreign(_))))
    }

    fn selects_nodes_by_label(&self, service: &Service) -> bool {
        facts::annotation(service, NODE_SELECTOR.key).is_some_and(|selector| !selector.trim().is_empty())
    }

    fn selects(&self, service: &Service, node: &Node) -> bool {
        let selector = Selector::parse(facts::annotation(service, NODE_SELECTOR.key).unwrap_or_default());
        selector.map_or(true, |it| it.matches(&node.labels))
    }
}

/// What to do about a load balancer that failed.
const REPAIR: &str = "whoever owns the project looks at the load balancer at cloudscale.ch, and asks the cloud's support to repair it; or deletes it, so that the manager makes another one: that has another address, unless the Service asks for this one by a floating IP or by VIP addresses, and clients have to follow";

/// The load balancer that the Service uses.
fn used(observed: &Observed) -> Option<&bowline_cloudscale_client::LoadBalancer> {
    let mut balancers = observed.balancers.iter();
    balancers.find(|it| Some(&it.uuid) == observed.pools_of.as_ref())
}

/// The Node behind a member; where none has its address, the member's own name, which is address and port.
fn name_of<'a>(intent: &'a Intent, member: &'a Member) -> &'a str {
    let mut nodes = intent.needs().into_iter().flat_map(|needs| needs.nodes);
    let node = nodes.find(|node| node.addresses.iter().any(|it| it.address == member.address));
    node.map_or(member.name.as_str(), |node| node.name.as_str())
}
