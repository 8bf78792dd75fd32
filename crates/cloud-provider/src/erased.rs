//! Providers behind one type, so that the controllers are compiled once whatever clouds are built in.
//!
//! A provider's own types of intent, observation and step stay inside a [`Reconcile`] session; a step comes out as a
//! [`DynStep`] that shows its view and goes back in to be applied.

use std::any::Any;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bowline_plan::{Answer, Plan, Refusal, StepView};
use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::Service;

use crate::load_balancer::{BackgroundFacts, BackgroundWork, LoadBalancer, Reconciler};
use crate::{
    CloudError, KubeWrite, LoadBalancerStatus, LoadBalancerStep, MadeFor, Measurement, Memory, Node, NodeSet,
    Seen, SeenBy, ServiceFacts, ServicesView,
};

/// A plan with erased steps.
pub type DynPlan = Plan<DynStep, LoadBalancerStatus>;
/// An answer with erased steps.
pub type DynAnswer = Answer<DynStep, LoadBalancerStatus>;
/// What a write's answer told, erased.
pub struct DynLearned(Box<dyn Any + Send>);

/// A step of any provider.
#[derive(Clone)]
pub struct DynStep {
    view: StepView,
    kind: StepKind,
}

#[derive(Clone)]
enum StepKind {
    Cloud(Arc<dyn Any + Send + Sync>),
    Kube(KubeWrite),
}

impl DynStep {
    fn new<C: bowline_plan::Step + Send + Sync + 'static>(step: LoadBalancerStep<C>) -> Self {
        let view = step.view();
        let kind = match step {
            LoadBalancerStep::Cloud(step) => StepKind::Cloud(Arc::new(step)),
            LoadBalancerStep::Kube(write) => StepKind::Kube(write),
        };
        Self { view, kind }
    }

    /// What is to be shown of the step, and the lanes it needs.
    #[must_use]
    pub fn view(&self) -> &StepView {
        &self.view
    }

    /// The write to Kubernetes, if it is one; else the step goes to [`Reconcile::apply`].
    #[must_use]
    pub fn kube_write(&self) -> Option<&KubeWrite> {
        match &self.kind {
            StepKind::Kube(write) => Some(write),
            StepKind::Cloud(_) => None,
        }
    }

    fn cloud_step<C: 'static>(&self) -> Option<&C> {
        match &self.kind {
            StepKind::Cloud(step) => step.downcast_ref(),
            StepKind::Kube(_) => None,
        }
    }
}

impl std::fmt::Debug for DynStep {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.view.fmt(f)
    }
}

/// Load balancers of any cloud.
pub trait DynLoadBalancer: Send + Sync {
    /// Begins a reconcile: parses and checks what is asked for. No call to the cloud.
    ///
    /// # Errors
    ///
    /// Everything that is wrong with what is asked.
    fn begin(&self, facts: ServiceFacts) -> Result<Box<dyn Reconcile<ServiceFacts>>, Refusal>;
    /// See [`LoadBalancer::node_set`].
    fn node_set(&self) -> NodeSet;
    /// See [`LoadBalancer::follows_nodes`].
    fn follows_nodes(&self) -> bool;
    /// See [`LoadBalancer::node_annotations`].
    fn node_annotations(&self, node: &Node) -> BTreeMap<String, String>;
    /// See [`LoadBalancer::needs_annotations`].
    fn needs_annotations(&self) -> bool;
    /// See [`LoadBalancer::load_balancer_name`].
    fn load_balancer_name(&self, facts: &ServiceFacts) -> String;
    /// See [`LoadBalancer::made_for`].
    fn made_for<'a>(
        &'a self,
        services: &'a dyn ServicesView,
    ) -> BoxFuture<'a, Result<Vec<MadeFor>, CloudError>>;
    /// See [`LoadBalancer::selects_nodes_by_label`].
    fn selects_nodes_by_label(&self, service: &Service) -> bool;
}

