//! The handle to a running simulator.

use std::net::SocketAddr;

use bowline_cloud_kit::dataplane::Transport;
use bowline_cloud_kit::{Running, Shared};
use uuid::Uuid;

use crate::behaviour::Behaviour;
use crate::model::{
    FloatingIp, HealthMonitor, Listener, LoadBalancer, Member, Network, Pool, Server, Subnet,
};
use crate::options::{Access, region};
use crate::state::State;

mod manual;
mod project;
mod specs;

pub use specs::{FloatingSpec, InterfaceSpec, ManualPool, Scope, ServerSpec};

/// A simulated cloudscale.ch project. Clones share it.
#[derive(Clone, Debug)]
pub struct CloudscaleSim {
    pub(crate) shared: Shared<State>,
    pub(crate) running: Running,
}

bowline_cloud_kit::double! {
    CloudscaleSim by Uuid;
    servers: Server, all servers, one server;
    networks: Network;
    subnets: Subnet, all subnets;
    load_balancers: LoadBalancer, all load_balancers, one load_balancer, edit edit_load_balancer;
    pools: Pool, all pools;
    members: Member, all members, edit edit_member;
    listeners: Listener, all listeners, edit edit_listener;
    monitors: HealthMonitor, all health_monitors, edit edit_health_monitor;
    floating_ips: FloatingIp, all floating_ips;
}

impl CloudscaleSim {
    bowline_cloud_kit::handle!(State, Behaviour);

    /// Accepts a token, or changes what it may do.
    pub fn set_token(&self, token: impl Into<String>, access: Access) {
        self.write(|state| state.options.tokens.set(token.into(), access));
    }

    /// Refuses a token from now on. After the last one was revoked, every token is good again.
    pub fn revoke_token(&self, token: &str) {
        self.write(|state| state.options.tokens.remove(token));
    }

    /// The default private subnet.
    pub fn private_subnet(&self) -> Uuid {
        self.read().home.private
    }

    /// The members of one pool in order of creation.
    pub fn members_of(&self, pool: Uuid) -> Vec<Member> {
        self.read().members_of(pool).cloned().collect()
    }

    /// Sends what is meant for a server's address and port to another place: for machines whose loopback interface has
    /// no other address than 127.0.0.1, where servers' addresses cannot be bound.
    pub fn move_member(&self, transport: Transport, wanted: SocketAddr, actual: SocketAddr) {
        self.write(|state| state.moved.set(transport, wanted, actual));
    }
}

/// The region a zone belongs to.
pub fn region_of(zone: &str) -> &str {
    region(zone)
}
