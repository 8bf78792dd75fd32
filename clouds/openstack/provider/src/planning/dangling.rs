//! A load balancer that the Service names, and that is not there.
//!
//! An address beside the id says that a controller wrote one of this kind: then the id leads to what was deleted, and is taken off the
//! Service before another load balancer is made. So an id that leads nowhere, while another load balancer serves the Service at
//! that address, was written by a person after that.

use bowline_openstack_client::LoadBalancerId;
use bowline_plan::Refusal;

use super::floating;
use crate::annotations as keys;
use crate::intent::Identity;
use crate::names;
use crate::observe::Observed;
use crate::ownership;

/// Why nothing is made where nothing says that a controller wrote the id.
pub(super) fn refusal(id: &LoadBalancerId) -> Refusal {
    without(id).with_remedy(format!(
        "correct {}, or remove it to get a load balancer of its own",
        keys::ID.key
    ))
}

/// Whether the floating IPs tell that the id is a person's mistake.
pub(crate) fn is_doubtful(identity: &Identity, observed: &Observed) -> bool {
    let is_gone = |id| observed.gone.contains(id);
    identity.recorded_address.is_some()
        && identity.annotated.as_ref().is_some_and(is_gone)
        && observed.balancers.iter().any(|there| !ownership::is_going(there))
}

/// Why the id is not forgotten: another load balancer serves the Service.
pub(super) fn mistake(identity: &Identity, observed: &Observed) -> Option<Refusal> {
    if !is_doubtful(identity, observed) {
        return None;
    }
    let recorded = identity.recorded_address.as_deref().map(names::spelling);
    let mut there = observed
        .balancers
        .iter()
        .filter(|there| !ownership::is_going(there));
    let serving = there.find(|there| {
        let mut addresses = floating::reached_at(observed, there);
        addresses.any(|address| Some(names::spelling(address)) == recorded)
    })?;
    let refusal = without(identity.annotated.as_ref()?);
    Some(refusal.with_remedy(format!(
        "correct {}: load balancer {} serves the Service",
        keys::ID.key,
        serving.id
    )))
}

fn without(id: &LoadBalancerId) -> Refusal {
    Refusal::new(format!(
        "failed to get load balancer {id}: there is no such load balancer"
    ))
}
