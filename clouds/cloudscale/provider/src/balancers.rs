//! Load balancers as the service loop wants them.

use std::sync::{Arc, Mutex, PoisonError};

use bowline_cloud_http::Url;
use bowline_cloud_provider::{
    CloudError, LoadBalancer, LoadBalancerPlan, MadeFor, Reconciler, Service, ServiceFacts, ServicesView,
    facts,
};
use bowline_cloudscale_client::Client;
use bowline_plan::Refusal;

use crate::annotations::NODE_SELECTOR;
use crate::apply::{Learned, Writer};
use crate::intent::{self, Context, Intent};
use crate::learn;
use crate::observe::reads::Reads;
use crate::observe::{Observed, Unkept};
use crate::ownership;
use crate::planning::{self, Hrefs};
use crate::step::CloudStep;

/// The load balancers of a project.
pub(crate) struct Balancers {
    client: Client,
    reads: Arc<Reads>,
    hrefs: Hrefs,
    cluster_name_annotation: String,
    /// Changes that the API answered and did not keep. It only spares writes: without it, each try would write once more.
    unkept: Mutex<Vec<Unkept>>,
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
            unkept: Mutex::default(),
        }
    }

    /// Adds what is known of writes to what was read; `seen` is the observation before it in the same reconcile.
    fn with_attempts(&self, mut observed: Observed, seen: Option<&Observed>) -> Observed {
        if let Some(seen) = seen {
            observed.attempts = seen.attempts.clone();
            observed.attempts.reads += 1;
        }
        let mut unkept = self.unkept.lock().unwrap_or_else(PoisonError::into_inner);
        planning::remember(&mut unkept, &mut observed);
        observed
    }
}

impl Reconciler for Balancers {
    type Facts = ServiceFacts;
    type Intent = Intent;
    type Observed = Observed;
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

    async fn observe(&self, intent: &Intent, seen: Option<&Observed>) -> Result<Observed, CloudError> {
        let observed = match seen {
            None => self.reads.all(intent).await?,
            Some(seen) => self.reads.poll(intent, seen).await?,
        };
        Ok(self.with_attempts(observed, seen))
    }

    async fn verify(&self, intent: &Intent, seen: &Observed) -> Result<Observed, CloudError> {
        let observed = self.reads.after_writes(intent, seen).await?;
        Ok(self.with_attempts(observed, Some(seen)))
    }

    fn plan(&self, intent: &Intent, observed: &Observed) -> LoadBalancerPlan<CloudStep> {
        planning::plan(&self.hrefs, intent, observed)
    }

    async fn apply(
        &self,
        _intent: &Intent,
        observed: &Observed,
        step: &CloudStep,
    ) -> Result<Learned, CloudError> {
        Writer {
            client: &self.client,
            observed,
        }
        .apply(step)
        .await
    }

    fn learn(&self, observed: &mut Observed, step: &CloudStep, learned: Learned) {
        learn::learn(observed, step, learned);
    }

    fn predict(&self, observed: &mut Observed, step: &CloudStep) {
        learn::predict(observed, step);
    }
}

impl LoadBalancer for Balancers {
    fn load_balancer_name(&self, facts: &ServiceFacts) -> String {
        intent::effective_name(&facts.service)
    }

    async fn made_for(&self, services: &dyn ServicesView) -> Result<Vec<MadeFor>, CloudError> {
        if services.cluster_uid().is_none() {
            return Ok(Vec::new());
        }
        let balancers = self.reads.balancers().await?;
        Ok(ownership::made_by_cluster(&balancers, services))
    }

    fn selects_nodes_by_label(&self, service: &Service) -> bool {
        facts::annotation(service, NODE_SELECTOR.key).is_some_and(|selector| !selector.trim().is_empty())
    }
}
