//! Which addresses a Node should show. Pure.

use std::net::IpAddr;

use bowline_cloud_provider::{AddressType, Node, NodeAddress, keys};

use crate::cluster_cidr::address_of;

/// Why the addresses of a Node cannot be worked out: the annotation `alpha.kubernetes.io/provided-node-ip` is wrong.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProvidedIpError {
    /// An entry is not an IP address. Blanks are not taken off.
    #[error("not an IP address: {0:?}")]
    NotAnIp(String),
    /// There are two entries of one family, or more than two.
    #[error("must be one IP address, or one of each family: {0:?}")]
    NotOnePerFamily(String),
    /// One of two entries is `0.0.0.0` or `::`.
    #[error("an unspecified IP address cannot be one of two: {0:?}")]
    Unspecified(String),
    /// The instance has no such address.
    #[error("failed to get node address from cloud provider that matches ip: {0}")]
    NoMatch(IpAddr),
}

/// The addresses that a Node should show, or none if they are to be left as they are.
///
/// 1. A cloud that names no address says nothing about addresses.
/// 2. A `Hostname` that the kubelet posts is kept, at the end, unless the cloud names one.
/// 3. IPs given to the kubelet come first, in the order given there, and the other addresses of their types are left
///    out. All other types follow in the cloud's order.
/// 4. What the cloud names twice, such as a private IP that a server has in two networks, is shown once.
///
/// # Errors
///
/// The annotation with the kubelet's IPs does not parse, or the instance has no such address.
pub fn wished(node: &Node, cloud: &[NodeAddress]) -> Result<Option<Vec<NodeAddress>>, ProvidedIpError> {
    if cloud.is_empty() {
        return Ok(None);
    }
    let mut addresses = cloud.to_vec();
    if !cloud.iter().any(is_hostname) {
        addresses.extend(
            node.addresses
                .iter()
                .filter(|address| is_hostname(address))
                .cloned(),
        );
    }
    let wished = match node.annotations.value(keys::ANNOTATION_PROVIDED_NODE_IP) {
        Some(provided) => prefer(&provided_ips(provided)?, &addresses)?,
        None => addresses,
    };
    Ok(Some(each_once(wished)))
}

/// The API server refuses a list with the same type and address twice (`ValidateNodeUpdate` of Kubernetes).
fn each_once(addresses: Vec<NodeAddress>) -> Vec<NodeAddress> {
    let mut once: Vec<NodeAddress> = Vec::with_capacity(addresses.len());
    for address in addresses {
        if !once.contains(&address) {
            once.push(address);
        }
    }
    once
}

/// Whether one of them is an IP address that something can be sent to.
#[must_use]
pub fn can_be_reached(addresses: &[NodeAddress]) -> bool {
    let is_ip =
        |address: &NodeAddress| matches!(address.kind, AddressType::InternalIp | AddressType::ExternalIp);
    addresses.iter().any(is_ip)
}

/// Checks the kubelet's IPs against what the cloud alone says: an initialisation does not begin without a match, not
/// even if the cloud names no address at all.
///
/// # Errors
///
/// As [`wished`].
pub fn check(node: &Node, cloud: &[NodeAddress]) -> Result<(), ProvidedIpError> {
    match node.annotations.value(keys::ANNOTATION_PROVIDED_NODE_IP) {
        Some(provided) => prefer(&provided_ips(provided)?, cloud).map(drop),
        None => Ok(()),
    }
}

fn is_hostname(address: &NodeAddress) -> bool {
    address.kind == AddressType::Hostname
}

/// The provided IPs first, the types they pin without any others, the rest behind.
fn prefer(provided: &[IpAddr], addresses: &[NodeAddress]) -> Result<Vec<NodeAddress>, ProvidedIpError> {
    let mut wished: Vec<NodeAddress> = Vec::with_capacity(addresses.len());
    for ip in provided {
        let before = wished.len();
        let matching = addresses
            .iter()
            .filter(|address| parse_ip(&address.address) == Some(*ip));
        wished.extend(matching.cloned());
        if wished.len() == before {
            return Err(ProvidedIpError::NoMatch(*ip));
        }
    }
    let pinned: Vec<AddressType> = wished.iter().map(|address| address.kind.clone()).collect();
    wished.extend(
        addresses
            .iter()
            .filter(|address| !pinned.contains(&address.kind))
            .cloned(),
    );
    Ok(wished)
}

