//! Drives one reconcile: observe, plan, apply a wave, plan again, until the plan has no more steps.
//!
//! The same for a wanted balancer, one that is to be removed, and background work.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bowline_cloud_provider::{
    CloudError, DynLearned, DynPlan, DynStep, KubeWrite, LoadBalancerStatus, Reconcile,
};
use bowline_kube_io::KubeError;
use bowline_plan::{Answer, Lane, Note, Refusal};
use futures::future::BoxFuture;
use futures::stream::{FuturesUnordered, StreamExt as _};

use super::lanes::Lanes;
use crate::metrics::ControllerMetrics;

/// More waves than any plan has: a provider that never settles gives way to other work instead of spinning.
const MAX_WAVES: usize = 100;

/// How a drive ended.
#[derive(Debug)]
pub(super) enum Driven {
    /// Nothing is left to do, but perhaps to look again after a time.
    Settled(LoadBalancerStatus, Option<Duration>),
    /// The cloud is busy; go on with the same session after this time.
    Wait { after: Duration, reason: String },
    /// A person has to change something first; what can be published all the same.
    Refused(Refusal, Option<LoadBalancerStatus>),
    /// What is asked for has changed meanwhile, or the process is stopping: start anew.
    Superseded,
}

/// Why a drive ended early.
#[derive(Debug, thiserror::Error)]
pub(super) enum DriveError {
    /// A read failed.
    #[error("{0}")]
    Observe(CloudError),
    /// A write to the cloud failed.
    #[error("error during {label}: {error}")]
    Step { label: String, error: CloudError },
    /// A write to Kubernetes failed.
    #[error("error during {label}: {error}")]
    Kube { label: String, error: KubeError },
}

/// What happens around a drive.
pub(super) trait Hooks<F>: Sync {
    /// Where plans are counted.
    fn metrics(&self) -> &ControllerMetrics;

    /// A plan was made: these are its notes.
    fn noted(&self, notes: &[Note]);

    /// A wave is about to be applied; `has_cloud_steps` tells whether it changes the cloud.
    fn writing(&self, has_cloud_steps: bool);

    /// Whether to stop before the next wave.
    fn is_superseded(&self) -> bool;

    /// Makes a write to Kubernetes. Writes to one object come one after the other.
    fn write<'a>(&'a self, write: &'a KubeWrite) -> BoxFuture<'a, Result<(), KubeError>>;

    /// The facts after the writes to Kubernetes so far.
    fn facts(&self) -> F;

    /// A call has ended, or begins. `is_working`: something is under way; else everything waits for its lanes.
    fn progressed(&self, is_working: bool);

    /// The object's name in log lines and in the lanes of its writes to Kubernetes.
    fn object(&self) -> String;
}

/// Drives `session` as far as it goes now. `is_unverified` says whether the cloud was written since the last full read;
/// it is kept up to date, and a drive never settles before it has read what its writes left in doubt.
///
/// # Cancellation
///
/// Dropping it abandons the writes that are under way; the next reconcile observes what came of them.
pub(super) async fn drive<F>(
    session: &mut dyn Reconcile<F>,
    lanes: &Lanes,
    hooks: &dyn Hooks<F>,
    is_unverified: &mut bool,
) -> Result<Driven, DriveError> {
    session.observe().await.map_err(DriveError::Observe)?;
    hooks.progressed(true);
    for _ in 0..MAX_WAVES {
        let Some(plan) = session.plan() else {
            return Ok(Driven::Superseded); // cannot be: it has just observed
        };
        hooks.metrics().planned(&plan.answer);
        hooks.noted(&plan.notes);
        match plan.answer {
            Answer::Apply(wave) => {
                if hooks.is_superseded() {
                    return Ok(Driven::Superseded);
                }
                let steps = wave.into_steps();
                let has_cloud_steps = steps.iter().any(|step| step.kube_write().is_none());
                hooks.writing(has_cloud_steps);
                *is_unverified |= has_cloud_steps;
                let applied = apply(session, &steps, lanes, hooks).await;
                hooks.progressed(true);
                applied?;
                if steps.iter().any(|step| step.kube_write().is_some())
                    && let Err(refusal) = session.refresh(hooks.facts())
                {
                    return Ok(Driven::Refused(refusal, None));
                }
            }
            Answer::Settled(_) | Answer::Refused(_) if *is_unverified && is_published(&plan) => {
                session.verify().await.map_err(DriveError::Observe)?;
                hooks.progressed(true);
                *is_unverified = false;
            }
            Answer::Settled(status) => return Ok(Driven::Settled(status, plan.again)),
            Answer::Wait { after, reason } => return Ok(Driven::Wait { after, reason }),
            Answer::Refused(refusal) => return Ok(Driven::Refused(refusal, plan.publishes)),
        }
    }
    Ok(Driven::Superseded)
}

