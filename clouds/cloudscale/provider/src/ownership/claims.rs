//! Which balancers living Services depend on, whatever the balancers' marks say.
//!
//! A balancer that was taken over after a restore bears the mark of the Service that it was made for, which is gone. What its new Service
//! says about it can be lost: anybody may remove an annotation. Its name, and the address in the Service's status, stay.

use std::collections::BTreeSet;
use std::net::IpAddr;

use bowline_cloud_provider::{Service, ServicesView, facts, spelling};
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
    /// The balancer that it names by its UUID.
    annotated: Option<LoadBalancerId>,
}

impl Held {
    fn of(service: &Service) -> Option<Self> {
        let uid = service.metadata.uid.clone().filter(|uid| !uid.is_empty())?;
        let addresses = facts::published_addresses(service);
        Some(Self {
            name: names::balancer(&uid),
            addresses: addresses
                .iter()
                .map(|address| spelling::of_address(address).into_owned())
                .collect(),
            annotated: intent::annotated(service),
            uid,
        })
    }

    fn holds(&self, balancer: &LoadBalancer) -> bool {
        // Another private network may have the same address: whoever names another balancer has it from that one.
        let names_another = self.annotated.is_some_and(|id| id != balancer.uuid);
        let shows = |address: &str| {
            let mut shown = self.addresses.iter();
            shown.any(|shown| *shown == spelling::of_address(address))
                && !(names_another && is_private(address))
        };
        balancer.name.trim() == self.name || balancer.vip_addresses.iter().any(|vip| shows(&vip.address))
    }
}

/// Whether an address is of a range that any private network may have (RFC 1918, RFC 6598, RFC 4193).
fn is_private(address: &str) -> bool {
    address.parse().is_ok_and(|address| match address {
        IpAddr::V4(v4) => v4.is_private() || matches!(v4.octets(), [100, 64..=127, ..]),
        IpAddr::V6(v6) => v6.is_unique_local(),
    })
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

    /// Whether the balancer bears the UID of a Service in its name, or a Service's status shows its address; a private one only if that
    /// Service names no other balancer. The Service that it is marked for does not count, nor `asking`, the UID of the one that the
    /// question is about.
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
