//! Floating IPs that lead nowhere: which of them are a Service's, and wait for its load balancer or go with it.

use bowline_cloud_provider::spelling;
use bowline_openstack_client::{FloatingIp, LoadBalancer, LoadBalancerId};

use crate::load_balancer::intent::Identity;
use crate::load_balancer::names;
use crate::load_balancer::observe::view::View;
use crate::load_balancer::observed::Observed;

/// Whether nothing is behind a floating IP: it has no port, or one that Octavia made for a load balancer that is proved to be gone.
/// Such a port can stay for a while, or for ever if its removal failed.
pub(super) fn leads_nowhere(identity: &Identity, observed: &View<'_>, floating_ip: &FloatingIp) -> bool {
    let Some(id) = &floating_ip.port_id else {
        return floating_ip.router_id.is_none(); // else it has port forwardings
    };
    let is_of_known = |there: &LoadBalancer| there.vip_port_id.as_ref() == Some(id);
    if observed.balancers.iter().any(is_of_known) {
        return false;
    }
    match observed.ports().iter().find(|port| port.id == *id) {
        Some(port) => made_for_balancer(&port.device_id).is_some_and(|id| {
            observed.knows_balancer(&id);
            // Of one that Octavia does not get rid of, the Service takes back what it records.
            let is_left = observed.left_alone.contains(&id) && is_recorded(identity, floating_ip);
            observed.gone.contains(&id) || is_left
        }),
        // It went while both were read. Should it be there and not be shown, what is surely the Service's is all that moves.
        None => is_ours(identity, observed, floating_ip),
    }
}

/// The load balancer that Octavia made a port for, by the port's device.
fn made_for_balancer(device: &str) -> Option<LoadBalancerId> {
    device.strip_prefix("lb-").map(LoadBalancerId::from)
}

/// Whether a floating IP is surely the Service's: a controller made it for the Service, and it led to a load balancer of the Service
/// that went in this reconcile; or a controller made it, and people were told its address as this Service's alone. That of the owner of
/// a load balancer that a guest shared is the guest's by that, if the owner is gone.
///
/// The description alone proves nothing: a Service of that name that was there before may have kept it.
pub(super) fn is_ours(identity: &Identity, observed: &Observed, floating_ip: &FloatingIp) -> bool {
    let is_freed = observed.freed.contains(&floating_ip.id) && is_described_so(identity, floating_ip);
    let is_told = identity.is_told_recorded && is_recorded(identity, floating_ip);
    is_freed
        || is_told && !identity.shares_address && floating_ip.description.starts_with(names::FLOATING_IP_MARK)
}

/// Whether a floating IP has the Service's description, which names Service and cluster.
pub(super) fn is_described_so(identity: &Identity, floating_ip: &FloatingIp) -> bool {
    floating_ip.description == names::floating_ip_description(&identity.cluster, &identity.service)
}

/// Whether a floating IP has the address that the Service records.
pub(super) fn is_recorded(identity: &Identity, floating_ip: &FloatingIp) -> bool {
    let recorded = identity.recorded_address.as_deref();
    recorded.is_some_and(|recorded| {
        spelling::of_address(recorded) == spelling::of_address(&floating_ip.floating_ip_address)
    })
}

/// Whether a floating IP leads nowhere and goes with the Service.
pub(in crate::load_balancer::plan) fn goes_with(
    identity: &Identity,
    observed: &View<'_>,
    floating_ip: &FloatingIp,
) -> bool {
    is_ours(identity, observed, floating_ip) && leads_nowhere(identity, observed, floating_ip)
}

/// Whether a floating IP was made for the Service, as far as its description and what the Service records tell.
pub(super) fn is_made_for(identity: &Identity, floating_ip: &FloatingIp) -> bool {
    is_described_so(identity, floating_ip)
        || is_recorded(identity, floating_ip) && floating_ip.description.contains(names::FLOATING_IP_MARK)
}

/// Whether others are reached at a floating IP that leads to a load balancer of the Service: another load balancer is on its port, or another
/// Service records it that it may have been made for.
pub(super) fn is_used_elsewhere(
    identity: &Identity,
    observed: &View<'_>,
    balancer: &LoadBalancer,
    floating_ip: &FloatingIp,
) -> bool {
    let port = floating_ip.port_id.as_ref();
    let is_shared = identity.shares_address && is_recorded(identity, floating_ip);
    is_shared && !is_described_so(identity, floating_ip)
        || port.is_some_and(|port| observed.other_on(port, Some(&balancer.id)).is_some())
}

/// Whether a floating IP goes with the load balancer that it leads to, and that goes with the Service: that of a Service that is gone goes
/// with the last guest of its load balancer.
pub(in crate::load_balancer::plan) fn goes_with_balancer(
    identity: &Identity,
    observed: &View<'_>,
    balancer: &LoadBalancer,
    floating_ip: &FloatingIp,
) -> bool {
    let is_of_balancer = names::is_floating_ip_of(&floating_ip.description, &balancer.description);
    (is_of_balancer || is_made_for(identity, floating_ip))
        && !is_used_elsewhere(identity, observed, balancer, floating_ip)
}
