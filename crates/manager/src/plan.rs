//! What would be done for Services, without doing it.
//!
//! A fold over the same moves that the service loop makes: observe once, then plan, predict the wave's effect, and plan
//! again until there is nothing left to predict. Nothing is written, neither to the cloud nor to Kubernetes.

use std::sync::Arc;

use bowline_cloud_provider::plan::{
    Answer, Note, PlanReport, Refusal, ReportedOutcome, ReportedWave, StepView,
};
use bowline_cloud_provider::{
    ClusterFacts, DynLoadBalancer, DynStep, LoadBalancerStatus, Node, Reconcile, Service, ServiceFacts,
    ServiceKey, ServicesView, facts,
};
use bowline_controllers::node_set;
use futures::StreamExt as _;
use jiff::Timestamp;

/// Services that are observed at once. The cloud's own budget bounds the calls below that.
const AT_ONCE: usize = 16;

/// A plan that has no end after so many waves is a fault of the provider: real ones have less than ten.
const MAX_WAVES: usize = 64;

/// What the plans are made from.
pub struct PlanInput {
    /// All Services of the cluster.
    pub services: Vec<Arc<Service>>,
    /// All Nodes of the cluster.
    pub nodes: Vec<Arc<Node>>,
    /// The cluster.
    pub cluster: Arc<ClusterFacts>,
    /// The wall time.
    pub now: Timestamp,
}

/// Plans for these Services, or for all that have to do with a balancer of ours if none is named; in that order.
pub async fn plan_services(
    load_balancer: &dyn DynLoadBalancer,
    input: &PlanInput,
    only: &[ServiceKey],
) -> Vec<PlanReport> {
    let view: Arc<dyn ServicesView> = Arc::new(input.services.clone());
    let nodes: Arc<[Arc<Node>]> = node_set::balanced(&input.nodes, load_balancer.node_set()).into();
    let keys: Vec<ServiceKey> = if only.is_empty() {
        input
            .services
            .iter()
            .filter(|service| is_ours(service))
            .map(|service| ServiceKey::of(service))
            .collect()
    } else {
        only.to_vec()
    };
    let plans = keys.into_iter().map(|key| {
        let service = input
            .services
            .iter()
            .find(|service| ServiceKey::of(service) == key)
            .cloned();
        let facts = service.map(|service| {
            let is_wanted =
                facts::wants_load_balancer(&service) && service.metadata.deletion_timestamp.is_none();
            ServiceFacts {
                service,
                is_wanted,
                nodes: Arc::clone(&nodes),
                services: Arc::clone(&view),
                cluster: Arc::clone(&input.cluster),
                now: input.now,
            }
        });
        async move {
            match facts {
                Some(facts) if is_ours(&facts.service) => plan_one(load_balancer, key, facts).await,
                Some(_) => Report::new(&key).end(ReportedOutcome::Settled {
                    publishes: Vec::new(),
                }),
                None => Report::new(&key).fail("there is no such Service"),
            }
        }
    });
    futures::stream::iter(plans).buffered(AT_ONCE).collect().await
}

fn is_ours(service: &Service) -> bool {
    facts::wants_load_balancer(service) || facts::needs_cleanup(service)
}

async fn plan_one(load_balancer: &dyn DynLoadBalancer, key: ServiceKey, facts: ServiceFacts) -> PlanReport {
    let mut report = Report::new(&key);
    let mut session = match load_balancer.begin(facts) {
        Ok(session) => session,
        Err(refusal) => return report.refuse(refusal),
    };
    if let Err(error) = session.observe().await {
        return report.fail(error);
    }
    let mut has_looked = false;
    for _ in 0..MAX_WAVES {
        let Some(plan) = session.plan() else {
            return report.fail("the provider has no plan");
        };
        report.note(plan.notes);
        match plan.answer {
            Answer::Apply(wave) => {
                let views: Vec<StepView> = wave.steps().iter().map(|step| step.view().clone()).collect();
                report.waves.push(ReportedWave::of(&views));
                for step in wave.steps() {
                    if let Err(refusal) = predict(&mut *session, step) {
                        return report.refuse(refusal);
                    }
                }
            }
            Answer::Settled(status) => {
                let publishes = published(session.facts(), &status);
                return report.end(ReportedOutcome::Settled { publishes });
            }
            // Nothing is awaited: what comes next has to be read first.
            Answer::Wait { after, .. } if after.is_zero() && !std::mem::replace(&mut has_looked, true) => {
                if let Err(error) = session.observe().await {
                    return report.fail(error);
                }
                continue;
            }
            Answer::Wait { reason, .. } => return report.end(ReportedOutcome::Waiting { reason }),
            Answer::Refused(refusal) => return report.refuse(refusal),
        }
        has_looked = false;
    }
    report.fail(format!("no end after {MAX_WAVES} waves"))
}

/// Goes on as if the step had been applied.
fn predict(session: &mut dyn Reconcile<ServiceFacts>, step: &DynStep) -> Result<(), Refusal> {
    let Some(write) = step.kube_write() else {
        session.predict(step);
        return Ok(());
    };
    let mut facts = session.facts().clone();
    write.predict(Arc::make_mut(&mut facts.service));
    session.refresh(facts)
}

/// What would be changed in the Service's status and finalizers at the end, in words.
fn published(facts: &ServiceFacts, status: &LoadBalancerStatus) -> Vec<String> {
    let shown = facts::published_addresses(&facts.service);
    let wanted: Vec<String> = status
        .ingress
        .iter()
        .filter_map(|entry| entry.ip.clone().or_else(|| entry.hostname.clone()))
        .collect();
    let mut words = Vec::new();
    match (shown == wanted, wanted.is_empty()) {
        (true, _) => {}
        (false, true) => words.push("no address".to_owned()),
        (false, false) => words.extend(wanted),
    }
    if !facts.is_wanted && facts::has_finalizer(&facts.service) {
        words.push("no finalizer".to_owned());
    }
    words
}

/// A report in the making.
struct Report {
    object: String,
    waves: Vec<ReportedWave>,
    notes: Vec<Note>,
}

impl Report {
    fn new(key: &ServiceKey) -> Self {
        Self {
            object: key.to_string(),
            waves: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// Adds notes that are new: the same note may be part of every plan as long as it holds.
    fn note(&mut self, notes: Vec<Note>) {
        for note in notes {
            if !self.notes.contains(&note) {
                self.notes.push(note);
            }
        }
    }

    fn refuse(self, refusal: Refusal) -> PlanReport {
        self.end(ReportedOutcome::Refused { refusal })
    }

    fn fail(self, error: impl ToString) -> PlanReport {
        let error = error.to_string();
        self.end(ReportedOutcome::Failed { error })
    }

    fn end(self, outcome: ReportedOutcome) -> PlanReport {
        PlanReport {
            object: self.object,
            waves: self.waves,
            outcome,
            notes: self.notes,
        }
    }
}
