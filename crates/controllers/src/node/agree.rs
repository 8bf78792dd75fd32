//! The two names of type, zone and region.

use std::sync::Arc;

use bowline_cloud_provider::Node;
use bowline_kube_io::KubeError;
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

    /// Brings the two names of type, zone and region to one value.
    async fn agree(&self, node: &Node) {
        self.queue.touch(&node.name);
        let update = intent::NodeUpdate {
            labels: labels::agreed(node),
            ..intent::NodeUpdate::default()
        };
        if update.has_patch() {
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
