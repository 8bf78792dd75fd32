//! Floating IPs: how they are written, and which Services ask for the same one.

use std::fmt;
use std::net::IpAddr;

use bowline_cloud_provider::k8s::Service;
use bowline_cloud_provider::{ServiceClasses, ServicesView, facts};
use bowline_cloudscale_client::FloatingIp;
use ipnet::IpNet;

use crate::load_balancer::annotations::{self, FLOATING_IPS};

/// A floating IP as it is asked for: one address, however it was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct FloatingAddress(pub(crate) IpAddr);

impl FloatingAddress {
    /// Whether this is the floating IP that the API shows.
    pub(crate) fn is(self, floating_ip: &FloatingIp) -> bool {
        network(&floating_ip.network).and_then(single) == Some(self)
    }
}

/// Reads an address with or without its length.
fn network(text: &str) -> Option<IpNet> {
    let text = text.trim();
    text.parse::<IpAddr>()
        .map(IpNet::from)
        .or_else(|_| text.parse())
        .ok()
}

/// The address, if the network is a single one.
fn single(network: IpNet) -> Option<FloatingAddress> {
    (network.prefix_len() == network.max_prefix_len()).then(|| FloatingAddress(network.addr()))
}

impl fmt::Display for FloatingAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", IpNet::from(self.0))
    }
}

/// The floating IPs that a Service asks for, each once.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Wishes {
    /// Those that a load balancer can have.
    pub(crate) addresses: Vec<FloatingAddress>,
    /// Whole networks, as they were written: no load balancer takes one.
    pub(crate) networks: Vec<String>,
}

/// Reads a list of floating IPs.
pub(crate) fn parse(texts: &[String]) -> Result<Wishes, String> {
    let mut wishes = Wishes::default();
    for text in texts {
        let network = network(text).ok_or_else(|| format!("`{text}` is not an address in CIDR notation"))?;
        match single(network) {
            None => wishes.networks.push(text.clone()),
            Some(address) if wishes.addresses.contains(&address) => {}
            Some(address) => wishes.addresses.push(address),
        }
    }
    Ok(wishes)
}

/// The floating IPs that another Service asks this program for; none if it asks nobody, or somebody else, or cannot be
/// understood: a broken Service must not block all others.
fn asked_by(other: &Service, classes: &ServiceClasses) -> Vec<FloatingAddress> {
    if !classes.is_wanted(other) {
        return Vec::new();
    }
    let Some(text) = facts::annotation(other, FLOATING_IPS.key) else {
        return Vec::new();
    };
    annotations::parse_list(text)
        .ok()
        .and_then(|texts| parse(&texts).ok())
        .map(|wishes| wishes.addresses)
        .unwrap_or_default()
}

/// Upstream's text for floating IPs that two Services ask for; `None` if there are none.
pub(crate) fn conflict(
    service: &Service,
    own: &[FloatingAddress],
    services: &dyn ServicesView,
) -> Option<String> {
    if own.is_empty() {
        return None;
    }
    let mut conflicts = Vec::new();
    let others = services.services();
    for other in others
        .iter()
        .filter(|other| other.metadata.uid != service.metadata.uid)
    {
        let name = other.metadata.name.as_deref().unwrap_or_default();
        conflicts.extend(
            asked_by(other, services.classes())
                .into_iter()
                .filter(|asked| own.contains(asked))
                .map(|asked| format!("{asked}->{name}")),
        );
    }
    (!conflicts.is_empty()).then(|| {
        format!(
            "at least one Floating IP assigned to service {} is also assigned to another service. Refusing to continue to avoid flapping: {}",
            service.metadata.name.as_deref().unwrap_or_default(),
            conflicts.join(", "),
        )
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use jiff::Timestamp;

    use super::*;

    fn address(text: &str) -> FloatingAddress {
        network(text).and_then(single).unwrap()
    }

    #[test]
    fn one_address_has_one_spelling() {
        let table = [
            ("198.51.100.7/32", "198.51.100.7/32"),
            ("198.51.100.7", "198.51.100.7/32"),
            ("2001:DB8:5:0::7", "2001:db8:5::7/128"),
            ("2001:db8:5::7/128", "2001:db8:5::7/128"),
        ];
        for (text, written) in table {
            assert_eq!(address(text).to_string(), written);
        }
        let of = |texts: &[&str]| parse(&texts.iter().map(ToString::to_string).collect::<Vec<_>>());
        let wishes = of(&["198.51.100.7", "2001:db8::/56", "198.51.100.7/32"]).unwrap();
        assert_eq!(wishes.addresses, [address("198.51.100.7")]);
        assert_eq!(wishes.networks, ["2001:db8::/56"]);
        assert_eq!(of(&["x"]).unwrap_err(), "`x` is not an address in CIDR notation");
    }

    #[test]
    fn only_services_that_want_a_balancer_from_here_conflict() {
        let service = |name: &str, ips: &str| {
            let mut service = Service::default();
            service.metadata.name = Some(name.into());
            service.metadata.uid = Some(format!("uid-{name}"));
            service.metadata.annotations = Some([(FLOATING_IPS.key.to_owned(), ips.to_owned())].into());
            service.spec.get_or_insert_default().type_ = Some("LoadBalancer".into());
            service
        };
        let cluster = |services: &[&Service]| -> Vec<Arc<Service>> {
            services.iter().map(|it| Arc::new((*it).clone())).collect()
        };
        let own = service("a", "");
        let wanted = [address("198.51.100.7")];
        let same = service("b", r#"["198.51.100.7/32"]"#);
        let mut cluster_ip = same.clone();
        cluster_ip.spec.get_or_insert_default().type_ = Some("ClusterIP".into());
        let mut classed = same.clone();
        classed.spec.get_or_insert_default().load_balancer_class = Some("other".into());
        let mut going = same.clone();
        going.metadata.deletion_timestamp = Some(Timestamp::UNIX_EPOCH);
        let broken = service("c", "{");
        for other in [&own, &cluster_ip, &classed, &going, &broken] {
            assert_eq!(conflict(&own, &wanted, &cluster(&[other])), None);
        }
        let text = conflict(&own, &wanted, &cluster(&[&broken, &same])).unwrap();
        assert!(
            text.contains("assigned to another service") && text.ends_with("198.51.100.7/32->b"),
            "{text}"
        );
    }
}