/// Background work of any cloud.
pub trait DynBackgroundWork: Send + Sync {
    /// Begins a run.
    ///
    /// # Errors
    ///
    /// Everything that is wrong with what is asked.
    fn begin(&self, facts: BackgroundFacts) -> Result<Box<dyn BackgroundRun>, Refusal>;
    /// See [`BackgroundWork::name`].
    fn name(&self) -> &'static str;
    /// See [`BackgroundWork::period`].
    fn period(&self) -> Duration;
    /// See [`BackgroundWork::first`].
    fn first(&self) -> Duration;
}

/// One reconcile under way: holds the intent, the last observation and the memory.
pub trait Reconcile<F>: Send + Sync {
    /// Reads from the cloud: everything the first time, else what is being waited for.
    fn observe(&mut self) -> BoxFuture<'_, Result<(), CloudError>>;

    /// Reads again at the end of a reconcile that wrote, as far as its own writes may have left something in doubt; see
    /// [`Reconciler::verify`].
    fn verify(&mut self) -> BoxFuture<'_, Result<(), CloudError>>;

    /// What comes next; `None` before the first observation.
    fn plan(&mut self) -> Option<DynPlan>;

    /// Makes a step's write to the cloud. Several may run at once if their lanes allow; they borrow the same observation.
    fn apply<'a>(&'a self, step: &'a DynStep) -> BoxFuture<'a, Result<DynLearned, CloudError>>;

    /// Adds what a write's answer told.
    fn learn(&mut self, step: &DynStep, learned: DynLearned);

    /// Changes the observation as applying a step to the cloud would.
    fn predict(&mut self, step: &DynStep);

    /// Goes on with newer facts: after a write to Kubernetes, real or predicted.
    ///
    /// # Errors
    ///
    /// Everything that is wrong with what is asked by now.
    fn refresh(&mut self, facts: F) -> Result<(), Refusal>;

    /// The facts that the reconcile goes by.
    fn facts(&self) -> &F;
}

/// One run of background work.
pub trait BackgroundRun: Reconcile<BackgroundFacts> {
    /// What the run has counted; see [`BackgroundWork::measure`]. Nothing before the first observation.
    fn measurements(&self) -> Vec<Measurement>;
}

/// Puts a provider's load balancers behind the common type.
#[must_use]
pub fn erase<L: LoadBalancer>(load_balancer: Arc<L>) -> Arc<dyn DynLoadBalancer> {
    Arc::new(Erased(load_balancer))
}

/// Puts a provider's background work behind the common type.
#[must_use]
pub fn erased_background<B: BackgroundWork>(work: Arc<B>) -> Arc<dyn DynBackgroundWork> {
    Arc::new(Erased(work))
}

struct Erased<R>(Arc<R>);

impl<L: LoadBalancer> DynLoadBalancer for Erased<L> {
    fn begin(&self, facts: ServiceFacts) -> Result<Box<dyn Reconcile<ServiceFacts>>, Refusal> {
        Ok(Box::new(Session::begin(&self.0, facts)?))
    }

    fn node_set(&self) -> NodeSet {
        self.0.node_set()
    }

    fn follows_nodes(&self) -> bool {
        self.0.follows_nodes()
    }

    fn node_annotations(&self, node: &Node) -> BTreeMap<String, String> {
        self.0.node_annotations(node)
    }

    fn needs_annotations(&self) -> bool {
        self.0.needs_annotations()
    }

    fn load_balancer_name(&self, facts: &ServiceFacts) -> String {
        self.0.load_balancer_name(facts)
    }

    fn made_for<'a>(
        &'a self,
        services: &'a dyn ServicesView,
    ) -> BoxFuture<'a, Result<Vec<MadeFor>, CloudError>> {
        Box::pin(self.0.made_for(services))
    }

    fn selects_nodes_by_label(&self, service: &Service) -> bool {
        self.0.selects_nodes_by_label(service)
    }
}

impl<B: BackgroundWork> DynBackgroundWork for Erased<B> {
    fn begin(&self, facts: BackgroundFacts) -> Result<Box<dyn BackgroundRun>, Refusal> {
        Ok(Box::new(Session::begin(&self.0, facts)?))
    }

    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn period(&self) -> Duration {
        self.0.period()
    }

