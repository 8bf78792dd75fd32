//! What the API server refuses of a Node while it takes the rest: a refused part keeps a Node from nothing else.

use std::collections::BTreeMap;

use bowline_cloud_provider::Node;
use bowline_kube_io::{KubeError, NodePatch};

use super::{NAME, NodeController, labels};
use crate::events;

/// How often something that is forbidden is tried before the Node does without it: a role may be on its way.
const FORBIDDEN_TRIES: u32 = 5;

const ADDRESSES: &str = "the addresses";

/// The parts that are not written, each with the reason.
#[derive(Debug, Default)]
pub(super) struct Refused {
    parts: BTreeMap<String, String>,
    /// Without it a Node is not initialised: nobody would write it later.
    pub(super) provider_id: Option<KubeError>,
}

impl Refused {
    /// Takes note of the labels that Kubernetes would refuse.
    pub(super) fn note(&mut self, node: &Node, skipped: &[labels::Skipped]) {
        for label in skipped {
            if let labels::Skipped::Unfit { key, value } = label {
                let why = "Kubernetes takes no label like this".to_owned();
                self.parts.insert(format!("the label {key}={value:?}"), why);
            } else {
                tracing::debug!(controller = NAME, node = %node.name, "{label}; left out");
            }
        }
    }

    pub(super) fn addresses(&mut self, error: &KubeError) {
        self.parts.insert(ADDRESSES.to_owned(), error.to_string());
    }

    /// Whether it is the API server that keeps the Node without the cloud's addresses.
    pub(super) fn lacks_addresses(&self) -> bool {
        self.parts.contains_key(ADDRESSES)
    }
}

/// Whether the API server does not take what is written, rather than not now.
pub(super) fn is_refusal(error: &KubeError) -> bool {
    matches!(error, KubeError::Invalid(_) | KubeError::Forbidden(_))
}

impl NodeController {
    /// Whether a Node that waits does without what was refused.
    pub(super) fn does_without(&self, node: &Node, error: &KubeError) -> bool {
        let is_for_good =
            matches!(error, KubeError::Invalid(_)) || self.queue.failures(&node.name) + 1 >= FORBIDDEN_TRIES;
        is_refusal(error) && is_for_good
    }

    /// Writes by itself each part of what was refused as a whole.
    pub(super) async fn write_parts(
        &self,
        node: &Node,
        patch: NodePatch,
        refused: &mut Refused,
    ) -> Result<(), KubeError> {
        // Where a write that changes nothing is refused too, it is not for a part of it.
        self.ctx.kube.patch_node(node, &NodePatch::default()).await?;
        let labels = patch.labels.into_iter().map(|(key, value)| {
            let part = format!("the label {key}={:?}", value.as_deref().unwrap_or_default());
            let labels = BTreeMap::from([(key, value)]);
            (
                part,
                NodePatch {
                    labels,
                    ..NodePatch::default()
                },
            )
        });
        let id = patch.provider_id.map(|id| {
            let provider_id = Some(id);
            (
                "the provider ID".to_owned(),
                NodePatch {
                    provider_id,
                    ..NodePatch::default()
                },
            )
        });
        for (part, patch) in id.into_iter().chain(labels) {
            match self.ctx.kube.patch_node(node, &patch).await {
                Err(error) if is_refusal(&error) && patch.provider_id.is_some() => {
                    refused.provider_id = Some(error);
                }
                Err(error) if is_refusal(&error) => drop(refused.parts.insert(part, error.to_string())),
                written => drop(written?),
            }
        }
        Ok(())
    }

    /// Tells what a Node does without, if that is news.
    pub(super) fn tell_refused(&self, node: &Node, refused: &Refused) {
        let parts = refused.parts.iter().map(|(part, why)| format!("{part}: {why}"));
        let parts = parts.collect::<Vec<_>>().join("; ");
        let text = (!parts.is_empty()).then(|| {
            format!("Not all that the cloud says of this node can be written, and it goes on without {parts}")
        });
        let event = events::NODE_WRITE_REFUSED;
        if self.remembered.is_news(node, event.reason, text.as_deref())
            && let Some(text) = text
        {
            self.warn(node, &event, text);
        }
    }

    /// Tells of a Node that has no address, if that is news.
    pub(super) fn tell_without_address(&self, node: &Node, is_without: bool) {
        let event = events::NODE_WITHOUT_ADDRESS;
        if self
            .remembered
            .is_news(node, event.reason, is_without.then_some(""))
        {
            let text = "The cloud names no IP address of this instance, and the node has none. Check the networks of the instance, and the settings that choose among them";
            self.warn(node, &event, text.to_owned());
        }
    }
}
