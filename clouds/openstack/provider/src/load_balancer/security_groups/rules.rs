//! The rules of a Service's security group.

use std::collections::BTreeSet;
use std::net::IpAddr;

use bowline_openstack_client::{
    Direction, EtherType, NewSecurityGroupRule, SecurityGroup, SecurityGroupId, SecurityGroupRule,
};
use ipnet::{IpNet, Ipv4Net, Ipv6Net};

use super::Changes;
use crate::load_balancer::step::GroupChange;

/// A rule that is wanted: who may come in, by which protocol, to which port. Its IP version is that of the source, so that
/// ranges of both families can stand side by side.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct WantedRule {
    /// The protocol in lower case.
    pub(crate) protocol: String,
    /// The port.
    pub(crate) port: u16,
    /// The range, without host bits.
    pub(crate) source: IpNet,
}

impl WantedRule {
    /// The request that creates it.
    pub(crate) fn new_in(&self, group: &SecurityGroupId) -> NewSecurityGroupRule {
        NewSecurityGroupRule {
            security_group_id: group.clone(),
            direction: Direction::Ingress,
            ethertype: self.ether_type(),
            protocol: self.protocol.clone(),
            port_range_min: self.port,
            port_range_max: self.port,
            remote_ip_prefix: self.source.to_string(),
        }
    }

    fn ether_type(&self) -> EtherType {
        match self.source {
            IpNet::V4(_) => EtherType::Ipv4,
            IpNet::V6(_) => EtherType::Ipv6,
        }
    }

    /// What a rule lets in, if it is one that could be wanted.
    fn of(rule: &SecurityGroupRule) -> Option<Self> {
        let port = rule.port_range_min?;
        let source = source(rule)?;
        let wanted = Self {
            protocol: protocol_name(rule.protocol.as_deref()?),
            port,
            source,
        };
        let is_one = rule.direction == Direction::Ingress
            && rule.ethertype.as_ref() == Some(&wanted.ether_type())
            && rule.port_range_max == Some(port);
        is_one.then_some(wanted)
    }
}

/// The rules that open ports, each with its protocol in lower case, to these networks.
pub(crate) fn wanted_rules<'a>(
    ports: impl IntoIterator<Item = (&'a str, u16)>,
    sources: &[IpNet],
) -> impl Iterator<Item = WantedRule> {
    let ports = ports.into_iter();
    ports.flat_map(move |(protocol, port)| {
        sources.iter().map(move |source| WantedRule {
            protocol: protocol.to_owned(),
            port,
            source: source.trunc(),
        })
    })
}

/// Compares the wanted rules with those of a group.
///
/// The two rules that let everything out, which every new group has, are left as they are found: their removal would cut
/// off a port that has no other group.
pub(crate) fn changes(wanted: impl Iterator<Item = WantedRule>, there: &SecurityGroup) -> Changes {
    let mut missing: BTreeSet<WantedRule> = wanted.collect();
    // The first of two equal ones is kept.
    let surplus = there.rules.iter().filter(|rule| {
        let is_first_of_its_kind = WantedRule::of(rule).is_some_and(|kind| missing.remove(&kind));
        !is_first_of_its_kind && !lets_everything_out(rule)
    });
    let delete = surplus.map(|rule| GroupChange::DeleteRule {
        group: there.id.clone(),
        id: rule.id.clone(),
        text: in_words(rule),
    });
    let closing = delete.collect();
    let create = missing.iter().map(|rule| GroupChange::CreateRule {
        new: rule.new_in(&there.id),
    });
    let opening = create.collect();
    Changes { opening, closing }
}

fn in_words(rule: &SecurityGroupRule) -> String {
    format!(
        "{} {} {} from {}",
        rule.direction,
        rule.protocol.as_deref().unwrap_or("any"),
        rule.port_range_min
            .map_or_else(|| "any".to_owned(), |port| port.to_string()),
        rule.remote_ip_prefix.as_deref().unwrap_or("anywhere")
    )
}

fn lets_everything_out(rule: &SecurityGroupRule) -> bool {
    rule.direction == Direction::Egress
        && rule.protocol.is_none()
        && rule.port_range_min.is_none()
        && rule.port_range_max.is_none()
        && source(rule).is_some_and(|range| range.prefix_len() == 0)
}

/// Whom a rule means, if that can be said as one range. No range at all is everybody, of the rule's IP version.
fn source(rule: &SecurityGroupRule) -> Option<IpNet> {
    match (&rule.remote_ip_prefix, &rule.remote_group_id, &rule.ethertype) {
        (Some(range), None, _) => {
            let address = || Some(IpNet::from(range.parse::<IpAddr>().ok()?));
            range
                .parse::<IpNet>()
                .ok()
                .or_else(address)
                .map(|range| range.trunc())
        }
        (None, None, Some(EtherType::Ipv4)) => Some(Ipv4Net::default().into()),
        (None, None, Some(EtherType::Ipv6)) => Some(Ipv6Net::default().into()),
        _ => None,
    }
}

