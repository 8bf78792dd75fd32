//! Which nodes become members, and at which of their addresses.

use std::fmt::{self, Display, Formatter};
use std::net::IpAddr;

use bowline_cloud_provider::{AddressType, Node, Selector, spelling};
use bowline_openstack_client::{Member, NewMember, ServerId};

use crate::provider_id::{self, Reference};

/// Whether a member that is there has the address and the port of a wanted one: Octavia takes no second one with both.
pub(crate) fn is_at(there: &Member, wanted: &NewMember) -> bool {
    there.protocol_port == wanted.protocol_port && spelling::of_address(&there.address) == wanted.address
}

/// A version of IP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Family {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

impl Family {
    /// The version of an address.
    pub(crate) fn of(address: IpAddr) -> Self {
        if address.is_ipv6() { Self::V6 } else { Self::V4 }
    }

    /// The version that `spec.ipFamilies` names.
    pub(crate) fn parse(word: &str) -> Option<Self> {
        match word {
            "IPv4" => Some(Self::V4),
            "IPv6" => Some(Self::V6),
            _ => None,
        }
    }

    /// The version of an address in words of the API; `None` if it is not an address.
    pub(crate) fn of_text(address: &str) -> Option<Self> {
        address.parse().ok().map(Self::of)
    }
}

impl Display for Family {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::V4 => "IPv4",
            Self::V6 => "IPv6",
        })
    }
}

/// The addresses of a node: its internal ones, then its external ones, each in the order of its status.
pub(crate) fn addresses(node: &Node, family: Option<Family>) -> impl Iterator<Item = IpAddr> {
    of_kind(node, AddressType::InternalIp, family).chain(of_kind(node, AddressType::ExternalIp, family))
}

/// The addresses of a node of one kind.
pub(crate) fn of_kind(
    node: &Node,
    kind: AddressType,
    family: Option<Family>,
) -> impl Iterator<Item = IpAddr> {
    let of_kind = node.addresses.iter().filter(move |entry| entry.kind == kind);
    let addresses = of_kind.filter_map(|entry| entry.address.parse::<IpAddr>().ok());
    addresses.filter(move |address| family.is_none_or(|family| Family::of(*address) == family))
}

/// The address at which a node is reached, where no subnet chooses among several: the first one.
pub(crate) fn address(node: &Node, family: Option<Family>) -> Option<IpAddr> {
    addresses(node, family).next()
}

/// The server of a node, as its provider ID names it.
pub(crate) fn server(node: &Node) -> Option<ServerId> {
    match provider_id::parse(node.provider_id.as_deref()?) {
        Reference::Server { id, .. } => Some(id.into()),
        Reference::Foreign | Reference::Unreadable => None,
    }
}

/// The labels that a node must have: `key=value`, or `key` alone for any value.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct NodeFilter(Vec<(String, Option<String>)>);

impl NodeFilter {
    /// Reads a filter; it cannot be wrong. `key=` is the same as `key`.
    pub(crate) fn parse(text: &str) -> Self {
        let items = text.split(',').map(str::trim).filter(|item| !item.is_empty());
        Self(
            items
                .map(|item| match item.split_once('=') {
                    Some((key, value)) if !value.is_empty() => (key.to_owned(), Some(value.to_owned())),
                    Some((key, _)) => (key.to_owned(), None),
                    None => (item.to_owned(), None),
                })
                .collect(),
        )
    }

    /// The first part that fits no label that there can be: a test of a label selector, such as `a in (b)`, is read as a key.
    pub(crate) fn nonsense(text: &str) -> Option<&str> {
        let mut items = text.split(',').map(str::trim).filter(|item| !item.is_empty());
        items.find(|item| {
            let (key, value) = item.split_once('=').unwrap_or((item, ""));
            item.contains(char::is_whitespace) || Selector::parse(&format!("{key} in ({value})")).is_err()
        })
    }

    /// Whether a node stays.
    pub(crate) fn matches(&self, node: &Node) -> bool {
        self.0.iter().all(|(key, wanted)| match node.labels.value(key) {
            None => false,
            Some(value) => wanted.as_deref().is_none_or(|wanted| wanted == value),
        })
    }

    /// Whether every node stays.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use bowline_cloud_provider::{Labels, NodeAddress};

    use super::*;

    #[test]
    fn an_internal_address_counts_before_an_external_one_of_the_same_family() {
        let node = Node {
            addresses: vec![
                NodeAddress::new(AddressType::Hostname, "10.9.9.9"),
                NodeAddress::new(AddressType::ExternalIp, "fd00::1"),
                NodeAddress::new(AddressType::ExternalIp, "198.51.100.1"),
                NodeAddress::new(AddressType::InternalIp, "10.0.0.11"),
                NodeAddress::new(AddressType::InternalIp, "10.0.0.12"),
            ],
            ..Node::named("n")
        };
        let found = |family| address(&node, family).map(|address| address.to_string());
        assert_eq!(found(None).as_deref(), Some("10.0.0.11"));
        assert_eq!(found(Some(Family::V4)).as_deref(), Some("10.0.0.11"));
        assert_eq!(found(Some(Family::V6)).as_deref(), Some("fd00::1"));
        assert_eq!(address(&Node::named("x"), None), None);
    }

    #[test]
    fn a_node_needs_every_label_of_the_filter() {
        let node = |labels: &[(&str, &str)]| Node {
            labels: labels.iter().copied().collect::<Labels>(),
            ..Node::named("n")
        };
        let stays = |text: &str, labels: &[(&str, &str)]| NodeFilter::parse(text).matches(&node(labels));
        assert!(stays("", &[]));
        assert!(stays(" , ", &[]));
        assert!(stays("env=prod,gpu", &[("env", "prod"), ("gpu", "x")]));
        assert!(stays("env=prod, gpu=", &[("env", "prod"), ("gpu", "")]));
        assert!(!stays("env=prod,gpu", &[("env", "prod")]));
        assert!(!stays("env=prod", &[("env", "test")]));
        assert!(stays("env=a=b", &[("env", "a=b")]));
        assert!(!stays("env", &[]));
    }

    #[test]
    fn what_no_label_can_be_is_found() {
        for good in [
            "",
            " , ",
            "env=prod, gpu",
            "gpu=",
            "kubernetes.io/os=linux",
            "in=notin",
        ] {
            assert_eq!(NodeFilter::nonsense(good), None, "{good}");
        }
        for (bad, part) in [
            ("a in (b)", "a in (b)"),
            ("gpu, a in (b, c)", "a in (b"),
            ("a notin(b)", "a notin(b)"),
            ("!gpu", "!gpu"),
            ("a!=b", "a!=b"),
            ("a==b", "a==b"),
            ("a = b", "a = b"),
            ("=b", "=b"),
            ("a=b/c", "a=b/c"),
        ] {
            assert_eq!(NodeFilter::nonsense(bad), Some(part), "{bad}");
        }
    }
}
