//! The drive of a plan: look, plan, make a wave, look again, until the plan has no more steps.
//!
//! There is one, for a wanted balancer, one that is to be removed, and background work; for the service controller, the
//! command `plan` and the tests of providers. What differs is brought by the caller: whether a wave is applied or
//! predicted ([`Mode`]), and what happens around it ([`Hooks`]). [`predict`] is the drive of the command `plan`.
//!
//! It has no runtime and no clock: where the plan waits, the drive ends and says for how long, and it is driven again with
//! the same session.

mod lanes;
pub mod orphans;
mod predict;
#[cfg(test)]
mod tests;
mod wave;

use std::pin::pin;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use bowline_cloud_provider::{CloudError, DynPlan, DynStep, KubeWrite, LoadBalancerStatus, Reconcile};
use bowline_plan::{Answer, Lane, Refusal};
use bowline_transport::patience::Patience;
#[cfg(doc)]
use bowline_transport::patience::SILENT;
use futures::future::{BoxFuture, Either, select};
use jiff::Timestamp;
use tokio::time::Instant;

pub use bowline_transport::patience::{GivenUp, Took};
pub use lanes::{Lanes, Wait};
pub use predict::{predict, predict_session};

/// More waves and looks than any plan has between two waits: one that never settles gives way to other work instead of
/// spinning.
const MAX_WAVES: usize = 100;

/// What stands for the label of a step where the cloud is read.
pub const LOOK: &str = "look at the cloud";

/// How a drive ended.
#[derive(Debug)]
pub enum Driven {
    /// Nothing is left to do, but perhaps to look again after a time.
    Settled(LoadBalancerStatus, Option<Duration>),
    /// The cloud is busy; go on with the same session after this time.
    Wait {
        /// How long to wait.
        after: Duration,
        /// What is being waited for.
        reason: String,
    },
    /// A person has to change something first; what can be published all the same.
    Refused(Refusal, Option<LoadBalancerStatus>),
    /// What is asked for has changed meanwhile, or the process is stopping: start anew.
    Superseded,
}

/// Why a drive ended early; `E` is why a write to Kubernetes failed.
#[derive(Debug, thiserror::Error)]
pub enum DriveError<E> {
    /// A read failed.
    #[error("{0}")]
    Observe(CloudError),
    /// A write to the cloud failed.
    #[error("error during {label}: {error}")]
    Step {
        /// The step.
        label: String,
        /// Why.
        error: CloudError,
    },
    /// A write to Kubernetes failed.
    #[error("error during {label}: {error}")]
    Kube {
        /// The step.
        label: String,
        /// Why.
        error: E,
    },
    /// The plan has no end: a fault of the provider.
    #[error(
        "the plan does not settle in {MAX_WAVES} waves. This is a fault of Bowline: please report it with this text. The \
         last two waves were [{0}] and [{1}]"
    )]
    Endless(String, String),
}

/// What is done with a wave.
#[derive(Clone, Copy)]
pub enum Mode<'a> {
    /// It is written, steps without a common lane side by side.
    Apply(&'a Lanes),
    /// Its effect is added to what was observed, and nothing is written.
    Predict,
}

/// What happens around a drive; `F` are the facts that its session goes by, `E` is why a write to Kubernetes fails.
pub trait Hooks<F, E>: Sync {
    /// A plan was made from these facts.
    fn planned(&self, facts: &F, plan: &DynPlan);

    /// A wave is next.
    fn writing(&self, _facts: &F, _wave: &[DynStep]) {}

    /// The wall time, where it is known better than by the facts, which grow old while a session goes on.
    fn now(&self) -> Option<Timestamp> {
        None
    }

    /// Whether to stop before the next wave or look.
    fn is_superseded(&self) -> bool {
        false
    }

    /// A step is next; it is made when this is done.
    fn before<'a>(&'a self, _step: &'a DynStep) -> BoxFuture<'a, ()> {
        Box::pin(std::future::ready(()))
    }

