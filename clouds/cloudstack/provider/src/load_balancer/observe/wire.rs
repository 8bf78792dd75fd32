//! From the API's form to what decisions need.

use std::sync::Arc;

use bowline_cloudstack_client as api;
use bowline_cloudstack_client::IpState;
use jiff::Timestamp;

use crate::load_balancer::cidrs::EVERYBODY;
use crate::load_balancer::names::IpProtocol;
use crate::load_balancer::objects::{
    Address, AddressRef, AddressState, Firewall, FirewallId, FirewallRule, IngressPort, Network, PortRange,
    Rule, RuleState,
};
use crate::virtual_machines::LB;

/// The API writes times as `2026-03-04T05:06:07+0000`.
fn time(text: &str) -> Option<Timestamp> {
    Timestamp::strptime("%Y-%m-%dT%H:%M:%S%z", text).ok()
}

pub(crate) fn rule(rule: &api::LoadBalancerRule) -> Rule {
    Rule {
        id: rule.id.clone(),
        name: rule.name.clone(),
        algorithm: rule.algorithm.clone(),
        // Servers list the word as it was sent, and an earlier manager sent it in capitals.
        protocol: rule.protocol.as_str().to_ascii_lowercase().into(),
        address: AddressRef {
            id: rule.public_ip_id.clone().unwrap_or_default(),
            ip: rule.public_ip.clone(),
        },
        public_port: rule.public_port,
        private_port: rule.private_port,
        network: rule.network_id.clone().unwrap_or_default(),
        cidrs: rule.cidrs().collect(),
        has_commas: rule.cidr_list.as_deref().is_some_and(|list| list.contains(',')),
        state: rule.state.clone(),
    }
}

pub(crate) fn address(address: &api::PublicIpAddress) -> Address {
    Address {
        address: AddressRef {
            id: address.id.clone(),
            ip: address.ip_address.clone(),
        },
        state: match address.state {
            IpState::Allocating => AddressState::Allocating,
            IpState::Releasing => AddressState::Releasing,
            _ if address.is_free() => AddressState::Free,
            _ => AddressState::Allocated,
        },
        allocated: address.allocated.as_deref().and_then(time),
        network: address.network_id.clone(),
        vpc: address.vpc_id.clone(),
        is_source_nat: address.is_source_nat,
        is_static_nat: address.is_static_nat,
    }
}

/// `list` is the name of the network's ACL list.
pub(crate) fn network(network: &api::Network, list: Option<String>) -> Arc<Network> {
    Arc::new(Network {
        id: network.id.clone(),
        name: network.name.clone(),
        vpc: network.vpc_id.clone(),
        services: network.services().map(str::to_owned).collect(),
        acl: network.acl_list_id.as_ref().map(|id| Firewall {
            id: FirewallId::Acl(id.clone()),
            name: list.unwrap_or_default(),
        }),
        // Older servers name no providers.
        has_router: network.providers(LB).all(|name| name.ends_with("VirtualRouter")),
    })
}

/// `None` if it is not for a single port.
fn single_port(id: &str, filter: &api::Filter, state: &RuleState, has_reason: bool) -> Option<FirewallRule> {
    let is_single = filter.start_port == filter.end_port;
    Some(FirewallRule {
        id: id.into(),
        ingress: IngressPort {
            protocol: IpProtocol::parse(&filter.protocol)?,
            port: filter.start_port.filter(|_| is_single)?,
        },
        sources: filter.cidrs().collect(),
        has_reason,
        is_new: *state == RuleState::Add,
        is_going: state.is_going(),
    })
}

/// `None` if it is not for several ports. One without ports is in nobody's way.
pub(crate) fn port_range(rule: &api::FirewallRule) -> Option<PortRange> {
    let api::Filter {
        protocol,
        start_port,
        end_port,
        ..
    } = &rule.filter;
    let (first, last) = ((*start_port)?, (*end_port)?);
    let mut networks: Vec<String> = rule.filter.cidrs().map(str::to_owned).collect();
    if networks.is_empty() {
        networks.push(EVERYBODY.to_owned());
    }
    (first < last && !rule.state.is_going()).then_some(PortRange {
        id: rule.id.clone(),
        protocol: IpProtocol::parse(protocol)?,
        ports: first..=last,
        networks,
    })
}

/// `None` if it is not for a single port.
pub(crate) fn firewall_rule(rule: &api::FirewallRule) -> Option<FirewallRule> {
    single_port(rule.id.as_str(), &rule.filter, &rule.state, false)
}

/// `None` if it does not let a single port in.
pub(crate) fn acl_item(item: &api::NetworkAcl) -> Option<FirewallRule> {
    let read = single_port(item.id.as_str(), &item.filter, &item.state, item.reason.is_some());
    read.filter(|_| item.allows_ingress())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_of_ports_and_items_that_deny_are_left_alone() {
        let item = |start: &str, end: &str, action: &str, direction: &str| {
            let text = format!(
                r#"{{"id":"c","protocol":"tcp","startport":"{start}","endport":"{end}","action":"{action}","traffictype":"{direction}"}}"#
            );
            acl_item(&serde_json::from_str(&text).unwrap()).is_some()
        };
        assert!(item("443", "443", "Allow", "Ingress"));
        assert!(!item("443", "444", "Allow", "Ingress"));
        assert!(!item("443", "443", "Deny", "Ingress"));
        assert!(!item("443", "443", "Allow", "Egress"));
    }
}
