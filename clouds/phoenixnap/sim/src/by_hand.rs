//! Objects that are put into an account by hand, and taken out: by a test's handle, and over the admin path.

use std::net::IpAddr;

use crate::model::{Assignment, Block, BlockStatus, Member, Network, Server, ServerStatus, Tag};
use crate::specs::{BlockSpec, NetworkSpec, ServerSpec};
use crate::state::State;

/// Where servers, networks and blocks are that do not say.
const DEFAULT_LOCATION: &str = "NLD";

/// The type of servers that do not say.
const DEFAULT_TYPE: &str = "s2.c2.medium";

/// The length of a block's prefix that a [`BlockSpec`] without range gets.
const DEFAULT_LENGTH: u8 = 29;

impl State {
    pub(crate) fn insert_server(&mut self, spec: ServerSpec) -> String {
        let id = spec.id.unwrap_or_else(|| self.id());
        let private_addresses = spec
            .private_addresses
            .unwrap_or_else(|| vec![self.private_address()]);
        let public_addresses = spec
            .public_addresses
            .unwrap_or_else(|| vec![self.public_address()]);
        self.ensure_names(&spec.tags);
        let server = Server {
            id: id.clone(),
            hostname: spec.hostname,
            status: spec.status.unwrap_or(ServerStatus::PoweredOn),
            location: located(spec.location),
            instance_type: spec.instance_type.unwrap_or_else(|| DEFAULT_TYPE.to_owned()),
            private_addresses,
            public_addresses,
            tags: spec.tags,
            provisioned_on: self.clock.rfc3339_millis(),
        };
        self.servers.insert(id.clone(), server);
        for network in &spec.networks {
            self.join(network, &id, Vec::new());
        }
        id
    }

    pub(crate) fn remove_server(&mut self, id: &str) -> bool {
        for network in self.networks.values_mut() {
            network.members.retain(|member| member.server != id);
        }
        self.release_blocks_of(id);
        self.servers.shift_remove(id).is_some()
    }

    pub(crate) fn insert_network(&mut self, spec: NetworkSpec) -> String {
        let id = spec.id.unwrap_or_else(|| self.id());
        let network = Network {
            id: id.clone(),
            name: spec.name,
            location: located(spec.location),
            vlan_id: self.next_vlan(),
            status: None,
            busy_until: None,
            members: Vec::new(),
            created_on: self.clock.rfc3339_millis(),
        };
        self.networks.insert(id.clone(), network);
        id
    }

    pub(crate) fn remove_network(&mut self, id: &str) -> bool {
        self.release_blocks_of(id);
        self.networks.shift_remove(id).is_some()
    }

    /// The id, or why there is no such block.
    pub(crate) fn insert_block(&mut self, spec: BlockSpec) -> Result<String, String> {
        let location = located(spec.location);
        let free = || self.free_range(&location, DEFAULT_LENGTH, false);
        let cidr = spec.cidr.or_else(free);
        let cidr = cidr.ok_or_else(|| format!("no free range in {location}"))?;
        let id = spec.id.unwrap_or_else(|| self.id());
        self.ensure_names(&spec.tags);
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
            created_on: spec.created_on.unwrap_or_else(|| self.clock.rfc3339_millis()),
            listed_from: None,
        };
        self.blocks.insert(id.clone(), block);
        Ok(id)
    }

    pub(crate) fn remove_tag(&mut self, name: &str) -> bool {
        let blocks = self.blocks.values_mut().map(|it| &mut it.tags);
        let servers = self.servers.values_mut().map(|it| &mut it.tags);
        for tags in blocks.chain(servers) {
            tags.retain(|tag| tag.name != name);
        }
        self.tags.shift_remove(name).is_some()
    }

    pub(crate) fn join(&mut self, network: &str, server: &str, ips: Vec<IpAddr>) {
        let server = server.to_owned();
        if let Some(network) = self.networks.get_mut(network) {
            network.members.retain(|member| member.server != server);
            network.members.push(Member { server, ips });
        }
    }

    fn ensure_names(&mut self, tags: &[Tag]) {
        for tag in tags {
            self.insert_tag(&tag.name, None, false);
        }
    }
}

fn located(location: Option<String>) -> String {
    location.unwrap_or_else(|| DEFAULT_LOCATION.to_owned())
}

fn settled_status(assignment: Option<&Assignment>) -> BlockStatus {
    match assignment {
        Some(_) => BlockStatus::Assigned,
        None => BlockStatus::Unassigned,
    }
}
