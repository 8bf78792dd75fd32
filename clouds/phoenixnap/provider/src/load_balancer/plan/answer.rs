//! The ends of a plan that all parts of it have.

use std::time::Duration;

use bowline_cloud_provider::{KubeWrite, LoadBalancerStatus, LoadBalancerStep};
use bowline_plan::Answer;

use crate::load_balancer::step::CloudStep;

/// How often a block that is on its way is looked at.
pub(crate) const LOOK: Duration = Duration::from_secs(10);

/// How long something may take before somebody is told, or it is refused.
pub(crate) const PATIENCE: Duration = Duration::from_secs(300);

pub(crate) type Next = Answer<LoadBalancerStep<CloudStep>, LoadBalancerStatus>;

pub(crate) fn cloud(steps: Vec<CloudStep>) -> Next {
    let steps = steps.into_iter().map(LoadBalancerStep::Cloud).collect();
    Answer::apply_or(steps, || Answer::Settled(LoadBalancerStatus::empty()))
}

pub(super) fn kube(write: KubeWrite) -> Next {
    let steps = vec![LoadBalancerStep::Kube(write)];
    Answer::apply_or(steps, || Answer::Settled(LoadBalancerStatus::empty()))
}

pub(crate) fn wait(after: Duration, reason: String) -> Next {
    Answer::Wait { after, reason }
}
