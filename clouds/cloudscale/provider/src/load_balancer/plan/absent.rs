//! Removes a balancer.

use bowline_cloud_provider::{LoadBalancerPlan, LoadBalancerStatus};
use bowline_cloudscale_client::LoadBalancer;
use bowline_plan::{Answer, Plan};

use crate::load_balancer::evidence;
use crate::load_balancer::intent::Identity;
use crate::load_balancer::observe::{Seen, is_changing};
use crate::load_balancer::plan::answer::{CONFIRMATIONS, apply, wait, wait_for};
use crate::load_balancer::plan::hrefs::Hrefs;
use crate::load_balancer::plan::texts::several;
use crate::load_balancer::step::CloudStep;
use crate::messages::FOREIGN_KEPT;

/// Decides how the removal goes on. Floating IPs stay in the project, leading nowhere.
pub(super) fn plan(hrefs: &Hrefs, identity: &Identity, seen: &Seen) -> LoadBalancerPlan<CloudStep> {
    let doomed = evidence::doomed(identity, &seen.balancers);
    let mut notes = Vec::new();
    if !doomed.foreign.is_empty() {
        notes.push(FOREIGN_KEPT.note(format!(
            "load balancers of another service or cluster are not deleted: {}",
            evidence::ids(&doomed.foreign)
        )));
    }
    let next: Vec<&LoadBalancer> = doomed
        .own
        .iter()
        .copied()
        .filter(|balancer| !seen.deleting.contains(&balancer.uuid))
        .collect();
    let answer = if !doomed.ambiguous.is_empty() {
        Answer::Refused(several(identity, &doomed.ambiguous))
    } else if let Some(busy) = next
        .iter()
        .find(|balancer| is_changing(balancer) || seen.memory.own.busy.is_now)
    {
        wait_for(busy, seen, &mut notes)
    } else if !next.is_empty() {
        apply(
            next.into_iter()
                .map(|balancer| delete(hrefs, balancer, true))
                .collect(),
        )
    } else if let Some(going) = doomed.own.first() {
        wait(
            seen.memory.pause(CONFIRMATIONS),
            format!("load balancer {} ({}) is being deleted", going.name, going.uuid),
        )
    } else if let Some(after) = seen.memory.sought_to_the_end()
        && seen.gone.is_empty()
    {
        // What shows up after the last look would belong to nobody.
        wait(
            after,
            "a load balancer that was asked for may show up yet".to_owned(),
        )
    } else {
        Answer::Settled(LoadBalancerStatus::empty())
    };
    Plan::new(answer).with_notes(notes)
}

/// Deletes a balancer with all its parts.
pub(super) fn delete(hrefs: &Hrefs, balancer: &LoadBalancer, is_live: bool) -> CloudStep {
    CloudStep::DeleteBalancer {
        balancer: balancer.uuid,
        name: balancer.name.clone(),
        href: hrefs.balancer(balancer.uuid),
        is_live,
    }
}