/// Reads the annotation: one IP, or one of each family, with a comma and nothing else between.
fn provided_ips(annotation: &str) -> Result<Vec<IpAddr>, ProvidedIpError> {
    let ips: Vec<IpAddr> = annotation
        .split(',')
        .map(|entry| parse_ip(entry).ok_or_else(|| ProvidedIpError::NotAnIp(entry.into())))
        .collect::<Result<_, _>>()?;
    match &ips[..] {
        [_] => Ok(ips),
        [first, second] if first.is_ipv4() != second.is_ipv4() => {
            if first.is_unspecified() || second.is_unspecified() {
                return Err(ProvidedIpError::Unspecified(annotation.into()));
            }
            Ok(ips)
        }
        _ => Err(ProvidedIpError::NotOnePerFamily(annotation.into())),
    }
}

/// Reads an IP as Kubernetes does; an IPv4 address written as an IPv6 one is IPv4.
fn parse_ip(text: &str) -> Option<IpAddr> {
    address_of(text).map(|ip| ip.to_canonical())
}

#[cfg(test)]
mod tests {
    use bowline_cloud_provider::Labels;
    use proptest::prelude::*;

    use super::*;

    fn addresses(text: &str) -> Vec<NodeAddress> {
        text.split_whitespace()
            .map(|entry| {
                let (kind, address) = entry.split_once('=').unwrap();
                let kind = match kind {
                    "in" => AddressType::InternalIp,
                    "ex" => AddressType::ExternalIp,
                    "host" => AddressType::Hostname,
                    "indns" => AddressType::InternalDns,
                    "exdns" => AddressType::ExternalDns,
                    other => AddressType::Other(other.into()),
                };
                NodeAddress::new(kind, address)
            })
            .collect()
    }

    fn node(provided: Option<&str>, shown: &str) -> Node {
        Node {
            annotations: provided
                .map(|value| (keys::ANNOTATION_PROVIDED_NODE_IP, value))
                .into_iter()
                .collect::<Labels>(),
            addresses: addresses(shown),
            ..Node::named("n1")
        }
    }

    #[test]
    fn addresses_follow_the_table() {
        let four = "in=10.1.0.1 ex=203.0.113.1 in=fd00::1 in=10.9.0.1";
        let table = [
            ("as the cloud says", None, "", four, four),
            (
                "both families pinned",
                Some("10.1.0.1,fd00::1"),
                "",
                four,
                "in=10.1.0.1 in=fd00::1 ex=203.0.113.1",
            ),
            (
                "the order given to the kubelet",
                Some("fd00::1,10.1.0.1"),
                "",
                four,
                "in=fd00::1 in=10.1.0.1 ex=203.0.113.1",
            ),
            (
                "one IPv4 hides the IPv6 of its type",
                Some("10.1.0.1"),
                "",
                four,
                "in=10.1.0.1 ex=203.0.113.1",
            ),
            (
                "an external one",
                Some("203.0.113.1"),
                "",
                four,
                "ex=203.0.113.1 in=10.1.0.1 in=fd00::1 in=10.9.0.1",
            ),
            (
                "an address of two types pins both",
                Some("10.1.0.1"),
                "",
                "in=10.1.0.1 ex=10.1.0.1 in=10.2.0.1 ex=203.0.113.1",
                "in=10.1.0.1 ex=10.1.0.1",
            ),
            (
                "names are never pinned",
                Some("10.1.0.1"),
                "",
                "host=a in=10.1.0.1 indns=a.internal exdns=a.example",
                "in=10.1.0.1 host=a indns=a.internal exdns=a.example",
            ),
            (
                "the kubelet's host name stays at the end",
                None,
                "host=h1 in=10.0.0.9",
                "in=10.1.0.1",
                "in=10.1.0.1 host=h1",
            ),
            (
                "the kubelet's host name stays behind a pinned address",
                Some("10.1.0.1"),
                "host=h1",
                "in=10.1.0.1 ex=203.0.113.1",
                "in=10.1.0.1 ex=203.0.113.1 host=h1",
            ),
            (
                "what is named twice is shown once",
                None,
                "host=h1",
                "in=10.1.0.1 ex=10.1.0.1 in=10.1.0.1 in=10.1.0.2",
                "in=10.1.0.1 ex=10.1.0.1 in=10.1.0.2 host=h1",
            ),
            (
                "what is given twice is shown once",
                Some("10.1.0.1"),
                "",
                "in=10.1.0.1 in=10.1.0.1 ex=203.0.113.1",
                "in=10.1.0.1 ex=203.0.113.1",
            ),
            (
                "the cloud's host name wins",
                None,
                "host=h1",
                "host=h2 in=10.1.0.1",
                "host=h2 in=10.1.0.1",
            ),
            (
                "leading zeros",
                Some("010.001.0.01"),
                "",
                "in=10.1.0.1",
                "in=10.1.0.1",
            ),
            (
                "an IPv4 address in IPv6 clothes",
                Some("::ffff:10.1.0.1"),
                "",
                "in=10.1.0.1",
                "in=10.1.0.1",
            ),
        ];
        for (case, provided, shown, cloud, wish) in table {
            assert_eq!(
                wished(&node(provided, shown), &addresses(cloud)),
                Ok(Some(addresses(wish))),
                "{case}"
            );
        }
    }

