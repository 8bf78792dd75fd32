//! What is done with one wave.

use std::collections::{BTreeMap, BTreeSet};
use std::pin::pin;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use bowline_cloud_provider::{DynLearned, DynStep, KubeWrite, Reconcile, WriteOutcome};
use bowline_plan::Lane;
use bowline_transport::patience::Patience;
use futures::future::{Either, join, select};
use futures::stream::{FuturesUnordered, StreamExt as _};
use tokio::sync::{SetOnce, mpsc};
use tokio::time::Instant;

use crate::lanes::Held;
use crate::{DriveError, Hooks, Lanes};

/// Goes on as if the steps had been applied.
pub(crate) async fn predict<F: Send, E>(
    session: &mut dyn Reconcile<F>,
    steps: &[DynStep],
    hooks: &dyn Hooks<F, E>,
    facts: &Mutex<F>,
) -> Result<(), DriveError<E>> {
    for step in steps {
        match step.kube_write() {
            Some(write) => write_kube(write, hooks, facts).await?,
            None => session.predict(step),
        }
    }
    Ok(())
}

/// Applies the steps of one wave: in plan order where they share a lane, side by side where they do not. After a failure, and after
/// an answer that ends the wave, no further step begins, be it one that waits for its lane already; those under way are waited for.
pub(crate) async fn apply<F: Send, E>(
    session: &mut dyn Reconcile<F>,
    steps: &[DynStep],
    lanes: &Lanes,
    hooks: &dyn Hooks<F, E>,
    facts: &Mutex<F>,
) -> Result<(), DriveError<E>> {
    let lanes_of: Vec<Vec<Lane>> = steps.iter().map(|step| hooks.lanes(step)).collect();
    let mut waiting: Vec<usize> = (0..steps.len()).collect();
    // Which step has a lane.
    let mut busy: BTreeMap<&Lane, usize> = BTreeMap::new();
    // Of each step that has no answer for a while; more than one of each is no news.
    let (silent, mut silences) = mpsc::channel(steps.len().max(1));
    let mut learned: Vec<(usize, DynLearned)> = Vec::new();
    let mut failure = None;
    let is_over = AtomicBool::new(false);
    let executing = AtomicUsize::new(0);
    hooks.progressed(false);
    {
        let session: &dyn Reconcile<F> = session;
        let mut running = FuturesUnordered::new();
        loop {
            if !is_over.load(Ordering::Relaxed) {
                let mut taken: BTreeSet<&Lane> = busy.keys().copied().collect();
                waiting.retain(|&index| {
                    let wanted = &lanes_of[index];
                    let is_free = !wanted.iter().any(|lane| taken.contains(lane));
                    taken.extend(wanted); // later steps with this lane stay behind this one
                    if is_free {
                        busy.extend(wanted.iter().map(|lane| (lane, index)));
                        let (step, wanted) = (&steps[index], wanted.as_slice());
                        let (executing, is_over, silent) = (&executing, &is_over, &silent);
                        running.push(async move {
                            hooks.before(step).await;
                            let _queued = session.queued(step);
                            let held = lanes.hold(wanted, |lane| hooks.waiting(lane)).await;
                            if is_over.load(Ordering::Relaxed) {
                                return (index, Ok(None));
                            }
                            executing.fetch_add(1, Ordering::Relaxed);
                            hooks.progressed(true);
                            let is_silent = || {
                                let _ = silent.try_send(index); // it waits there already
                            };
                            let done = patiently(session, step, hooks, facts, held, is_silent).await;
                            let others = executing.fetch_sub(1, Ordering::Relaxed) - 1;
                            hooks.progressed(others > 0);
                            (index, done)
                        });
                    }
                    !is_free
                });
            }
            let ended = tokio::select! {
                biased;
                ended = running.next() => ended,
                Some(index) = silences.recv() => {
                    busy.retain(|lane, of| *of != index || !lane.is_courtesy());
                    continue;
                }
            };
            let Some((index, result)) = ended else {
                break;
            };
            busy.retain(|_, of| *of != index);
            match result {
                Ok(answer) => {
                    if answer.as_ref().is_some_and(DynLearned::ends_wave) {
                        is_over.store(true, Ordering::Relaxed);
                    }
                    learned.extend(answer.map(|answer| (index, answer)));
                }
                Err(error) => {
                    is_over.store(true, Ordering::Relaxed);
                    // One of the cloud is told first: after it nothing goes on.
                    if !matches!(failure, Some(DriveError::Step { .. })) {
                        failure = Some(error);
                    }
                }
            }
        }
    }
    learned.sort_by_key(|(index, _)| *index);
    session.learn(steps, learned);
    failure.map_or(Ok(()), Err)
}

