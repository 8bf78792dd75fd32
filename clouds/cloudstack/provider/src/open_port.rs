//! Ports that stay open while their rule is made anew.
//!
//! An opening is made when its rule is there, and closed before its rule goes, so the rules tell what is open for a Service.
//! A rule that cannot be changed is the exception: it is deleted and made anew, and closing its port in between would only
//! make the gap longer. Should the process stop right then, and the Service not want the port any more, nothing would close
//! it. So such ports are written on the Service first.

use std::collections::BTreeSet;
use std::fmt;

use bowline_cloud_provider::{KubeWrite, Service};

use crate::annotations::{OPEN_PORTS, text};
use crate::names::IpProtocol;
use crate::objects::{Opening, Rule};

/// One port.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct OpenPort {
    /// The ID of its address.
    pub(crate) address: String,
    /// The ID of the network of its rule.
    pub(crate) network: String,
    pub(crate) opening: Opening,
}

impl fmt::Display for OpenPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.address, self.network, self.opening)
    }
}

impl OpenPort {
    /// The port of a rule; none if it cannot be read, and so was not opened by us.
    pub(crate) fn of(rule: &Rule, balancer: &str) -> Option<Self> {
        Some(Self {
            address: rule.address.id.clone(),
            network: rule.network.clone(),
            opening: rule.opening(balancer)?,
        })
    }

    fn parse(text: &str) -> Option<Self> {
        let [address, network, protocol, port] =
            text.trim().split('/').collect::<Vec<_>>().try_into().ok()?;
        Some(Self {
            address: address.to_owned(),
            network: network.to_owned(),
            opening: Opening {
                protocol: IpProtocol::parse(protocol)?,
                port: port.parse().ok()?,
            },
        })
    }

    /// What is written on a Service. What cannot be read was not written by us.
    pub(crate) fn all(service: &Service) -> BTreeSet<Self> {
        text(service, &OPEN_PORTS)
            .split(',')
            .filter_map(Self::parse)
            .collect()
    }

    /// The write that makes these all there are.
    pub(crate) fn write(ports: &BTreeSet<Self>) -> KubeWrite {
        let list: Vec<String> = ports.iter().map(ToString::to_string).collect();
        let value = Some(list.join(",")).filter(|value| !value.is_empty());
        KubeWrite::AnnotateService(vec![(OPEN_PORTS.key.to_owned(), value)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_reads_back() {
        let port = |network: &str, port| OpenPort {
            address: "ip-1".to_owned(),
            network: network.to_owned(),
            opening: Opening {
                protocol: IpProtocol::Udp,
                port,
            },
        };
        let mut service = Service::default();
        assert_eq!(OpenPort::all(&service), BTreeSet::new());
        let ports = BTreeSet::from([port("n1", 53), port("n2", 443)]);
        OpenPort::write(&ports).predict(&mut service);
        assert_eq!(OpenPort::all(&service), ports);
        OpenPort::write(&BTreeSet::new()).predict(&mut service);
        assert_eq!(service.metadata.annotations, Some(Default::default()));
        assert_eq!(OpenPort::parse("ip-1/n1/sctp/53"), None);
        assert_eq!(OpenPort::parse("ip-1/n1/udp/53/x"), None);
    }
}
