//! What the Service's status shows.

use bowline_cloud_provider::{Ingress, IpMode, LoadBalancerStatus};
use bowline_openstack_client::LoadBalancer;

use crate::load_balancer::intent::{Publish, Wanted};
use crate::load_balancer::members::Family;

/// The status: a host name alone, or the address and, of a load balancer of both IP families, the second one, in the order
/// of the Service's families.
pub(crate) fn status(wanted: &Wanted, balancer: &LoadBalancer, address: &str) -> LoadBalancerStatus {
    let ingress = match &wanted.publish {
        Publish::Hostname(name) => vec![Ingress::hostname(name)],
        // Colons cannot be in a host name; kube-proxy heeds the mode in its place.
        Publish::AddressAsHostname { .. } if Family::of_text(address) == Some(Family::V6) => {
            vec![Ingress::address(address, Some(IpMode::Proxy))]
        }
        Publish::AddressAsHostname { suffix } => vec![Ingress::hostname(format!("{address}.{suffix}"))],
        Publish::Address(mode) => {
            let second = balancer.additional_vips.iter().filter_map(|vip| {
                let family = Family::of_text(&vip.ip_address)?;
                wanted
                    .families
                    .contains(&family)
                    .then_some(vip.ip_address.as_str())
            });
            let mut addresses: Vec<&str> = [address].into_iter().chain(second).collect();
            addresses.sort_by_key(|address| {
                let family = Family::of_text(address)?;
                wanted.families.iter().position(|wanted| *wanted == family)
            });
            addresses
                .into_iter()
                .map(|address| Ingress::address(address, Some(*mode)))
                .collect()
        }
    };
    LoadBalancerStatus { ingress }
}
