//! A process's reconciles, by the service controller's own drive.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use bowline_cloud_provider::plan::{Lane, Note};
use bowline_cloud_provider::{CloudProvider, DynPlan, DynStep, KubeWrite, Reconcile, ServiceFacts};
use bowline_drive::{DriveError, Driven, Hooks, Lanes, Mode, drive};
use futures::future::BoxFuture;
use jiff::Timestamp;
use tokio::sync::Notify;

use crate::{MAX_WAITS, Outcome, Run, Services};

/// What befalls the process during a run.
#[derive(Debug, Clone, Copy)]
pub enum Interruption {
    /// Nothing.
    Never,
    /// Not at all, and steps of the run that share no lane are made side by side.
    SideBySide,
    /// It is stopped for good before step n + 1; it still waits for what comes before that step.
    BeforeStep(usize),
    /// It is stopped for good after step n: what it would wait for then it never sees.
    AfterStep(usize),
    /// It stands still for so long before step n + 1, as under `SIGSTOP`, and knows nothing of it.
    Pause(usize, Duration),
}

/// The reconciles of one process.
#[derive(Default)]
pub struct ServiceLoop {
    services: Services,
    /// Those of the process: two steps that share one never meet.
    lanes: Lanes,
}

impl ServiceLoop {
    /// A process on this cluster.
    #[must_use]
    pub fn new(services: &Services) -> Self {
        Self {
            services: services.clone(),
            lanes: Lanes::default(),
        }
    }

    /// Reconciles a Service until it settles, is refused or fails. `facts` are asked for at the beginning and after each
    /// write to Kubernetes.
    ///
    /// # Panics
    ///
    /// If the cloud balances no load, or if the run never ends.
    pub async fn reconcile(
        &self,
        cloud: &dyn CloudProvider,
        key: &str,
        facts: impl Fn() -> ServiceFacts + Sync,
        interruption: Interruption,
    ) -> Run {
        let hooks = Reconciling {
            services: &self.services,
            key,
            facts: &facts,
            interruption,
            stopped: Notify::new(),
            state: Mutex::default(),
        };
        let driven = match cloud.load_balancer().unwrap().begin(facts()) {
            Ok(mut session) => tokio::select! {
                biased;
                () = hooks.stopped.notified() => Ok(Driven::Superseded),
                driven = self.finish(&mut *session, &hooks) => driven,
            },
            Err(refusal) => Ok(Driven::Refused(refusal, None)),
        };
        let State { mut run, .. } = hooks.state.into_inner().unwrap();
        run.outcome = match driven {
            Ok(Driven::Settled(status, again)) => {
                self.services.publish(key, &status);
                run.again = again;
                Outcome::Settled(status)
            }
            Ok(Driven::Refused(refusal, status)) => {
                if let Some(status) = &status {
                    self.services.publish(key, status);
                }
                run.published_although_refused = status;
                Outcome::Refused(refusal.to_string())
            }
            Ok(Driven::Wait { .. } | Driven::Superseded) => Outcome::Stopped,
            Err(error @ DriveError::Endless(..)) => panic!("{error}: {run:#?}"),
            Err(error) => {
                run.stated = match &error {
                    DriveError::Observe(cause) | DriveError::Step { error: cause, .. } => {
                        cause.stated_delay()
                    }
                    DriveError::Kube { .. } | DriveError::Endless(..) => None,
                };
                Outcome::Failed(error.to_string())
            }
        };
        run
    }

    /// Drives and waits until the end, or until it would wait for what it never sees.
    async fn finish(
        &self,
        session: &mut dyn Reconcile<ServiceFacts>,
        hooks: &Reconciling<'_>,
    ) -> Result<Driven, DriveError<String>> {
        let mut is_unverified = false;
        for _ in 0..MAX_WAITS {
            match drive(session, Mode::Apply(&self.lanes), hooks, &mut is_unverified).await {
                Ok(Driven::Wait { after, reason }) if !matches!(hooks.interruption, Interruption::AfterStep(n) if n == hooks.made()) =>
                {
                    hooks.state().run.waited += after;
                    hooks.state().run.waited_for = reason;
                    tokio::time::sleep(after).await;
                }
                driven => return driven,
            }
        }
        panic!("{} waits for ever: {:#?}", hooks.key, hooks.state().run);
    }
}

