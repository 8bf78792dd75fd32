//! The blocks go: first the address out of the Service, then the marks. The sweeper does the rest.

use bowline_cloud_provider::{KubeWrite, LoadBalancerStatus, LoadBalancerStep};
use bowline_plan::Answer;

use super::{Next, cloud};
use crate::blocks;
use crate::intent::Identity;
use crate::observe::{MarkName, Observed};
use crate::step::CloudStep;
use crate::tags::{self, DELETE};

pub(super) fn plan(identity: &Identity, observed: &Observed) -> Next {
    if observed.blocks.is_empty() {
        return Answer::Settled(LoadBalancerStatus::empty());
    }
    // An address of nobody's block was not written by us, and stays.
    let is_ours = matches!(identity.address(), Ok(Some(address))
        if observed.blocks.iter().any(|block| blocks::contains(block, address)));
    if is_ours {
        let clear = KubeWrite::SetLoadBalancerIp {
            seen: identity.field.clone(),
            ip: String::new(),
        };
        return Answer::apply_or(vec![LoadBalancerStep::Kube(clear)], || {
            Answer::Settled(LoadBalancerStatus::empty())
        });
    }
    if observed.mark == MarkName::Missing {
        return cloud(vec![CloudStep::CreateTagName { name: DELETE }]);
    }
    let marks = observed.blocks.iter().map(|block| CloudStep::Mark {
        block: block.id.clone(),
        cidr: block.cidr.clone(),
        tags: tags::marked(&block.tags),
    });
    cloud(marks.collect())
}