    fn first(&self) -> Duration {
        self.0.first()
    }
}

struct Session<R: Reconciler> {
    reconciler: Arc<R>,
    facts: R::Facts,
    intent: R::Intent,
    seen: Option<SeenBy<R>>,
}

impl<R: Reconciler> Session<R> {
    fn begin(reconciler: &Arc<R>, facts: R::Facts) -> Result<Self, Refusal> {
        let intent = reconciler.intent(&facts)?;
        Ok(Self {
            reconciler: Arc::clone(reconciler),
            facts,
            intent,
            seen: None,
        })
    }
}

impl<B: BackgroundWork> BackgroundRun for Session<B> {
    fn measurements(&self) -> Vec<Measurement> {
        self.seen
            .as_ref()
            .map(|seen| self.reconciler.measure(&self.intent, seen))
            .unwrap_or_default()
    }
}

impl<R: Reconciler> Reconcile<R::Facts> for Session<R> {
    fn observe(&mut self) -> BoxFuture<'_, Result<(), CloudError>> {
        Box::pin(async {
            let (last, mut memory) = match self.seen.take() {
                None => (None, Memory::default()),
                Some(Seen { observed, mut memory }) => {
                    memory.look_again();
                    (Some(observed), memory)
                }
            };
            let observed = self.reconciler.observe(&self.intent, last, &mut memory);
            let observed = observed.await?;
            self.seen = Some(Seen { observed, memory });
            Ok(())
        })
    }

    fn verify(&mut self) -> BoxFuture<'_, Result<(), CloudError>> {
        Box::pin(async {
            let Some(Seen { observed, mut memory }) = self.seen.take() else {
                return self.observe().await;
            };
            let observed = self.reconciler.verify(&self.intent, observed, &mut memory);
            let observed = observed.await?;
            self.seen = Some(Seen { observed, memory });
            Ok(())
        })
    }

    fn plan(&mut self) -> Option<DynPlan> {
        let seen = self.seen.as_mut()?;
        let Plan {
            answer,
            notes,
            again,
            publishes,
        } = self.reconciler.plan(&self.intent, seen);
        let answer = match answer {
            Answer::Apply(wave) => Answer::Apply(wave.map(DynStep::new)),
            Answer::Settled(status) => Answer::Settled(status),
            Answer::Wait { after, reason } => {
                seen.memory.asked_to_wait(after);
                Answer::Wait { after, reason }
            }
            Answer::LookAgain { reason } => Answer::LookAgain { reason },
            Answer::Refused(refusal) => Answer::Refused(refusal),
        };
        Some(Plan {
            answer,
            notes,
            again,
            publishes,
        })
    }

    fn apply<'a>(&'a self, step: &'a DynStep) -> BoxFuture<'a, Result<DynLearned, CloudError>> {
        Box::pin(async move {
            let (Some(step), Some(seen)) = (step.cloud_step::<R::Step>(), self.seen.as_ref()) else {
                return Err(CloudError::other(format!(
                    "step {} is not one of this plan",
                    step.view.label
                )));
            };
            let learned = self.reconciler.apply(&self.intent, seen, step).await?;
            Ok(DynLearned(Box::new(learned)))
        })
    }

    fn learn(&mut self, step: &DynStep, learned: DynLearned) {
        // Both casts hold for every step and answer that came out of this session; others teach nothing.
        if let (Some(seen), Some(step), Ok(learned)) = (
            self.seen.as_mut(),
            step.cloud_step::<R::Step>(),
            learned.0.downcast::<R::Learned>(),
        ) {
            self.reconciler.learn(seen, step, *learned);
        }
    }

    fn predict(&mut self, step: &DynStep) {
        if let (Some(seen), Some(step)) = (self.seen.as_mut(), step.cloud_step::<R::Step>()) {
            self.reconciler.predict(seen, step);
        }
    }

    fn refresh(&mut self, facts: R::Facts) -> Result<(), Refusal> {
        self.intent = self.reconciler.intent(&facts)?;
        self.facts = facts;
        Ok(())
    }

    fn facts(&self) -> &R::Facts {
        &self.facts
    }
}
