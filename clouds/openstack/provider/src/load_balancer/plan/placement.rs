//! Where the load balancer's addresses and its members are.
//!
//! What is configured counts. Where nothing is, the subnet is that of the first node: its port in Neutron tells.

use std::net::IpAddr;

use bowline_cloud_provider::Node;
use bowline_openstack_client::{LoadBalancer, Member, NetworkId, Port, Subnet, SubnetId};
use ipnet::IpNet;

use crate::load_balancer::evidence::Role;
use crate::load_balancer::intent::Wanted;
use crate::load_balancer::members::{self, Family};
use crate::load_balancer::observe::view::View;
use crate::load_balancer::observed::Parts;
use crate::load_balancer::plan::desired::{MemberSubnet, MemberSubnets};

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

/// The places of the nodes' first addresses, in the order of the nodes.
fn places(wanted: &Wanted, ports: &[Port], family: Option<Family>) -> impl Iterator<Item = Place> {
    let nodes = wanted.all_nodes.iter();
    nodes.filter_map(move |node| place(node, members::address(node, family)?, ports))
}

/// The place of a node's address, if it is on a port of the node's server.
fn place(node: &Node, address: IpAddr, ports: &[Port]) -> Option<Place> {
    let server = members::server(node)?;
    let fixed_ips = ports
        .iter()
        .filter(|port| port.device_id == server.as_str())
        .flat_map(|port| port.fixed_ips.iter().map(move |fixed| (port, fixed)));
    let mut at_address = fixed_ips.filter(|(_, fixed)| fixed.ip_address.parse() == Ok(address));
    at_address.find_map(|(port, fixed)| {
        Some(Place {
            subnet: fixed.subnet_id.clone(),
            network: port.network_id.clone()?,
        })
    })
}

/// The subnet of a second address: that of the nodes' addresses of the second family, on the network of the first one.
pub(crate) fn second_subnet(wanted: &Wanted, ports: &[Port]) -> Option<SubnetId> {
    let family = wanted.second_family()?;
    let network = match (&wanted.vip.network, &wanted.vip.subnet) {
        (Some(network), _) => network.clone(),
        (None, Some(subnet)) => ports
            .iter()
            .find(|port| port.fixed_ips.iter().any(|fixed| fixed.subnet_id == *subnet))
            .and_then(|port| port.network_id.clone())?,
        (None, None) => of_first_node(wanted, ports, wanted.family())?.network,
    };
    let mut nodes = wanted.all_nodes.iter();
    nodes.find_map(|node| {
        let places = members::addresses(node, Some(family)).filter_map(|address| place(node, address, ports));
        let mut there = places.filter(|place| place.network == network);
        there.next().map(|place| place.subnet)
    })
}

/// Whether Octavia chooses the subnet of the address, in a given network.
pub(crate) fn is_left_to_octavia(wanted: &Wanted) -> bool {
    wanted.vip.network.is_some() && wanted.vip.subnet.is_none() && wanted.vip.port.is_none()
}

/// The subnet of the address in a given network: that which Octavia will choose, where there is no choice. It prefers IPv4, so an
/// IPv6 address has to be asked for in a subnet: that of the nodes, else the first one.
pub(crate) fn subnet_of_network<'a>(wanted: &Wanted, seen: &View<'a>) -> Option<&'a SubnetId> {
    let mut of_network = subnets_of_network(wanted, seen);
    if wanted.family() != Some(Family::V6) {
        let first = of_network.next()?;
        return of_network.next().is_none().then_some(&first.id);
    }
    let of_network: Vec<&Subnet> = of_network.collect();
    let nodes = wanted.all_nodes.iter();
    let mut addresses = nodes.flat_map(|node| members::addresses(node, Some(Family::V6)));
    let of_nodes = addresses.find_map(|address| {
        let holds = |subnet: &&&Subnet| {
            subnet
                .cidr
                .parse::<IpNet>()
                .is_ok_and(|range| range.contains(&address))
        };
        of_network.iter().find(holds).copied()
    });
    of_nodes
        .or_else(|| of_network.first().copied())
        .map(|subnet| &subnet.id)
}

