//! Load balancer rules as the service loop wants them.

use bowline_cloud_provider::{
    CloudError, LoadBalancer, LoadBalancerPlan, LoadBalancerStep, NodeSet, Reconciler, ServiceFacts,
};
use bowline_cloudstack_client::Client;
use bowline_plan::{Answer, Refusal};

use crate::apply::Writer;
use crate::intent::{self, Intent};
use crate::learn::{self, Learned};
use crate::observe::reads::Reads;
use crate::observe::{Failure, Observed};
use crate::step::CloudStep;
use crate::{claim, names, planning};

/// The load balancers of an account or project.
pub(crate) struct Balancers {
    pub(crate) client: Client,
    pub(crate) reads: Reads,
}

impl Reconciler for Balancers {
    type Facts = ServiceFacts;
    type Intent = Intent;
    type Observed = Observed;
    type Step = CloudStep;
    type Learned = Learned;

    fn intent(&self, facts: &ServiceFacts) -> Result<Intent, Refusal> {
        intent::read(facts)
    }

    async fn observe(&self, intent: &Intent, seen: Option<&Observed>) -> Result<Observed, CloudError> {
        match seen {
            None => self.reads.first(intent).await,
            Some(seen) => self.reads.again(intent, seen).await,
        }
    }

    async fn verify(&self, intent: &Intent, seen: &Observed) -> Result<Observed, CloudError> {
        self.reads.verified(intent, seen).await
    }

    fn plan(&self, intent: &Intent, observed: &Observed) -> LoadBalancerPlan<CloudStep> {
        let plan = planning::plan(intent, observed);
        if let Answer::Apply(wave) = &plan.answer {
            let writes = wave.steps().iter().filter_map(|step| match step {
                LoadBalancerStep::Kube(write) => Some(write),
                LoadBalancerStep::Cloud(_) => None,
            });
            let claims = writes.flat_map(claim::asked_in).collect();
            self.reads.asks().planned(intent.identity(), claims);
        }
        plan
    }

    async fn apply(
        &self,
        intent: &Intent,
        observed: &Observed,
        step: &CloudStep,
    ) -> Result<Learned, CloudError> {
        let writer = Writer {
            client: &self.client,
            balancer: &intent.identity().name,
            observed,
        };
        // An ACL list serves several Services. Its steps share a lane, so what is looked at here still holds when the write is
        // sent.
        let mut learned = match step {
            CloudStep::OpenAcl {
                list,
                opening,
                sources,
                ..
            } => writer.open_acl(step, list, (*opening, sources)).await,
            CloudStep::CloseAcl {
                list,
                twin: Some(twin),
                ..
            } => writer.close_surplus_acl(step, list, twin).await,
            CloudStep::CloseAcl { list, item, .. } => {
                let items = observed.acls.get(&list.id).map_or(&[][..], Vec::as_slice);
                match self.reads.users_of(intent.identity(), list, item, items).await {
                    Ok(users) if users.is_empty() => writer.apply(step).await,
                    Ok(users) => Ok(Learned::Needed(users)),
                    Err(error) => Ok(Learned::Failed(Failure {
                        error,
                        is_definite: false,
                        gives_back: false,
                    })),
                }
            }
            // With an address the rules of others go too.
            CloudStep::Release { address, .. } => {
                let id = &address.id;
                let others = async {
                    match self.reads.changed(observed, id).await? {
                        Some(now) => Ok(Err(now)),
                        None => self.reads.strangers(intent.identity(), id).await.map(Ok),
                    }
                };
                match others.await {
                    Ok(Err(now)) => Ok(Learned::Address(now.map(Box::new))),
                    Ok(Ok(others)) if others.is_empty() => writer.apply(step).await,
                    Ok(Ok(others)) => Ok(Learned::Shared(others)),
                    Err(error) => Ok(Learned::Failed(Failure {
                        error,
                        is_definite: false,
                        gives_back: false,
                    })),
                }
            }
            _ => match step.asking() {
                Some(asking) => {
                    let uid = &intent.identity().uid;
                    let now = self.reads.now();
                    let asks = self.reads.asks();
                    writer.associate(step, (uid, &asking), asks, now).await
                }
                None => writer.apply(step).await,
            },
        };
        match &mut learned {
            Ok(Learned::Failed(failure)) => failure.gives_back = observed.failure.is_some(),
            Ok(Learned::Started(pending)) => self.reads.started(intent, pending),
            _ => {}
        }
        learned
    }

    fn learn(&self, observed: &mut Observed, step: &CloudStep, learned: Learned) {
        learn::learn(observed, step, learned);
    }

    fn predict(&self, observed: &mut Observed, step: &CloudStep) {
        learn::predict(observed, step);
    }
}

impl LoadBalancer for Balancers {
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