    /// Makes, or predicts, a write to Kubernetes, and changes the facts accordingly: the plan goes on from them. Writes to
    /// one object come one after the other.
    fn write<'a>(&'a self, facts: &'a Mutex<F>, write: &'a KubeWrite) -> BoxFuture<'a, Result<(), E>>;

    /// Whether this write was refused, and its next try is not due: what is planned beside it goes on without it.
    fn holds_back(&self, _write: &KubeWrite) -> bool {
        false
    }

    /// A call has ended, or begins. `is_working`: something is under way; else everything waits for its lanes.
    fn progressed(&self, _is_working: bool) {}

    /// Ends when something newer waits for this object, and for its sake a call may be given up that hangs: of the step with this label as
    /// if its answer had been lost, of a [`LOOK`] together with that. Answers how much time a call has in any case.
    fn newer_waits<'a>(&'a self, _label: &'a str) -> BoxFuture<'a, Duration> {
        Box::pin(std::future::pending())
    }

    /// A step or a look has ended, whose calls took so long; `gave_up`: one of them was given up before its time limit.
    fn made(&self, _label: &str, _gave_up: bool, _took: Took) {}

    /// Ends when it is time to note of a write that has had no answer for [`SILENT`] that it has none.
    fn is_worth_noting(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }

    /// A write of this step has no answer, and may take effect until then, whatever becomes of this process. It is waited for
    /// yet.
    fn unanswered<'a>(&'a self, _step: &'a DynStep, _until: Instant) -> BoxFuture<'a, ()> {
        Box::pin(std::future::ready(()))
    }

    /// This step began then and has ended with a write that got no answer, and may take effect until a time.
    fn may_come_until(&self, _step: &DynStep, _begun: Instant, _until: Instant) {}

    /// A step waits for this lane until what is answered is dropped.
    fn waiting(&self, _lane: &Lane) -> Wait<'_> {
        None
    }

    /// The object's name in log lines and in the lanes of its writes to Kubernetes.
    fn object(&self) -> String;

    /// The lanes of a step.
    fn lanes(&self, step: &DynStep) -> Vec<Lane> {
        match step.kube_write() {
            // A step's own lane names the kind of object only; here it is known which one it is.
            Some(_) => vec![Lane::new(format!("kubernetes/service/{}", self.object()))],
            None => step.view().lanes.clone(),
        }
    }
}

/// Drives `session` as far as it goes now. `is_unverified` says whether the cloud was written since the last full read;
/// it is kept up to date, and a drive never settles before it has read what its writes left in doubt.
///
/// # Errors
///
/// The first read or write that failed, and a plan that does not settle.
///
/// # Cancellation
///
/// Dropping it abandons the writes that are under way; the next reconcile observes what came of them.
pub async fn drive<F: Clone + Send, E>(
    session: &mut dyn Reconcile<F>,
    mode: Mode<'_>,
    hooks: &dyn Hooks<F, E>,
    is_unverified: &mut bool,
) -> Result<Driven, DriveError<E>> {
    if look(session.observe(), hooks).await?.is_none() {
        return Ok(Driven::Superseded);
    }
    let (mut last_but_one, mut last) = (String::new(), String::new());
    for _ in 0..MAX_WAVES {
        let Some(plan) = session.plan() else {
            return Ok(Driven::Superseded); // cannot be: it has just observed
        };
        hooks.planned(session.facts(), &plan);
        match plan.answer {
            Answer::Apply(_) | Answer::LookAgain { .. } if hooks.is_superseded() => {
                return Ok(Driven::Superseded);
            }
            Answer::Apply(wave) => {
                let steps = without_held_back(wave.into_steps(), hooks);
                let labels: Vec<&str> = steps.iter().map(|step| step.view().label.as_str()).collect();
                last_but_one = std::mem::replace(&mut last, labels.join(", "));
                hooks.writing(session.facts(), &steps);
                let facts = Mutex::new(session.facts().clone());
                let made = match mode {
                    Mode::Apply(lanes) => {
                        *is_unverified |= changes_cloud(&steps);
                        session.before_wave();
                        wave::apply(session, &steps, lanes, hooks, &facts).await
                    }
                    Mode::Predict => wave::predict(session, &steps, hooks, &facts).await,
                };
                hooks.progressed(true);
                if let Err(error) = made
                    && !goes_on(&error, &steps, hooks)
                {
                    return Err(error);
                }
                if steps.iter().any(|step| step.kube_write().is_some()) {
                    let facts = facts.into_inner().unwrap_or_else(PoisonError::into_inner);
                    if let Err(refusal) = session.refresh(facts) {
                        return Ok(Driven::Refused(refusal, None));
                    }
                }
            }
            Answer::LookAgain { reason } => {
                if look(session.observe(), hooks).await?.is_none() {
                    return Ok(Driven::Superseded);
                }
                last_but_one = std::mem::replace(&mut last, format!("a look again: {reason}"));
            }
            Answer::Settled(_) | Answer::Refused(_) if *is_unverified && is_published(&plan) => {
                if look(session.verify(), hooks).await?.is_none() {
                    return Ok(Driven::Superseded);
                }
                *is_unverified = false;
            }
            Answer::Settled(status) => {
                if matches!(mode, Mode::Apply(_)) {
                    session.settled();
                }
                return Ok(Driven::Settled(status, plan.again));
            }
            Answer::Wait { after, reason } => return Ok(Driven::Wait { after, reason }),
            Answer::Refused(refusal) => return Ok(Driven::Refused(refusal, plan.publishes)),
        }
    }
    Err(DriveError::Endless(last_but_one, last))
}

