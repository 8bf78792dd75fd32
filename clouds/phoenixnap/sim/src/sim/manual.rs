//! What somebody does by hand behind the manager's back. None of it is in the journal.

use std::net::IpAddr;

use super::{BlockSpec, NetworkSpec, PhoenixnapSim, ServerSpec};
use crate::model::{
    Assignment, Block, BlockStatus, Member, Network, NetworkStatus, Server, ServerStatus, Tag,
};
use crate::state::State;

/// Where servers, networks and blocks are that do not say.
const DEFAULT_LOCATION: &str = "NLD";

/// The type of servers that do not say.
const DEFAULT_TYPE: &str = "s2.c2.medium";

/// The length of a block's prefix that a [`BlockSpec`] without range gets.
const DEFAULT_LENGTH: u8 = 29;

impl PhoenixnapSim {
    /// Adds a server; answers its id.
    pub fn add_server(&self, spec: ServerSpec) -> String {
        self.write(|state| insert_server(state, spec))
    }

    /// Adds servers `<prefix>-1` and so on, each with a private and a public address; answers their ids.
    pub fn add_servers(&self, prefix: &str, count: u64) -> Vec<String> {
        (1..=count)
            .map(|number| self.add_server(ServerSpec::new(format!("{prefix}-{number}"))))
            .collect()
    }

    /// Removes a server; whether there was one. Blocks that were attached to it are free then.
    pub fn remove_server(&self, id: &str) -> bool {
        self.write(|state| remove_server(state, id))
    }

    /// Sets what a server is doing.
    pub fn set_server_status(&self, id: &str, status: ServerStatus) {
        self.edit_server(id, |server| server.status = status);
    }

    /// Changes a server in any way.
    pub fn edit_server(&self, id: &str, change: impl FnOnce(&mut Server)) {
        self.write(|state| state.servers.get_mut(id).map(change));
    }

    /// Adds a public network; answers its id.
    pub fn add_network(&self, spec: NetworkSpec) -> String {
        self.write(|state| insert_network(state, spec))
    }

    /// Removes a network; whether there was one. Its blocks are free then.
    pub fn remove_network(&self, id: &str) -> bool {
        self.write(|state| remove_network(state, id))
    }

    /// Fixes what a network is doing; `None` goes back to what its blocks make of it.
    pub fn set_network_status(&self, id: &str, status: Option<NetworkStatus>) {
        self.write(|state| {
            if let Some(network) = state.networks.get_mut(id) {
                network.status = status;
            }
        });
    }

    /// Puts a server into a network, with these addresses out of the network's blocks.
    pub fn join_network(&self, network: &str, server: &str, ips: impl IntoIterator<Item = IpAddr>) {
        let ips = ips.into_iter().collect();
        self.write(|state| join(state, network, server, ips));
    }

    /// Adds a block; answers its id. It is there at once, whatever the switches say.
    ///
    /// # Panics
    ///
    /// If there is no free range in its location: a mistake in the test.
    pub fn add_block(&self, spec: BlockSpec) -> String {
        match self.write(|state| insert_block(state, spec)) {
            Ok(id) => id,
            Err(text) => panic!("{text}"),
        }
    }

    /// Removes a block in any state; whether there was one.
    pub fn remove_block(&self, id: &str) -> bool {
        self.write(|state| state.blocks.shift_remove(id).is_some())
    }

    /// Attaches a block to something, or to nothing, at once.
    pub fn assign_block(&self, id: &str, assignment: Option<Assignment>) {
        self.edit_block(id, |block| {
            block.status = settled_status(assignment.as_ref());
            (block.assignment, block.change) = (assignment, None);
        });
    }

    /// Changes a block in any way.
    pub fn edit_block(&self, id: &str, change: impl FnOnce(&mut Block)) {
        self.write(|state| state.blocks.get_mut(id).map(change));
    }

    /// Adds a tag name; whether it is new.
    pub fn add_tag(&self, name: &str) -> bool {
        self.write(|state| state.insert_tag(name, None, false))
    }

