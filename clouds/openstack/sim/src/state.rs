//! Everything a cloud holds, and the clock-driven changes to it.

use std::collections::BTreeMap;

use bowline_cloud_kit::addresses::{Leases, first_host};
use bowline_cloud_kit::dataplane::Bound;
use bowline_cloud_kit::{Clock, Moved, Seed, Simulated};
use indexmap::IndexMap;
use ipnet::IpNet;
use serde::Serialize;

use crate::behaviour::Behaviour;
use crate::model::balancing::{Listener, LoadBalancer, Member, Monitor, Pool};
use crate::model::compute::{Flavor, Server};
use crate::model::keys::{Container, Secret};
use crate::model::network::{FloatingIp, Network, Port, Router, Rule, SecurityGroup, Subnet};
use crate::model::{Id, Meta};
use crate::options::Options;

mod addresses;
mod balancing;
mod identity;
mod network;

pub(crate) use addresses::NoAddress;
pub(crate) use identity::{Identity, Named, NamedDomain, Refused, hex, token};
pub(crate) use network::PortWish;

/// The state of one simulated cloud. All maps keep the order of creation.
#[derive(Debug, Default)]
pub(crate) struct State {
    pub(crate) options: Options,
    pub(crate) behaviour: Behaviour,
    pub(crate) seed: Seed,
    pub(crate) clock: Clock,
    pub(crate) identity: Identity,
    pub(crate) servers: IndexMap<Id, Server>,
    pub(crate) flavors: IndexMap<String, Flavor>,
    pub(crate) networks: IndexMap<Id, Network>,
    pub(crate) subnets: IndexMap<Id, Subnet>,
    pub(crate) ports: IndexMap<Id, Port>,
    /// The ports of a device, in the order in which they were made: a port keeps its device. Nova shows those of every server
    /// in a list.
    ports_by_device: BTreeMap<String, Vec<Id>>,
    pub(crate) routers: IndexMap<Id, Router>,
    pub(crate) floating_ips: IndexMap<Id, FloatingIp>,
    pub(crate) groups: IndexMap<Id, SecurityGroup>,
    pub(crate) rules: IndexMap<Id, Rule>,
    pub(crate) load_balancers: IndexMap<Id, LoadBalancer>,
    pub(crate) listeners: IndexMap<Id, Listener>,
    pub(crate) pools: IndexMap<Id, Pool>,
    pub(crate) members: IndexMap<Id, Member>,
    pub(crate) monitors: IndexMap<Id, Monitor>,
    pub(crate) secrets: IndexMap<Id, Secret>,
    pub(crate) containers: IndexMap<Id, Container>,
    pub(crate) home: Home,
    /// What the data plane listens on.
    pub(crate) bound: Vec<Bound>,
    /// Where members really are that cannot be bound at their own place.
    pub(crate) moved: Moved,
    addresses: Leases<Id, 11>,
}

/// What exists from the start.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Home {
    /// The id of the project that the first user works in.
    pub project: String,
    /// The id of the project of the cloud's operator, whose are the external network and its subnet.
    pub operator: String,
    /// The network of the project.
    pub network: Id,
    /// The network's IPv4 subnet.
    pub subnet: Id,
    /// The network's IPv6 subnet, if it was asked for.
    pub subnet_v6: Option<Id>,
    /// The external network.
    pub external_network: Id,
    /// The external network's subnet.
    pub external_subnet: Id,
    /// The router between the two networks.
    pub router: Id,
}

impl State {
    pub(crate) fn new(options: Options, behaviour: Behaviour, seed: Seed, clock: Clock) -> Self {
        let mut identity = Identity::default();
        let project = identity.add_project(&seed, &options.project);
        let operator = identity.add_project(&seed, "admin");
        let (name, password) = &options.user;
        identity.add_user(&seed, name, password, &project, false);
        identity.add_user(&seed, "admin", "admin", &operator, true);
        let home = Home {
            project,
            operator,
            network: seed.uuid(),
            subnet: seed.uuid(),
            subnet_v6: options.private_v6.map(|_| seed.uuid()),
            external_network: seed.uuid(),
            external_subnet: seed.uuid(),
            router: seed.uuid(),
        };
        let mut state = Self {
            behaviour,
            seed,
            clock,
            identity,
            home,
            options,
            ..Self::default()
        };
        state.furnish();
        state
    }

    fn furnish(&mut self) {
        let Home {
            project,
            operator,
            network,
            subnet,
            subnet_v6,
            external_network,
            external_subnet,
            router,
        } = self.home.clone();
        self.insert_network(external_network, "public", &operator, true);
        let name = self.options.network.clone();
        self.insert_network(network, &name, &project, false);
        let (private, external) = (self.options.private, self.options.external);
        self.insert_subnet(external_subnet, "public-v4", external_network, external);
        self.insert_subnet(subnet, "private-v4", network, private);
        let second = subnet_v6.zip(self.options.private_v6);
        if let Some((subnet, range)) = second {
            self.insert_subnet(subnet, "private-v6", network, range);
        }
        self.insert_default_group(&project);
        let gateway = self.allocate(external_subnet).ok();
        let made = Router {
            id: router,
            name: "router1".to_owned(),
            gateway: gateway.map(|it| (external_network, it)),
            routes: Vec::new(),
            meta: self.meta(&project),
        };
        self.routers.insert(router, made);
        for subnet in [Some(subnet), subnet_v6].into_iter().flatten() {
            self.connect(router, subnet);
        }
        let flavor = Flavor {
            id: self.seed.uuid().to_string(),
            name: "m1.small".to_owned(),
            vcpus: 1,
            ram_mib: 2_048,
            disk_gib: 20,
        };
        self.flavors.insert(flavor.id.clone(), flavor);
    }

    pub(crate) fn insert_network(&mut self, id: Id, name: &str, project: &str, is_external: bool) {
        let network = Network {
            id,
            name: name.to_owned(),
            is_external,
            is_shared: false,
            port_security: true,
            meta: self.meta(project),
        };
        self.networks.insert(id, network);
    }

    /// Adds a subnet whose first address is the gateway's, in the project of its network.
    pub(crate) fn insert_subnet(&mut self, id: Id, name: &str, network: Id, cidr: IpNet) {
        let project = self.networks.get(&network).map(|it| it.meta.project.clone());
        let subnet = Subnet {
            id,
            name: name.to_owned(),
            network,
            cidr,
            gateway: first_host(cidr),
            is_hidden: false,
            meta: self.meta(&project.unwrap_or_default()),
        };
        self.subnets.insert(id, subnet);
    }

    /// What a new object of a project begins with.
    pub(crate) fn meta(&self, project: &str) -> Meta {
        let now = self.clock.rfc3339_seconds();
        Meta {
            project: project.to_owned(),
            created_at: now.clone(),
            updated_at: now,
            ..Meta::default()
        }
    }
}

impl Simulated for State {
    fn settle(&mut self) {
        self.identity.forget_expired();
        self.finish_changes();
    }
}