    #[test]
    fn a_cloud_without_addresses_leaves_them_as_they_are() {
        assert_eq!(wished(&node(None, "in=10.0.0.1"), &[]), Ok(None));
        assert_eq!(wished(&node(Some("10.1.0.1"), "in=10.0.0.1"), &[]), Ok(None));
    }

    #[test]
    fn provided_ips_that_do_not_parse_or_match_are_errors() {
        let cloud = addresses("in=10.1.0.1 in=fd00::1");
        for (provided, error) in [
            ("", "not an IP address: \"\""),
            ("10.1.0.1, fd00::1", "not an IP address: \" fd00::1\""),
            ("10.1.0.1,", "not an IP address: \"\""),
            ("10.1.0", "not an IP address: \"10.1.0\""),
            ("10.1.0.256", "not an IP address: \"10.1.0.256\""),
            ("fe80::1%eth0", "not an IP address: \"fe80::1%eth0\""),
            (
                "10.1.0.1,10.1.0.2",
                "must be one IP address, or one of each family: \"10.1.0.1,10.1.0.2\"",
            ),
            (
                "10.1.0.1,fd00::1,fd00::2",
                "must be one IP address, or one of each family: \"10.1.0.1,fd00::1,fd00::2\"",
            ),
            (
                "0.0.0.0,fd00::1",
                "an unspecified IP address cannot be one of two: \"0.0.0.0,fd00::1\"",
            ),
            (
                "10.9.9.9",
                "failed to get node address from cloud provider that matches ip: 10.9.9.9",
            ),
            (
                "0.0.0.0",
                "failed to get node address from cloud provider that matches ip: 0.0.0.0",
            ),
        ] {
            let found = wished(&node(Some(provided), ""), &cloud).unwrap_err();
            assert_eq!(found.to_string(), error, "{provided:?}");
            assert_eq!(
                check(&node(Some(provided), ""), &cloud),
                Err(found),
                "{provided:?}"
            );
        }
    }

    #[test]
    fn a_provided_ip_needs_a_match_even_where_the_cloud_names_none() {
        assert!(check(&node(Some("10.1.0.1"), "in=10.1.0.1"), &[]).is_err());
        assert_eq!(check(&node(None, ""), &[]), Ok(()));
    }

    proptest! {
        /// Whatever the kubelet was given: nothing is made up, the cloud's order holds, and asking again with what is
        /// shown then changes nothing.
        #[test]
        fn addresses_are_the_clouds_and_settle(
            cloud in proptest::collection::vec((0..3_u8, 0..4_u8), 1..6),
            shown in proptest::option::of(0..3_u8),
            provided in proptest::option::of(0..4_u8),
        ) {
            let cloud: Vec<NodeAddress> = cloud
                .into_iter()
                .map(|(kind, last)| {
                    let kind = [AddressType::InternalIp, AddressType::ExternalIp, AddressType::InternalDns][usize::from(kind)].clone();
                    NodeAddress::new(kind, format!("10.0.0.{last}"))
                })
                .collect();
            let provided = provided.map(|last| format!("10.0.0.{last}"));
            let mut node = node(provided.as_deref(), "");
            node.addresses = shown.map(|n| NodeAddress::new(AddressType::Hostname, format!("h{n}"))).into_iter().collect();
            if let Ok(Some(wish)) = wished(&node, &cloud) {
                for address in &wish {
                    prop_assert!(cloud.contains(address) || node.addresses.contains(address));
                }
                prop_assert_eq!(wish.iter().filter(|a| is_hostname(a)).count(), node.addresses.len());
                node.addresses = wish.clone();
                prop_assert_eq!(wished(&node, &cloud), Ok(Some(wish)));
            }
        }
    }
}
