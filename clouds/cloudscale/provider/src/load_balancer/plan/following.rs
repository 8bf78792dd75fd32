//! A Service that cannot be read: what is served stays as it is, but for its members, which follow the nodes.

use bowline_cloud_provider::LoadBalancerPlan;
use bowline_plan::{Answer, Plan};

use super::members::Served;
use super::{Hrefs, member_notes, nodes_note};
use crate::desired::Desired;
use crate::intent::{Backend, Unclear};
use crate::observe::Seen;
use crate::ownership::{self, Found};
use crate::step::CloudStep;

/// Decides how members follow. In the end, and wherever it is in doubt what is served, tells what cannot be read.
pub(super) fn plan(hrefs: &Hrefs, unclear: &Unclear, seen: &Seen) -> LoadBalancerPlan<CloudStep> {
    let (identity, refusal) = (&unclear.identity, unclear.refusal.clone());
    let desired = Desired::new(&unclear.membership, seen);
    let mut notes = unclear.notes.clone();
    let served = match ownership::resolve(identity, &seen.balancers) {
        Found::One { balancer, .. } => Some(balancer).filter(|it| ownership::is_known(identity, it)),
        Found::Foreign { own, .. } | Found::Several { own } => own,
        Found::None => None,
    };
    let answer = match served {
        Some(balancer) => {
            if desired.knows_no_server {
                notes.extend(nodes_note(&desired));
                Answer::Refused(refusal)
            } else {
                notes.extend(member_notes(&unclear.membership, &desired));
                let served = Served {
                    hrefs,
                    seen,
                    balancer,
                    desired: &desired,
                    tags: &unclear.tags,
                };
                let backends: Vec<&Backend> = unclear.backends.iter().collect();
                served.only_members(&backends, unclear.monitor.as_ref(), refusal, &mut notes)
            }
        }
        None => Answer::Refused(refusal),
    };
    Plan::new(answer).with_notes(notes)
}

#[cfg(test)]
mod tests;
