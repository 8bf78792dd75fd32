//! Which balancers living Services depend on, whatever the balancers' marks say.
//!
//! A balancer that was taken over after a restore bears the mark of the Service that it was made for, which is gone. What its new Service
//! says about it can be lost: anybody may remove an annotation. Its name, and the address in the Service's status, stay.

use std::collections::BTreeSet;

use bowline_cloud_provider::{Service, ServicesView, facts};
use bowline_cloudscale_client::{LoadBalancer, LoadBalancerId};

use crate::intent;
use crate::names::{self, TAG_SERVICE_UID};

/// What the living Services of the cluster, all but those that are being deleted, say of balancers.
pub(super) struct Claims {
    /// The balancers that they name by their UUIDs.
    annotated: BTreeSet<LoadBalancerId>,
    held: Vec<Held>,
}

/// What tells that a Service that wants a balancer is served by this one.
struct Held {
    uid: String,
    /// The name that nobody chose.
    name: String,
    /// The addresses that the status shows.
    addresses: Vec<String>,
}

impl Held {
    fn of(service: &Service) -> Option<Self> {
        let uid = service.metadata.uid.clone().filter(|uid| !uid.is_empty())?;
        let addresses = facts::published_addresses(service);
        Some(Self {
            name: names::balancer(&uid),
            addresses: addresses
                .iter()
                .map(|address| names::spelling(address).into_owned())
                .collect(),
            uid,
        })
    }

    fn holds(&self, balancer: &LoadBalancer) -> bool {
        let shows = |address: &str| {
            self.addresses
                .iter()
                .any(|shown| *shown == names::spelling(address))
        };
        balancer.name.trim() == self.name || balancer.vip_addresses.iter().any(|vip| shows(&vip.address))
    }
}

impl Claims {
    pub(super) fn of(services: &dyn ServicesView) -> Self {
        let services = services.services();
        let living = services
            .iter()
            .filter(|service| service.metadata.deletion_timestamp.is_none());
        let wanting = services.iter().filter(|service| facts::is_wanted(service));
        Self {
            annotated: living.filter_map(|service| intent::annotated(service)).collect(),
            held: wanting.filter_map(|service| Held::of(service)).collect(),
        }
    }

    /// Whether a Service names the balancer by its UUID: it is the Service's own as soon as the one that it is marked for is gone.
    pub(super) fn is_annotated(&self, balancer: &LoadBalancer) -> bool {
        self.annotated.contains(&balancer.uuid)
    }

    /// Whether the balancer bears the UID of a Service in its name, or a Service's status shows its address. The Service that it is
    /// marked for does not count, nor `asking`, the UID of the one that the question is about.
    pub(super) fn is_held(&self, balancer: &LoadBalancer, asking: &str) -> bool {
        let marked = balancer.tags.get(TAG_SERVICE_UID);
        let mut others = self
            .held
            .iter()
            .filter(|held| held.uid != asking && marked != Some(held.uid.as_str()));
        others.any(|held| held.holds(balancer))
    }
}

#[cfg(test)]
mod tests;
