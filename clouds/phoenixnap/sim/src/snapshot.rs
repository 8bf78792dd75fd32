//! The end state without ids and times, to compare runs that took different ways.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::model::{Block, BlockStatus, Tag};
use crate::state::{State, overlaps};

/// What an account holds, in an order that does not depend on how it came about.
///
/// Ids, times and ranges are left out: two runs that end with the same blocks have equal snapshots.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Snapshot {
    /// Sorted.
    pub blocks: Vec<BlockState>,
    /// Tag names.
    pub tags: BTreeSet<String>,
}

/// A block.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct BlockState {
    /// Sorted.
    pub tags: Vec<Tag>,
    /// Location.
    pub location: String,
    /// Such as `/29`.
    pub size: String,
    /// What it is doing.
    pub status: BlockStatus,
    /// The name of the network, or the hostname of the server, or else the id that it is attached to.
    pub attached_to: Option<String>,
}

/// Describes the state as it is now.
pub(crate) fn take(state: &State) -> Snapshot {
    let mut blocks: Vec<BlockState> = state.blocks.values().map(|it| describe(state, it)).collect();
    blocks.sort();
    Snapshot {
        blocks,
        tags: state.tags.keys().cloned().collect(),
    }
}

fn describe(state: &State, block: &Block) -> BlockState {
    let mut tags = block.tags.clone();
    tags.sort();
    let id = block.assignment.as_ref().and_then(|it| it.resource_id.as_deref());
    let name = |id: &str| {
        let network = state.networks.get(id).map(|it| it.name.as_str());
        let server = || state.servers.get(id).map(|it| it.hostname.as_str());
        network.or_else(server).unwrap_or(id).to_owned()
    };
    BlockState {
        tags,
        location: block.location.clone(),
        size: format!("/{}", block.cidr.prefix_len()),
        status: block.status.clone(),
        attached_to: id.map(name),
    }
}

/// What a clean account does not have.
pub(crate) fn violations(state: &State) -> Vec<String> {
    let mut found = Vec::new();
    let mut services: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for block in state.blocks.values().filter(|it| !it.has_tag("delete", None)) {
        let parts = ["cluster", "serviceNamespace", "serviceName"].map(|name| block.tag(name));
        if let [Some(cluster), Some(namespace), Some(name)] = parts {
            let service = format!("{namespace}/{name} of cluster {cluster}");
            services.entry(service).or_default().push(&block.id);
        }
    }
    for (service, blocks) in services.iter().filter(|(_, blocks)| blocks.len() > 1) {
        found.push(format!("Service {service} has blocks {}", blocks.join(", ")));
    }
    let blocks: Vec<&Block> = state.blocks.values().collect();
    for (index, one) in blocks.iter().enumerate() {
        for other in blocks.iter().skip(index + 1) {
            if overlaps(one.cidr, other.cidr) {
                found.push(format!(
                    "blocks {} and {} overlap: {} {}",
                    one.id, other.id, one.cidr, other.cidr
                ));
            }
        }
    }
    found
}