/// What a run of [`ServiceLoop::reconcile`] has come to.
#[derive(Default)]
struct State {
    run: Run,
    /// The notes of the last plan.
    said: Vec<Note>,
    /// A status was refused: it is held back from then on.
    is_denied: bool,
}

struct Reconciling<'a> {
    services: &'a Services,
    key: &'a str,
    facts: &'a (dyn Fn() -> ServiceFacts + Sync),
    interruption: Interruption,
    stopped: Notify,
    state: Mutex<State>,
}

impl Reconciling<'_> {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// How many steps were begun.
    fn made(&self) -> usize {
        self.state().run.steps().len()
    }
}

impl Hooks<ServiceFacts, String> for Reconciling<'_> {
    fn planned(&self, _facts: &ServiceFacts, plan: &DynPlan) {
        let State { run, said, .. } = &mut *self.state();
        let news = plan.notes.iter().filter(|note| !said.contains(note));
        run.notes.extend(news.cloned());
        said.clone_from(&plan.notes);
        run.lacks = plan.lacks.as_ref().map(ToString::to_string);
    }

    fn now(&self) -> Option<Timestamp> {
        Some((self.facts)().now)
    }

    fn writing(&self, _facts: &ServiceFacts, _wave: &[DynStep]) {
        let run = &mut self.state().run;
        run.waves.push(Vec::new());
        run.impacts.push(Vec::new());
    }

    fn before<'b>(&'b self, step: &'b DynStep) -> BoxFuture<'b, ()> {
        Box::pin(async move {
            let made = self.made();
            match self.interruption {
                Interruption::BeforeStep(n) | Interruption::AfterStep(n) if n == made => {
                    self.stopped.notify_one();
                    std::future::pending::<()>().await;
                }
                Interruption::Pause(n, time) if n == made => tokio::time::sleep(time).await,
                _ => {}
            }
            let (view, run) = (step.view(), &mut self.state().run);
            run.waves.last_mut().unwrap().push(view.label.clone());
            run.impacts.last_mut().unwrap().push(view.impact);
        })
    }

    /// A write is made only on the Service that the plan was made from, as by its resource version.
    fn write<'b>(
        &'b self,
        facts: &'b Mutex<ServiceFacts>,
        write: &'b KubeWrite,
    ) -> BoxFuture<'b, Result<(), String>> {
        let mut facts = facts.lock().unwrap();
        let written = match self.services.find(self.key) {
            _ if self.services.denies(write) => {
                self.state().is_denied = true;
                Err("denied by a policy".to_owned())
            }
            Some(service) if Arc::ptr_eq(&facts.service, &service) => {
                self.services.edit(self.key, |service| write.predict(service));
                *facts = (self.facts)();
                Ok(())
            }
            Some(_) => Err("conflict".to_owned()),
            None => Err("gone".to_owned()),
        };
        Box::pin(std::future::ready(written))
    }

    fn holds_back(&self, write: &KubeWrite) -> bool {
        self.services.denies(write) && self.state().is_denied
    }

    fn object(&self) -> String {
        self.key.to_owned()
    }

    /// Most tests count steps, so those of one run are made one after the other.
    fn lanes(&self, step: &DynStep) -> Vec<Lane> {
        let is_alone = !matches!(self.interruption, Interruption::SideBySide);
        let own = is_alone.then(|| Lane::new(format!("run/{}", self.key)));
        step.view().lanes.iter().cloned().chain(own).collect()
    }
}