/// Whether a plan ends with something to publish.
fn is_published(plan: &DynPlan) -> bool {
    matches!(plan.answer, Answer::Settled(_)) || plan.publishes.is_some()
}

enum Done {
    Cloud(DynLearned),
    Kube,
}

/// Applies the steps of one wave: in plan order where they share a lane, side by side where they do not. After a failure
/// no further step begins; those under way are waited for.
async fn apply<F>(
    session: &mut dyn Reconcile<F>,
    steps: &[DynStep],
    lanes: &Lanes,
    hooks: &dyn Hooks<F>,
) -> Result<(), DriveError> {
    let lanes_of: Vec<Vec<Lane>> = steps.iter().map(|step| lanes_of(step, hooks)).collect();
    let mut waiting: Vec<usize> = (0..steps.len()).collect();
    let mut busy: BTreeSet<&Lane> = BTreeSet::new();
    let mut learned: Vec<(usize, DynLearned)> = Vec::new();
    let mut failure = None;
    let executing = AtomicUsize::new(0);
    hooks.progressed(false);
    {
        let session: &dyn Reconcile<F> = session;
        let mut running = FuturesUnordered::new();
        loop {
            if failure.is_none() {
                let mut taken = busy.clone();
                waiting.retain(|&index| {
                    let wanted = &lanes_of[index];
                    let is_free = !wanted.iter().any(|lane| taken.contains(lane));
                    taken.extend(wanted); // later steps with this lane stay behind this one
                    if is_free {
                        busy.extend(wanted);
                        let (step, wanted) = (&steps[index], wanted.as_slice());
                        let executing = &executing;
                        running.push(async move {
                            let _held = lanes.hold(wanted).await;
                            executing.fetch_add(1, Ordering::Relaxed);
                            hooks.progressed(true);
                            let done = run(session, step, hooks).await;
                            let others = executing.fetch_sub(1, Ordering::Relaxed) - 1;
                            hooks.progressed(others > 0);
                            (index, done)
                        });
                    }
                    !is_free
                });
            }
            let Some((index, result)) = running.next().await else {
                break;
            };
            for lane in &lanes_of[index] {
                busy.remove(lane);
            }
            match result {
                Ok(Done::Cloud(answer)) => learned.push((index, answer)),
                Ok(Done::Kube) => {}
                Err(error) => failure = failure.or(Some(error)),
            }
        }
    }
    learned.sort_by_key(|(index, _)| *index);
    for (index, answer) in learned {
        session.learn(&steps[index], answer);
    }
    failure.map_or(Ok(()), Err)
}

fn lanes_of<F>(step: &DynStep, hooks: &dyn Hooks<F>) -> Vec<Lane> {
    match step.kube_write() {
        // A step's own lane names the kind of object only; here it is known which one it is.
        Some(KubeWrite::AnnotateService(_) | KubeWrite::SetLoadBalancerIp { .. }) => {
            vec![Lane::new(format!("kubernetes/service/{}", hooks.object()))]
        }
        Some(KubeWrite::AnnotateNode { .. }) | None => step.view().lanes.clone(),
    }
}

async fn run<F>(
    session: &dyn Reconcile<F>,
    step: &DynStep,
    hooks: &dyn Hooks<F>,
) -> Result<Done, DriveError> {
    let view = step.view();
    tracing::info!(object = %hooks.object(), label = %view.label, impact = %view.impact, "executing action");
    match step.kube_write() {
        Some(write) => {
            let written = hooks.write(write).await;
            written.map(|()| Done::Kube).map_err(|error| DriveError::Kube {
                label: view.label.clone(),
                error,
            })
        }
        None => {
            let answer = session.apply(step).await;
            answer.map(Done::Cloud).map_err(|error| DriveError::Step {
                label: view.label.clone(),
                error,
            })
        }
    }
}
