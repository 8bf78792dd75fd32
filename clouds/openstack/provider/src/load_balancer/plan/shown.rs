//! What still serves the address that the status shows, and that the Service does not use any more.
//!
//! The publication of another address may be refused for long. Until then all that can be changed where it stands follows the
//! Service and its Nodes: members, their ports, allowed sources. Nothing is made there, and nothing taken away.

use std::time::Duration;

use bowline_cloud_provider::{KubeWrite, LoadBalancerStep};
use bowline_openstack_client::{LoadBalancer, ProvisioningStatus};
use bowline_plan::{Answer, Note};

use super::next::{Next, look_again};
use super::parts::PartsPlan;
use super::waiting::wait_for;
use super::{Existing, floating, rename};
use crate::load_balancer::evidence::{self, Role};
use crate::load_balancer::intent::Wanted;
use crate::load_balancer::observe::view::View;
use crate::load_balancer::observed::is_pending;
use crate::load_balancer::step::CloudStep;
use crate::messages::LEFT;

/// How long the next address waits for a load balancer that is pending, so that all that is due at what is shown is written.
const PATIENCE: Duration = Duration::from_secs(15);

/// What comes next, with what is due at what is shown: beside it, or before it if it may be the last that this reconcile does.
pub(super) fn with(
    wanted: &Wanted,
    seen: &View<'_>,
    used: Option<(&LoadBalancer, Role)>,
    next: Next,
    notes: &mut Vec<Note>,
) -> Next {
    let (mut due, mut busy) = (Vec::new(), None);
    for (balancer, role) in evidence::left_behind(&wanted.identity, &seen.balancers, used) {
        if evidence::is_going(balancer) {
            continue;
        }
        let is_shown = || floating::reached_at(seen, balancer).any(|at| wanted.identity.shows_at(at));
        if !rename::is_borne_out(&wanted.identity, seen, balancer) || !is_shown() {
            continue;
        }
        let there = Existing::new(wanted, seen, (balancer, role), &[]);
        let Some(steps) = there.in_place(notes) else {
            continue;
        };
        match is_pending(balancer) || seen.memory.own.is_busy {
            true => busy = Some(balancer),
            // Two may need the same rule of the security group.
            false => steps.into_iter().for_each(|step| {
                if !due.contains(&step) {
                    due.push(step);
                }
            }),
        }
    }
    match next {
        Answer::Apply(wave) if !wave.steps().iter().any(is_last) => {
            Answer::apply_or(wave.into_steps().into_iter().chain(due).collect(), look_again)
        }
        _ if !due.is_empty() => Answer::apply_or(due, look_again),
        Answer::Apply(_) | Answer::Settled(_) | Answer::Refused(_) if seen.memory.waited() < PATIENCE => {
            busy.map_or(next, |busy| wait_for(busy, seen))
        }
        next => next,
    }
}

/// Whether a step may be the last one of a try, or takes away what is shown needs.
fn is_last(step: &LoadBalancerStep<CloudStep>) -> bool {
    matches!(
        step,
        LoadBalancerStep::Kube(KubeWrite::PublishStatus(_)) | LoadBalancerStep::Cloud(CloudStep::Group(_))
    )
}

impl Existing<'_> {
    /// The next writes to what is there that neither make nor take away a part; `None` if all is as it shall be, or nothing can be
    /// written.
    fn in_place(&self, notes: &mut Vec<Note>) -> Option<Vec<LoadBalancerStep<CloudStep>>> {
        let (wanted, seen, balancer) = (self.wanted, self.seen, self.balancer);
        if !is_pending(balancer) && balancer.provisioning_status != ProvisioningStatus::Active {
            return None;
        }
        let parts = seen.parts(&balancer.id)?;
        let plan = PartsPlan::new(wanted, self.features, seen, (balancer, self.role), parts);
        notes.extend(plan.refused_in_place().map(|why| {
            LEFT.note(format!(
                "load balancer {}, which the status of Service {} shows until another address is published, does not follow: {}",
                balancer.id, wanted.identity.service, why.reason
            ))
        }));
        match self.opened(plan.next_in_place()?, notes) {
            Answer::Apply(wave) => Some(wave.into_steps()),
            _ => None,
        }
    }
}
