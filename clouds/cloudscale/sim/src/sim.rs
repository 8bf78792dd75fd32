//! The handle to a running simulator.

use std::net::{IpAddr, SocketAddr};

use bowline_cloud_kit::addresses::first_host;
use bowline_cloud_kit::dataplane::Transport;
use bowline_cloud_kit::{Running, Shared};
use ipnet::IpNet;
use uuid::Uuid;

use crate::api::FloatingIpSpec;
use crate::behaviour::Behaviour;
use crate::builder::Builder;
use crate::model::{
    FloatingIp, HealthMonitor, Interface, Listener, LoadBalancer, Member, Network, Pool, Server,
    ServerStatus, Subnet, Tags, Target, Volume,
};
use crate::options::{Access, region};
use crate::snapshot::{self, Snapshot};
use crate::state::State;

mod manual;

pub use manual::ManualPool;

/// A simulated cloudscale.ch project. Clones share it.
#[derive(Clone, Debug)]
pub struct CloudscaleSim {
    pub(crate) shared: Shared<State>,
    pub(crate) running: Running,
}

/// A server for [`CloudscaleSim::add_server`].
#[derive(Clone, Debug)]
pub struct ServerSpec {
    /// Host name.
    pub name: String,
    /// Zone slug; the default zone if absent.
    pub zone: Option<String>,
    /// Flavor slug.
    pub flavor: String,
    /// Interfaces in order.
    pub interfaces: Vec<InterfaceSpec>,
    /// Labels.
    pub tags: Tags,
}

/// An interface of a [`ServerSpec`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InterfaceSpec {
    /// In the public network with one IPv4 and, if `v6`, one IPv6 address.
    Public {
        /// Whether there is an IPv6 address as well.
        v6: bool,
    },
    /// In the default private network with the next free address.
    Private,
    /// In a private network with the next free address of this subnet.
    Subnet(Uuid),
    /// In a private network with these addresses of these subnets.
    Addresses(Vec<(Uuid, IpAddr)>),
    /// In a network without subnet: no addresses.
    Layer2(Uuid),
}

impl ServerSpec {
    /// One public interface with IPv4 and IPv6, then one in the default private subnet, flavor `flex-16-4`.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            zone: None,
            flavor: "flex-16-4".to_owned(),
            interfaces: vec![InterfaceSpec::Public { v6: true }, InterfaceSpec::Private],
            tags: Tags::new(),
        }
    }

    /// In another zone than the default one.
    #[must_use]
    pub fn zone(mut self, zone: impl Into<String>) -> Self {
        self.zone = Some(zone.into());
        self
    }

    /// With another flavor.
    #[must_use]
    pub fn flavor(mut self, flavor: impl Into<String>) -> Self {
        self.flavor = flavor.into();
        self
    }

    /// With these interfaces instead.
    #[must_use]
    pub fn interfaces(mut self, interfaces: impl IntoIterator<Item = InterfaceSpec>) -> Self {
        self.interfaces = interfaces.into_iter().collect();
        self
    }
}

impl CloudscaleSim {
    bowline_cloud_kit::handle!(State, Behaviour, Builder);

    /// Accepts a token, or changes what it may do.
    pub fn set_token(&self, token: impl Into<String>, access: Access) {
        self.write(|state| state.options.tokens.set(token.into(), access));
    }

    /// Refuses a token from now on. After the last one was revoked, every token is good again.
    pub fn revoke_token(&self, token: &str) {
        self.write(|state| state.options.tokens.remove(token));
    }

    /// The end state without ids and times.
    pub fn snapshot(&self) -> Snapshot {
        snapshot::take(&self.read())
    }

    /// Duplicates and parts without their whole, in words; empty if all is well.
    pub fn check_invariants(&self) -> Vec<String> {
        let mut found = snapshot::violations(&self.read());
        found.extend(self.journal().overlaps().iter().map(ToString::to_string));
        found
    }

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

    /// The default private subnet.
    pub fn private_subnet(&self) -> Uuid {
        self.read().home.private
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

    /// All servers in order of creation.
    pub fn servers(&self) -> Vec<Server> {
        self.read().servers.values().cloned().collect()
    }

    /// One server.
    pub fn server(&self, uuid: Uuid) -> Option<Server> {
        self.read().servers.get(&uuid).cloned()
    }

    /// All load balancers in order of creation.
    pub fn load_balancers(&self) -> Vec<LoadBalancer> {
        self.read().load_balancers.values().cloned().collect()
    }

    /// One load balancer.
    pub fn load_balancer(&self, uuid: Uuid) -> Option<LoadBalancer> {
        self.read().load_balancers.get(&uuid).cloned()
    }

    /// What the API says about a load balancer now.
    pub fn load_balancer_status(&self, uuid: Uuid) -> Option<String> {
        let state = self.read();
        state
            .load_balancers
            .get(&uuid)
            .map(|balancer| state.balancer_status(balancer))
    }

    /// All pools in order of creation.
    pub fn pools(&self) -> Vec<Pool> {
        self.read().pools.values().cloned().collect()
    }

    /// All members in order of creation.
    pub fn members(&self) -> Vec<Member> {
        self.read().members.values().cloned().collect()
    }

    /// The members of one pool in order of creation.
    pub fn members_of(&self, pool: Uuid) -> Vec<Member> {
        self.read().members_of(pool).cloned().collect()
    }

    /// All listeners in order of creation.
    pub fn listeners(&self) -> Vec<Listener> {
        self.read().listeners.values().cloned().collect()
    }

    /// All health monitors in order of creation.
    pub fn health_monitors(&self) -> Vec<HealthMonitor> {
        self.read().monitors.values().cloned().collect()
    }

    /// All subnets, those of the provider included.
    pub fn subnets(&self) -> Vec<Subnet> {
        self.read().subnets.values().cloned().collect()
    }

    /// All floating IPs in order of creation.
    pub fn floating_ips(&self) -> Vec<FloatingIp> {
        self.read().floating_ips.values().cloned().collect()
    }

    /// Sends what is meant for a server's address and port to another place: for machines whose loopback interface has
    /// no other address than 127.0.0.1, where servers' addresses cannot be bound.
    pub fn move_member(&self, transport: Transport, wanted: SocketAddr, actual: SocketAddr) {
        self.write(|state| state.moved.insert((transport, wanted), actual));
    }
}

/// A floating IP for [`CloudscaleSim::add_floating_ip`].
#[derive(Clone, Debug, Default)]
pub struct FloatingSpec {
    /// This address; the next free one if absent.
    pub address: Option<IpAddr>,
    /// IPv6 rather than IPv4.
    pub v6: bool,
    /// A whole IPv6 network (/56).
    pub network: bool,
    /// Where it can be used.
    pub scope: Scope,
    /// Where it points.
    pub target: Option<Target>,
}

/// Where a floating IP can be used.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Scope {
    /// In the region of its target, else of the default zone.
    #[default]
    DefaultRegion,
    /// In this region.
    Region(String),
    /// Everywhere.
    Global,
}

/// The region a zone belongs to.
pub fn region_of(zone: &str) -> &str {
    region(zone)
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
