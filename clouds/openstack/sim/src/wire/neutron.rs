//! Neutron's objects.

use serde_json::{Value, json};

use super::{Wire, with_meta};
use crate::model::network::{
    FixedIp, FloatingIp, Network, Port, Route, Router, Rule, SecurityGroup, Subnet, Trunk,
};
use crate::options::Service;

fn fixed_ip(fixed_ip: &FixedIp) -> Value {
    json!({ "subnet_id": fixed_ip.subnet, "ip_address": fixed_ip.address })
}

impl Wire<'_> {
    pub(crate) fn network_versions(&self) -> Value {
        let href = format!("{}/v2.0/", self.root(Service::Network));
        json!({ "versions": [
            { "id": "v2.0", "status": "CURRENT", "links": [{ "rel": "self", "href": href }] },
        ] })
    }

    pub(crate) fn extensions(&self) -> Value {
        let extension = |alias: &String| {
            json!({
                "alias": alias,
                "name": alias.replace('-', " "),
                "description": "",
                "updated": "2018-01-01T00:00:00-00:00",
                "links": [],
            })
        };
        let aliases = self.state.behaviour.extensions.iter();
        json!({ "extensions": aliases.map(extension).collect::<Vec<_>>() })
    }

    pub(crate) fn network(&self, network: &Network) -> Value {
        let subnets = self.state.subnets_of(network.id).map(|it| it.id);
        let shown = json!({
            "id": network.id,
            "name": network.name,
            "admin_state_up": true,
            "mtu": 1500,
            "status": "ACTIVE",
            "subnets": subnets.collect::<Vec<_>>(),
            "shared": network.is_shared,
            "availability_zone_hints": [],
            "availability_zones": [],
            "ipv4_address_scope": null,
            "ipv6_address_scope": null,
            "router:external": network.is_external,
            "port_security_enabled": network.port_security,
            "is_default": false,
        });
        with_meta(shown, &network.meta)
    }

    pub(crate) fn subnet(&self, subnet: &Subnet) -> Value {
        let network = self.state.networks.get(&subnet.network);
        let hosts = bowline_cloud_kit::addresses::host_count(subnet.cidr);
        let nth = |host| bowline_cloud_kit::addresses::nth(subnet.cidr, host);
        let shown = json!({
            "id": subnet.id,
            "name": subnet.name,
            "network_id": subnet.network,
            "ip_version": if subnet.cidr.addr().is_ipv4() { 4 } else { 6 },
            "subnetpool_id": null,
            "enable_dhcp": network.is_some_and(|it| !it.is_external),
            "ipv6_ra_mode": null,
            "ipv6_address_mode": null,
            "gateway_ip": subnet.gateway,
            "cidr": subnet.cidr.to_string(),
            "allocation_pools": [{ "start": nth(2), "end": nth(hosts.saturating_sub(2)) }],
            "host_routes": [],
            "dns_nameservers": [],
            "router:external": network.is_some_and(|it| it.is_external),
            "service_types": [],
        });
        with_meta(shown, &subnet.meta)
    }

    pub(crate) fn port(&self, port: &Port) -> Value {
        let pair = |pair: &crate::model::network::AddressPair| json!({ "mac_address": pair.mac, "ip_address": pair.address });
        let mut shown = json!({
            "id": port.id,
            "name": port.name,
            "network_id": port.network,
            "mac_address": port.mac,
            "admin_state_up": true,
            "status": port.status,
            "device_id": port.device,
            "device_owner": port.device_owner,
            "fixed_ips": port.fixed_ips.iter().map(fixed_ip).collect::<Vec<_>>(),
            "allowed_address_pairs": port.address_pairs.iter().map(pair).collect::<Vec<_>>(),
            "extra_dhcp_opts": [],
            "security_groups": port.groups,
            "binding:vnic_type": "normal",
            "port_security_enabled": port.port_security,
        });
        let shows_trunks = self.state.has_extension("trunk-details");
        if let Some(trunk) = port.trunk.as_ref().filter(|_| shows_trunks) {
            shown["trunk_details"] = self.trunk(trunk);
        }
        with_meta(shown, &port.meta)
    }

    fn trunk(&self, trunk: &Trunk) -> Value {
        let subport = |subport: &crate::model::network::Subport| {
            json!({
                "port_id": subport.port,
                "segmentation_id": subport.segmentation_id,
                "segmentation_type": "vlan",
                "mac_address": self.state.ports.get(&subport.port).map(|it| it.mac.as_str()),
            })
        };
        let subports = trunk.subports.iter().map(subport).collect::<Vec<_>>();
        json!({ "trunk_id": trunk.id, "sub_ports": subports })
    }

    pub(crate) fn router(&self, router: &Router) -> Value {
        let gateway = router.gateway.map(|(network, address)| {
            json!({
                "network_id": network,
                "external_fixed_ips": [fixed_ip(&address)],
                "enable_snat": true,
            })
        });
        let route = |route: &Route| json!({ "destination": route.destination, "nexthop": route.nexthop });
        let shown = json!({
            "id": router.id,
            "name": router.name,
            "admin_state_up": true,
            "status": "ACTIVE",
            "external_gateway_info": gateway,
            "availability_zones": [],
            "availability_zone_hints": [],
            "routes": router.routes.iter().map(route).collect::<Vec<_>>(),
            "flavor_id": null,
        });
        with_meta(shown, &router.meta)
    }

    pub(crate) fn floating_ip(&self, floating: &FloatingIp) -> Value {
        let port = floating.target.and_then(|it| self.state.ports.get(&it.port));
        let details = port.map(|port| {
            json!({
                "name": port.name,
                "network_id": port.network,
                "mac_address": port.mac,
                "admin_state_up": true,
                "status": port.status,
                "device_id": port.device,
                "device_owner": port.device_owner,
            })
        });
        let shown = json!({
            "id": floating.id,
            "floating_ip_address": floating.address.address,
            "floating_network_id": floating.network,
            "router_id": floating.target.map(|it| it.router).or(floating.forwards_through),
            "port_id": floating.target.map(|it| it.port),
            "fixed_ip_address": floating.target.map(|it| it.address),
            "status": if floating.target.is_some() { "ACTIVE" } else { "DOWN" },
            "port_details": details,
        });
        with_meta(shown, &floating.meta)
    }

    pub(crate) fn security_group(&self, group: &SecurityGroup) -> Value {
        let rules = self.state.rules_of(group.id);
        let rules = rules
            .map(|rule| self.security_group_rule(rule))
            .collect::<Vec<_>>();
        let shown = json!({
            "id": group.id,
            "name": group.name,
            "stateful": true,
            "shared": false,
            "security_group_rules": rules,
        });
        with_meta(shown, &group.meta)
    }

    pub(crate) fn security_group_rule(&self, rule: &Rule) -> Value {
        let content = &rule.content;
        let shown = json!({
            "id": rule.id,
            "security_group_id": rule.group,
            "ethertype": content.ethertype,
            "direction": content.direction,
            "protocol": content.protocol,
            "port_range_min": content.port_min,
            "port_range_max": content.port_max,
            "remote_ip_prefix": content.remote_prefix,
            "remote_address_group_id": null,
            "normalized_cidr": content.remote_prefix.as_deref().map(without_host),
            "remote_group_id": content.remote_group,
            "belongs_to_default_sg": false,
        });
        let mut shown = with_meta(shown, &rule.meta);
        shown["description"] = json!(rule.description);
        shown
    }
}

/// A range without the bits of a host.
fn without_host(range: &str) -> String {
    let range: Result<ipnet::IpNet, _> = range.parse();
    range.map_or_else(|_| String::new(), |range| range.trunc().to_string())
}
