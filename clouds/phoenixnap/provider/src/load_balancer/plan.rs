//! Decides what comes next. Pure.
//!
//! A Service without a block: [`purchase`]. With one: [`attach`]. A block that is attached late is no reason to keep its address back.

use bowline_cloud_provider::LoadBalancerPlan;
use bowline_plan::{Answer, Plan, refusal};

use crate::load_balancer::intent::{Intent, Wanted};
use crate::load_balancer::observe::Seen;
use crate::load_balancer::step::CloudStep;
use crate::messages::IGNORED_ANNOTATIONS;

mod absent;
pub(crate) mod answer;
mod attach;
mod purchase;

/// Decides what comes next for a Service on a network.
pub(crate) fn plan(intent: &Intent, seen: &Seen, network: &str) -> LoadBalancerPlan<CloudStep> {
    match intent {
        Intent::Wanted(wanted) => {
            let ignored = Some(&wanted.ignored).filter(|it| !it.is_empty());
            let notes = ignored.map(|it| IGNORED_ANNOTATIONS.note(it.clone()));
            wanted_plan(wanted, seen, network).with_notes(notes.into_iter().collect())
        }
        Intent::Absent(identity) => absent::plan(identity, seen),
    }
}

fn wanted_plan(wanted: &Wanted, seen: &Seen, network: &str) -> LoadBalancerPlan<CloudStep> {
    let key = &wanted.identity.key;
    let field = match wanted.identity.address() {
        Ok(field) => field,
        Err(text) => {
            return Plan::new(Answer::Refused(refusal!(
                "spec.loadBalancerIP of service {key} is no IP address: {text}";
                "clear the field, and an address is allocated"
            )));
        }
    };
    match (seen.blocks.as_slice(), field) {
        // The address is out, and another one is bought.
        ([], Some(_)) if seen.is_lost_late => Plan::new(attach::cleared(wanted)),
        ([], Some(address)) => Plan::new(Answer::Refused(purchase::without_block(wanted, seen, address))),
        ([], None) => purchase::purchase(wanted, seen, network),
        ([block], field) => attach::existing(wanted, seen, block, field, network),
        (several, _) => {
            let ids: Vec<&str> = several.iter().map(|block| block.id.as_str()).collect();
            Plan::new(Answer::Refused(refusal!(
                "service {key} has more than one IP block: {}", ids.join(", ");
                "mark all but one with the tag `delete`, or delete the service, which marks all of them"
            )))
        }
    }
}