/// A protocol by its name. Neutron takes numbers too and holds both for the same.
fn protocol_name(text: &str) -> String {
    match text {
        "6" => "tcp".to_owned(),
        "17" => "udp".to_owned(),
        "132" => "sctp".to_owned(),
        name => name.to_lowercase(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_port_is_opened_to_the_networks_of_the_members() {
        let networks = nets(&["10.0.0.0/24", "2001:db8::/64"]);
        let rules = wanted_rules([("tcp", 31000), ("udp", 31001)], &networks);
        assert_eq!(
            texts(&rules.collect::<Vec<_>>()),
            [
                "tcp 31000 from 10.0.0.0/24",
                "tcp 31000 from 2001:db8::/64",
                "udp 31001 from 10.0.0.0/24",
                "udp 31001 from 2001:db8::/64",
            ]
        );
    }

    #[test]
    fn ranges_of_both_families_get_the_ethertype_of_their_own() {
        let sources = nets(&["192.0.2.7/24", "2001:db8:1::/48"]);
        let rules: Vec<WantedRule> = wanted_rules([("tcp", 31000)], &sources).collect();
        assert_eq!(
            texts(&rules),
            ["tcp 31000 from 192.0.2.0/24", "tcp 31000 from 2001:db8:1::/48"]
        );
        let types: Vec<EtherType> = rules
            .iter()
            .map(|rule| rule.new_in(&"g".into()).ethertype)
            .collect();
        assert_eq!(types, [EtherType::Ipv4, EtherType::Ipv6]);
    }

    #[test]
    fn missing_rules_are_created_and_others_deleted() {
        let wanted = wanted(&[("tcp", 31000, "10.0.0.0/24"), ("udp", 31000, "10.0.0.0/24")]);
        let there = [
            rule("same", "TCP", 31000, "10.0.0.0/24"),
            rule("again", "6", 31000, "10.0.0.0/24"),
            rule("port", "tcp", 31001, "10.0.0.0/24"),
            rule("source", "tcp", 31000, "10.0.1.0/24"),
            SecurityGroupRule {
                port_range_max: Some(31005),
                ..rule("range", "udp", 31000, "10.0.0.0/24")
            },
            SecurityGroupRule {
                remote_ip_prefix: None,
                remote_group_id: Some("other".into()),
                ..rule("group", "udp", 31000, "10.0.0.0/24")
            },
            SecurityGroupRule {
                direction: Direction::Egress,
                ..rule("out", "udp", 31000, "10.0.0.0/24")
            },
        ];
        let changes = compared(&wanted, &there);
        let missing = wanted[1].new_in(&"g".into());
        assert_eq!(changes.opening, [GroupChange::CreateRule { new: missing }]);
        let id = |change: &GroupChange| match change {
            GroupChange::DeleteRule { id, .. } => id.to_string(),
            _ => String::new(),
        };
        let surplus: Vec<String> = changes.closing.iter().map(id).collect();
        assert_eq!(surplus, ["again", "port", "source", "range", "group", "out"]);
    }

    #[test]
    fn rules_that_let_everything_out_are_neither_removed_nor_missed() {
        let out = |id: &str, ethertype| SecurityGroupRule {
            id: id.into(),
            direction: Direction::Egress,
            ethertype: Some(ethertype),
            protocol: None,
            port_range_min: None,
            port_range_max: None,
            remote_ip_prefix: None,
            ..rule("", "tcp", 1, "10.0.0.0/24")
        };
        let rules = wanted(&[("tcp", 31000, "10.0.0.0/24")]);
        let there = [
            out("v4", EtherType::Ipv4),
            out("v6", EtherType::Ipv6),
            rule("wanted", "tcp", 31000, "10.0.0.0/24"),
        ];
        assert_eq!(compared(&rules, &there), Changes::default());
        assert_eq!(compared(&rules, &there[2..]), Changes::default());
    }

    #[test]
    fn a_rule_for_everybody_is_one_with_or_without_its_range() {
        let wanted = wanted(&[("tcp", 31000, "0.0.0.0/0")]);
        let open = rule("open", "tcp", 31000, "0.0.0.0/0");
        let without = SecurityGroupRule {
            remote_ip_prefix: None,
            ..open.clone()
        };
        assert_eq!(compared(&wanted, &[open]), Changes::default());
        assert_eq!(compared(&wanted, &[without]), Changes::default());
    }

    fn nets(texts: &[&str]) -> Vec<IpNet> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    fn compared(wanted: &[WantedRule], there: &[SecurityGroupRule]) -> Changes {
        let group = json!({ "id": "g", "security_group_rules": [] });
        let mut group: SecurityGroup = serde_json::from_value(group).unwrap();
        group.rules = there.to_vec();
        changes(wanted.iter().cloned(), &group)
    }

    fn wanted(rules: &[(&str, u16, &str)]) -> Vec<WantedRule> {
        let rule = |(protocol, port, source): &(&str, u16, &str)| WantedRule {
            protocol: (*protocol).to_owned(),
            port: *port,
            source: source.parse().unwrap(),
        };
        rules.iter().map(rule).collect()
    }

    fn rule(id: &str, protocol: &str, port: u16, source: &str) -> SecurityGroupRule {
        SecurityGroupRule {
            id: id.into(),
            security_group_id: "g".into(),
            direction: Direction::Ingress,
            ethertype: Some(EtherType::Ipv4),
            protocol: Some(protocol.to_owned()),
            port_range_min: Some(port),
            port_range_max: Some(port),
            remote_ip_prefix: Some(source.to_owned()),
            remote_group_id: None,
        }
    }

    fn texts(rules: &[WantedRule]) -> Vec<String> {
        let text = |rule: &WantedRule| format!("{} {} from {}", rule.protocol, rule.port, rule.source);
        rules.iter().map(text).collect()
    }
}
