//! What Octavia took and did not do: a deletion that ended in `ERROR`, or that left a part where it was.

use bowline_openstack_client::ProvisioningStatus;
use bowline_plan::{Refusal, Step as _};

use super::{Memory, Observed, is_pending};
use crate::load_balancer::step::{CloudStep, PartChange};

/// What became of a write.
enum End {
    /// It cannot be told yet.
    Unseen,
    Made,
    /// What was to go is there.
    Undone,
}

/// Whether a write makes a part or takes it away. The answer does not tell whether it comes about.
pub(crate) fn makes_or_takes(change: &PartChange) -> bool {
    matches!(
        change,
        PartChange::CreateListener { .. }
            | PartChange::CreatePool { .. }
            | PartChange::CreateMonitor { .. }
            | PartChange::DeleteListener { .. }
            | PartChange::DeletePool { .. }
            | PartChange::DeleteMonitor { .. }
    )
}

/// Counts the deletions that did not come about as refused: they are told, and made again after longer and longer pauses. Of parts only
/// where `are_parts_new`: they were read after the last write.
pub(super) fn note(observed: &Observed, memory: &mut Memory, are_parts_new: bool) {
    for step in std::mem::take(&mut memory.own.unconfirmed) {
        match end(observed, &step, are_parts_new) {
            End::Unseen => memory.own.unconfirmed.push(step),
            End::Made => {}
            End::Undone => {
                let refusal = Refusal::new(format!(
                    "error during {}: Octavia took it and could not do it, {} is there and may be in provisioning status ERROR",
                    step.label(),
                    step.object()
                ));
                let remedy = "ask the operator of the cloud to look at Octavia's workers; Bowline tries again from time to time";
                memory.refusals.add(step, refusal.with_remedy(remedy));
            }
        }
    }
}

fn end(observed: &Observed, step: &CloudStep, are_parts_new: bool) -> End {
    let is_there = match step {
        CloudStep::DeleteBalancer { balancer, .. } => {
            match observed.balancers.iter().find(|there| there.id == *balancer) {
                Some(there) if is_pending(there) => return End::Unseen,
                there => there.is_some_and(|there| there.provisioning_status == ProvisioningStatus::Error),
            }
        }
        CloudStep::Part { .. } if !are_parts_new => return End::Unseen,
        CloudStep::Part { balancer, change } => {
            let parts = observed.parts.get(balancer);
            parts.is_some_and(|parts| match change {
                PartChange::DeleteListener { id, .. } => parts.listeners.iter().any(|it| it.id == *id),
                PartChange::DeletePool { id, .. } => parts.pools.iter().any(|it| it.id == *id),
                PartChange::DeleteMonitor { id, .. } => {
                    let mut pools = parts.pools.iter();
                    pools.any(|it| it.healthmonitor_id.as_ref() == Some(id))
                }
                _ => false,
            })
        }
        _ => false,
    };
    match is_there {
        true => End::Undone,
        false => End::Made,
    }
}
