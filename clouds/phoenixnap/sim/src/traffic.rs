//! Announced addresses that carry traffic: the state as a description for the data plane.

use std::net::{IpAddr, SocketAddr};

use bowline_cloud_kit::dataplane::{Algorithm, Bound, Carrier, Config, ListenerConfig, PoolConfig, Timeouts};
use indexmap::IndexMap;
use tokio::time::Instant;

use crate::announcements::{AnnouncedPort, Announcement};
use crate::behaviour::Behaviour;
use crate::model::{BlockStatus, Network, Server, ServerStatus};
use crate::state::{State, is_usable};

impl Carrier for State {
    type Behaviour = Behaviour;

    fn wanted(&self) -> (Config, Option<Instant>) {
        let changes = self.blocks.values().filter_map(|it| it.change.as_ref());
        (config(self), changes.map(|it| it.at).min())
    }

    fn behaviour(&mut self) -> &mut Behaviour {
        &mut self.behaviour
    }

    fn bound(&mut self) -> &mut Vec<Bound> {
        &mut self.bound
    }
}

/// What should be carried now. An address that is announced by nobody who may is not there at all.
fn config(state: &State) -> Config {
    let mut config = Config::default();
    for announcement in &state.announcements {
        let Some(node) = announcer(state, announcement) else {
            continue;
        };
        for port in &announcement.ports {
            let pool = format!("{}/{:?}/{}", announcement.address, port.transport, port.port);
            config.listeners.push(ListenerConfig {
                transport: port.transport,
                address: announcement.address,
                port: port.port,
                pool: Some(pool.clone()),
                allowed: Vec::new(),
                timeouts: Timeouts::default(),
            });
            config.pools.insert(pool, forward(state, node, port));
        }
    }
    config
}

/// The private address of the server that announces an address, if traffic for it arrives there.
fn announcer(state: &State, announcement: &Announcement) -> Option<IpAddr> {
    let network = network_of(state, announcement.address)?;
    let is_member = |server: &&Server| network.members.iter().any(|it| it.server == server.id);
    let server = state.servers.values().filter(is_member).find(|server| {
        server.hostname.eq_ignore_ascii_case(&announcement.node) && server.status == ServerStatus::PoweredOn
    })?;
    server.private_addresses.iter().find_map(|it| it.parse().ok())
}

/// The network on which a client's packets for an address arrive. They still do while its block is being detached.
fn network_of(state: &State, address: IpAddr) -> Option<&Network> {
    state.networks.values().find(|network| {
        state.blocks_of(&network.id).any(|block| {
            let is_there = matches!(
                block.status,
                BlockStatus::Assigned | BlockStatus::Unassigning | BlockStatus::ErrorUnassigning
            );
            is_there && is_usable(block.cidr, address)
        })
    })
}

fn forward(state: &State, node: IpAddr, port: &AnnouncedPort) -> PoolConfig {
    let AnnouncedPort {
        transport, node_port, ..
    } = *port;
    let member = state.moved.member(transport, node, node_port, None);
    let id = format!("{transport:?}/{}", SocketAddr::new(node, node_port));
    PoolConfig {
        algorithm: Algorithm::RoundRobin,
        proxy: None,
        members: IndexMap::from([(id, member)]),
        monitor: None,
    }
}
