//! The addresses of a Node: from its server, the server's ports, and the ports that travel on those.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use bowline_cloud_provider::{AddressType, NodeAddress, Unmatched};
use bowline_openstack_client::{AddressKind, Port, PortStatus, Server};
use ipnet::IpNet;

use crate::config::NodeOptions;

/// The key of a server's metadata that holds the Node's host name.
const HOSTNAME: &str = "hostname";

/// An address of a port that travels on another port of the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TrunkAddress {
    /// The name of its network.
    pub(crate) network: String,
    /// The address.
    pub(crate) address: String,
}

/// The addresses in the order in which a Node has them: the first of a kind counts for many who look at Nodes.
///
/// 1. of ports that carry traffic, internal;
/// 2. those at which the server's owner says that it is reached, external;
/// 3. the host name that the server's metadata has;
/// 4. whatever else the server and its trunks have, network by network: floating ones and those of public networks are
///    external, others internal if their network is one of the internal ones.
pub(crate) fn of_server(
    server: &Server,
    ports: &[&Port],
    trunks: &[TrunkAddress],
    options: &NodeOptions,
) -> Vec<NodeAddress> {
    let mut gathered = Gathered {
        addresses: Vec::new(),
        without_ipv6: options.without_ipv6,
    };
    let active = ports.iter().filter(|port| port.status == PortStatus::Active);
    for fixed in active.flat_map(|port| &port.fixed_ips) {
        gathered.add(AddressType::InternalIp, &fixed.ip_address);
    }
    for access in [&server.access_ipv4, &server.access_ipv6] {
        if !access.is_empty() {
            gathered.add(AddressType::ExternalIp, access);
        }
    }
    if let Some(hostname) = server.metadata.get(HOSTNAME).filter(|name| !name.is_empty()) {
        gathered.push(NodeAddress::new(AddressType::Hostname, hostname.as_str()));
    }
    for (network, address, is_floating) in by_network(server, trunks) {
        let is_of = |networks: &[String]| networks.iter().any(|name| name == network);
        if is_floating {
            gathered.add(AddressType::ExternalIp, address);
        } else if is_of(&options.public_networks) {
            // What a port told of it as internal is not so.
            gathered.remove(address);
            gathered.add(AddressType::ExternalIp, address);
        } else if options.internal_networks.is_empty() || is_of(&options.internal_networks) {
            gathered.add(AddressType::InternalIp, address);
        } else {
            gathered.remove(address);
        }
    }
    sort(&mut gathered.addresses, &options.sort_order);
    gathered.addresses
}

/// What the settings choose addresses by and a server does not have.
pub(crate) fn unmatched(
    server: &Server,
    trunks: &[TrunkAddress],
    chosen: &[NodeAddress],
    options: &NodeOptions,
) -> Unmatched {
    let networks: BTreeSet<&str> = by_network(server, trunks).map(|(network, ..)| network).collect();
    let named = [
        ("internal-network-name", &options.internal_networks),
        ("public-network-name", &options.public_networks),
    ];
    let named = named.into_iter().flat_map(|(setting, names)| {
        let missing = names.iter().filter(|name| !networks.contains(name.as_str()));
        missing.map(move |name| {
            format!(
                "an address in the network `{name}` ({setting} in {})",
                options.source
            )
        })
    });
    let addresses = || chosen.iter().filter_map(|it| it.address.parse::<IpAddr>().ok());
    let ranges = options.sort_order.iter();
    let ranges = ranges.filter(|range| !addresses().any(|address| range.contains(&address)));
    let ranges =
        ranges.map(|range| format!("an address in {range} (address-sort-order in {})", options.source));
    let lacks: Vec<String> = named.chain(ranges).collect();
    let networks = networks.into_iter().filter(|_| !lacks.is_empty());
    Unmatched {
        networks: networks.map(str::to_owned).collect(),
        lacks,
    }
}

/// The addresses of a server by the name of their network, in the order of names: the server's own, then those of trunks.
fn by_network<'a>(
    server: &'a Server,
    trunks: &'a [TrunkAddress],
) -> impl Iterator<Item = (&'a str, &'a str, bool)> {
    let mut networks: BTreeMap<&str, Vec<(&str, bool)>> = BTreeMap::new();
    for (network, addresses) in &server.addresses {
        let addresses = addresses
            .iter()
            .map(|address| (address.addr.as_str(), address.kind == Some(AddressKind::Floating)));
        networks.entry(network).or_default().extend(addresses);
    }
    for trunk in trunks {
        networks
            .entry(&trunk.network)
            .or_default()
            .push((&trunk.address, false));
    }
    networks.into_iter().flat_map(|(network, addresses)| {
        addresses
            .into_iter()
            .map(move |(address, is_floating)| (network, address, is_floating))
    })
}

/// Addresses so far, each with its kind once.
struct Gathered {
    addresses: Vec<NodeAddress>,
    without_ipv6: bool,
}

impl Gathered {
    fn add(&mut self, kind: AddressType, address: &str) {
        if !(self.without_ipv6 && is_ipv6(address)) {
            self.push(NodeAddress::new(kind, address));
        }
    }

    fn push(&mut self, address: NodeAddress) {
        if !self.addresses.contains(&address) {
            self.addresses.push(address);
        }
    }

    /// Removes an address of whatever kind.
    fn remove(&mut self, address: &str) {
        self.addresses.retain(|known| known.address != address);
    }
}

fn is_ipv6(address: &str) -> bool {
    matches!(address.parse(), Ok(IpAddr::V6(_)))
}

/// Sorts by the first of the ranges that an address is in, and by its number there. What is in none keeps its order, behind
/// all others.
fn sort(addresses: &mut [NodeAddress], ranges: &[IpNet]) {
    if ranges.is_empty() {
        return;
    }
    addresses.sort_by_cached_key(|known| {
        let address: Option<IpAddr> = known.address.parse().ok();
        let place = address.and_then(|address| {
            let range = ranges.iter().position(|range| range.contains(&address))?;
            Some((range, address))
        });
        (place.is_none(), place)
    });
}

#[cfg(test)]
mod tests;
