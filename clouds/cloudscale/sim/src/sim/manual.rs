//! What somebody does by hand behind the manager's back. None of it is in the journal.

use std::net::IpAddr;

use bowline_cloud_kit::addresses::first_host;
use ipnet::IpNet;
use uuid::Uuid;

use super::{CloudscaleSim, FloatingSpec, InterfaceSpec, ManualPool, Scope, ServerSpec};
use crate::api::FloatingIpSpec;
use crate::model::{
    Interface, LoadBalancer, Member, Network, Pool, Server, ServerStatus, Subnet, Tags, Target, Volume,
};
use crate::state::State;

impl CloudscaleSim {
    /// Adds a running server.
    ///
    /// # Panics
    ///
    /// If an address or subnet that the spec names cannot be had: a mistake in the test.
    pub fn add_server(&self, spec: ServerSpec) -> Uuid {
        self.write(|state| {
            let interfaces = spec
                .interfaces
                .into_iter()
                .map(|it| interface(state, it))
                .collect();
            let uuid = state.seed.uuid();
            let server = Server {
                uuid,
                name: spec.name,
                created_at: state.clock.rfc3339_micros(),
                status: ServerStatus::Running,
                changing_until: None,
                creating: false,
                zone: spec
                    .zone
                    .unwrap_or_else(|| state.options.default_zone().to_owned()),
                flavor: spec.flavor,
                image: "ubuntu-24.04".to_owned(),
                volumes: vec![Volume {
                    uuid: state.seed.uuid(),
                    size_gb: 25,
                }],
                interfaces,
                tags: spec.tags,
            };
            state.servers.insert(uuid, server);
            uuid
        })
    }

    /// Removes a server; whether there was one.
    pub fn remove_server(&self, uuid: Uuid) -> bool {
        self.write(|state| state.remove_server(uuid))
    }

    /// Sets a server's status, which then stays.
    pub fn set_server_status(&self, uuid: Uuid, status: ServerStatus) {
        self.write(|state| {
            if let Some(server) = state.servers.get_mut(&uuid) {
                (server.status, server.changing_until) = (status, None);
            }
        });
    }

    /// Gives a server another name.
    pub fn rename_server(&self, uuid: Uuid, name: impl Into<String>) {
        self.write(|state| {
            if let Some(server) = state.servers.get_mut(&uuid) {
                server.name = name.into();
            }
        });
    }

    /// Replaces a server's interfaces.
    ///
    /// # Panics
    ///
    /// As [`Self::add_server`].
    pub fn set_interfaces(&self, uuid: Uuid, interfaces: impl IntoIterator<Item = InterfaceSpec>) {
        self.write(|state| {
            let Some(server) = state.servers.get(&uuid) else {
                return;
            };
            for address in server.interfaces.clone().iter().flat_map(|it| &it.addresses) {
                state.release(address);
            }
            let interfaces = interfaces.into_iter().map(|it| interface(state, it)).collect();
            if let Some(server) = state.servers.get_mut(&uuid) {
                server.interfaces = interfaces;
            }
        });
    }

    /// Adds a private network with one subnet, in the default zone; answers the subnet's id.
    pub fn add_subnet(&self, name: impl Into<String>, cidr: IpNet) -> Uuid {
        let network = self.add_network(name);
        self.write(|state| {
            let uuid = state.seed.uuid();
            let cidr = cidr.trunc();
            let gateway = first_host(cidr);
            state.insert_subnet(Subnet {
                uuid,
                network,
                cidr,
                gateway,
                dns_servers: Vec::new(),
                tags: Tags::new(),
            });
            uuid
        })
    }

    /// Adds a private network without subnet, in the default zone.
    pub fn add_network(&self, name: impl Into<String>) -> Uuid {
        self.write(|state| {
            let uuid = state.seed.uuid();
            let network = Network {
                uuid,
                name: name.into(),
                created_at: state.clock.rfc3339_micros(),
                zone: state.options.default_zone().to_owned(),
                mtu: 9000,
                public: false,
                tags: Tags::new(),
            };
            state.networks.insert(uuid, network);
            uuid
        })
    }

    /// Adds a floating IP without target: regional in the region named, or global. Answers its address.
    ///
    /// # Panics
    ///
    /// If there is no free address or the address named exists: a mistake in the test.
    pub fn add_floating_ip(&self, spec: FloatingSpec) -> IpAddr {
        let wish = FloatingIpSpec {
            v6: spec.v6 || spec.address.is_some_and(|address| address.is_ipv6()),
            network: spec.network,
            target: spec.target,
            region: match spec.scope {
                Scope::Global => None,
                Scope::DefaultRegion => Some(None),
                Scope::Region(region) => Some(Some(region)),
            },
            address: spec.address,
        };
        self.write(|state| match state.create_floating_ip(wish, None, Tags::new()) {
            Ok(address) => address,
            Err(error) => panic!("floating IP not added: {}", error.texts()),
        })
    }

