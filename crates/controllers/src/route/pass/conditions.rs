//! What is said on a Node of its routes.

use bowline_cloud_provider::Node;
use bowline_kube_io::KubeError;

use super::Pass;
use crate::conflict;
use crate::queue::RetryAfter;
use crate::route::attempts::{Next, Wish};
use crate::route::verdict::Verdict;
use crate::route::{NAME, RouteController};

impl RouteController {
    /// Sets the condition of a Node, unless it shows it already or is another Node by now.
    pub(super) async fn publish(&self, pass: &Pass, asked: &Node, verdict: Verdict) {
        let wish = Wish::Condition(asked.name.clone());
        let still = || {
            self.ctx
                .nodes
                .get(&asked.name)
                .filter(|node| node.uid == asked.uid)
        };
        for attempt in 1..=conflict::TRIES {
            let Ok(_turn) = pass.requests.acquire().await else {
                return;
            };
            let Some(node) = still().filter(|node| !verdict.is_shown_by(node)) else {
                break;
            };
            if self.ctx.stop.is_cancelled() || !self.is_due(pass, &wish) {
                return;
            }
            let _working = self.ctx.heartbeat.begin();
            if !self.conditions.may_write(&self.ctx, &node, &verdict).await {
                return;
            }
            let written = self
                .ctx
                .kube
                .set_network_unavailable(
                    &node,
                    verdict.is_unavailable(),
                    verdict.reason(),
                    verdict.message(),
                )
                .await;
            match written {
                Ok(written) => {
                    self.conditions.written(&node, verdict, &written.resource_version);
                    tracing::info!(controller = NAME, node = %node.name, reason = verdict.reason(), "Condition NetworkUnavailable set");
                    break;
                }
                Err(KubeError::Conflict(_)) if attempt < conflict::TRIES => {
                    conflict::pause(&self.ctx.jitter).await
                }
                // It is gone: the watch brings the news.
                Err(KubeError::NotFound(_)) => break,
                Err(error) => {
                    let next = Next::Soon(RetryAfter::by_kube(&error));
                    let say = self
                        .attempts()
                        .failed(wish, &error.to_string(), next, pass.share, || error.to_string());
                    if say.is_some() {
                        tracing::warn!(controller = NAME, node = %node.name, err = %error, "Failed to set the condition NetworkUnavailable; it will be tried again");
                    }
                    return;
                }
            }
        }
        self.attempts().succeeded(&wish);
    }
}