    /// Removes a tag name, and the tag from whatever had it; whether there was one.
    pub fn remove_tag(&self, name: &str) -> bool {
        self.write(|state| remove_tag(state, name))
    }
}

fn located(location: Option<String>) -> String {
    location.unwrap_or_else(|| DEFAULT_LOCATION.to_owned())
}

pub(crate) fn insert_server(state: &mut State, spec: ServerSpec) -> String {
    let id = spec.id.unwrap_or_else(|| state.id());
    let private_addresses = spec
        .private_addresses
        .unwrap_or_else(|| vec![state.private_address()]);
    let public_addresses = spec
        .public_addresses
        .unwrap_or_else(|| vec![state.public_address()]);
    ensure_names(state, &spec.tags);
    let server = Server {
        id: id.clone(),
        hostname: spec.hostname,
        status: spec.status.unwrap_or(ServerStatus::PoweredOn),
        location: located(spec.location),
        instance_type: spec.instance_type.unwrap_or_else(|| DEFAULT_TYPE.to_owned()),
        private_addresses,
        public_addresses,
        tags: spec.tags,
        provisioned_on: state.clock.rfc3339_millis(),
    };
    state.servers.insert(id.clone(), server);
    for network in &spec.networks {
        join(state, network, &id, Vec::new());
    }
    id
}

pub(crate) fn remove_server(state: &mut State, id: &str) -> bool {
    for network in state.networks.values_mut() {
        network.members.retain(|member| member.server != id);
    }
    state.release_blocks_of(id);
    state.servers.shift_remove(id).is_some()
}

pub(crate) fn insert_network(state: &mut State, spec: NetworkSpec) -> String {
    let id = spec.id.unwrap_or_else(|| state.id());
    let network = Network {
        id: id.clone(),
        name: spec.name,
        location: located(spec.location),
        vlan_id: state.next_vlan(),
        status: None,
        busy_until: None,
        members: Vec::new(),
        created_on: state.clock.rfc3339_millis(),
    };
    state.networks.insert(id.clone(), network);
    id
}

pub(crate) fn remove_network(state: &mut State, id: &str) -> bool {
    state.release_blocks_of(id);
    state.networks.shift_remove(id).is_some()
}

/// The id, or why there is no such block.
pub(crate) fn insert_block(state: &mut State, spec: BlockSpec) -> Result<String, String> {
    let location = located(spec.location);
    let free = || state.free_range(&location, DEFAULT_LENGTH, false);
    let cidr = spec.cidr.or_else(free);
    let cidr = cidr.ok_or_else(|| format!("no free range in {location}"))?;
    let id = spec.id.unwrap_or_else(|| state.id());
    ensure_names(state, &spec.tags);
    let block = Block {
        id: id.clone(),
        location,
        cidr,
        shown_cidr: None,
        status: spec
            .status
            .unwrap_or_else(|| settled_status(spec.assignment.as_ref())),
        change: None,
        assignment: spec.assignment,
        description: None,
        tags: spec.tags,
        created_on: spec.created_on.unwrap_or_else(|| state.clock.rfc3339_millis()),
        listed_from: None,
    };
    state.blocks.insert(id.clone(), block);
    Ok(id)
}

pub(crate) fn remove_tag(state: &mut State, name: &str) -> bool {
    let blocks = state.blocks.values_mut().map(|it| &mut it.tags);
    let servers = state.servers.values_mut().map(|it| &mut it.tags);
    for tags in blocks.chain(servers) {
        tags.retain(|tag| tag.name != name);
    }
    state.tags.shift_remove(name).is_some()
}

fn join(state: &mut State, network: &str, server: &str, ips: Vec<IpAddr>) {
    let server = server.to_owned();
    if let Some(network) = state.networks.get_mut(network) {
        network.members.retain(|member| member.server != server);
        network.members.push(Member { server, ips });
    }
}

fn ensure_names(state: &mut State, tags: &[Tag]) {
    for tag in tags {
        state.insert_tag(&tag.name, None, false);
    }
}

fn settled_status(assignment: Option<&Assignment>) -> BlockStatus {
    match assignment {
        Some(_) => BlockStatus::Assigned,
        None => BlockStatus::Unassigned,
    }
}
