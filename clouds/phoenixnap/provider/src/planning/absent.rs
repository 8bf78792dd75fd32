//! The blocks go: first the address out of the Service, then the marks. The sweeper does the rest.

use bowline_cloud_provider::{LoadBalancerPlan, LoadBalancerStatus};
use bowline_plan::{Answer, Plan};

use super::{address_write, barrier, cloud, kube};
use crate::intent::Identity;
use crate::observe::{MarkName, Observed};
use crate::step::CloudStep;
use crate::tags::{self, DELETE};

pub(super) fn plan(identity: &Identity, observed: &Observed) -> LoadBalancerPlan<CloudStep> {
    if observed.blocks.is_empty() {
        // What is bought after the last look would belong to nobody.
        if let Some(barrier) = barrier(identity, observed) {
            return barrier.plan(identity, "the service is not let go");
        }
        return Plan::new(Answer::Settled(LoadBalancerStatus::empty()));
    }
    // The address is out before its block goes; and a purchase that can be seen is nothing to wait for.
    if let Some(write) = address_write(identity, String::new()) {
        return Plan::new(kube(write));
    }
    if observed.mark == MarkName::Missing {
        return Plan::new(cloud(vec![CloudStep::CreateTagName {
            name: DELETE,
            service: identity.key.clone(),
        }]));
    }
    let marks = observed.blocks.iter().map(|block| CloudStep::Mark {
        block: block.id.clone(),
        cidr: block.cidr.clone(),
        tags: tags::marked(&block.tags),
    });
    Plan::new(cloud(marks.collect()))
}