/// The subnets of the wanted family in a given network, where Octavia is to choose between them.
fn subnets_of_network<'a>(wanted: &Wanted, seen: &View<'a>) -> impl Iterator<Item = &'a Subnet> {
    let network = wanted.vip.network.clone().filter(|_| is_left_to_octavia(wanted));
    let version = match wanted.family() {
        Some(Family::V6) => 6,
        _ => 4,
    };
    let all = match network {
        Some(_) => seen.subnets(),
        None => &[],
    };
    all.iter()
        .filter(move |subnet| Some(&subnet.network_id) == network.as_ref() && subnet.ip_version == version)
}

/// Where members are, on a load balancer that is there or that is to be created with a `second` address.
///
/// One order, whatever caused the reconcile: what names the members' subnet, the subnet of the load balancer's address as
/// configured or detected, and that which Octavia chose. The address of a load balancer that is there stays in its subnet,
/// whatever its Service says later. For a guest, `subnet-id` is the subnet of its members and nothing else.
pub(crate) fn member_subnets(
    wanted: &Wanted,
    seen: &View<'_>,
    balancer: Option<(&LoadBalancer, Role)>,
    second: Option<SubnetId>,
) -> MemberSubnets {
    let is_owner = balancer.is_some_and(|(_, role)| role == Role::Owner);
    let chosen = balancer.and_then(|(balancer, _)| balancer.vip_subnet_id.as_ref());
    let of_address = wanted.vip.subnet.as_ref().map(|asked| {
        // On a given port, the subnet is not the address's.
        let stays = is_owner && wanted.vip.port.is_none();
        chosen.filter(|_| stays).unwrap_or(asked)
    });
    // The class that named it may be what is wrong.
    let parts = balancer.and_then(|(balancer, _)| seen.parts.get(&balancer.id));
    let there = of_members(wanted, parts).filter(|_| wanted.is_unclear());
    let configured = there.or(wanted.member_subnet.as_ref()).or(of_address);
    let first = configured.cloned().or_else(|| {
        let subnets = || places(wanted, seen.ports(), wanted.family()).map(|place| place.subnet);
        // Which node comes first may change; the subnet that the load balancer was given after the first one then does not.
        let detected = || {
            subnets()
                .find(|subnet| Some(subnet) == chosen)
                .or_else(|| subnets().next())
        };
        let detected = is_detected(wanted).then(detected).flatten();
        detected
            .or_else(|| chosen.cloned())
            .or_else(|| subnet_of_network(wanted, seen).cloned())
    });
    let second = match balancer {
        None => second,
        Some((balancer, _)) => balancer
            .additional_vips
            .iter()
            .find(|vip| {
                Family::of_text(&vip.ip_address).is_none_or(|family| Some(family) == wanted.second_family())
            })
            .and_then(|vip| vip.subnet_id.clone()),
    };
    // A named subnet may be one in which not all nodes have an address.
    let is_compared = wanted.has_choices() || wanted.named_member_subnet().is_some();
    let listed = match is_compared {
        true => seen.subnets(),
        false => &[],
    };
    let with_range = |id: SubnetId| {
        let there = listed.iter().find(|subnet| subnet.id == id);
        MemberSubnet {
            range: there.and_then(|subnet| subnet.cidr.parse().ok()),
            id,
        }
    };
    MemberSubnets {
        first: first.map(with_range),
        keeps_others: wanted.is_unclear()
            || wanted.member_subnet.is_none() && (is_owner || wanted.vip.subnet.is_none()),
        second: wanted.second_family().zip(second.map(with_range)),
    }
}

/// The subnet of the members that are there, of the first family.
fn of_members<'a>(wanted: &Wanted, parts: Option<&'a Parts>) -> Option<&'a SubnetId> {
    let is_of_first = |member: &&Member| {
        let family = Family::of_text(&member.address);
        wanted.family().is_none() || family == wanted.family()
    };
    let pools = parts.into_iter().flat_map(|parts| parts.members.values());
    let mut members = pools.flatten().filter(is_of_first);
    members.find_map(|member| member.subnet_id.as_ref())
}
