//! What somebody else changes: the two names of type, zone and region, and the taint of a Node that is initialised.

use std::sync::Arc;

use bowline_cloud_provider::Node;
use bowline_kube_io::{KubeError, NodePatch};
use futures::stream::{self, StreamExt as _};

use super::{AT_ONCE, NAME, NodeController, intent, labels};
use crate::queue::Stated;

/// What is remembered of a Node whose labels could not be written.
const LABELS: &str = "labels";

impl NodeController {
    /// Brings both names to one value on each of these Nodes.
    pub(super) async fn agree_all(&self, nodes: Vec<Arc<Node>>) {
        self.wait_for_their_turn(&nodes);
        let agree = |node: Arc<Node>| async move { self.agree(&node).await };
        stream::iter(nodes).for_each_concurrent(AT_ONCE, agree).await;
    }

    /// Takes the taint off these Nodes without a question: they were initialised a moment ago.
    pub(super) async fn untaint_all(&self, nodes: Vec<Arc<Node>>) {
        self.wait_for_their_turn(&nodes);
        let untaint = |node: Arc<Node>| async move {
            self.queue.touch(&node.name);
            self.tell_fight(&node).await;
            let patch = NodePatch {
                taints: Some(intent::initialized_taints(&node)),
                ..NodePatch::default()
            };
            match self.ctx.kube.patch_node(&node, &patch).await {
                Ok(written) => self.remembered.written(&node, &written),
                Err(KubeError::NotFound(_)) => {}
                Err(error) => return self.give_back(&node, Stated::by_kube(&error)),
            }
            self.queue.finish(&node.name);
        };
        stream::iter(nodes).for_each_concurrent(AT_ONCE, untaint).await;
    }

    /// Tells of somebody who changes back what this controller writes, if that is news.
    async fn tell_fight(&self, node: &Node) {
        if let Some(part) = self.remembered.fight(&node.name) {
            self.ctx.tell_changed_back(node, part).await;
        }
    }

    /// Brings the two names of type, zone and region to one value.
    async fn agree(&self, node: &Node) {
        self.queue.touch(&node.name);
        let update = intent::NodeUpdate {
            labels: labels::agreed(node),
            ..intent::NodeUpdate::default()
        };
        if update.has_patch() {
            self.tell_fight(node).await;
            match self.ctx.kube.patch_node(node, &update.into_patch()).await {
                Ok(_) | Err(KubeError::NotFound(_)) => {
                    self.remembered.is_news(node, LABELS, None);
                }
                Err(error) => {
                    // After a conflict the next try looks at the Node anew, which may be another one by then.
                    let is_expected = matches!(error, KubeError::Conflict(_) | KubeError::GateClosed);
                    if !is_expected && self.remembered.is_news(node, LABELS, Some(&error.to_string())) {
                        tracing::warn!(controller = NAME, node = %node.name, err = %error, "Failed to bring the labels of a node together");
                    }
                    return self.give_back(node, Stated::by_kube(&error));
                }
            }
        }
        self.queue.finish(&node.name);
    }
}
