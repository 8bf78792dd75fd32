//! What somebody does by hand behind the manager's back. None of it is in the journal.

use std::net::IpAddr;

use super::PhoenixnapSim;
use crate::model::{NetworkStatus, ServerStatus};
use crate::specs::{BlockSpec, NetworkSpec, ServerSpec};

impl PhoenixnapSim {
    /// Adds a server; answers its id.
    pub fn add_server(&self, spec: ServerSpec) -> String {
        self.write(|state| state.insert_server(spec))
    }

    /// Adds servers `<prefix>-1` and so on, each with a private and a public address; answers their ids.
    pub fn add_servers(&self, prefix: &str, count: u64) -> Vec<String> {
        (1..=count)
            .map(|number| self.add_server(ServerSpec::new(format!("{prefix}-{number}"))))
            .collect()
    }

    /// Removes a server; whether there was one. Blocks that were attached to it are free then.
    pub fn remove_server(&self, id: &str) -> bool {
        self.write(|state| state.remove_server(id))
    }

    /// Sets what a server is doing.
    pub fn set_server_status(&self, id: &str, status: ServerStatus) {
        self.edit_server(id, |server| server.status = status);
    }

    /// Adds a public network; answers its id.
    pub fn add_network(&self, spec: NetworkSpec) -> String {
        self.write(|state| state.insert_network(spec))
    }

    /// Removes a network; whether there was one. Its blocks are free then.
    pub fn remove_network(&self, id: &str) -> bool {
        self.write(|state| state.remove_network(id))
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
        self.write(|state| state.join(network, server, ips));
    }

    /// Adds a block; answers its id. It is there at once, whatever the switches say.
    ///
    /// # Panics
    ///
    /// If there is no free range in its location: a mistake in the test.
    pub fn add_block(&self, spec: BlockSpec) -> String {
        match self.write(|state| state.insert_block(spec)) {
            Ok(id) => id,
            Err(text) => panic!("{text}"),
        }
    }

    /// Removes a block in any state; whether there was one.
    pub fn remove_block(&self, id: &str) -> bool {
        self.write(|state| state.blocks.shift_remove(id).is_some())
    }

    /// Adds a tag name; whether it is new.
    pub fn add_tag(&self, name: &str) -> bool {
        self.write(|state| state.insert_tag(name, None, false))
    }

    /// Removes a tag name, and the tag from whatever had it; whether there was one.
    pub fn remove_tag(&self, name: &str) -> bool {
        self.write(|state| state.remove_tag(name))
    }
}
