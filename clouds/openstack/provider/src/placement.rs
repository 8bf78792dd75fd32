//! Where the load balancer's addresses and its members are.
//!
//! What is configured counts. Where nothing is, the subnet is that of the first node: its port in Neutron tells.

use bowline_openstack_client::{LoadBalancer, NetworkId, Port, SubnetId};

use crate::desired::MemberSubnets;
use crate::intent::Wanted;
use crate::members::{self, Family};
use crate::observe::Observed;

/// A subnet and its network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) subnet: SubnetId,
    pub(crate) network: NetworkId,
}

/// Whether the subnet of the load balancer's address has to be found out.
pub(crate) fn is_detected(wanted: &Wanted) -> bool {
    wanted.vip.network.is_none() && wanted.vip.subnet.is_none()
}

/// The place of the first node that has an address, of this family if one is given, on a port of its server.
pub(crate) fn of_first_node(wanted: &Wanted, ports: &[Port], family: Option<Family>) -> Option<Place> {
    places(wanted, ports, family).next()
}

/// The places of the nodes, in their order.
fn places(wanted: &Wanted, ports: &[Port], family: Option<Family>) -> impl Iterator<Item = Place> {
    wanted.all_nodes.iter().filter_map(move |node| {
        let address = members::address(node, family)?;
        let server = members::server(node)?;
        let fixed_ips = ports
            .iter()
            .filter(|port| port.device_id == server.as_str())
            .flat_map(|port| port.fixed_ips.iter().map(move |fixed| (port, fixed)));
        let mut at_address = fixed_ips.filter(|(_, fixed)| fixed.ip_address.parse() == Ok(address));
        at_address.next().map(|(port, fixed)| Place {
            subnet: fixed.subnet_id.clone(),
            network: port.network_id.clone(),
        })
    })
}

/// The subnet of a second address: that of the nodes' addresses of the second family, on the network of the first one.
pub(crate) fn second_subnet(wanted: &Wanted, ports: &[Port]) -> Option<SubnetId> {
    let family = wanted.second_family()?;
    let place = of_first_node(wanted, ports, Some(family))?;
    let network = match (&wanted.vip.network, &wanted.vip.subnet) {
        (Some(network), _) => network.clone(),
        (None, Some(subnet)) => ports
            .iter()
            .find(|port| port.fixed_ips.iter().any(|fixed| fixed.subnet_id == *subnet))
            .map(|port| port.network_id.clone())?,
        (None, None) => of_first_node(wanted, ports, wanted.family())?.network,
    };
    (place.network == network).then_some(place.subnet)
}

/// Where members are, on a load balancer that is there or that is to be created with a `second` address.
///
/// One order, whatever caused the reconcile: what names the members' subnet, the subnet of the load balancer's address as
/// configured or detected, and that which Octavia chose.
pub(crate) fn member_subnets(
    wanted: &Wanted,
    observed: &Observed,
    balancer: Option<&LoadBalancer>,
    second: Option<SubnetId>,
) -> MemberSubnets {
    let ports = observed.ports.as_deref().map(Vec::as_slice).unwrap_or_default();
    let configured = wanted.member_subnet.as_ref().or(wanted.vip.subnet.as_ref());
    let chosen = balancer.and_then(|balancer| balancer.vip_subnet_id.as_ref());
    let first = configured.cloned().or_else(|| {
        let subnets = || places(wanted, ports, wanted.family()).map(|place| place.subnet);
        // Which node comes first may change; the subnet that the load balancer was given after the first one then does not.
        let detected = || {
            subnets()
                .find(|subnet| Some(subnet) == chosen)
                .or_else(|| subnets().next())
        };
        let detected = is_detected(wanted).then(detected).flatten();
        detected.or_else(|| chosen.cloned())
    });
    let second = match balancer {
        None => second,
        Some(balancer) => balancer
            .additional_vips
            .iter()
            .find(|vip| {
                Family::of_text(&vip.ip_address).is_none_or(|family| Some(family) == wanted.second_family())
            })
            .and_then(|vip| vip.subnet_id.clone()),
    };
    MemberSubnets {
        first,
        is_detected: configured.is_none(),
        second: wanted.second_family().zip(second),
    }
}
