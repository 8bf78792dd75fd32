//! Everything a project holds, and the clock-driven changes to it.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use bowline_cloud_kit::addresses::{Leases, first_host};
use bowline_cloud_kit::clock::{later, pending};
use bowline_cloud_kit::dataplane::Bound;
use bowline_cloud_kit::{Clock, Moved, Seed, Simulated};
use indexmap::IndexMap;
use tokio::time::Instant;
use uuid::Uuid;

use crate::behaviour::{Behaviour, MonitorStatus};
use crate::error::ApiError;
use crate::model::{
    Address, FloatingIp, HealthMonitor, Listener, LoadBalancer, Member, Network, Pool, Server, ServerStatus,
    Subnet, Target,
};
use crate::options::Options;

/// The state of one simulated project. All maps keep the order of creation.
#[derive(Debug, Default)]
pub(crate) struct State {
    pub(crate) options: Options,
    pub(crate) behaviour: Behaviour,
    pub(crate) seed: Seed,
    pub(crate) clock: Clock,
    pub(crate) servers: IndexMap<Uuid, Server>,
    pub(crate) networks: IndexMap<Uuid, Network>,
    pub(crate) subnets: IndexMap<Uuid, Subnet>,
    pub(crate) load_balancers: IndexMap<Uuid, LoadBalancer>,
    pub(crate) pools: IndexMap<Uuid, Pool>,
    pub(crate) members: IndexMap<Uuid, Member>,
    pub(crate) listeners: IndexMap<Uuid, Listener>,
    pub(crate) monitors: IndexMap<Uuid, HealthMonitor>,
    pub(crate) floating_ips: IndexMap<IpAddr, FloatingIp>,
    /// When objects are in lists that are not yet.
    pub(crate) listed_from: BTreeMap<Uuid, Instant>,
    pub(crate) home: Home,
    /// One lock per load balancer for [`crate::OverlapMode::Hold`].
    pub(crate) lane_locks: BTreeMap<String, Arc<tokio::sync::Mutex<()>>>,
    /// What the data plane listens on.
    pub(crate) bound: Vec<Bound>,
    /// Where members really are that cannot be bound at their own place.
    pub(crate) moved: Moved,
    addresses: Leases<Uuid, 10>,
}

/// The networks that exist from the start.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Home {
    pub(crate) public_network: Uuid,
    pub(crate) public_v4: Uuid,
    pub(crate) public_v6: Uuid,
    pub(crate) vip_v4: Uuid,
    pub(crate) private_network: Uuid,
    pub(crate) private: Uuid,
    pub(crate) floating_v4: Uuid,
    pub(crate) floating_v6: Uuid,
}

impl State {
    pub(crate) fn new(options: Options, behaviour: Behaviour, seed: Seed, clock: Clock) -> Self {
        let id = || seed.uuid();
        let home = Home {
            public_network: id(),
            public_v4: id(),
            public_v6: id(),
            vip_v4: id(),
            private_network: id(),
            private: id(),
            floating_v4: id(),
            floating_v6: id(),
        };
        let mut state = Self {
            options,
            behaviour,
            seed,
            clock,
            home,
            ..Self::default()
        };
        state.furnish();
        state
    }

    fn furnish(&mut self) {
        let Home {
            public_network,
            private_network,
            ..
        } = self.home;
        for (uuid, name, public) in [(public_network, "Public", true), (private_network, "k8s", false)] {
            let network = Network {
                uuid,
                name: name.to_owned(),
                created_at: self.clock.rfc3339_micros(),
                zone: self.options.default_zone().to_owned(),
                mtu: if public { 1500 } else { 9000 },
                public,
                tags: BTreeMap::new(),
            };
            self.networks.insert(uuid, network);
        }
        let options = self.options.clone();
        for (uuid, network, cidr) in [
            (self.home.public_v4, public_network, options.public_v4),
            (self.home.public_v6, public_network, options.public_v6),
            (self.home.vip_v4, public_network, options.vip_v4),
            (self.home.floating_v4, public_network, options.floating_v4),
            (self.home.floating_v6, public_network, options.floating_v6),
            (self.home.private, private_network, options.private),
        ] {
            self.insert_subnet(Subnet {
                uuid,
                network,
                cidr,
                gateway: first_host(cidr),
                dns_servers: Vec::new(),
                tags: BTreeMap::new(),
            });
        }
    }

    pub(crate) fn insert_subnet(&mut self, subnet: Subnet) {
        if let Some(gateway) = subnet.gateway {
            self.addresses.take(subnet.uuid, gateway);
        }
        self.subnets.insert(subnet.uuid, subnet);
    }

    /// Reserves the next free address of a subnet.
    pub(crate) fn allocate(&mut self, subnet: Uuid) -> Result<Address, ApiError> {
        let cidr = self.subnets.get(&subnet).ok_or_else(ApiError::not_found)?.cidr;
        if let Some(address) = self.addresses.next(subnet, cidr, None) {
            return Ok(Address { address, subnet });
        }
        Err(ApiError::detail(format!("No free address in subnet {cidr}.")))
    }

