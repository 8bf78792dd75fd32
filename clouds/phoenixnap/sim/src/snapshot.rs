//! The end state without ids and times, to compare runs that took different ways.

use std::collections::BTreeMap;

use bowline_cloud_kit::Inspect;
use bowline_cloud_kit::snapshot::sorted;
use serde_json::{Value, json};

use crate::model::Block;
use crate::state::{State, overlaps};

impl Inspect for State {
    /// Blocks without their ranges, with the name of the network, or the hostname of the server, or else the ID that they are
    /// attached to; and the names of tags.
    fn snapshot(&self) -> Value {
        let name = |id: &str| {
            let network = self.networks.get(id).map(|it| it.name.as_str());
            let server = || self.servers.get(id).map(|it| it.hostname.as_str());
            network.or_else(server).unwrap_or(id).to_owned()
        };
        let block = |it: &Block| {
            let attached_to = it.assignment.as_ref().and_then(|it| it.resource_id.as_deref());
            json!({
                "tags": sorted(&it.tags), "location": it.location, "size": format!("/{}", it.cidr.prefix_len()),
                "status": it.status, "attached_to": attached_to.map(name),
            })
        };
        json!({ "blocks": sorted(self.blocks.values().map(block)), "tags": sorted(self.tags.keys()) })
    }

    /// What a clean account does not have.
    fn violations(&self) -> Vec<String> {
        let mut found = Vec::new();
        let mut services: BTreeMap<String, Vec<&str>> = BTreeMap::new();
        for block in self.blocks.values().filter(|it| !it.has_tag("delete", None)) {
            let parts = ["cluster", "serviceNamespace", "serviceName"].map(|name| block.tag(name));
            if let [Some(cluster), Some(namespace), Some(name)] = parts {
                let service = format!("{namespace}/{name} of cluster {cluster}");
                services.entry(service).or_default().push(&block.id);
            }
        }
        for (service, blocks) in services.iter().filter(|(_, blocks)| blocks.len() > 1) {
            found.push(format!("Service {service} has blocks {}", blocks.join(", ")));
        }
        let blocks: Vec<&Block> = self.blocks.values().collect();
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
}
