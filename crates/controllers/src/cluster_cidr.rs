//! Reading `--cluster-cidr` and its kin: one network, or one of each family. Reading the pod networks of Nodes.

use std::net::IpAddr;
use std::sync::Arc;

use bowline_cloud_provider::Node;
use bowline_plan::EventSpec;
use ipnet::IpNet;

use crate::events;

/// What is wrong with a list of networks.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CidrListError {
    /// There is none.
    #[error("no network is given")]
    Empty,
    /// One of them is no network.
    #[error("{0:?} is not a network such as 10.0.0.0/16")]
    Unreadable(String),
    /// There are more than two.
    #[error("{0} networks are given, at most one of each family can be used")]
    TooMany(usize),
    /// There are two of one family.
    #[error("{0} and {1} are of one family, at most one of each can be used")]
    SameFamily(IpNet, IpNet),
}

/// Reads networks that are separated by commas. Host bits are cut off, as the Go managers do.
///
/// # Errors
///
/// What is wrong with the text.
pub fn parse(text: &str) -> Result<Vec<IpNet>, CidrListError> {
    let parts: Vec<&str> = text.split(',').map(str::trim).collect();
    if parts.iter().all(|part| part.is_empty()) {
        return Err(CidrListError::Empty);
    }
    let networks = parts
        .iter()
        .map(|part| match part.parse::<IpNet>() {
            Ok(network) => Ok(network.trunc()),
            Err(_) => Err(CidrListError::Unreadable((*part).to_owned())),
        })
        .collect::<Result<Vec<_>, _>>()?;
    match networks.as_slice() {
        [first, second] if is_ipv4(first) == is_ipv4(second) => {
            Err(CidrListError::SameFamily(*first, *second))
        }
        [_] | [_, _] => Ok(networks),
        more => Err(CidrListError::TooMany(more.len())),
    }
}

/// The network that a Node's `spec.podCIDRs` names, as Kubernetes reads it: octets may have leading zeros, and host bits say
/// nothing.
#[must_use]
pub fn pod_network(text: &str) -> Option<IpNet> {
    let (address, length) = text.split_once('/')?;
    let network = IpNet::new(address_of(address)?, length.parse().ok()?).ok()?;
    Some(network.trunc())
}

/// What is wrong with the pod networks of a Node, by those of all Nodes and those of the cluster: the events and their texts. Of an empty
/// `cluster` nothing is outside.
#[must_use]
pub fn odd_networks(
    node: &Node,
    nodes: &[Arc<Node>],
    cluster: &[IpNet],
) -> Vec<(&'static EventSpec, String)> {
    let overlap = |one: &IpNet, other: &IpNet| one.contains(other) || other.contains(one);
    let mut odd = Vec::new();
    for text in &node.pod_cidrs {
        let network = pod_network(text);
        let is_inside = network.is_some_and(|it| cluster.iter().any(|range| overlap(range, &it)));
        if !cluster.is_empty() && !is_inside {
            odd.push((&events::POD_NETWORK_OUTSIDE, events::outside_network(text)));
        }
        let Some(network) = network else {
            continue;
        };
        let has_it = |other: &&Arc<Node>| {
            let mut networks = other.pod_cidrs.iter().filter_map(|text| pod_network(text));
            other.name != node.name && networks.any(|it| overlap(&network, &it))
        };
        let others = nodes.iter().filter(has_it);
        odd.extend(others.map(|other| {
            let text = events::shared_network(text, &other.name);
            (&events::POD_NETWORK_SHARED, text)
        }));
    }
    odd
}

/// Reads an IP as Kubernetes does: octets may have leading zeros.
pub(crate) fn address_of(text: &str) -> Option<IpAddr> {
    if let Ok(ip) = text.parse::<IpAddr>() {
        return Some(ip);
    }
    let octets_at = text.rfind(':').map_or(0, |colon| colon + 1);
    let (head, octets) = text.split_at(octets_at);
    let octets: Vec<&str> = octets.split('.').map(without_leading_zeros).collect();
    format!("{head}{}", octets.join(".")).parse().ok()
}

fn without_leading_zeros(octet: &str) -> &str {
    let digits = octet.trim_start_matches('0');
    if digits.is_empty() && !octet.is_empty() {
        "0"
    } else {
        digits
    }
}

/// Whether a network is of the older family.
pub(crate) fn is_ipv4(network: &IpNet) -> bool {
    matches!(network, IpNet::V4(_))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pod_network_of_two_nodes_and_one_outside_of_the_cluster_are_odd() {
        let node = |name: &str, network: &str| {
            Arc::new(Node {
                pod_cidrs: vec![network.to_owned()],
                ..Node::named(name)
            })
        };
        let nodes = [
            node("a", "10.244.1.0/24"),
            node("b", "10.244.1.0/25"),
            node("c", "10.244.2.0/24"),
            node("d", "192.168.7.0/24"),
        ];
        let cluster = parse("10.244.0.0/16").unwrap();
        let odd = |of: usize, cluster: &[IpNet]| {
            let odd = odd_networks(&nodes[of], &nodes, cluster).into_iter();
            odd.map(|(event, text)| (event.reason, text)).collect::<Vec<_>>()
        };
        let shared = odd(0, &cluster);
        assert_eq!((shared.len(), shared[0].0), (1, "PodNetworkShared"));
        assert!(
            shared[0]
                .1
                .starts_with("The pod network 10.244.1.0/24 has addresses in common with that of node b")
        );
        assert_eq!(odd(2, &cluster), []);
        let outside = odd(3, &cluster);
        assert_eq!((outside.len(), outside[0].0), (1, "PodNetworkOutside"));
        assert!(
            outside[0]
                .1
                .starts_with("The pod network 192.168.7.0/24 is not in --cluster-cidr")
        );
        assert_eq!(odd(3, &[]), []);
    }

    #[test]
    fn a_pod_network_is_read_as_kubernetes_reads_it() {
        for (text, expected) in [
            ("10.244.1.0/24", Some("10.244.1.0/24")),
            ("10.244.1.2/24", Some("10.244.1.0/24")),
            ("010.244.001.000/24", Some("10.244.1.0/24")),
            ("fd00:0:0:1::9/64", Some("fd00:0:0:1::/64")),
            ("10.244.1.0", None),
            ("10.244.1.0/33", None),
            ("nonsense/24", None),
            ("", None),
        ] {
            let read = pod_network(text).map(|network| network.to_string());
            assert_eq!(read.as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn one_network_or_one_of_each_family_can_be_used() {
        let shown = |text: &str| match parse(text) {
            Ok(networks) => networks
                .iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
                .join(" "),
            Err(error) => error.to_string(),
        };
        for (text, expected) in [
            ("10.200.0.0/16", "10.200.0.0/16"),
            ("fd00::/48, 10.200.3.4/16", "fd00::/48 10.200.0.0/16"),
            ("", "no network is given"),
            (
                "10.200.0.0",
                "\"10.200.0.0\" is not a network such as 10.0.0.0/16",
            ),
            ("10.200.0.0/16,", "\"\" is not a network such as 10.0.0.0/16"),
            (
                "10.1.0.0/16,10.2.0.0/16",
                "10.1.0.0/16 and 10.2.0.0/16 are of one family, at most one of each can be used",
            ),
            (
                "10.1.0.0/16,fd00::/48,10.2.0.0/16",
                "3 networks are given, at most one of each family can be used",
            ),
        ] {
            assert_eq!(shown(text), expected);
        }
    }
}
