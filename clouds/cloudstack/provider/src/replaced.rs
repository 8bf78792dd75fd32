//! Rules that are deleted to be made anew, because the cloud cannot change them where they stand.
//!
//! An opening is made when its rule is there, and closed before its rule goes, so the rules tell what is open for a Service.
//! A rule that is made anew is the exception: closing its port in between would only make the gap longer. And should its
//! successor be refused, the port would be left with nothing. So such a rule is written on the Service before it is deleted,
//! with all that it takes to make it again: whatever stops the process in between, the next look finds what was there.
//!
//! The other exception is a rule that goes for good and leaves an item of an ACL list behind, because others rely on it. It is
//! written down too, so that the item is looked at once more when the rule is gone.

use std::collections::BTreeMap;

use bowline_cloud_provider::{KubeWrite, Service};
use serde::{Deserialize, Serialize};

use crate::annotations::{REPLACED_RULES, text};
use crate::objects::{AddressRef, NetworkId, NewRule, Opening, PublicIpId, PublicPort, Rule};

/// What is open for a rule.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct OpenPort {
    /// The ID of its address.
    pub(crate) address: PublicIpId,
    /// The ID of the network of its rule.
    pub(crate) network: NetworkId,
    pub(crate) opening: Opening,
}

impl OpenPort {
    /// The port of a rule; `None` if it cannot be read, and so was not opened by us.
    pub(crate) fn of(rule: &Rule, balancer: &str) -> Option<Self> {
        Some(Self {
            address: rule.address.id.clone(),
            network: rule.network.clone(),
            opening: rule.opening(balancer)?,
        })
    }
}

/// A rule as it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Replaced {
    pub(crate) place: PublicPort,
    /// What makes it again.
    pub(crate) rule: NewRule,
}

impl Replaced {
    /// A rule as it is; `None` if it cannot be made again, because something of it cannot be read.
    pub(crate) fn of(rule: &Rule, balancer: &str) -> Option<Self> {
        let list = rule.cidrs.texts();
        Some(Self {
            place: PublicPort {
                address: rule.address.clone(),
                port: Some(rule.public_port?),
            },
            rule: NewRule {
                name: rule.name.clone(),
                algorithm: rule.algorithm.clone(),
                protocol: rule.protocol(balancer)?,
                public_port: rule.public_port?,
                private_port: rule.private_port?,
                network: rule.network.clone(),
                cidrs: Some(list).filter(|list| !list.is_empty()),
            },
        })
    }

    /// What was open for it.
    pub(crate) fn open_port(&self) -> OpenPort {
        OpenPort {
            address: self.place.address.id.clone(),
            network: self.rule.network.clone(),
            opening: Opening {
                protocol: self.rule.protocol.ip(),
                port: self.rule.public_port,
            },
        }
    }
}

/// Replaced rules, one for each port: only the last one tells what was there.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct ReplacedRules(BTreeMap<OpenPort, Replaced>);

impl ReplacedRules {
    /// What is written on a Service. What cannot be read was not written by us.
    pub(crate) fn on(service: &Service) -> Self {
        let written: Vec<Written> = serde_json::from_str(text(service, &REPLACED_RULES)).unwrap_or_default();
        written.into_iter().filter_map(Written::read).collect()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn get(&self, port: &OpenPort) -> Option<&Replaced> {
        self.0.get(port)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Replaced> {
        self.0.values()
    }

    /// What was open for them.
    pub(crate) fn ports(&self) -> impl Iterator<Item = &OpenPort> {
        self.0.keys()
    }

    pub(crate) fn insert(&mut self, replaced: Replaced) {
        self.0.insert(replaced.open_port(), replaced);
    }

    /// The write that adds these to what is written.
    pub(crate) fn with(&self, added: Self) -> KubeWrite {
        let mut all = self.0.clone();
        all.extend(added.0);
        let written: Vec<Written> = all.values().map(Written::of).collect();
        write(serde_json::to_string(&written).ok())
    }

    /// The write that takes all of them off the Service.
    pub(crate) fn clear() -> KubeWrite {
        write(None)
    }
}

impl FromIterator<Replaced> for ReplacedRules {
    fn from_iter<I: IntoIterator<Item = Replaced>>(rules: I) -> Self {
        let mut all = Self::default();
        for replaced in rules {
            all.insert(replaced);
        }
        all
    }
}

fn write(value: Option<String>) -> KubeWrite {
    KubeWrite::AnnotateService(vec![(REPLACED_RULES.key.to_owned(), value)])
}

/// A rule as it is written down.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Written {
    name: String,
    protocol: String,
    algorithm: String,
    ip_id: PublicIpId,
    ip: String,
    port: u16,
    node_port: u16,
    network_id: NetworkId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cidrs: Option<Vec<String>>,
}

impl Written {
    fn of(replaced: &Replaced) -> Self {
        let Replaced { place, rule } = replaced;
        Self {
            name: rule.name.clone(),
            protocol: rule.protocol.as_str().to_owned(),
            algorithm: rule.algorithm.clone(),
            ip_id: place.address.id.clone(),
            ip: place.address.ip.clone(),
            port: rule.public_port,
            node_port: rule.private_port,
            network_id: rule.network.clone(),
            cidrs: rule.cidrs.clone(),
        }
    }

    fn read(self) -> Option<Replaced> {
        Some(Replaced {
            place: PublicPort {
                address: AddressRef {
                    id: self.ip_id,
                    ip: self.ip,
                },
                port: Some(self.port),
            },
            rule: NewRule {
                protocol: crate::names::Protocol::parse(&self.protocol)?,
                name: self.name,
                algorithm: self.algorithm,
                public_port: self.port,
                private_port: self.node_port,
                network: self.network_id,
                cidrs: self.cidrs,
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::Protocol;

    fn rule(protocol: Protocol, port: u16) -> Replaced {
        Replaced {
            place: PublicPort {
                address: AddressRef {
                    id: "ip-1".into(),
                    ip: "203.0.113.40".to_owned(),
                },
                port: Some(port),
            },
            rule: NewRule {
                name: format!("a-{protocol}-{port}"),
                algorithm: "leastconn".to_owned(),
                protocol,
                public_port: port,
                private_port: 30_000 + port,
                network: "n1".into(),
                cidrs: Some(vec!["10.0.0.0/8".to_owned(), "192.0.2.0/24".to_owned()]),
            },
        }
    }

    #[test]
    fn what_is_written_reads_back() {
        let mut service = Service::default();
        assert!(ReplacedRules::on(&service).is_empty());
        let rules: ReplacedRules = [rule(Protocol::TcpProxy, 443), rule(Protocol::Udp, 53)]
            .into_iter()
            .collect();
        ReplacedRules::default().with(rules.clone()).predict(&mut service);
        assert_eq!(ReplacedRules::on(&service), rules);
        // For the same port the last one counts.
        let again: ReplacedRules = [rule(Protocol::Tcp, 443)].into_iter().collect();
        rules.with(again).predict(&mut service);
        let read = ReplacedRules::on(&service);
        assert_eq!(
            read,
            [rule(Protocol::Tcp, 443), rule(Protocol::Udp, 53)]
                .into_iter()
                .collect()
        );
        ReplacedRules::clear().predict(&mut service);
        assert_eq!(service.metadata.annotations, Some(Default::default()));
    }

    #[test]
    fn what_cannot_be_read_was_no_rule() {
        for value in ["", "x", "{}", r#"[{"name":"a"}]"#, "[1]"] {
            let mut service = Service::default();
            write(Some(value.to_owned())).predict(&mut service);
            assert!(ReplacedRules::on(&service).is_empty(), "{value}");
        }
    }
}
