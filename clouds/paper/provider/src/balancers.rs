//! Balancers for Services: the five moves, put together.

use std::sync::Arc;

use bowline_cloud_provider::orphans::{Found, OrphanFacts};
use bowline_cloud_provider::{
    Asker, CloudError, LoadBalancer, LoadBalancerPlan, Memory, Reconciler, RefusalBook, Seen, ServiceFacts,
    ServiceKey,
};
use bowline_paper_client::Client;
use bowline_plan::{Refusal, Shown};
use futures::future::BoxFuture;

use crate::intent::{self, Intent};
use crate::observe::{Observed, Reads};
use crate::step::{self, BalancerStep, Change, Learned};
use crate::{orphans, planning};

/// The balancers of the project.
pub(crate) struct Balancers {
    pub(crate) client: Client,
    pub(crate) reads: Arc<Reads>,
    /// All that is remembered: what the API refused, and removals that failed.
    pub(crate) refusals: RefusalBook<BalancerStep>,
}

// guide: reconciler
impl Reconciler for Balancers {
    type Facts = ServiceFacts;
    type Intent = Intent;
    type Observed = Observed;
    type Remembered = ();
    type Step = BalancerStep;
    type Learned = Learned;

    fn intent(&self, facts: &ServiceFacts) -> Result<Intent, Refusal> {
        intent::read(facts)
    }

    async fn observe(
        &self,
        intent: &Intent,
        _: Option<Observed>,
        _: &mut Memory<(), BalancerStep>,
    ) -> Result<Observed, CloudError> {
        // One listing shared by all who wait is cheaper than a look at each of what they wait for.
        self.reads.all(intent).await
    }

    fn plan(
        &self,
        intent: &Intent,
        seen: &Seen<Observed, (), BalancerStep>,
    ) -> LoadBalancerPlan<BalancerStep> {
        planning::plan(intent, seen)
    }

    fn book(&self, facts: &ServiceFacts) -> Option<(&RefusalBook<BalancerStep>, Asker)> {
        Some((&self.refusals, Asker::of(facts, &[])))
    }

    async fn apply(
        &self,
        _: &Intent,
        _: &Seen<Observed, (), BalancerStep>,
        step: &BalancerStep,
    ) -> Result<Learned, CloudError> {
        let client = &self.client;
        let answer = match step {
            BalancerStep::Create(new) => client.create_balancer(new).await,
            BalancerStep::Delete { balancer, .. } => {
                let deleted = client.delete_balancer(balancer).await;
                return deleted.map(|()| Learned::Gone).map_err(CloudError::of_write);
            }
            BalancerStep::Change { balancer, change, .. } => match change {
                Change::AddMember(machine) => client.put_member(balancer, machine).await,
                Change::RemoveMember(machine) => client.delete_member(balancer, machine).await,
                Change::OpenPort(port) | Change::MovePort(port) => client.put_port(balancer, port).await,
                Change::ClosePort(port) => client.delete_port(balancer, port).await,
            },
        };
        let balancer = answer.map_err(CloudError::of_write)?;
        Ok(Learned::Is(Box::new(balancer)))
    }

    fn shown(&self, _: &Intent, observed: &Observed) -> Shown {
        let mut shown = Shown::default();
        for balancer in &observed.own {
            let members: Vec<String> = balancer.members.iter().map(ToString::to_string).collect();
            let members = members.iter().map(|machine| (machine.as_str(), ""));
            shown.add_members(&format!("balancer {}", balancer.name), members);
        }
        shown
    }

    fn learn(&self, seen: &mut Seen<Observed, (), BalancerStep>, step: &BalancerStep, learned: Learned) {
        step::learn(seen, step, learned);
    }

    fn predict(&self, seen: &mut Seen<Observed, (), BalancerStep>, step: &BalancerStep) {
        step::predict(seen, step);
    }
}
// guide: end

impl LoadBalancer for Balancers {
    fn marked<'a>(&'a self, facts: &'a OrphanFacts) -> BoxFuture<'a, Result<Vec<Found>, CloudError>> {
        Box::pin(orphans::marked(&self.reads, facts))
    }

    fn load_balancer_name(&self, facts: &ServiceFacts) -> String {
        ServiceKey::of(&facts.service).to_string()
    }
}
