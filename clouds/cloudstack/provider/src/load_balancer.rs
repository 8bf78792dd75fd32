//! Load balancer rules as the service controller wants them.

use std::sync::Arc;

use bowline_cloud_provider::orphans::{Found, OrphanFacts};
use bowline_cloud_provider::{
    AnnotationSpec, Asker, CloudError, Kept, LoadBalancer, LoadBalancerPlan, Memory, NodeSet, Reconciler,
    RefusalBook, ServiceFacts,
};
use bowline_cloudstack_client::{Client, WallClock};
use bowline_plan::{Ailment, EventSpec, Refusal, Shown};
use futures::future::BoxFuture;

pub(crate) mod annotations;
mod apply;
mod cidrs;
mod claim;
pub(crate) mod complaints;
mod evidence;
mod intent;
mod members;
mod names;
mod objects;
mod observe;
mod orphans;
mod plan;
mod replaced_rules;
mod status;
mod step;
mod stickiness;
mod unapplied;

use self::annotations::annotation_table;
use self::apply::Writer;
use self::claim::Claim;
use self::intent::{Identity, Intent};
use self::observe::learn::{self, Learned};
use self::observe::observed::{Observed, Seen};
use self::observe::reads::Reads;
use self::observe::remembered::Remembered;
use self::step::CloudStep;
use crate::messages::EVENTS;
use crate::version::ServerVersion;
use crate::virtual_machines::VirtualMachines;

/// The load balancers of an account or project.
pub(crate) struct Balancers {
    reads: Reads,
    refusals: RefusalBook<CloudStep>,
    /// What was written on each Service about its addresses when it settled last, by its UID: another writer may strip it.
    claims: Kept<String, Claim>,
}

impl Balancers {
    pub(crate) fn new(
        client: &Client,
        virtual_machines: Arc<VirtualMachines>,
        version: ServerVersion,
        clock: WallClock,
    ) -> Self {
        Self {
            reads: Reads::new(client, virtual_machines, version, clock, plan::needs),
            refusals: RefusalBook::default(),
            claims: Kept::default(),
        }
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
        let mut intent = intent::read::read(facts)?;
        let uid = intent.identity().uid.clone();
        let before = self.claims.with(&uid, |kept| kept.clone());
        if let Some(before) = before {
            intent.remember(&before);
        }
        Ok(intent)
    }

    async fn observe(
        &self,
        intent: &Intent,
        last: Option<Observed>,
        memory: &mut Memory<Remembered, CloudStep>,
    ) -> Result<Observed, CloudError> {
        let seen = self.reads.look(intent, last, std::mem::take(memory)).await?;
        *memory = seen.memory;
        Ok(seen.observed)
    }

    async fn verify(
        &self,
        intent: &Intent,
        _: Observed,
        memory: &mut Memory<Remembered, CloudStep>,
    ) -> Result<Observed, CloudError> {
        let seen = self.reads.verified(intent, std::mem::take(memory)).await?;
        *memory = seen.memory;
        Ok(seen.observed)
    }

    fn plan(&self, intent: &Intent, observed: &Seen) -> LoadBalancerPlan<CloudStep> {
        plan::plan(intent, observed)
    }

    fn shown(&self, intent: &Intent, observed: &Observed) -> Shown {
        let mut shown = Shown::default();
        let Intent::Wanted(wanted) = intent else {
            return shown;
        };
        let index = observed.instances.as_deref();
        for (id, members) in &observed.members {
            let rule = observed.rules.iter().find(|rule| rule.id == *id);
            let rule = rule.map_or(id.as_str(), |rule| rule.name.as_str());
            let names = members.iter().map(|member| {
                let listed = index.and_then(|index| index.with_id(member));
                let listed = listed.map(|instance| instance.name.as_str());
                let nodes = wanted.nodes.iter();
                let nodes = nodes.filter(|node| node.instance_id.as_ref() == Some(member));
                let nodes: Vec<&str> = nodes.map(|node| node.node.as_str()).collect();
                // Of several Nodes with one provider ID, the one with the name of the virtual machine is its own.
                match (listed, nodes.as_slice()) {
                    (Some(name), nodes) if nodes.is_empty() || nodes.contains(&name) => name.to_owned(),
                    (_, []) => member.to_string(),
                    (_, nodes) => nodes.join(" or "),
                }
            });
            let names: Vec<String> = names.collect();
            shown.add_members(
                &format!("rule {rule}"),
                names.iter().map(|name| (name.as_str(), "")),
            );
        }
        if !observed.members.is_empty() {
            let text = "CloudStack checks no health: it does not tell whether a member answers";
            shown.members.push(text.to_owned());
        }
        let found = observed.members_of(&wanted.nodes);
        shown.members.extend(found.and_then(|found| found.missing()));
        shown
    }

    fn ailments(&self, intent: &Intent, observed: &Observed) -> Vec<Ailment> {
        match intent {
            Intent::Wanted(wanted) => unapplied::ailments(wanted, observed),
            Intent::Absent(_) => Vec::new(),
        }
    }

    fn before_wave(&self, intent: &Intent, observed: &Seen) {
        let claimed = plan::claimed(intent, observed);
        self.reads.address_requests.planned(intent.identity(), claimed);
    }

    fn settled(&self, intent: &Intent) {
        let Identity { uid, claim, .. } = intent.identity();
        let is_kept = matches!(intent, Intent::Wanted(_)) && claim.held.is_some();
        self.claims
            .with(uid, |kept| *kept = is_kept.then(|| claim.clone()));
        self.reads.settled(intent);
    }

    async fn apply(&self, intent: &Intent, observed: &Seen, step: &CloudStep) -> Result<Learned, CloudError> {
        let writer = Writer {
            client: &self.reads.client,
            identity: intent.identity(),
            observed,
        };
        let mut learned = match self.reads.obstacle(intent, observed, step).await {
            Some(seen) => seen,
            None => writer.apply(step, &self.reads.address_requests).await?,
        };
        if let Learned::Failed(failure) = &mut learned {
            failure.is_rollback = observed.memory.own.failure.is_some();
        }
        self.reads.written(intent, observed, step, &learned);
        Ok(learned)
    }

    fn book(&self, facts: &ServiceFacts) -> Option<(&RefusalBook<CloudStep>, Asker)> {
        Some((&self.refusals, Asker::of(facts, annotation_table())))
    }

    fn is_same_request(&self, a: &CloudStep, b: &CloudStep) -> bool {
        a.is_same(b)
    }

    fn learn(&self, observed: &mut Seen, step: &CloudStep, learned: Learned) {
        learn::learn(observed, step, learned);
    }

    fn predict(&self, observed: &mut Seen, step: &CloudStep) {
        learn::predict(observed, step);
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
        Box::pin(orphans::marked(self.reads.whole(), facts))
    }

    /// The rules check no health, and upstream's framework of this cloud left out Nodes that are not ready.
    fn node_set(&self) -> NodeSet {
        NodeSet::Ready
    }

    /// Rules are found by their names. What is written keeps addresses from getting lost, and a cluster whose role forbids it
    /// was served without.
    fn needs_annotations(&self) -> bool {
        false
    }

    fn load_balancer_name(&self, facts: &ServiceFacts) -> String {
        names::balancer(facts.service.metadata.uid.as_deref().unwrap_or_default())
    }
}
