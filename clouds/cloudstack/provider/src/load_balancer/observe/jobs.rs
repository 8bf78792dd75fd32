//! Asks after jobs and puts what they did into the observation.

use bowline_cloud_provider::CloudError;
use bowline_cloudstack_client::{ApiError, Class, Client, Job};
use futures::future::join_all;
use tokio::time::Instant;

use crate::load_balancer::intent::Identity;
use crate::load_balancer::observe::failures::Failure;
use crate::load_balancer::observe::learn::{self, Learned};
use crate::load_balancer::observe::observed::{Pending, Seen};
use crate::load_balancer::observe::refused::refused;
use crate::load_balancer::observe::times::{PATIENCE, SILENCE, TRIES};
use crate::load_balancer::observe::wire;
use crate::load_balancer::step::{Acquisition, CloudStep};

/// What is said when patience is at an end.
pub(super) const TIMEOUT: &str = "Timeout while waiting for async job to finish";

/// Asks once after every job that was under way, side by side.
pub(crate) async fn poll(client: &Client, identity: &Identity, jobs: &[Pending], observed: &mut Seen) {
    let answers = join_all(jobs.iter().map(|pending| client.query_job(&pending.job))).await;
    for (pending, answer) in jobs.iter().zip(answers) {
        let is_told = matches!(answer, Ok(Job::Failed(_)));
        let mut learned = match answer {
            Ok(Job::Done(made)) => {
                learn::done(observed, &pending.step, made.or(pending.makes.clone()));
                observed.memory.own.written = Some(Instant::now());
                continue;
            }
            Ok(Job::Failed(error)) => refused(client, identity, observed, &pending.step, &error).await,
            Ok(Job::Pending) | Err(_) => match goes_on(pending.clone(), answer.err().as_ref()) {
                Ok(pending) => {
                    observed.pending.push(pending);
                    continue;
                }
                Err(told) => Learned::Failed(Failure::new(pending.step.said(told), false)),
            },
        };
        if let Learned::Failed(failure) = &mut learned {
            failure.is_rollback = pending.is_rollback;
        }
        if let Learned::Refused(why) = &learned {
            observed.memory.refusals.add(pending.step.clone(), why.clone());
        }
        learn::learn(observed, &pending.step, learned);
        if is_told {
            look_half_way(client, observed, pending).await;
        }
    }
}

/// A job that has not ended; or why it is waited for no longer. What it does is found by the next try then: what it makes bears a
/// name, or is claimed. `trouble`: it could not be asked after.
fn goes_on(mut pending: Pending, trouble: Option<&ApiError>) -> Result<Pending, CloudError> {
    let Some(error) = trouble else {
        (pending.heard, pending.nonsense) = (Instant::now(), 0);
        return in_time(pending);
    };
    // What the job does is not known. Whatever it is, it ends.
    if error.said.is_some() && matches!(error.class, Class::Invalid | Class::NotFound) {
        return Err(CloudError::transient(format!("a job was lost: {error}")));
    }
    tracing::debug!(job = pending.job.as_str(), err = %error, "A job could not be asked after");
    match error.class {
        Class::Unanswered | Class::Silent | Class::Unavailable { .. } | Class::Throttled { .. } => {}
        _ => pending.nonsense += 1,
    }
    if pending.nonsense >= TRIES || pending.heard.elapsed() > SILENCE {
        return Err(CloudError::from(error).context("a job could not be asked after"));
    }
    in_time(pending)
}

fn in_time(pending: Pending) -> Result<Pending, CloudError> {
    match pending.since.elapsed() <= PATIENCE {
        true => Ok(pending),
        false => Err(CloudError::transient(TIMEOUT)),
    }
}

/// A job that failed may have got half-way.
async fn look_half_way(client: &Client, observed: &mut Seen, pending: &Pending) {
    let CloudStep::Associate(Acquisition { address, .. }) = &pending.step else {
        return;
    };
    let told = pending.makes.address();
    let id = address.as_ref().map(|address| &address.id).or(told);
    let now = match id {
        Some(id) => client.public_ip_address(id).await.ok(),
        None => None,
    };
    let is_nobodys = now
        .as_ref()
        .is_some_and(|now| now.as_ref().is_none_or(|now| now.is_free()));
    if address.is_none() && !is_nobodys {
        observed.memory.own.made.is_refused = false; // it may be there all the same
    }
    if let (Some(id), Some(now)) = (id, now) {
        observed
            .addresses
            .insert(id.clone(), now.as_ref().map(wire::address));
    }
}