fn is_held_back<F, E>(step: &DynStep, hooks: &dyn Hooks<F, E>) -> bool {
    step.kube_write().is_some_and(|write| hooks.holds_back(write))
}

/// The steps of a wave that are made now. A write to Kubernetes that is held back comes last, alone.
fn without_held_back<F, E>(mut steps: Vec<DynStep>, hooks: &dyn Hooks<F, E>) -> Vec<DynStep> {
    if !steps.iter().all(|step| is_held_back(step, hooks)) {
        steps.retain(|step| !is_held_back(step, hooks));
    }
    steps
}

/// Whether a drive goes on after an error: with what stood beside a write to Kubernetes that is held back from now on.
fn goes_on<F, E>(error: &DriveError<E>, wave: &[DynStep], hooks: &dyn Hooks<F, E>) -> bool {
    let is_refused = matches!(error, DriveError::Kube { .. });
    is_refused && changes_cloud(wave) && wave.iter().any(|step| is_held_back(step, hooks))
}

/// Looks at the cloud; `None`: something newer waits, and a call hangs. Then the look is dropped, which costs nothing: the next drive
/// begins with one.
async fn look<F, E>(
    looked: BoxFuture<'_, Result<(), CloudError>>,
    hooks: &dyn Hooks<F, E>,
) -> Result<Option<()>, DriveError<E>> {
    let patience = Patience::of_look();
    let given_up = async {
        patience.is_over(hooks.newer_waits(LOOK).await);
        patience.has_given_up().await;
    };
    let looked = patience.with(looked);
    let looked = match select(pin!(looked), pin!(given_up)).await {
        Either::Left((looked, _)) if !patience.gave_up() => Some(looked),
        _ => None,
    };
    hooks.made(LOOK, looked.is_none(), patience.took());
    hooks.progressed(true);
    looked.transpose().map_err(DriveError::Observe)
}

/// For [`Hooks::newer_waits`] of work that is for many objects: while a call of a step hangs, all others wait. Without a look nothing goes on.
pub fn others_wait<'a>(label: &str, given_up: &GivenUp) -> BoxFuture<'a, Duration> {
    match label {
        LOOK => Box::pin(std::future::pending()),
        _ => Box::pin(std::future::ready(given_up.patience(label))),
    }
}

/// Whether a wave writes to the cloud, and not to Kubernetes alone.
#[must_use]
pub fn changes_cloud(wave: &[DynStep]) -> bool {
    wave.iter().any(|step| step.kube_write().is_none())
}

/// Whether a plan ends with something to publish.
fn is_published(plan: &DynPlan) -> bool {
    matches!(plan.answer, Answer::Settled(_)) || plan.publishes.is_some()
}