    /// Reserves one address of a subnet.
    pub(crate) fn reserve(&mut self, subnet: Uuid, address: IpAddr) -> Result<Address, ApiError> {
        let cidr = self.subnets.get(&subnet).ok_or_else(ApiError::not_found)?.cidr;
        if !cidr.contains(&address) {
            return Err(ApiError::detail(format!(
                "{address} is not a valid IP for the specified subnet."
            )));
        }
        if !self.addresses.take(subnet, address) {
            return Err(ApiError::detail(format!(
                "The address {address} is already in use."
            )));
        }
        Ok(Address { address, subnet })
    }

    pub(crate) fn release(&mut self, address: &Address) {
        self.addresses.release(address.subnet, address.address);
    }

    /// Removes a load balancer with all its parts; floating IPs lose their target.
    pub(crate) fn remove_load_balancer(&mut self, uuid: Uuid) {
        let Some(balancer) = self.load_balancers.shift_remove(&uuid) else {
            return;
        };
        for vip in &balancer.vips {
            self.release(vip);
        }
        let pools: Vec<Uuid> = self.pools_of(uuid).map(|pool| pool.uuid).collect();
        for pool in pools {
            self.remove_pool(pool);
        }
        self.listeners
            .retain(|_, listener| listener.load_balancer != uuid);
        self.lane_locks.remove(&uuid.to_string());
        self.untarget(Target::LoadBalancer(uuid));
    }

    /// Removes a pool with its members and monitors. Its listeners stay.
    pub(crate) fn remove_pool(&mut self, uuid: Uuid) {
        self.pools.shift_remove(&uuid);
        self.members.retain(|_, member| member.pool != uuid);
        self.monitors.retain(|_, monitor| monitor.pool != uuid);
    }

    /// Removes a server and frees its addresses.
    pub(crate) fn remove_server(&mut self, uuid: Uuid) -> bool {
        let Some(server) = self.servers.shift_remove(&uuid) else {
            return false;
        };
        for address in server
            .interfaces
            .iter()
            .flat_map(|interface| &interface.addresses)
        {
            self.release(address);
        }
        self.untarget(Target::Server(uuid));
        true
    }

    fn untarget(&mut self, target: Target) {
        for floating in self
            .floating_ips
            .values_mut()
            .filter(|floating| floating.target == Some(target))
        {
            floating.target = None;
        }
    }

    pub(crate) fn pools_of(&self, balancer: Uuid) -> impl Iterator<Item = &Pool> {
        self.pools
            .values()
            .filter(move |pool| pool.load_balancer == balancer)
    }

    pub(crate) fn members_of(&self, pool: Uuid) -> impl Iterator<Item = &Member> {
        self.members.values().filter(move |member| member.pool == pool)
    }

    pub(crate) fn monitor_of(&self, pool: Uuid) -> Option<&HealthMonitor> {
        self.monitors.values().find(|monitor| monitor.pool == pool)
    }

    /// The load balancer that a pool belongs to.
    pub(crate) fn balancer_of_pool(&self, pool: Uuid) -> Option<Uuid> {
        self.pools.get(&pool).map(|pool| pool.load_balancer)
    }

    /// Notes that a load balancer or a part of it was written.
    pub(crate) fn touch(&mut self, balancer: Uuid) {
        let until = later(self.behaviour.lb_change_time);
        if let Some(balancer) = self.load_balancers.get_mut(&balancer) {
            balancer.changing_until = until.max(balancer.changing_until);
        }
    }

    /// Whether a load balancer is `changing`.
    pub(crate) fn is_changing(&self, balancer: &LoadBalancer) -> bool {
        pending(balancer.creating_until) || pending(balancer.changing_until) || balancer.deleted_at.is_some()
    }

    /// What the API says about a load balancer.
    pub(crate) fn balancer_status(&self, balancer: &LoadBalancer) -> String {
        if let Some(status) = &balancer.status {
            return status.clone();
        }
        if self.is_changing(balancer) {
            return "changing".to_owned();
        }
        let (mut up, mut down) = (0, 0);
        for member in self
            .pools_of(balancer.uuid)
            .flat_map(|pool| self.members_of(pool.uuid))
        {
            match self.monitor_status(member) {
                MonitorStatus::Up => up += 1,
                MonitorStatus::Down => down += 1,
                _ => {}
            }
        }
        let status = match (up, down) {
            (_, 0) => "running",
            (0, _) => "error",
            _ => "degraded",
        };
        status.to_owned()
    }

    /// What the API says about a member's health.
    pub(crate) fn monitor_status(&self, member: &Member) -> MonitorStatus {
        if let Some(status) = member.monitor_status {
            return status;
        }
        if self.monitor_of(member.pool).is_none() {
            return MonitorStatus::NoMonitor;
        }
        match member.healthy {
            _ if !member.enabled => MonitorStatus::Unknown,
            Some(true) => MonitorStatus::Up,
            Some(false) => MonitorStatus::Down,
            None => self.behaviour.unprobed_member,
        }
    }

    /// What the API says about a server.
    pub(crate) fn server_status(server: &Server) -> ServerStatus {
        if pending(server.changing_until) {
            ServerStatus::Changing
        } else {
            server.status
        }
    }
}

impl Simulated for State {
    fn settle(&mut self) {
        let now = Instant::now();
        let gone: Vec<Uuid> = self
            .load_balancers
            .values()
            .filter(|balancer| balancer.deleted_at.is_some_and(|at| at <= now))
            .map(|balancer| balancer.uuid)
            .collect();
        for uuid in gone {
            self.remove_load_balancer(uuid);
        }
    }
}
