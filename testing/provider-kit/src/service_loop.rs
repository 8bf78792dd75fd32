//! The loop: observe, plan, apply, learn, until there is nothing left to do.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bowline_cloud_provider::plan::{Answer, Lane, Note};
use bowline_cloud_provider::{CloudProvider, DynLearned, DynStep, Reconcile, ServiceFacts};
use tokio::sync::OwnedMutexGuard;

use crate::{Outcome, Run, Services};

/// The most plans of one run: a run that needs more never ends.
const MAX_ROUNDS: usize = 2_000;

/// What befalls the process during a run.
#[derive(Debug, Clone, Copy)]
pub enum Interruption {
    /// Nothing.
    Never,
    /// It is stopped for good before step n + 1; it still waits for what comes before that step.
    BeforeStep(usize),
    /// It is stopped for good after step n: what it would wait for then it never sees.
    AfterStep(usize),
    /// It stands still for so long before step n + 1, as under `SIGSTOP`, and knows nothing of it.
    Pause(usize, Duration),
}

/// The service loop of one process.
#[derive(Debug, Default)]
pub struct ServiceLoop {
    services: Services,
    /// Those of the process: two steps that share one never meet.
    lanes: Mutex<BTreeMap<Lane, Arc<tokio::sync::Mutex<()>>>>,
}

impl ServiceLoop {
    /// A process on this cluster.
    #[must_use]
    pub fn new(services: &Services) -> Self {
        Self {
            services: services.clone(),
            lanes: Mutex::default(),
        }
    }

    /// Reconciles a Service until it settles, is refused or fails. `facts` are asked for at the beginning and after each
    /// wave that wrote to Kubernetes.
    ///
    /// # Panics
    ///
    /// If the cloud balances no load, or if the run never ends.
    pub async fn reconcile(
        &self,
        cloud: &dyn CloudProvider,
        key: &str,
        facts: impl Fn() -> ServiceFacts,
        interruption: Interruption,
    ) -> Run {
        let mut run = Run {
            outcome: Outcome::Stopped,
            waves: Vec::new(),
            notes: Vec::new(),
            waited: Duration::ZERO,
            again: None,
            published_although_refused: None,
        };
        match cloud.load_balancer().unwrap().begin(facts()) {
            Ok(mut session) => {
                let driven = self.drive(key, &facts, &mut *session, interruption, &mut run);
                run.outcome = driven.await.unwrap_or_else(Outcome::Failed);
            }
            Err(refusal) => run.outcome = Outcome::Refused(refusal.to_string()),
        }
        run
    }

    async fn drive(
        &self,
        key: &str,
        facts: &impl Fn() -> ServiceFacts,
        session: &mut dyn Reconcile<ServiceFacts>,
        interruption: Interruption,
        run: &mut Run,
    ) -> Result<Outcome, String> {
        let mut is_unverified = false;
        let mut made = 0;
        let mut said: Vec<Note> = Vec::new();
        session.observe().await.map_err(|error| error.to_string())?;
        for _ in 0..MAX_ROUNDS {
            let plan = session.plan().unwrap();
            run.notes
                .extend(plan.notes.iter().filter(|note| !said.contains(note)).cloned());
            said = plan.notes;
            match plan.answer {
                Answer::Settled(_) | Answer::Refused(_)
                    if is_unverified
                        && (plan.publishes.is_some() || matches!(plan.answer, Answer::Settled(_))) =>
                {
                    session.verify().await.map_err(|error| error.to_string())?;
                    is_unverified = false;
                }
                Answer::Settled(status) => {
                    run.again = plan.again;
                    return Ok(Outcome::Settled(status));
                }
                Answer::Refused(refusal) => {
                    run.published_although_refused = plan.publishes;
                    return Ok(Outcome::Refused(refusal.to_string()));
                }
                Answer::Wait { .. } if matches!(interruption, Interruption::AfterStep(n) if n == made) => {
                    return Ok(Outcome::Stopped);
                }
                Answer::Wait { after, .. } => {
                    tokio::time::sleep(after).await;
                    run.waited += after;
                    session.observe().await.map_err(|error| error.to_string())?;
                }
                Answer::Apply(wave) => {
                    run.waves.push(Vec::new());
                    let mut wrote_kube = false;
                    // As in the service loop, the steps of a wave know nothing of each other.
                    let mut learned = Vec::new();
                    for step in wave.into_steps() {
                        match interruption {
                            Interruption::BeforeStep(n) | Interruption::AfterStep(n) if n == made => {
                                return Ok(Outcome::Stopped);
                            }
                            Interruption::Pause(n, time) if n == made => tokio::time::sleep(time).await,
                            _ => {}
                        }
                        made += 1;
                        run.waves.last_mut().unwrap().push(step.view().label.clone());
                        if let Some(write) = step.kube_write() {
                            if !wrote_kube {
                                self.check_version(key, session)?;
                            }
                            self.services.edit(key, |service| write.predict(service));
                            wrote_kube = true;
                        } else {
                            is_unverified = true;
                            let answer = self.apply(session, &step).await;
                            learned.push((step, answer));
                        }
                    }
                    for (step, answer) in learned {
                        session.learn(&step, answer?);
                    }
                    if wrote_kube {
                        self.services.find(key).ok_or("gone")?;
                        if let Err(refusal) = session.refresh(facts()) {
                            return Ok(Outcome::Refused(refusal.to_string()));
                        }
                    }
                }
            }
        }
        panic!("{key} never settles: {run:#?}");
    }

    async fn apply(
        &self,
        session: &dyn Reconcile<ServiceFacts>,
        step: &DynStep,
    ) -> Result<DynLearned, String> {
        let view = step.view();
        let _held = self.hold(&view.lanes).await;
        let learned = session.apply(step).await;
        learned.map_err(|error| format!("error during {}: {error}", view.label))
    }

    /// Takes the lanes of a step, in name order as the service loop does.
    async fn hold(&self, lanes: &[Lane]) -> Vec<OwnedMutexGuard<()>> {
        let mut held = Vec::new();
        for lane in lanes.iter().collect::<BTreeSet<_>>() {
            let lane = Arc::clone(self.lanes.lock().unwrap().entry(lane.clone()).or_default());
            held.push(lane.lock_owned().await);
        }
        held
    }

    /// A write to Kubernetes is made only on the Service that the plan was made from, as by its resource version.
    fn check_version(&self, key: &str, session: &dyn Reconcile<ServiceFacts>) -> Result<(), String> {
        match self.services.find(key) {
            Some(service) if Arc::ptr_eq(&session.facts().service, &service) => Ok(()),
            Some(_) => Err("conflict".to_owned()),
            None => Err("gone".to_owned()),
        }
    }
}
