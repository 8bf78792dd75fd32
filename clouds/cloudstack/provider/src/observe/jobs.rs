//! Asks after jobs and puts what they did into the observation.

use bowline_cloud_provider::CloudError;
use bowline_cloudstack_client::{ApiError, Class, Client, Job, JobResult, PublicIpId};
use futures::future::join_all;
use tokio::time::Instant;

use super::{Failure, PATIENCE, Pending, SILENCE, Seen, TRIES, wire};
use crate::apply::Writer;
use crate::intent::Identity;
use crate::learn::{self, Learned, Made};
use crate::step::CloudStep;

/// What is said when patience is at an end.
pub(super) const TIMEOUT: &str = "Timeout while waiting for async job to finish";

/// Asks once after every job that was under way, side by side.
pub(crate) async fn poll(client: &Client, identity: &Identity, jobs: &[Pending], observed: &mut Seen) {
    let answers = join_all(jobs.iter().map(|pending| client.query_job(&pending.job))).await;
    for (pending, answer) in jobs.iter().zip(answers) {
        match answer {
            Ok(Job::Done(result)) => learn::done(observed, &pending.step, made(pending, result)),
            Ok(Job::Failed(error)) => {
                let writer = Writer {
                    client,
                    identity,
                    observed,
                };
                let learned = writer.refused(&pending.step, &error).await;
                end_badly(client, observed, pending, learned).await;
            }
            Ok(Job::Pending) => {
                let heard = Pending {
                    heard: Instant::now(),
                    nonsense: 0,
                    ..pending.clone()
                };
                go_on(observed, heard);
            }
            // What the job does is not known. Whatever it is, it ends.
            Err(error) if error.said.is_some() && matches!(error.class, Class::Invalid | Class::NotFound) => {
                let told = CloudError::transient(format!("a job was lost: {error}"));
                fail(observed, pending, told);
            }
            Err(error) => unheard(observed, pending, &error),
        }
    }
}

/// There was no answer about a job. What it does is found by the next try: what it makes bears a name, or is claimed.
fn unheard(observed: &mut Seen, pending: &Pending, error: &ApiError) {
    tracing::debug!(job = pending.job.as_str(), err = %error, "A job could not be asked after");
    let mut pending = pending.clone();
    match error.class {
        Class::Unanswered | Class::Unavailable { .. } | Class::Throttled { .. } => {}
        _ => pending.nonsense += 1,
    }
    if pending.nonsense >= TRIES || pending.heard.elapsed() > SILENCE {
        let told = CloudError::from(error).context("a job could not be asked after");
        fail(observed, &pending, told);
    } else {
        go_on(observed, pending);
    }
}

fn go_on(observed: &mut Seen, pending: Pending) {
    if pending.since.elapsed() <= PATIENCE {
        observed.pending.push(pending);
        return;
    }
    let told = CloudError::transient(TIMEOUT);
    fail(observed, &pending, told);
}

/// The outcome is not known.
fn fail(observed: &mut Seen, pending: &Pending, told: CloudError) {
    let failure = Failure {
        is_rollback: pending.is_rollback,
        ..Failure::unknown(pending.step.said(told))
    };
    learn::learn(observed, &pending.step, Learned::Failed(failure));
}

async fn end_badly(client: &Client, observed: &mut Seen, pending: &Pending, mut learned: Learned) {
    if let Learned::Failed(failure) = &mut learned {
        failure.is_rollback = pending.is_rollback;
    }
    learn::learn(observed, &pending.step, learned);
    let CloudStep::Associate { address, .. } = &pending.step else {
        return;
    };
    // A job that failed may have got half-way.
    let told = pending.id.as_deref().map(PublicIpId::from);
    let id = address.as_ref().map(|address| &address.id).or(told.as_ref());
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

fn made(pending: &Pending, result: JobResult) -> Made {
    let (id, ip) = match result {
        JobResult::LoadBalancerRule(rule) => (rule.id.to_string(), None),
        JobResult::PublicIpAddress(address) => (address.id.to_string(), Some(address.ip_address)),
        JobResult::FirewallRule(rule) => (rule.id.to_string(), None),
        JobResult::NetworkAcl(item) => (item.id.to_string(), None),
        _ => {
            let id = pending.id.clone();
            return Made { id, ip: None };
        }
    };
    Made {
        id: Some(id),
        ip: ip.filter(|ip| !ip.is_empty()),
    }
}
