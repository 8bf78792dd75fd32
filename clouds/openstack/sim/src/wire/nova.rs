//! Nova's servers and flavors.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::Wire;
use crate::model::compute::{Flavor, Server, ShownAddress};
use crate::options::Service;

/// The microversion from which on a server shows its flavor instead of naming it.
const FLAVOR_IN_FULL: u32 = 47;

impl Wire<'_> {
    pub(crate) fn compute_version(&self) -> Value {
        json!({
            "id": "v2.1",
            "status": "CURRENT",
            "version": "2.104",
            "min_version": "2.1",
            "updated": "2013-07-23T11:33:21Z",
            "media-types": [
                { "base": "application/json", "type": "application/vnd.openstack.compute+json;version=2.1" },
            ],
            "links": [{ "rel": "self", "href": format!("{}/v2.1/", self.root(Service::Compute)) }],
        })
    }

    /// A server as the microversion 2.`minor` shows it.
    pub(crate) fn server(&self, server: &Server, minor: u32) -> Value {
        let root = self.root(Service::Compute);
        let is_active = server.status == "ACTIVE";
        let is_off = server.status == "SHUTOFF";
        let vm_state = if is_off {
            "stopped".to_owned()
        } else {
            server.status.to_lowercase()
        };
        let addresses = match &server.shown_addresses {
            Some(shown) => shown.clone(),
            None => self.addresses(server),
        };
        let addresses = addresses.into_iter();
        let addresses = addresses.map(|(network, all)| (network, all.iter().map(address).collect::<Value>()));
        let mut shown = json!({
            "id": server.id,
            "name": server.name,
            "status": server.status,
            "tenant_id": server.project,
            "user_id": self.user_of(&server.project),
            "metadata": server.metadata,
            "hostId": server.host_id,
            "image": { "id": server.id, "links": [] },
            "flavor": self.flavor_of(server, minor),
            "created": server.created_at,
            "updated": server.updated_at,
            "addresses": addresses.collect::<serde_json::Map<_, _>>(),
            "accessIPv4": server.access_v4,
            "accessIPv6": server.access_v6,
            "links": [
                { "rel": "self", "href": format!("{root}/v2.1/servers/{}", server.id) },
                { "rel": "bookmark", "href": format!("{root}/servers/{}", server.id) },
            ],
            "OS-DCF:diskConfig": "MANUAL",
            "OS-EXT-AZ:availability_zone": server.zone,
            "config_drive": "",
            "key_name": null,
            "OS-SRV-USG:launched_at": server.created_at.trim_end_matches('Z'),
            "OS-SRV-USG:terminated_at": null,
            "OS-EXT-STS:task_state": null,
            "OS-EXT-STS:vm_state": vm_state,
            "OS-EXT-STS:power_state": if is_off { 4 } else { 1 },
            "os-extended-volumes:volumes_attached": [],
            "security_groups": [{ "name": "default" }],
        });
        if is_active {
            shown["progress"] = Value::from(0);
        }
        if minor >= FLAVOR_IN_FULL {
            // These came in between.
            shown["locked"] = Value::from(false);
            shown["description"] = Value::Null;
            shown["tags"] = json!([]);
        }
        shown
    }

    fn user_of(&self, project: &str) -> Option<&str> {
        let mut users = self.state.identity.users.values();
        let found = users.find(|user| user.projects.iter().any(|it| it == project));
        found.map(|user| user.id.as_str())
    }

    fn flavor_of(&self, server: &Server, minor: u32) -> Value {
        let root = self.root(Service::Compute);
        match self.state.flavors.get(&server.flavor) {
            Some(flavor) if minor >= FLAVOR_IN_FULL => json!({
                "original_name": flavor.name,
                "vcpus": flavor.vcpus,
                "ram": flavor.ram_mib,
                "disk": flavor.disk_gib,
                "ephemeral": 0,
                "swap": 0,
                "extra_specs": {},
            }),
            _ => json!({
                "id": server.flavor,
                "links": [{ "rel": "bookmark", "href": format!("{root}/flavors/{}", server.flavor) }],
            }),
        }
    }

    /// By the name of the network: the addresses of the server's ports, and after each one the floating IP that leads to it.
    fn addresses(&self, server: &Server) -> BTreeMap<String, Vec<ShownAddress>> {
        let mut shown: BTreeMap<String, Vec<ShownAddress>> = BTreeMap::new();
        for port in self.state.ports_of(&server.id.to_string()) {
            let Some(network) = self.state.networks.get(&port.network) else {
                continue;
            };
            let list = shown.entry(network.name.clone()).or_default();
            let mut show = |address, kind| {
                list.push(ShownAddress {
                    address,
                    kind: Some(kind),
                    mac: Some(port.mac.clone()),
                });
            };
            for fixed_ip in &port.fixed_ips {
                show(fixed_ip.address, "fixed");
                let floating = self.state.floating_ips.values();
                let leads_here = floating.filter(|it| {
                    it.target
                        .is_some_and(|to| (to.port, to.address) == (port.id, fixed_ip.address))
                });
                leads_here.for_each(|it| show(it.address.address, "floating"));
            }
        }
        shown
    }

    /// A flavor as the list without details shows it.
    pub(crate) fn named_flavor(&self, flavor: &Flavor) -> Value {
        json!({ "id": flavor.id, "name": flavor.name, "links": self.flavor_links(flavor) })
    }

    pub(crate) fn flavor(&self, flavor: &Flavor) -> Value {
        json!({
            "id": flavor.id,
            "name": flavor.name,
            "ram": flavor.ram_mib,
            "disk": flavor.disk_gib,
            "swap": "",
            "OS-FLV-EXT-DATA:ephemeral": 0,
            "OS-FLV-DISABLED:disabled": false,
            "vcpus": flavor.vcpus,
            "os-flavor-access:is_public": true,
            "rxtx_factor": 1.0,
            "links": self.flavor_links(flavor),
        })
    }

    fn flavor_links(&self, flavor: &Flavor) -> Value {
        let root = self.root(Service::Compute);
        json!([
            { "rel": "self", "href": format!("{root}/v2.1/flavors/{}", flavor.id) },
            { "rel": "bookmark", "href": format!("{root}/flavors/{}", flavor.id) },
        ])
    }
}

fn address(address: &ShownAddress) -> Value {
    let version = if address.address.is_ipv4() { 4 } else { 6 };
    let mut shown = json!({ "version": version, "addr": address.address });
    if let Some(kind) = address.kind {
        shown["OS-EXT-IPS:type"] = Value::from(kind);
    }
    if let Some(mac) = &address.mac {
        shown["OS-EXT-IPS-MAC:mac_addr"] = Value::from(mac.as_str());
    }
    shown
}
