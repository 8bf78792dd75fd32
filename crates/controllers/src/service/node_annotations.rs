//! What a provider notes on the Nodes that it balances over.
//!
//! Nothing waits for it, and what could not be written fails nothing: the next sync of a Service looks again.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError};

use bowline_cloud_provider::{Node, NodeName};
use bowline_kube_io::{KubeError, NodePatch};
use futures::stream::{self, StreamExt as _};

use super::{Key, NAME, ServiceController};

/// Nodes that are written to at a time.
const AT_ONCE: usize = 8;

/// The version of each Node that the last write to it was decided from: as long as the cache shows that one, what was
/// written is still on its way.
pub(super) type WrittenFrom = BTreeMap<NodeName, Arc<str>>;

impl ServiceController {
    /// Nodes are handed to a sync: those that lack what the provider notes on them get it soon.
    pub(super) fn annotate_nodes_soon(&self) {
        if !self.nodes_to_annotate().is_empty() {
            self.queue.add(Key::Nodes);
        }
    }

    /// Writes what the provider notes on Nodes where it is missing or another.
    pub(super) async fn annotate_nodes(&self) {
        stream::iter(self.nodes_to_annotate())
            .for_each_concurrent(AT_ONCE, |(node, patch)| async move {
                self.annotate_node(&node, &patch).await;
                self.queue.touch(&Key::Nodes);
            })
            .await;
    }

    fn nodes_to_annotate(&self) -> Vec<(Arc<Node>, NodePatch)> {
        let balanced = self.balanced_nodes().nodes;
        let mut written = self.annotated_from.lock().unwrap_or_else(PoisonError::into_inner);
        written.retain(|name, version| {
            let node = self.ctx.nodes.get(name);
            node.is_some_and(|node| node.resource_version == *version)
        });
        let lacking = balanced.iter().filter_map(|node| {
            let annotations: BTreeMap<String, Option<String>> = self
                .provider
                .load_balancer
                .node_annotations(node)
                .into_iter()
                .filter(|(key, value)| node.annotations.value(key) != Some(value))
                .map(|(key, value)| (key, Some(value)))
                .collect();
            let is_due = !annotations.is_empty() && !written.contains_key(&node.name);
            let patch = NodePatch {
                annotations,
                ..NodePatch::default()
            };
            // Of what is balanced over, nothing tells the version that is in the cache.
            let newest = is_due.then(|| self.ctx.nodes.get(&node.name)).flatten();
            newest.map(|newest| (newest, patch))
        });
        lacking.collect()
    }

    async fn annotate_node(&self, node: &Node, patch: &NodePatch) {
        match self.provider.kube.patch_node(node, patch).await {
            Ok(_) => {
                tracing::debug!(controller = NAME, node = %node.name, "Node annotated");
                let mut written = self.annotated_from.lock().unwrap_or_else(PoisonError::into_inner);
                written.insert(node.name.clone(), Arc::clone(&node.resource_version));
            }
            // Gone, or created anew meanwhile; or another process leads.
            Err(KubeError::NotFound(_) | KubeError::Conflict(_) | KubeError::GateClosed) => {}
            Err(error) => {
                tracing::warn!(controller = NAME, node = %node.name, err = %error, "Failed to annotate a node; the next sync of a load balancer tries again");
            }
        }
    }
}
