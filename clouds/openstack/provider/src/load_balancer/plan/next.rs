//! What comes next, and how it is put.

use bowline_cloud_provider::{KubeWrite, LoadBalancerStatus, LoadBalancerStep};
use bowline_openstack_client::LoadBalancer;
use bowline_plan::Answer;

use crate::load_balancer::step::CloudStep;

pub(crate) type Next = Answer<LoadBalancerStep<CloudStep>, LoadBalancerStatus>;

pub(super) fn annotate(key: &str, value: Option<&str>) -> Next {
    let write = KubeWrite::AnnotateService(vec![(key.to_owned(), value.map(str::to_owned))]);
    Answer::apply_or(vec![LoadBalancerStep::Kube(write)], look_again)
}

pub(super) fn publish(status: LoadBalancerStatus) -> Next {
    let write = KubeWrite::PublishStatus(status);
    Answer::apply_or(vec![LoadBalancerStep::Kube(write)], look_again)
}

pub(super) fn apply(steps: Vec<CloudStep>) -> Next {
    let steps = steps.into_iter().map(LoadBalancerStep::Cloud);
    Answer::apply_or(steps.collect(), look_again)
}

pub(super) fn look_again() -> Next {
    Answer::LookAgain {
        reason: "something is not known".to_owned(),
    }
}

/// Deletes a load balancer with all its parts; one that served is `is_live`.
pub(super) fn delete(balancer: &LoadBalancer, is_live: bool) -> CloudStep {
    CloudStep::DeleteBalancer {
        balancer: balancer.id.clone(),
        name: balancer.name.clone(),
        cascade: true,
        is_live,
    }
}

/// Deletes one that was made twice.
pub(super) fn delete_unserving(balancer: &LoadBalancer) -> CloudStep {
    delete(balancer, false)
}
