//! Rules that are deleted to be made anew, because the cloud cannot change them where they stand.
//!
//! A firewall rule is made when its load balancer rule is there, and deleted before that goes, so the load balancer rules
//! tell what is open for a Service.
//! A rule that is made anew is the exception: closing its port in between would only make the gap longer. And should its
//! successor be refused, the port would be left with nothing. So such a rule is written on the Service before it is deleted,
//! with all that it takes to make it again: whatever stops the process in between, the next look finds what was there.
//!
//! The other exception is a rule that goes for good and leaves an item of an ACL list behind, because others rely on it. It is
//! written down too, so that the item is looked at once more when the rule is gone.

use std::collections::BTreeMap;

use bowline_cloud_provider::Service;
use bowline_cloud_provider::effects::read_as;

use crate::load_balancer::annotations::{REPLACED_RULES, text};
use crate::load_balancer::objects::{IngressPort, NetworkId, NewRule, PublicIpId, Rule};

/// What is open for a rule.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct OpenPort {
    /// The ID of its address.
    pub(crate) address: PublicIpId,
    /// The ID of the network of its rule.
    pub(crate) network: NetworkId,
    pub(crate) ingress: IngressPort,
}

impl OpenPort {
    /// The port of a rule; `None` if it cannot be read, and so was not opened by us.
    pub(crate) fn of(rule: &Rule, balancer: &str) -> Option<Self> {
        Some(Self {
            address: rule.address.id.clone(),
            network: rule.network.clone(),
            ingress: rule.ingress(balancer)?,
        })
    }
}

impl NewRule {
    /// What makes a rule again; `None` if something of it cannot be read.
    pub(crate) fn again(rule: &Rule, balancer: &str) -> Option<Self> {
        let list = rule.cidrs.texts();
        Some(Self {
            name: rule.name.clone(),
            protocol: rule.made_for(balancer)?,
            algorithm: rule.algorithm.clone(),
            address: rule.address.clone(),
            public_port: rule.public_port?,
            private_port: rule.private_port?,
            network: rule.network.clone(),
            cidrs: Some(list).filter(|list| !list.is_empty()),
        })
    }

    /// What is open for it.
    pub(crate) fn open_port(&self) -> OpenPort {
        OpenPort {
            address: self.address.id.clone(),
            network: self.network.clone(),
            ingress: self.ingress(),
        }
    }
}

/// Replaced rules, one for each port: only the last one tells what was there.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct ReplacedRules(BTreeMap<OpenPort, NewRule>);

impl ReplacedRules {
    /// What is written on a Service. What cannot be read was not written by us.
    pub(crate) fn on(service: &Service) -> Self {
        let written: Vec<serde_json::Value> =
            serde_json::from_slice(text(service, &REPLACED_RULES).as_bytes()).unwrap_or_default();
        let rules = written.iter().map(read_as);
        rules.filter_map(Result::ok).collect()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn get(&self, port: &OpenPort) -> Option<&NewRule> {
        self.0.get(port)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &NewRule> {
        self.0.values()
    }

    /// What was open for them.
    pub(crate) fn ports(&self) -> impl Iterator<Item = &OpenPort> {
        self.0.keys()
    }

    pub(crate) fn insert(&mut self, replaced: NewRule) {
        self.0.insert(replaced.open_port(), replaced);
    }

    /// Forgets the others.
    pub(crate) fn retain(&mut self, stays: impl Fn(&NewRule) -> bool) {
        self.0.retain(|_, replaced| stays(replaced));
    }

    /// How they are written on a Service.
    pub(crate) fn text(&self) -> (&'static str, Option<String>) {
        let written: Vec<&NewRule> = self.iter().collect();
        let text = serde_json::to_string(&written).ok();
        (REPLACED_RULES.key, text.filter(|_| !self.is_empty()))
    }
}

impl FromIterator<NewRule> for ReplacedRules {
    fn from_iter<I: IntoIterator<Item = NewRule>>(rules: I) -> Self {
        let mut all = Self::default();
        for replaced in rules {
            all.insert(replaced);
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use bowline_cloud_provider::{KubeWrite, Pairs};

    use super::*;
    use crate::load_balancer::names::Protocol;
    use crate::load_balancer::objects::{AddressRef, Algorithm};

    fn rule(protocol: Protocol, port: u16) -> NewRule {
        NewRule {
            name: format!("a-{protocol}-{port}"),
            protocol,
            algorithm: Algorithm::LeastConnections,
            address: AddressRef {
                id: "ip-1".into(),
                ip: "203.0.113.40".to_owned(),
            },
            public_port: port,
            private_port: 30_000 + port,
            network: "n1".into(),
            cidrs: Some(vec!["10.0.0.0/8".to_owned(), "192.0.2.0/24".to_owned()]),
        }
    }

    #[test]
    fn a_rule_is_written_in_words_that_do_not_change() {
        let text = r#"{"name":"a-tcp-proxy-443","protocol":"tcp-proxy","algorithm":"leastconn","ipId":"ip-1","ip":"203.0.113.40","port":443,"nodePort":30443,"networkId":"n1","cidrs":["10.0.0.0/8","192.0.2.0/24"]}"#;
        let rule = rule(Protocol::TcpProxy, 443);
        assert_eq!(serde_json::to_string(&rule).unwrap(), text);
        assert_eq!(serde_json::from_str::<NewRule>(text).unwrap(), rule);
        for protocol in [Protocol::Tcp, Protocol::Udp, Protocol::TcpProxy] {
            assert_eq!(serde_json::to_value(protocol).unwrap(), protocol.as_str());
        }
    }

    fn write(service: &mut Service, (key, text): (&str, Option<String>)) {
        KubeWrite::AnnotateService(vec![(key.to_owned(), text)]).predict(service);
    }

    #[test]
    fn what_is_written_reads_back() {
        let mut service = Service::default();
        assert!(ReplacedRules::on(&service).is_empty());
        let mut rules: ReplacedRules = [rule(Protocol::TcpProxy, 443), rule(Protocol::Udp, 53)]
            .into_iter()
            .collect();
        write(&mut service, rules.text());
        assert_eq!(ReplacedRules::on(&service), rules);
        // For the same port the last one counts.
        rules.insert(rule(Protocol::Tcp, 443));
        write(&mut service, rules.text());
        let read = ReplacedRules::on(&service);
        assert_eq!(
            read,
            [rule(Protocol::Tcp, 443), rule(Protocol::Udp, 53)]
                .into_iter()
                .collect()
        );
        write(&mut service, ReplacedRules::default().text());
        assert_eq!(service.metadata.annotations, Some(Pairs::default()));
    }

    #[test]
    fn what_cannot_be_read_was_no_rule() {
        for value in ["", "x", "{}", r#"[{"name":"a"}]"#, "[1]"] {
            let mut service = Service::default();
            write(&mut service, (REPLACED_RULES.key, Some(value.to_owned())));
            assert!(ReplacedRules::on(&service).is_empty(), "{value}");
        }
    }
}