/// The same as [`run`], but a call that hangs is told, and is given up when something newer waits. It no longer holds up those that wait
/// out of [courtesy](Lane::courtesy).
async fn patiently<F: Send, E>(
    session: &dyn Reconcile<F>,
    step: &DynStep,
    hooks: &dyn Hooks<F, E>,
    facts: &Mutex<F>,
    mut held: Held,
    is_silent: impl Fn(),
) -> Result<Option<DynLearned>, DriveError<E>> {
    let patience = Patience::default();
    let begun = Instant::now();
    let label = &step.view().label;
    let has_ended = SetOnce::new();
    let made = async {
        let made = pin!(patience.with(run(session, step, hooks, facts)));
        let done = match select(made, hooks.newer_waits(label)).await {
            Either::Left((done, _)) => done,
            Either::Right((after, made)) => {
                patience.is_over(after);
                made.await
            }
        };
        let _ = has_ended.set(()); // once
        done
    };
    let told = async {
        let mut silences = patience.silences();
        while let Either::Left((Ok(()), _)) = select(pin!(silences.changed()), pin!(has_ended.wait())).await {
            if patience.unanswered().is_none() {
                continue;
            }
            held.retain(|(lane, _)| !lane.is_courtesy());
            is_silent();
            select(hooks.is_worth_noting(), pin!(has_ended.wait())).await;
            if let Some(until) = patience.unanswered().filter(|_| !has_ended.initialized()) {
                hooks.unanswered(step, until).await;
            }
        }
    };
    let (done, ()) = join(made, told).await;
    hooks.made(label, patience.gave_up(), patience.took());
    if let Some(until) = patience.unanswered() {
        hooks.may_come_until(step, begun, until);
    }
    done
}

/// Makes one step; what the cloud answered, if it is one of the cloud.
async fn run<F: Send, E>(
    session: &dyn Reconcile<F>,
    step: &DynStep,
    hooks: &dyn Hooks<F, E>,
    facts: &Mutex<F>,
) -> Result<Option<DynLearned>, DriveError<E>> {
    let view = step.view();
    // One line for one action, however often the cloud is asked to take it. The words are those of cloudscale.ch's Go manager, and the
    // demo reads them. Whether it was taken, or was sent at all, the line at the end says.
    if session.was_put_off(step) {
        tracing::debug!(object = %hooks.object(), label = %view.label, impact = %view.impact, "executing action again");
    } else {
        tracing::info!(object = %hooks.object(), label = %view.label, impact = %view.impact, "executing action");
    }
    let made = match step.kube_write() {
        Some(write) => write_kube(write, hooks, facts).await.map(|()| None),
        None => session
            .apply(step, &|| hooks.now())
            .await
            .map(Some)
            .map_err(|error| DriveError::Step {
                label: view.label.clone(),
                error,
            }),
    };
    let outcome = match &made {
        Ok(Some(answer)) => answer.outcome().as_str(),
        Ok(None) => WriteOutcome::Taken.as_str(),
        Err(_) => "failed",
    };
    tracing::debug!(object = %hooks.object(), label = %view.label, outcome, "action ended");
    made
}

async fn write_kube<F, E>(
    write: &KubeWrite,
    hooks: &dyn Hooks<F, E>,
    facts: &Mutex<F>,
) -> Result<(), DriveError<E>> {
    let written = hooks.write(facts, write).await;
    let label = write.outline();
    written.map_err(|error| DriveError::Kube { label, error })
}
