//! Services whose load balancers would have the same name, because Octavia's names have an end and ours are cut.

use std::sync::Arc;

use bowline_cloud_provider::{Service, ServiceFacts, ServiceKey, facts};
use bowline_openstack_client::LoadBalancerId;

use crate::load_balancer::annotations as keys;
use crate::load_balancer::names;

/// The other Services that a cut name may stand for.
#[derive(Default)]
pub(super) struct Namesakes {
    /// The one with the older claim to what bears the name. None if the Service has a load balancer of its own.
    pub(super) elder: Option<ServiceKey>,
    /// The load balancers that they have in their annotations.
    pub(super) balancers: Vec<LoadBalancerId>,
}

/// Finds them. A name that is not cut has none.
pub(super) fn of(facts: &ServiceFacts) -> Namesakes {
    let (service, cluster) = (&*facts.service, &facts.cluster.name);
    let name = names::balancer(cluster, &facts.key());
    if name == names::whole_balancer(cluster, &facts.key()) {
        return Namesakes::default();
    }
    let is_namesake = |other: &&Arc<Service>| {
        let has_claim = facts::wants_load_balancer(other) || balancer(other).is_some();
        let is_other = other.metadata.uid != service.metadata.uid;
        has_claim && is_other && names::balancer(cluster, &ServiceKey::of(other)) == name
    };
    let others = facts.services.services();
    let namesakes: Vec<&Arc<Service>> = others.iter().filter(is_namesake).collect();
    let balancers: Vec<LoadBalancerId> = namesakes.iter().filter_map(|other| balancer(other)).collect();
    let has_own = balancer(service).is_some_and(|id| !balancers.contains(&id));
    let mut elders = namesakes
        .iter()
        .filter(|other| !has_own && claim(other) < claim(service));
    Namesakes {
        elder: elders.next().map(|other| ServiceKey::of(other)),
        balancers,
    }
}

/// The load balancer that a Service's annotation names.
pub(super) fn balancer(service: &Service) -> Option<LoadBalancerId> {
    let id = facts::annotation(service, keys::ID.key).filter(|id| !id.is_empty());
    id.map(LoadBalancerId::from)
}

/// Of two claims the lesser is the older: who has a load balancer, then who was there first.
fn claim(service: &Service) -> impl Ord {
    let metadata = &service.metadata;
    let created = metadata.creation_timestamp;
    (balancer(service).is_none(), created, metadata.uid.clone())
}
