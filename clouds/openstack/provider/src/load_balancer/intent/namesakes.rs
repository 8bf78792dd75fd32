//! Services that want the same thing: a load balancer of one name, because Octavia's names have an end and ours are cut, or a port.

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
    let classes = facts.services.classes();
    let is_namesake = |other: &&Arc<Service>| {
        let has_claim = classes.wants_load_balancer(other) || balancer(other).is_some();
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

/// The Service that is to have a port which this one names too, as a copied manifest does: the oldest of those without a load balancer.
/// Before one of them has it, nothing in the cloud tells. None if it is this one.
pub(super) fn elder_on(facts: &ServiceFacts, port: &str) -> Option<ServiceKey> {
    let own = claim(&facts.service);
    let (services, classes) = (facts.services.services(), facts.services.classes());
    let others = services.iter().filter(|other| {
        let names_it = facts::annotation(other, keys::PORT.key) == Some(port);
        names_it && classes.is_wanted(other) && balancer(other).is_none() && claim(other) < own
    });
    others
        .min_by_key(|other| claim(other))
        .map(|other| ServiceKey::of(other))
}

/// The load balancer that a Service's annotation names.
pub(super) fn balancer(service: &Service) -> Option<LoadBalancerId> {
    let id = facts::annotation(service, keys::ID.key).filter(|id| !id.is_empty());
    id.map(LoadBalancerId::from)
}

/// Of two claims the lesser is the older: who has a load balancer, then who was there first.
fn claim(service: &Service) -> impl Ord + use<> {
    let metadata = &service.metadata;
    let created = metadata.creation_timestamp;
    (balancer(service).is_none(), created, metadata.uid.clone())
}
