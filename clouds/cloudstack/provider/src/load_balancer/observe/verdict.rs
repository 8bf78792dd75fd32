//! What it means that the API says no: a refusal of what one step asks for, or a failure of the whole reconcile. Pure.
//!
//! A refusal is remembered (decision 0031), and costs the other steps nothing. So is whatever fails when something that works was
//! taken away for the step: that comes back, and is not taken away again at once. A conflict about a port costs the others nothing
//! either. Whoever has the port may be gone by the next try.
//!
//! An address is neither acquired nor released by halves: what was claimed for it is taken back after a failure. That an address is
//! refused is remembered all the same, so that it is not claimed and taken back at each try.

use bowline_cloud_provider::{CloudError, ErrorKind};
use bowline_cloudstack_client::{ApiError, Class};
use bowline_plan::{Refusal, RefusedBy};

use crate::load_balancer::intent::Identity;
use crate::load_balancer::names::Protocol;
use crate::load_balancer::objects::{FirewallRule, NewRule, Rule};
use crate::load_balancer::observe::failures::Failure;
use crate::load_balancer::observe::learn::Learned;
use crate::load_balancer::observe::observed::{Pending, Seen};
use crate::load_balancer::step::CloudStep;

/// What the API's answer to a step is, or the outcome of its job.
pub(crate) fn verdict(identity: &Identity, observed: &Seen, step: &CloudStep, error: &ApiError) -> Learned {
    let failure = failure(step, error);
    let is_conflict = failure.error.kind() == ErrorKind::Conflict;
    let closed = &observed.memory.own.closed;
    // Whether it is refused for what it asks, and whether it is held back as long as something else is there.
    let (is_refused, is_held) = match step {
        CloudStep::Associate(_) | CloudStep::Release { .. } => (false, false),
        CloudStep::CreateRule(new) => {
            let mut replaced = identity.replaced.iter();
            let takes_a_place = replaced.any(|before| before.at() == new.at() && before != new);
            let is_second = is_conflict && is_second(observed, new);
            (
                takes_a_place || is_second || failure.error.is_definite(),
                is_conflict,
            )
        }
        CloudStep::Open(new) => {
            let is_for = |(at, old): &(_, FirewallRule)| *at == new.at.id && old.ingress == new.ingress;
            let takes_a_place = closed.iter().any(is_for);
            (takes_a_place || failure.error.is_definite(), is_conflict)
        }
        CloudStep::ChangeRule(..) | CloudStep::Close(_) => (failure.error.is_definite(), false),
    };
    if failure.is_definite && is_refused {
        Learned::Refused(refusal(observed, step, &failure.error))
    } else if failure.is_definite && is_held {
        Learned::Conflicts(refusal(observed, step, &failure.error))
    } else {
        Learned::Failed(failure)
    }
}

/// A failed write. It is definite if the API itself says so; that it has too much to do is no word about the write.
pub(crate) fn failure(step: &CloudStep, error: &ApiError) -> Failure {
    let is_definite = error.said.is_some() && !matches!(error.class, Class::Throttled { .. });
    let is_unheard = error.said.is_none() && error.maybe_applied();
    Failure::new(step.said(error.into()), is_definite).unheard(is_unheard)
}

/// A refusal, as people are told it.
pub(crate) fn refusal(observed: &Seen, step: &CloudStep, error: &CloudError) -> Refusal {
    let refusal = Refusal::new(error.to_string())
        .of_limit(error.kind() == ErrorKind::Exhausted)
        .by(match error.kind() {
            ErrorKind::Denied => RefusedBy::Denial,
            _ => RefusedBy::Cloud,
        });
    match (step, error.kind()) {
        (CloudStep::CreateRule(new), ErrorKind::Conflict) if is_second(observed, new) => refusal.with_remedy(
            "this server takes a port of an address for one rule only, whatever its protocol: put the ports for UDP into a service of \
             their own, with another address",
        ),
        (CloudStep::CreateRule(_), ErrorKind::Invalid) => refusal.with_remedy(
            "a virtual router balances no UDP and keeps its statistics port, 8081 by default, to itself: use another port, or a network \
             that something else balances; the same is tried again from time to time",
        ),
        (CloudStep::Associate(_), _) => refusal.with_remedy(
            "make room for another public IP, or have it allowed; it is asked for again from time to time, and at once when the service changes",
        ),
        _ => refusal.with_remedy("change what the service asks for; the same is tried again from time to time"),
    }
}

/// Whether the Service has a rule for the port already, for another protocol, or one is being made.
fn is_second(observed: &Seen, new: &NewRule) -> bool {
    let is_other = |protocol: Option<Protocol>| protocol.is_some_and(|it| it.ip() != new.protocol.ip());
    let is_rule = |rule: &Rule| rule.at() == new.at() && is_other(Protocol::parse(rule.protocol.as_str()));
    let is_made = |pending: &Pending| match &pending.step {
        CloudStep::CreateRule(other) => other.at() == new.at() && is_other(Some(other.protocol)),
        _ => false,
    };
    observed.rules.iter().any(is_rule) || observed.pending.iter().any(is_made)
}
