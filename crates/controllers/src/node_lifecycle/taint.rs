//! The taint of a Node whose instance is powered off.

use std::sync::Arc;

use bowline_cloud_provider::{Node, Readiness, Taint};
use bowline_kube_io::{KubeError, NodePatch};

use super::{NAME, NodeLifecycleController};
use crate::conflict;

impl NodeLifecycleController {
    /// Brings the shutdown taint of a Node to what it should be. A failure is left to the next round.
    pub(super) async fn set_shutdown_taint(&self, node: &Arc<Node>, present: bool) {
        let asked = node;
        let mut node = Arc::clone(node);
        for attempt in 1.. {
            if node.uid != asked.uid || (present && node.readiness == Readiness::Ready) {
                return;
            }
            let Some(taints) = changed(&node.taints, present) else {
                return;
            };
            if !self.taints.may_write(&self.ctx, &node, &present).await {
                return;
            }
            let patch = NodePatch {
                taints: Some(taints),
                ..NodePatch::default()
            };
            let error = match self.ctx.kube.patch_node(&node, &patch).await {
                Ok(written) => {
                    self.taints.written(&node, present, &written.resource_version);
                    match present {
                        true => {
                            tracing::info!(controller = NAME, node = %node.name, "Node tainted: its instance is powered off")
                        }
                        false => {
                            tracing::info!(controller = NAME, node = %node.name, "Taint removed from a node: its instance runs")
                        }
                    }
                    return;
                }
                Err(KubeError::Conflict(_)) if attempt < conflict::TRIES => {
                    conflict::pause(&self.ctx.jitter).await;
                    match self.ctx.kube.node(&asked.name).await {
                        Ok(read) => {
                            node = Arc::new(read);
                            continue;
                        }
                        Err(error) => error,
                    }
                }
                Err(error) => error,
            };
            if !matches!(error, KubeError::NotFound(_)) {
                tracing::warn!(controller = NAME, node = %asked.name, err = %error, "Failed to change the shutdown taint of a node; it will be tried again");
            }
            return;
        }
    }
}

/// The taints with or without the one for instances that are powered off; `None` if they are so already. It is known by
/// its key and effect.
fn changed(taints: &[Taint], present: bool) -> Option<Vec<Taint>> {
    let shutdown = Taint::shutdown();
    let is_shutdown = |taint: &Taint| taint.key == shutdown.key && taint.effect == shutdown.effect;
    if taints.iter().any(is_shutdown) == present {
        return None;
    }
    let mut changed: Vec<Taint> = taints
        .iter()
        .filter(|taint| !is_shutdown(taint))
        .cloned()
        .collect();
    if present {
        changed.push(shutdown);
    }
    Some(changed)
}

#[cfg(test)]
mod tests {
    use bowline_cloud_provider::{TaintEffect, keys};

    use super::*;

    #[test]
    fn the_taint_is_known_by_key_and_effect_and_others_stay() {
        let other = Taint {
            key: "other".into(),
            value: Some("x".into()),
            effect: TaintEffect::NoSchedule,
            time_added: None,
        };
        let evicting = Taint {
            key: keys::TAINT_SHUTDOWN.into(),
            effect: TaintEffect::NoExecute,
            ..other.clone()
        };
        let with_value = Taint {
            value: Some("y".into()),
            ..Taint::shutdown()
        };
        assert_eq!(changed(&[], false), None);
        assert_eq!(changed(std::slice::from_ref(&with_value), true), None);
        assert_eq!(changed(&[], true), Some(vec![Taint::shutdown()]));
        assert_eq!(
            changed(&[other.clone(), with_value, evicting.clone()], false),
            Some(vec![other.clone(), evicting])
        );
        assert_eq!(
            changed(std::slice::from_ref(&other), true),
            Some(vec![other, Taint::shutdown()])
        );
    }
}
