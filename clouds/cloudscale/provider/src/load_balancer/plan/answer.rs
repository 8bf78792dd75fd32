//! The ends of a plan that all parts of it have.

use std::fmt::Write as _;
use std::time::Duration;

use bowline_cloud_provider::{LoadBalancerStatus, LoadBalancerStep, Pauses};
use bowline_cloudscale_client::LoadBalancer;
use bowline_plan::{Answer, Note};

use crate::load_balancer::observe::Seen;
use crate::load_balancer::plan::persisted;
use crate::load_balancer::step::CloudStep;
use crate::messages::STILL_CHANGING;

/// How long a balancer may be changing before somebody is told.
const PATIENCE: Duration = Duration::from_secs(180);

/// From when on what it waits for says whom to ask: mostly a change is done within seconds.
const LONG: Duration = Duration::from_secs(60);

/// The time before each look at a balancer that is changing.
const POLLS: Pauses = Pauses::of_micros(&[1_000_000, 1_000_000, 2_000_000, 3_000_000, 5_000_000]);

/// The same for one that was written to: mostly it is done at once.
const AFTER_WRITES: Pauses = Pauses::of_micros(&[
    100_000, 200_000, 700_000, 1_000_000, 2_000_000, 3_000_000, 5_000_000,
]);

/// The same for a balancer that was deleted: usually it is gone at once.
pub(super) const CONFIRMATIONS: Pauses =
    Pauses::of_micros(&[100_000, 1_000_000, 2_000_000, 3_000_000, 5_000_000]);

pub(super) type Next = Answer<LoadBalancerStep<CloudStep>, LoadBalancerStatus>;

pub(super) fn apply(steps: Vec<CloudStep>) -> Next {
    let steps = steps.into_iter().map(LoadBalancerStep::Cloud).collect();
    Answer::apply_or(steps, || Answer::Settled(LoadBalancerStatus::empty()))
}

pub(super) fn wait(after: Duration, reason: String) -> Next {
    Answer::Wait { after, reason }
}

/// What was written is not shown yet.
pub(super) fn wait_to_see(seen: &Seen) -> Next {
    wait(
        persisted::lag(seen),
        "the API does not show the last write yet".to_owned(),
    )
}

/// The API is at work on the balancer.
pub(super) fn wait_for(balancer: &LoadBalancer, seen: &Seen, notes: &mut Vec<Note>) -> Next {
    if seen.memory.waited() >= PATIENCE {
        notes.push(STILL_CHANGING.note(format!(
            "load balancer {} ({}) has been {} for more than {} minutes",
            balancer.name,
            balancer.uuid,
            balancer.status,
            PATIENCE.as_secs() / 60
        )));
    }
    let pauses = match seen.memory.own.busy.was_once {
        true => AFTER_WRITES,
        false => POLLS,
    };
    let mut reason = format!("await-lb({} is {})", balancer.name, balancer.status);
    if seen.memory.waited() >= LONG {
        let _ = write!(
            reason,
            "; nothing of load balancer {} can be changed meanwhile; if it stays so, whoever owns the \
             project asks cloudscale.ch's support about it",
            balancer.uuid
        );
    }
    wait(seen.memory.pause(pauses), reason)
}
