//! A Service that cannot be read: what is served stays as it is, but for its members, which follow the nodes.

use bowline_cloud_provider::LoadBalancerPlan;
use bowline_plan::{Answer, Plan};

use crate::load_balancer::evidence::{self, Found};
use crate::load_balancer::intent::{Backend, Unclear};
use crate::load_balancer::observe::Seen;
use crate::load_balancer::plan::desired::Desired;
use crate::load_balancer::plan::hrefs::Hrefs;
use crate::load_balancer::plan::members::Served;
use crate::load_balancer::plan::texts::{member_notes, nodes_note};
use crate::load_balancer::step::CloudStep;

/// Decides how members follow. In the end, and wherever it is in doubt what is served, tells what cannot be read.
pub(super) fn plan(hrefs: &Hrefs, unclear: &Unclear, seen: &Seen) -> LoadBalancerPlan<CloudStep> {
    let (identity, refusal) = (&unclear.identity, unclear.refusal.clone());
    let desired = Desired::new(&unclear.membership, seen);
    let mut notes = unclear.notes.clone();
    let served = match evidence::resolve(identity, &seen.balancers) {
        Found::One { balancer, .. } => Some(balancer).filter(|it| evidence::is_known(identity, it)),
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
