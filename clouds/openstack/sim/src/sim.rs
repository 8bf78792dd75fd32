//! The handle to a running simulator.

use std::net::SocketAddr;

use bowline_cloud_kit::dataplane::Transport;
use bowline_cloud_kit::{Running, Shared};

use crate::behaviour::Behaviour;
use crate::builder::Builder;
use crate::model::Id;
use crate::model::balancing::{Listener, LoadBalancer, Member, Monitor, Pool};
use crate::model::compute::Server;
use crate::model::network::{FloatingIp, Port, Router, Rule, SecurityGroup, Subnet};
use crate::snapshot::{self, Snapshot};
use crate::state::{Home, State};

mod balancing;
mod identity;
mod network;
mod project;
mod servers;
mod specs;

pub use specs::{FloatingIpSpec, NetworkSpec, NicSpec, ServerSpec, SubnetSpec, UserSpec};

/// A simulated OpenStack cloud. Clones share it.
#[derive(Clone, Debug)]
pub struct OpenstackSim {
    pub(crate) shared: Shared<State>,
    pub(crate) running: Running,
}

bowline_cloud_kit::double!(OpenstackSim: servers, networks, subnets, ports, routers, floating_ips, groups, rules, load_balancers, listeners, pools, members, monitors);

impl OpenstackSim {
    bowline_cloud_kit::handle!(State, Behaviour, Builder);

    /// The end state without ids and times.
    pub fn snapshot(&self) -> Snapshot {
        snapshot::take(&self.read())
    }

    /// Duplicates, parts without their whole, and writes that met on one load balancer, in words; empty if all is well.
    pub fn check_invariants(&self) -> Vec<String> {
        let mut found = snapshot::violations(&self.read());
        found.extend(self.journal().overlaps().iter().map(ToString::to_string));
        found
    }

    /// What exists from the start.
    pub fn home(&self) -> Home {
        self.read().home.clone()
    }

    /// All servers in order of creation.
    pub fn servers(&self) -> Vec<Server> {
        self.read().servers.values().cloned().collect()
    }

    /// One server.
    pub fn server(&self, id: Id) -> Option<Server> {
        self.read().servers.get(&id).cloned()
    }

    /// All ports in order of creation.
    pub fn ports(&self) -> Vec<Port> {
        self.read().ports.values().cloned().collect()
    }

    /// One port.
    pub fn port(&self, id: Id) -> Option<Port> {
        self.read().ports.get(&id).cloned()
    }

    /// The ports of a server in order of creation.
    pub fn ports_of(&self, server: Id) -> Vec<Port> {
        self.read().ports_of(&server.to_string()).cloned().collect()
    }

    /// All subnets in order of creation.
    pub fn subnets(&self) -> Vec<Subnet> {
        self.read().subnets.values().cloned().collect()
    }

    /// All routers in order of creation.
    pub fn routers(&self) -> Vec<Router> {
        self.read().routers.values().cloned().collect()
    }

    /// One router.
    pub fn router(&self, id: Id) -> Option<Router> {
        self.read().routers.get(&id).cloned()
    }

    /// All floating IPs in order of creation.
    pub fn floating_ips(&self) -> Vec<FloatingIp> {
        self.read().floating_ips.values().cloned().collect()
    }

    /// All security groups in order of creation, those that every project has included.
    pub fn security_groups(&self) -> Vec<SecurityGroup> {
        self.read().groups.values().cloned().collect()
    }

    /// The rules of a security group in order of creation.
    pub fn rules_of(&self, group: Id) -> Vec<Rule> {
        self.read().rules_of(group).cloned().collect()
    }

    /// All load balancers in order of creation.
    pub fn load_balancers(&self) -> Vec<LoadBalancer> {
        self.read().load_balancers.values().cloned().collect()
    }

    /// One load balancer.
    pub fn load_balancer(&self, id: Id) -> Option<LoadBalancer> {
        self.read().load_balancers.get(&id).cloned()
    }

    /// All listeners in order of creation.
    pub fn listeners(&self) -> Vec<Listener> {
        self.read().listeners.values().cloned().collect()
    }

    /// All pools in order of creation.
    pub fn pools(&self) -> Vec<Pool> {
        self.read().pools.values().cloned().collect()
    }

    /// All members in order of creation.
    pub fn members(&self) -> Vec<Member> {
        self.read().members.values().cloned().collect()
    }

    /// All health monitors in order of creation.
    pub fn health_monitors(&self) -> Vec<Monitor> {
        self.read().monitors.values().cloned().collect()
    }

    /// Sends what is meant for a server's address and port to another place: for hosts whose loopback interface has no
    /// other address than 127.0.0.1, where servers' addresses cannot be bound.
    pub fn move_member(&self, transport: Transport, wanted: SocketAddr, actual: SocketAddr) {
        self.write(|state| state.moved.insert((transport, wanted), actual));
    }
}
