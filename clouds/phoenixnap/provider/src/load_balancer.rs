//! IP blocks as the service controller wants them. Each file is one of the moves, or below them: see the [map](crate).

use std::collections::BTreeMap;
use std::sync::Arc;

use bowline_cloud_provider::orphans::{Found, OrphanFacts, Owner};
use bowline_cloud_provider::{
    ANSWER_LOG, AnnotationSpec, Asker, Begin, CloudError, DATA_LOG, LoadBalancer, LoadBalancerPlan, Node,
    Reconcile, Reconciler, RefusalBook, ServiceFacts, ServiceKey,
};
use bowline_phoenixnap_client::Client;
use bowline_plan::{EventSpec, Refusal, Shown};
use futures::future::BoxFuture;

use crate::annotations::{SERVER_ID, annotation_table};
use crate::config::Options;
use crate::load_balancer::apply::{Buyer, Learned, Writer};
use crate::load_balancer::blocks::Place;
use crate::load_balancer::intent::Intent;
use crate::load_balancer::observe::reads::Reads;
use crate::load_balancer::observe::{Memory, Observed, Remembered, Seen};
use crate::load_balancer::orphans::Remover;
use crate::load_balancer::step::CloudStep;
use crate::messages::EVENTS;
use crate::nodes::provider_id;

mod apply;
mod blocks;
mod claim;
mod evidence;
mod fate;
pub(crate) mod intent;
mod learn;
mod names;
pub(crate) mod observe;
mod orphans;
mod plan;
mod status;
mod step;
pub(crate) mod sweeper;
mod vip;
pub(crate) mod watch;

/// The blocks of Services on one public network.
pub(crate) struct Balancers {
    pub(crate) client: Client,
    pub(crate) reads: Arc<Reads>,
    pub(crate) network: String,
    pub(crate) options: Options,
    pub(crate) refusals: RefusalBook<CloudStep>,
}

impl Reconciler for Balancers {
    type Facts = ServiceFacts;
    type Intent = Intent;
    type Observed = Observed;
    type Remembered = Remembered;
    type Step = CloudStep;
    type Learned = Learned;

    fn intent(&self, facts: &ServiceFacts) -> Result<Intent, Refusal> {
        intent::read(&self.options, facts)
    }

    async fn observe(
        &self,
        intent: &Intent,
        _: Option<Observed>,
        memory: &mut Memory,
    ) -> Result<Observed, CloudError> {
        let observed = self.reads.all(intent, &self.network, memory).await?;
        for block in &observed.blocks {
            memory.own.has_failed |= self.reads.network.has_failed(block);
            if let Some(why) = self.reads.network.holds_back(block) {
                let attach = CloudStep::attach(block, &self.network);
                memory.refusals.hold(attach, why);
            }
        }
        let service = &intent.identity().key;
        let ids: Vec<&str> = observed.blocks.iter().map(|block| block.id.as_str()).collect();
        tracing::debug!(target: ANSWER_LOG, %service, blocks = ids.join(","), "IP blocks of a service");
        tracing::debug!(target: DATA_LOG, %service, blocks = ?observed.blocks, "IP blocks of a service, whole");
        Ok(observed)
    }

    /// A block that was bought or attached is told by the answers alone. That nothing is left to be marked is worth a look.
    async fn verify(
        &self,
        intent: &Intent,
        last: Observed,
        memory: &mut Memory,
    ) -> Result<Observed, CloudError> {
        match intent {
            Intent::Wanted(_) => Ok(last),
            Intent::Absent(_) => {
                memory.own = Remembered {
                    marked: std::mem::take(&mut memory.own.marked),
                    ..Remembered::default()
                };
                self.observe(intent, None, memory).await
            }
        }
    }

    fn plan(&self, intent: &Intent, seen: &Seen) -> LoadBalancerPlan<CloudStep> {
        plan::plan(intent, seen, &self.network)
    }

    async fn apply(&self, intent: &Intent, seen: &Seen, step: &CloudStep) -> Result<Learned, CloudError> {
        let Self { client, reads, .. } = self;
        if let (Intent::Wanted(wanted), CloudStep::BuyBlock { new }) = (intent, step) {
            return Buyer { client, reads, seen }.buy(wanted, new).await;
        }
        let writer = Writer {
            client,
            reads,
            cluster: &intent.identity().cluster,
            mark: seen.memory.own.mark,
            gives_way: false,
        };
        writer.apply(step).await
    }

    fn shown(&self, _: &Intent, observed: &Observed) -> Shown {
        let blocks = observed.blocks.iter().map(|block| {
            let place = match blocks::place(block) {
                Place::Nowhere => "in no network".to_owned(),
                Place::Network(id) => format!("in network {id}"),
                Place::SomeNetwork => "in a network that the API does not name".to_owned(),
                Place::Other(kind) => format!("attached to a resource of type {kind}"),
            };
            format!("IP block {} ({}), {place}", block.id, block.cidr)
        });
        let mut members: Vec<String> = blocks.collect();
        members.push(
            "phoenixNAP has no load balancer, so it knows neither members nor health: kube-vip announces the address on one Node, and \
             kube-proxy there leads to the pods"
                .to_owned(),
        );
        Shown { zone: None, members }
    }

    fn book(&self, facts: &ServiceFacts) -> Option<(&RefusalBook<CloudStep>, Asker)> {
        Some((&self.refusals, Asker::of(facts, annotation_table())))
    }

    /// What of a failure is a refusal, the answer of the step tells: a purchase may have been made all the same.
    fn refusal_of(&self, _: &Seen, _: &CloudStep, _: &CloudError) -> Option<Refusal> {
        None
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

    fn room_was_made(&self) {
        self.refusals.room_was_made();
    }

    fn marked<'a>(&'a self, facts: &'a OrphanFacts) -> BoxFuture<'a, Result<Vec<Found>, CloudError>> {
        Box::pin(orphans::marked(&self.client, facts))
    }

    /// No manager may be there whose sweeper would give back what is only marked.
    fn begin_removal(
        self: Arc<Self>,
        orphan: &Found,
        facts: &OrphanFacts,
    ) -> Result<Box<dyn Reconcile<ServiceFacts>>, Refusal> {
        let owner = Owner {
            key: Some(ServiceKey::new("", "")),
            ..Owner::default()
        };
        let remover = Arc::new(Remover {
            client: self.client.clone(),
            reads: Arc::clone(&self.reads),
            network: self.network.clone(),
            block: orphan.id.clone(),
        });
        remover.begin(facts.removal(&owner)?)
    }

    fn load_balancer_name(&self, facts: &ServiceFacts) -> String {
        format!(
            "usage=cloud-provider-phoenixnap-auto:service={}:cluster={}",
            facts.key(),
            facts.cluster.uid.as_deref().unwrap_or_default()
        )
    }

    /// kube-vip chooses the node: which ones there are changes nothing in the cloud.
    fn follows_nodes(&self) -> bool {
        false
    }

    fn node_annotations(&self, node: &Node) -> BTreeMap<String, String> {
        if node.provider_id.is_none() {
            tracing::debug!(node = %node.name, "Node without provider ID left out");
        }
        let server = node
            .provider_id
            .as_deref()
            .and_then(|id| provider_id::parse(id).ok());
        server
            .filter(|_| self.options.nodes.matches(&node.labels))
            .map(|server| (SERVER_ID.key.to_owned(), server.to_owned()))
            .into_iter()
            .collect()
    }
}
