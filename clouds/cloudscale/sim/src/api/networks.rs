//! `/v1/networks` and `/v1/subnets`

use std::net::IpAddr;

use bowline_cloud_kit::addresses::{first_host, v4_range};
use ipnet::IpNet;
use serde_json::Value;
use uuid::Uuid;

use super::{Answer, Call, path_id};
use crate::error::ApiError;
use crate::fields::{Fields, given};
use crate::model::{Network, Subnet};
use crate::wire::Wire;

/// What the provider hands out if a subnet does not say otherwise; from a range for documentation.
const DNS_SERVERS: [IpAddr; 2] = [
    IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 53)),
    IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 54)),
];

impl Call<'_> {
    pub(super) fn networks(&mut self, rest: &[&str]) -> Answer {
        match (self.method(), rest) {
            ("GET", []) => {
                let own = self.state.networks.values().filter(|network| !network.public);
                self.list(own, |it| &it.tags, Wire::network)
            }
            ("POST", []) => self.create_network(),
            (_, []) => self.wrong_method(),
            (method, [id]) => {
                let uuid = path_id(id)?;
                let network = self.state.networks.get(&uuid).filter(|network| !network.public);
                let network = network.ok_or_else(ApiError::not_found)?;
                match method {
                    "GET" => return self.one(&self.wire().network(network)),
                    "PATCH" => {
                        let mut fields = self.patch(false)?;
                        fields.forbid(&["zone"]);
                        let (name, mtu, tags) = (fields.text("name"), mtu(&mut fields), fields.tags());
                        fields.check()?;
                        if let Some(network) = self.state.networks.get_mut(&uuid) {
                            network.name = name.unwrap_or_else(|| network.name.clone());
                            network.mtu = mtu.unwrap_or(network.mtu);
                            network.tags = tags.unwrap_or_else(|| network.tags.clone());
                        }
                    }
                    "DELETE" => {
                        let attached = |server: &crate::model::Server| {
                            server
                                .interfaces
                                .iter()
                                .any(|interface| interface.network == uuid)
                        };
                        if self.state.servers.values().any(attached) {
                            return Err(ApiError::detail("The network is still in use."));
                        }
                        self.state.networks.shift_remove(&uuid);
                        self.state.subnets.retain(|_, subnet| subnet.network != uuid);
                    }
                    _ => return self.wrong_method(),
                }
                self.done()
            }
            _ => Err(ApiError::not_found()),
        }
    }

    fn create_network(&mut self) -> Answer {
        let mut fields = self.new_fields(&["name"])?;
        let name = fields.text("name");
        let zone = self.zone(&mut fields);
        let mtu = mtu(&mut fields).unwrap_or(9000);
        let with_subnet = fields.flag("auto_create_ipv4_subnet").unwrap_or(true);
        let tags = fields.tags().unwrap_or_default();
        fields.check()?;
        let (uuid, created_at) = self.birth();
        let network = Network {
            uuid,
            name: given(name, "name")?,
            created_at,
            zone,
            mtu,
            public: false,
            tags,
        };
        self.state.networks.insert(uuid, network.clone());
        if with_subnet {
            let subnet = Subnet {
                uuid: self.state.seed.uuid(),
                network: uuid,
                cidr: self.free_range(),
                gateway: None,
                dns_servers: DNS_SERVERS.to_vec(),
                tags: crate::model::Tags::new(),
            };
            self.state.insert_subnet(Subnet {
                gateway: first_host(subnet.cidr),
                ..subnet
            });
        }
        self.created(&self.wire().network(&network))
    }

    /// The first /24 of 172.16.0.0/12 that no subnet overlaps.
    fn free_range(&self) -> IpNet {
        let taken = |net: &IpNet| {
            let overlaps = |other: &Subnet| other.cidr.contains(net) || net.contains(&other.cidr);
            self.state.subnets.values().any(overlaps)
        };
        let mut ranges = (16..32_u8).flat_map(|b| (0..=255_u8).map(move |c| v4_range([172, b, c, 0], 24)));
        ranges
            .find(|net| !taken(net))
            .unwrap_or_else(|| v4_range([172, 31, 255, 0], 24))
    }

    pub(super) fn subnets(&mut self, rest: &[&str]) -> Answer {
        let public = |call: &Self, subnet: &Subnet| call.state.networks[&subnet.network].public;
        match (self.method(), rest) {
            ("GET", []) => {
                let own = self.state.subnets.values().filter(|subnet| !public(self, subnet));
                self.list(own, |it| &it.tags, Wire::subnet)
            }
            ("POST", []) => self.create_subnet(),
            (_, []) => self.wrong_method(),
            (method, [id]) => {
                let uuid = path_id(id)?;
                let subnet = self
                    .state
                    .subnets
                    .get(&uuid)
                    .filter(|subnet| !public(self, subnet));
                let mut subnet = subnet.cloned().ok_or_else(ApiError::not_found)?;
                match method {
                    "GET" => return self.one(&self.wire().subnet(&subnet)),
                    "PATCH" => {
                        let mut fields = self.patch(false)?;
                        fields.forbid(&["network", "cidr"]);
                        subnet.gateway = gateway(&mut fields, subnet.cidr).or(subnet.gateway);
                        subnet.dns_servers = dns_servers(&mut fields).unwrap_or(subnet.dns_servers);
                        subnet.tags = fields.tags().unwrap_or(subnet.tags);
                        fields.check()?;
                        self.state.insert_subnet(subnet);
                    }
                    "DELETE" => {
                        if self.subnet_in_use(uuid) {
                            return Err(ApiError::detail("The subnet is still in use."));
                        }
                        self.state.subnets.shift_remove(&uuid);
                    }
                    _ => return self.wrong_method(),
                }
                self.done()
            }
            _ => Err(ApiError::not_found()),
        }
    }

    fn subnet_in_use(&self, uuid: Uuid) -> bool {
        let interfaces = self.state.servers.values().flat_map(|server| &server.interfaces);
        let mut addresses = interfaces.flat_map(|interface| &interface.addresses);
        addresses.any(|address| address.subnet == uuid)
            || self
                .state
                .load_balancers
                .values()
                .any(|it| it.vips.iter().any(|vip| vip.subnet == uuid))
    }

    fn create_subnet(&mut self) -> Answer {
        let mut fields = self.new_fields(&["network", "cidr"])?;
        let network = fields.uuid("network");
        if let Some(uuid) = network
            && self
                .state
                .networks
                .get(&uuid)
                .is_none_or(|network| network.public)
        {
            fields.refuse("network", format!("Network \"{uuid}\" does not exist."));
        }
        let cidr = fields.text("cidr").and_then(|text| text.parse::<IpNet>().ok());
        let cidr = cidr.filter(|cidr| cidr.addr() == cidr.network());
        if cidr.is_none() {
            fields.refuse("cidr", "Enter a valid network address in CIDR notation.");
        }
        let gateway = cidr.and_then(|cidr| gateway(&mut fields, cidr));
        let dns_servers = dns_servers(&mut fields).unwrap_or_else(|| DNS_SERVERS.to_vec());
        let tags = fields.tags().unwrap_or_default();
        fields.check()?;
        let cidr = given(cidr, "cidr")?;
        let network = given(network, "network")?;
        let overlaps = |other: &Subnet| {
            other.network == network && (other.cidr.contains(&cidr) || cidr.contains(&other.cidr))
        };
        if self.state.subnets.values().any(overlaps) {
            return Err(ApiError::field(
                "cidr",
                "The range overlaps with another subnet of the network.",
            ));
        }
        let uuid = self.state.seed.uuid();
        let gateway = gateway.or_else(|| first_host(cidr));
        let subnet = Subnet {
            uuid,
            network,
            cidr,
            gateway,
            dns_servers,
            tags,
        };
        self.state.insert_subnet(subnet.clone());
        self.created(&self.wire().subnet(&subnet))
    }
}

fn mtu(fields: &mut Fields) -> Option<u32> {
    fields.number("mtu", 1280, 9000)
}

fn gateway(fields: &mut Fields, cidr: IpNet) -> Option<IpAddr> {
    let gateway = fields.address("gateway_address")?;
    if !cidr.contains(&gateway) {
        fields.refuse(
            "gateway_address",
            "The address is not a valid IP for the specified subnet.",
        );
    }
    Some(gateway)
}

/// `null` asks for those of the provider.
fn dns_servers(fields: &mut Fields) -> Option<Vec<IpAddr>> {
    if fields.value("dns_servers").is_some_and(Value::is_null) {
        return Some(DNS_SERVERS.to_vec());
    }
    let texts = fields.texts("dns_servers")?;
    let servers: Result<Vec<IpAddr>, _> = texts.iter().map(|text| text.parse()).collect();
    if servers.is_err() {
        fields.refuse("dns_servers", "Enter valid IPv4 or IPv6 addresses.");
    }
    servers.ok()
}
