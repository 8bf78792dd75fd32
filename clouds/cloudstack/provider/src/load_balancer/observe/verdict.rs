//! What it means that the API says no: a refusal of what one step asks for, or a failure of the whole reconcile. Pure.
//!
//! A refusal is remembered (decision 0031), and costs the other steps nothing. So is whatever fails when something that works was
//! taken away for the step: that comes back, and is not taken away again at once. A conflict about a port costs the others nothing
//! either, and a rule is asked for again after five minutes at the latest, because whoever has the port may be gone by then. Nor does what
//! failed in the cloud (530) when members or an opening were added to a rule: it is held back until the next reconcile, and the rest
//! serves. A rule that fails so takes a first build back, with the address that
//! was acquired for it a moment ago.
//!
//! An address is not acquired by halves: what was claimed for it is taken back after a failure. That an address is refused is
//! remembered all the same, so that it is not claimed and taken back at each try.

use bowline_cloud_provider::ErrorKind;
use bowline_cloudstack_client::{ApiError, Class};
use bowline_plan::Step as _;

use crate::load_balancer::intent::Identity;
use crate::load_balancer::objects::FirewallRule;
use crate::load_balancer::observe::failures::Failure;
use crate::load_balancer::observe::learn::Learned;
use crate::load_balancer::observe::observed::{Seen, was_refused};
use crate::load_balancer::observe::remedies::{is_second, refusal};
use crate::load_balancer::step::{CloudStep, RuleChange};

/// How often a first build is taken back. After that the address is kept: it would come and go for ever.
const TAKEN_BACK: u32 = 3;

/// What the API's answer to a step is, or the outcome of its job.
pub(crate) fn verdict(identity: &Identity, observed: &Seen, step: &CloudStep, error: &ApiError) -> Learned {
    let failure = failure(step, error);
    let is_conflict = failure.error.kind() == ErrorKind::Conflict;
    let is_trouble = failure.error.kind() == ErrorKind::Transient;
    let closed = &observed.memory.own.closed;
    // Whether it is refused for what it asks, and whether it is held back as long as something else is there.
    let (is_refused, is_held) = match step {
        CloudStep::Associate(_) => (false, false),
        // With what is on it an address may be refused, and is not when that is gone.
        CloudStep::Release { is_live, .. } => (!is_live && failure.error.is_definite(), false),
        CloudStep::CreateRule(new) => {
            let mut replaced = identity.replaced.iter();
            let takes_a_place = replaced.any(|before| before.at() == new.at() && before != new);
            let is_second = is_conflict && is_second(observed, new);
            // Not one that comes back: while it is away, no other port loses its rule. Nor in a first build.
            let comes_back = identity.replaced.iter().any(|before| before.at() == new.at());
            let own = &observed.memory.own;
            let is_first_build = own.made.address.is_some() && own.known.failures < TAKEN_BACK;
            let is_alone = !comes_back && !is_first_build;
            (
                takes_a_place || is_second || failure.error.is_definite(),
                is_conflict || (is_trouble && is_alone),
            )
        }
        CloudStep::Open(new) => {
            let is_for = |(at, old): &(_, FirewallRule)| *at == new.at.id && old.ingress == new.ingress;
            let takes_a_place = closed.iter().any(is_for);
            let is_proven = is_conflict && was_refused(observed, step);
            (
                takes_a_place || is_proven || failure.error.is_definite(),
                is_conflict || is_trouble,
            )
        }
        CloudStep::ChangeRule(_, RuleChange::Assign(_)) => {
            let is_gone = failure.error.kind() == ErrorKind::NotFound;
            (is_gone || is_conflict || failure.error.is_definite(), is_trouble)
        }
        CloudStep::ChangeRule(_, RuleChange::Update(_) | RuleChange::Stick(_) | RuleChange::Unstick(_)) => {
            (failure.error.is_definite(), is_trouble || is_conflict)
        }
        CloudStep::ChangeRule(..) | CloudStep::Close(_) => (failure.error.is_definite(), false),
    };
    // What a removal, or what takes something back, cannot close is counted.
    let own = &observed.memory.own;
    let is_removal = own.known.is_removal;
    let is_beside = step.removes()
        && !(is_removal && step.closed().is_some())
        && own.failure.is_none()
        && (failure.is_definite && (is_trouble || is_conflict) || !is_removal && failure.error.can_wait());
    let why = || refusal(observed, step, &failure.error);
    match failure.is_definite {
        _ if is_beside => Learned::Held(why()),
        true if is_refused => Learned::Refused(why()),
        true if is_held => Learned::Held(why()),
        _ => Learned::Failed(failure),
    }
}

/// A failed write. It is definite if the API itself says so; that it has too much to do is no word about the write.
pub(crate) fn failure(step: &CloudStep, error: &ApiError) -> Failure {
    let is_definite = error.said.is_some() && !matches!(error.class, Class::Throttled { .. });
    let is_unheard = error.said.is_none() && error.maybe_applied();
    Failure::new(step.said(error.into()), is_definite).unheard(is_unheard)
}