    /// Adds a second member that equals another one but for its id.
    pub fn duplicate_member(&self, uuid: Uuid) -> Option<Uuid> {
        self.write(|state| {
            let twin = Member {
                uuid: state.seed.uuid(),
                ..state.members.get(&uuid)?.clone()
            };
            Some(insert_member(state, twin))
        })
    }

    /// Removes a member.
    pub fn delete_member(&self, uuid: Uuid) -> bool {
        self.write(|state| state.members.shift_remove(&uuid).is_some())
    }

    /// Adds an empty pool.
    pub fn add_pool(&self, pool: ManualPool) -> Uuid {
        self.write(|state| {
            let uuid = state.seed.uuid();
            let ManualPool {
                load_balancer,
                name,
                algorithm,
                protocol,
            } = pool;
            let created_at = state.clock.rfc3339_micros();
            let pool = Pool {
                uuid,
                name,
                created_at,
                load_balancer,
                algorithm,
                protocol,
                tags: Tags::new(),
            };
            state.pools.insert(uuid, pool);
            uuid
        })
    }

    /// Removes a pool with its members, monitors and listeners.
    pub fn delete_pool(&self, uuid: Uuid) {
        self.write(|state| {
            state.listeners.retain(|_, listener| listener.pool != Some(uuid));
            state.remove_pool(uuid);
        });
    }

    /// Removes a listener.
    pub fn delete_listener(&self, uuid: Uuid) -> bool {
        self.write(|state| state.listeners.shift_remove(&uuid).is_some())
    }

    /// Takes a listener's pool away.
    pub fn detach_listener(&self, uuid: Uuid) {
        self.write(|state| {
            if let Some(listener) = state.listeners.get_mut(&uuid) {
                listener.pool = None;
            }
        });
    }

    /// Removes a health monitor.
    pub fn delete_health_monitor(&self, uuid: Uuid) -> bool {
        self.write(|state| state.monitors.shift_remove(&uuid).is_some())
    }

    /// Adds a running load balancer with automatic addresses and no parts.
    ///
    /// # Panics
    ///
    /// If the address ranges are used up.
    pub fn add_load_balancer(&self, name: impl Into<String>, tags: Tags) -> Uuid {
        self.write(|state| {
            let home = state.home;
            let vips = [home.vip_v4, home.public_v6].map(|subnet| match state.allocate(subnet) {
                Ok(vip) => vip,
                Err(error) => panic!("no address for a load balancer: {}", error.texts()),
            });
            let uuid = state.seed.uuid();
            let balancer = LoadBalancer {
                uuid,
                name: name.into(),
                created_at: state.clock.rfc3339_micros(),
                zone: state.options.default_zone().to_owned(),
                flavor: "lb-standard".to_owned(),
                vips: vips.into(),
                tags,
                creating_until: None,
                changing_until: None,
                deleted_at: None,
                status: None,
            };
            state.load_balancers.insert(uuid, balancer);
            uuid
        })
    }

    /// Removes a load balancer with all its parts.
    pub fn delete_load_balancer(&self, uuid: Uuid) {
        self.write(|state| state.remove_load_balancer(uuid));
    }

    /// Fixes a load balancer's status; `None` goes back to what its parts say.
    pub fn set_load_balancer_status(&self, uuid: Uuid, status: Option<&str>) {
        self.edit_load_balancer(uuid, |balancer| balancer.status = status.map(str::to_owned));
    }

    /// Sets a load balancer's labels.
    pub fn tag_load_balancer(&self, uuid: Uuid, tags: Tags) {
        self.edit_load_balancer(uuid, |balancer| balancer.tags = tags);
    }

    /// Points a floating IP somewhere else, or nowhere.
    pub fn assign_floating_ip(&self, address: std::net::IpAddr, target: Option<Target>) {
        self.write(|state| {
            if let Some(floating) = state.floating_ips.get_mut(&address) {
                floating.target = target;
            }
        });
    }
}

fn insert_member(state: &mut State, member: Member) -> Uuid {
    let uuid = member.uuid;
    state.members.insert(uuid, member);
    uuid
}

fn interface(state: &mut State, spec: InterfaceSpec) -> Interface {
    let made = match spec {
        InterfaceSpec::Public { v6 } => state.public_interface(v6),
        InterfaceSpec::Private => state.private_interface(state.home.private),
        InterfaceSpec::Subnet(subnet) => state.private_interface(subnet),
        InterfaceSpec::Layer2(network) => Ok(Interface {
            public: false,
            network,
            addresses: Vec::new(),
        }),
        InterfaceSpec::Addresses(wishes) => {
            let first = wishes.first().and_then(|(subnet, _)| state.subnets.get(subnet));
            let network = first.map_or(state.home.private_network, |subnet| subnet.network);
            let addresses = wishes
                .into_iter()
                .map(|(subnet, address)| state.reserve(subnet, address));
            addresses.collect::<Result<_, _>>().map(|addresses| Interface {
                public: false,
                network,
                addresses,
            })
        }
    };
    match made {
        Ok(interface) => interface,
        Err(error) => panic!("interface not made: {}", error.texts()),
    }
}
