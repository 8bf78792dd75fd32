//! What somebody else changes: the two names of type, zone and region, and the taint of a Node that is initialised.

use std::sync::Arc;

use bowline_cloud_provider::Node;
use bowline_kube_io::KubeError;
use futures::stream::{self, StreamExt as _};

use super::refused::is_refusal;
use super::{AT_ONCE, NAME, NodeController, intent, labels};
use crate::put_back::Part;
use crate::queue::RetryAfter;

/// What is remembered of a Node that could not be written.
const PUT_BACK: &str = "put back";

impl NodeController {
    /// Puts right what somebody changed on these Nodes, without a question to the cloud.
    pub(super) async fn put_back_all(&self, nodes: Vec<Arc<Node>>) {
        self.wait_for_their_turn(&nodes);
        let put_back = |node: Arc<Node>| async move { self.put_back(&node).await };
        stream::iter(nodes).for_each_concurrent(AT_ONCE, put_back).await;
    }

    /// Brings the two names of type, zone and region to one value, and takes the taint off, in one write.
    async fn put_back(&self, node: &Node) {
        self.queue.touch(&node.name);
        let update = intent::NodeUpdate {
            labels: labels::agreed(node),
            taints: node.is_uninitialized().then(|| intent::initialized_taints(node)),
            ..intent::NodeUpdate::default()
        };
        if update.has_patch() {
            // Who changes back again and again is told of as long as it is known who that is.
            for part in self.remembered.untold(&node.name) {
                let labels = update.labels.keys().filter(|_| part == Part::Labels);
                let keys = labels.cloned().collect();
                self.ctx.tell_changed_back(node, part, &keys).await;
            }
            let mut patch = update.into_patch();
            let mut written = self.ctx.kube.patch_node(node, &patch).await;
            if patch.taints.is_some() && written.as_ref().is_err_and(is_refusal) {
                patch.labels.clear(); // which may be what is refused
                written = self.ctx.kube.patch_node(node, &patch).await;
            }
            match written {
                Ok(written) => {
                    self.remembered.is_news(node, PUT_BACK, None);
                    self.remembered.written(node, &written);
                }
                Err(KubeError::NotFound(_)) => {}
                Err(error) => {
                    // After a conflict the next try looks at the Node anew, which may be another one by then.
                    let is_expected = matches!(error, KubeError::Conflict(_) | KubeError::GateClosed);
                    if !is_expected && self.remembered.is_news(node, PUT_BACK, Some(&error.to_string())) {
                        tracing::warn!(controller = NAME, node = %node.name, err = %error, "Failed to put back the labels and the taint of a node; it will be tried again");
                    }
                    return self.give_back(node, RetryAfter::by_kube(&error));
                }
            }
        }
        self.queue.finish(&node.name);
    }
}
