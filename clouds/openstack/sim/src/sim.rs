//! The handle to a running simulator.

use std::net::SocketAddr;

use bowline_cloud_kit::dataplane::Transport;
use bowline_cloud_kit::{Running, Shared};

use crate::behaviour::Behaviour;
use crate::model::Id;
use crate::model::balancing::{Listener, LoadBalancer, Member, Monitor, Pool};
use crate::model::compute::Server;
use crate::model::network::{FloatingIp, Network, Port, Router, Rule, SecurityGroup, Subnet};
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

bowline_cloud_kit::double! {
    OpenstackSim by Id;
    servers: Server, all servers, one server, edit edit_server;
    networks: Network;
    subnets: Subnet, all subnets;
    ports: Port, all ports, one port;
    routers: Router, all routers, one router;
    floating_ips: FloatingIp, all floating_ips;
    groups: SecurityGroup, all security_groups;
    rules: Rule;
    load_balancers: LoadBalancer, all load_balancers, one load_balancer, edit edit_load_balancer;
    listeners: Listener, all listeners, edit edit_listener;
    pools: Pool, all pools, edit edit_pool;
    members: Member, all members, edit edit_member;
    monitors: Monitor, all health_monitors, edit edit_health_monitor;
}

impl OpenstackSim {
    bowline_cloud_kit::handle!(State, Behaviour);

    /// What exists from the start.
    pub fn home(&self) -> Home {
        self.read().home.clone()
    }

    /// The ports of a server in order of creation.
    pub fn ports_of(&self, server: Id) -> Vec<Port> {
        self.read().ports_of(&server.to_string()).cloned().collect()
    }

    /// The rules of a security group in order of creation.
    pub fn rules_of(&self, group: Id) -> Vec<Rule> {
        self.read().rules_of(group).cloned().collect()
    }

    /// Sends what is meant for a server's address and port to another place: for hosts whose loopback interface has no
    /// other address than 127.0.0.1, where servers' addresses cannot be bound.
    pub fn move_member(&self, transport: Transport, wanted: SocketAddr, actual: SocketAddr) {
        self.write(|state| state.moved.set(transport, wanted, actual));
    }
}
