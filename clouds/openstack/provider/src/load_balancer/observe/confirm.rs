//! What Octavia took and did not do: a deletion that ended in `ERROR`, or that left a part where it was.

use bowline_openstack_client::ProvisioningStatus;
use bowline_plan::{RefusedBy, Step as _, refusal};

use crate::load_balancer::memory::{Memory, may_be_late};
use crate::load_balancer::observed::{Observed, is_pending};
use crate::load_balancer::step::{CloudStep, PartChange};

/// Whether a write makes a part or takes it away. The answer does not tell whether it comes about.
pub(crate) fn makes_or_takes(change: &PartChange) -> bool {
    let makes = matches!(
        change,
        PartChange::CreateListener { .. } | PartChange::CreatePool { .. } | PartChange::CreateMonitor { .. }
    );
    makes || change.takes_part()
}

/// Counts the deletions that did not come about as refused: they are told, and made again after longer and longer pauses. Of parts only
/// where `are_parts_new`: they were read after the last write.
pub(super) fn note(observed: &Observed, memory: &mut Memory, are_parts_new: bool) {
    let may_be_late = may_be_late(memory);
    for step in std::mem::take(&mut memory.own.unconfirmed) {
        match has_failed(observed, &step, are_parts_new, may_be_late) {
            None => memory.own.unconfirmed.push(step),
            Some(false) => {}
            Some(true) => {
                let refusal = refusal!(
                    "error during {}: Octavia took it and could not do it, {} is there and may be in provisioning status ERROR",
                    step.label(), step.object();
                    "ask the operator of the cloud to look at Octavia's workers"
                );
                memory.refusals.add(step, refusal.by(RefusedBy::Failure));
            }
        }
    }
}

/// Whether what was to go is there; `None` if it cannot be told yet.
fn has_failed(observed: &Observed, step: &CloudStep, are_parts_new: bool, may_be_late: bool) -> Option<bool> {
    let is_error = |status: &ProvisioningStatus| *status == ProvisioningStatus::Error;
    match step {
        CloudStep::DeleteBalancer { balancer, .. } => {
            let there = observed.balancers.iter().find(|there| there.id == *balancer);
            let is_pending = there.is_some_and(is_pending);
            (!is_pending).then(|| there.is_some_and(|there| is_error(&there.provisioning_status)))
        }
        CloudStep::Part { .. } if !are_parts_new => None,
        CloudStep::Part { balancer, change } => {
            let parts = observed.parts.get(balancer);
            let left = parts.and_then(|parts| match change {
                PartChange::DeleteListener { id, .. } => {
                    let there = parts.listeners.iter().find(|it| it.id == *id);
                    there.map(|it| is_error(&it.provisioning_status))
                }
                PartChange::DeletePool { id, .. } => {
                    let there = parts.pools.iter().find(|it| it.id == *id);
                    there.map(|it| is_error(&it.provisioning_status))
                }
                // The list of pools shows of a monitor that it is there, and not in which state.
                PartChange::DeleteMonitor { id, .. } => {
                    let mut pools = parts.pools.iter();
                    let is_there = pools.any(|it| it.healthmonitor_id.as_ref() == Some(id));
                    is_there.then_some(false)
                }
                _ => None,
            });
            (left != Some(false) || !may_be_late).then_some(left.is_some())
        }
        _ => Some(false),
    }
}
