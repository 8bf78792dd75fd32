//! How objects look on the wire.
//!
//! Written from the API description; deliberately shares nothing with the client of this repository.

use std::net::IpAddr;

use serde::Serialize;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::model::{
    Address, FloatingIp, HealthMonitor, Interface, Listener, LoadBalancer, Member, Network, Pool, Server,
    Subnet, Target,
};
use crate::options::region;
use crate::state::State;

/// Renders the objects of a state with absolute links.
pub(crate) struct Wire<'a> {
    pub(crate) state: &'a State,
    /// Scheme and host, without a slash at the end.
    pub(crate) base: &'a str,
}

/// A reference to an object with a name.
#[derive(Serialize)]
struct Stub<'a> {
    href: String,
    uuid: Uuid,
    name: &'a str,
}

/// A reference to a subnet.
#[derive(Serialize)]
struct SubnetStub {
    href: String,
    uuid: Uuid,
    cidr: String,
}

fn slug(slug: &str) -> Value {
    json!({ "slug": slug })
}

fn version(address: IpAddr) -> u8 {
    if address.is_ipv4() { 4 } else { 6 }
}

impl Wire<'_> {
    fn href(&self, path: &str, id: impl std::fmt::Display) -> String {
        format!("{}/v1/{path}/{id}", self.base)
    }

    fn network_stub(&self, uuid: Uuid) -> Option<Stub<'_>> {
        let network = self.state.networks.get(&uuid)?;
        Some(Stub {
            href: self.href("networks", uuid),
            uuid,
            name: &network.name,
        })
    }

    fn subnet_stub(&self, uuid: Uuid) -> Option<SubnetStub> {
        let subnet = self.state.subnets.get(&uuid)?;
        Some(SubnetStub {
            href: self.href("subnets", uuid),
            uuid,
            cidr: subnet.cidr.to_string(),
        })
    }

    fn balancer_stub(&self, uuid: Uuid) -> Option<Stub<'_>> {
        let balancer = self.state.load_balancers.get(&uuid)?;
        Some(Stub {
            href: self.href("load-balancers", uuid),
            uuid,
            name: &balancer.name,
        })
    }

    fn pool_stub(&self, uuid: Uuid) -> Option<Stub<'_>> {
        let pool = self.state.pools.get(&uuid)?;
        Some(Stub {
            href: self.href("load-balancers/pools", uuid),
            uuid,
            name: &pool.name,
        })
    }

    pub(crate) fn flavor(&self, wanted: &str) -> Value {
        let flavor = self
            .state
            .options
            .flavors
            .iter()
            .find(|flavor| flavor.slug == wanted);
        let (cpus, memory) = flavor.map_or((0, 0), |flavor| (flavor.vcpu_count, flavor.memory_gb));
        json!({ "slug": wanted, "name": title(wanted), "vcpu_count": cpus, "memory_gb": memory, "gpu": null })
    }

    pub(crate) fn server(&self, server: &Server) -> Value {
        let volume = |volume: &crate::model::Volume| {
            json!({
                "href": self.href("volumes", volume.uuid),
                "uuid": volume.uuid,
                "name": format!("{}-root", server.name),
                "type": "ssd",
                "size_gb": volume.size_gb,
            })
        };
        json!({
            "href": self.href("servers", server.uuid),
            "uuid": server.uuid,
            "name": server.name,
            "created_at": server.created_at,
            "status": State::server_status(server),
            "zone": slug(&server.zone),
            "flavor": self.flavor(&server.flavor),
            "image": {
                "slug": server.image,
                "name": title(&server.image),
                "operating_system": title(server.image.split('-').next().unwrap_or_default()),
                "default_username": server.image.split('-').next().unwrap_or_default(),
            },
            "volumes": server.volumes.iter().map(volume).collect::<Vec<_>>(),
            "interfaces": server.interfaces.iter().map(|it| self.interface(it)).collect::<Vec<_>>(),
            "ssh_fingerprints": [],
            "ssh_host_keys": [],
            "anti_affinity_with": [],
            "server_groups": [],
            "tags": server.tags,
        })
    }

    fn interface(&self, interface: &Interface) -> Value {
        let address = |it: &Address| {
            let subnet = self.state.subnets.get(&it.subnet);
            // A public IPv6 address stands alone, and its router is link local.
            let alone = interface.public && it.address.is_ipv6();
            let prefix = if alone {
                Some(128)
            } else {
                subnet.map(|subnet| subnet.cidr.prefix_len())
            };
            let gateway = subnet
                .and_then(|subnet| subnet.gateway)
                .map(|gateway| gateway.to_string());
            json!({
                "version": version(it.address),
                "address": it.address,
                "prefix_length": prefix,
                "gateway": if alone { Some("fe80::1".to_owned()) } else { gateway },
                "reverse_ptr": interface.public.then(|| reverse_name(it.address)),
                "subnet": self.subnet_stub(it.subnet),
            })
        };
        json!({
            "type": if interface.public { "public" } else { "private" },
            "network": self.network_stub(interface.network),
            "addresses": interface.addresses.iter().map(address).collect::<Vec<_>>(),
        })
    }

    pub(crate) fn network(&self, network: &Network) -> Value {
        let subnets = self
            .state
            .subnets
            .values()
            .filter(|subnet| subnet.network == network.uuid);
        json!({
            "href": self.href("networks", network.uuid),
            "uuid": network.uuid,
            "name": network.name,
            "created_at": network.created_at,
            "zone": slug(&network.zone),
            "mtu": network.mtu,
            "subnets": subnets.filter_map(|subnet| self.subnet_stub(subnet.uuid)).collect::<Vec<_>>(),
            "tags": network.tags,
        })
    }

    pub(crate) fn subnet(&self, subnet: &Subnet) -> Value {
        json!({
            "href": self.href("subnets", subnet.uuid),
            "uuid": subnet.uuid,
            "cidr": subnet.cidr.to_string(),
            "network": self.network_stub(subnet.network),
            "gateway_address": subnet.gateway,
            "dns_servers": subnet.dns_servers,
            "tags": subnet.tags,
        })
    }

    pub(crate) fn load_balancer(&self, balancer: &LoadBalancer) -> Value {
        let vip = |vip: &Address| {
            json!({
                "version": version(vip.address),
                "address": vip.address,
                "subnet": self.subnet_stub(vip.subnet),
            })
        };
        json!({
            "href": self.href("load-balancers", balancer.uuid),
            "uuid": balancer.uuid,
            "name": balancer.name,
            "created_at": balancer.created_at,
            "status": self.state.balancer_status(balancer),
            "zone": slug(&balancer.zone),
            "flavor": { "slug": balancer.flavor, "name": lb_title(&balancer.flavor) },
            "vip_addresses": balancer.vips.iter().map(vip).collect::<Vec<_>>(),
            "tags": balancer.tags,
        })
    }

    pub(crate) fn pool(&self, pool: &Pool) -> Value {
        json!({
            "href": self.href("load-balancers/pools", pool.uuid),
            "uuid": pool.uuid,
            "name": pool.name,
            "created_at": pool.created_at,
            "load_balancer": self.balancer_stub(pool.load_balancer),
            "algorithm": pool.algorithm,
            "protocol": pool.protocol,
            "tags": pool.tags,
        })
    }

    pub(crate) fn member(&self, member: &Member) -> Value {
        let balancer = self.state.balancer_of_pool(member.pool);
        json!({
            "href": self.href(&format!("load-balancers/pools/{}/members", member.pool), member.uuid),
            "uuid": member.uuid,
            "name": member.name,
            "enabled": member.enabled,
            "created_at": member.created_at,
            "pool": self.pool_stub(member.pool),
            "load_balancer": balancer.and_then(|uuid| self.balancer_stub(uuid)),
            "protocol_port": member.protocol_port,
            "monitor_port": member.monitor_port,
            "address": member.address,
            "subnet": self.subnet_stub(member.subnet),
            "monitor_status": self.state.monitor_status(member),
            "tags": member.tags,
        })
    }

    pub(crate) fn listener(&self, listener: &Listener) -> Value {
        json!({
            "href": self.href("load-balancers/listeners", listener.uuid),
            "uuid": listener.uuid,
            "name": listener.name,
            "created_at": listener.created_at,
            "pool": listener.pool.and_then(|uuid| self.pool_stub(uuid)),
            "load_balancer": self.balancer_stub(listener.load_balancer),
            "protocol": listener.protocol,
            "protocol_port": listener.protocol_port,
            "allowed_cidrs": listener.allowed_cidrs,
            "timeout_client_data_ms": listener.timeout_client_data_ms,
            "timeout_member_connect_ms": listener.timeout_member_connect_ms,
            "timeout_member_data_ms": listener.timeout_member_data_ms,
            "tags": listener.tags,
        })
    }

    pub(crate) fn monitor(&self, monitor: &HealthMonitor) -> Value {
        let balancer = self.state.balancer_of_pool(monitor.pool);
        json!({
            "href": self.href("load-balancers/health-monitors", monitor.uuid),
            "uuid": monitor.uuid,
            "created_at": monitor.created_at,
            "pool": self.pool_stub(monitor.pool),
            "load_balancer": balancer.and_then(|uuid| self.balancer_stub(uuid)),
            "delay_s": monitor.delay_s,
            "timeout_s": monitor.timeout_s,
            "up_threshold": monitor.up_threshold,
            "down_threshold": monitor.down_threshold,
            "type": monitor.kind,
            "http": monitor.http,
            "tags": monitor.tags,
        })
    }

    pub(crate) fn floating_ip(&self, floating: &FloatingIp) -> Value {
        let address = floating.network.addr();
        let server = match floating.target {
            Some(Target::Server(uuid)) => Some(json!({ "href": self.href("servers", uuid), "uuid": uuid })),
            _ => None,
        };
        let balancer = match floating.target {
            Some(Target::LoadBalancer(uuid)) => self.balancer_stub(uuid),
            _ => None,
        };
        json!({
            "href": self.href("floating-ips", address),
            "network": floating.network.to_string(),
            "ip_version": version(address),
            "created_at": floating.created_at,
            "next_hop": self.next_hop(floating),
            "server": server,
            "load_balancer": balancer,
            "type": if floating.region.is_some() { "regional" } else { "global" },
            "region": floating.region.as_deref().map(slug),
            "reverse_ptr": floating.reverse_ptr,
            "tags": floating.tags,
        })
    }

    /// The first address of the target with the version of the floating IP.
    fn next_hop(&self, floating: &FloatingIp) -> Option<IpAddr> {
        let fits = |address: &&Address| address.address.is_ipv4() == floating.network.addr().is_ipv4();
        let address = match floating.target? {
            Target::LoadBalancer(uuid) => self.state.load_balancers.get(&uuid)?.vips.iter().find(fits),
            Target::Server(uuid) => {
                let interfaces = &self.state.servers.get(&uuid)?.interfaces;
                interfaces
                    .iter()
                    .filter(|it| it.public)
                    .flat_map(|it| &it.addresses)
                    .find(fits)
            }
        };
        address.map(|address| address.address)
    }

    pub(crate) fn regions(&self) -> Value {
        let mut regions: Vec<(&str, Vec<Value>)> = Vec::new();
        for zone in &self.state.options.zones {
            let name = region(zone);
            match regions.iter_mut().find(|(known, _)| *known == name) {
                Some((_, zones)) => zones.push(slug(zone)),
                None => regions.push((name, vec![slug(zone)])),
            }
        }
        regions
            .into_iter()
            .map(|(name, zones)| json!({ "slug": name, "zones": zones }))
            .collect()
    }

    pub(crate) fn flavors(&self) -> Value {
        let zones: Value = self.state.options.zones.iter().map(|zone| slug(zone)).collect();
        let flavor = |slug: &str| {
            let mut flavor = self.flavor(slug);
            flavor["zones"] = zones.clone();
            flavor
        };
        self.state
            .options
            .flavors
            .iter()
            .map(|it| flavor(&it.slug))
            .collect()
    }
}

/// The name the provider shows for a slug: `plus-16-4` is `Plus-16-4`.
fn title(slug: &str) -> String {
    let mut letters = slug.chars();
    letters
        .next()
        .map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// The name of a load balancer flavor: `lb-standard` is `LB-Standard`.
fn lb_title(slug: &str) -> String {
    slug.strip_prefix("lb-")
        .map_or_else(|| title(slug), |rest| format!("LB-{}", title(rest)))
}

/// A made-up name in a reserved domain.
pub(crate) fn reverse_name(address: IpAddr) -> String {
    format!("{}.cust.example", address.to_string().replace(['.', ':'], "-"))
}
