//! The servers of the project, found by id or by name.

use std::collections::BTreeMap;

use bowline_cloud_provider::Node;
use bowline_cloudscale_client::{Server, ServerId};

use crate::provider_id::{self, ProviderIdError};

/// One listing of the project's servers.
#[derive(Debug, Default)]
pub(crate) struct ServerIndex {
    servers: Vec<Server>,
    by_id: BTreeMap<ServerId, usize>,
    by_name: BTreeMap<String, Vec<usize>>,
}

/// What a listing says about a node's server.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Lookup<'a> {
    /// This one.
    Server(&'a Server),
    /// The listing has none with this id.
    NoSuchId(ServerId),
    /// The node has no provider ID, and no server has its name.
    NoSuchName,
    /// The node has no provider ID, and several servers have its name.
    Ambiguous,
    /// The provider ID cannot be read.
    BadId(ProviderIdError),
}

impl ServerIndex {
    pub(crate) fn new(servers: Vec<Server>) -> Self {
        let mut by_name: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for (index, server) in servers.iter().enumerate() {
            by_name.entry(server.name.clone()).or_default().push(index);
        }
        let by_id = servers
            .iter()
            .enumerate()
            .map(|(index, server)| (server.uuid, index))
            .collect();
        Self {
            servers,
            by_id,
            by_name,
        }
    }

    /// The same listing with further servers, which turned up after it.
    pub(crate) fn with(&self, further: Vec<Server>) -> Self {
        Self::new(self.servers.iter().cloned().chain(further).collect())
    }

    /// Finds a node's server: by provider ID if it has one, whatever its name, else by name.
    pub(crate) fn find(&self, node: &Node) -> Lookup<'_> {
        if let Some(text) = &node.provider_id {
            return match provider_id::parse(text) {
                Ok(id) => self.by_id.get(&id).map_or(Lookup::NoSuchId(id), |index| {
                    Lookup::Server(&self.servers[*index])
                }),
                Err(error) => Lookup::BadId(error),
            };
        }
        // An empty name would match whatever has no name.
        let named = self
            .by_name
            .get(node.name.as_str())
            .filter(|_| !node.name.as_str().is_empty());
        match named.map(Vec::as_slice) {
            None | Some([]) => Lookup::NoSuchName,
            Some([index]) => Lookup::Server(&self.servers[*index]),
            Some(_) => Lookup::Ambiguous,
        }
    }

    /// The id of a node's server if neither the listing has it nor its absence was proved.
    pub(crate) fn unproven(&self, node: &Node, absent: &[ServerId]) -> Option<ServerId> {
        match self.find(node) {
            Lookup::NoSuchId(id) if !absent.contains(&id) => Some(id),
            _ => None,
        }
    }
}

/// The region of a zone: its slug without the digits at the end.
pub(crate) fn region(zone: &str) -> &str {
    zone.trim_end_matches(|c: char| c.is_ascii_digit())
}
