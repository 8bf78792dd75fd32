//! The handle to a running simulator.

use std::net::SocketAddr;

use bowline_cloud_kit::dataplane::Transport;
use bowline_cloud_kit::{Running, Shared};
use uuid::Uuid;

use crate::behaviour::Behaviour;
use crate::builder::Builder;
use crate::model::{FloatingIp, HealthMonitor, Listener, LoadBalancer, Member, Pool, Server, Subnet};
use crate::options::{Access, region};
use crate::snapshot::{self, Snapshot};
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

bowline_cloud_kit::double!(CloudscaleSim: servers, networks, subnets, load_balancers, pools, members, listeners, monitors, floating_ips);

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

    /// The default private subnet.
    pub fn private_subnet(&self) -> Uuid {
        self.read().home.private
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

/// The region a zone belongs to.
pub fn region_of(zone: &str) -> &str {
    region(zone)
}
