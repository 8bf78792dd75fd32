//! The periodic pass: one question for all initialised Nodes, and a write only where something has changed.

use std::sync::{Arc, PoisonError};

use bowline_cloud_provider::{ErrorKind, InstanceAnswer, InstanceMetadata, InstanceQuery, Node, Purpose};
use bowline_kube_io::KubeError;
use futures::stream::{self, StreamExt as _};

use super::intent::{self, NodeUpdate};
use super::question::is_ready;
use super::refused::{Refused, is_refusal};
use super::{AT_ONCE, NAME, NodeController, addresses};
use crate::events;

/// What is remembered of a Node whose instance the last pass did not find.
const UNSEEN: &str = "unseen";
/// What is remembered of a Node to which the last pass could not write.
const UNWRITTEN: &str = "unwritten";

impl NodeController {
    /// One pass at once, then one for ever after a rest. It never returns.
    pub(super) async fn refresh_periodically(&self) {
        loop {
            self.keep_telling_foreign();
            self.refresh_all().await;
            tokio::time::sleep(self.settings.node_status_update_frequency).await;
        }
    }

    /// Looks at every initialised Node once. Those that still wait for their cloud are the queue's.
    ///
    /// # Cancellation
    ///
    /// Dropped at any await: every write stands by itself.
    async fn refresh_all(&self) {
        let initialized = self
            .ctx
            .nodes
            .all()
            .into_iter()
            .filter(|node| !node.is_uninitialized());
        let queries: Vec<InstanceQuery> = initialized
            .map(|node| InstanceQuery {
                node,
                purpose: Purpose::Metadata,
            })
            .collect();
        if queries.is_empty() {
            self.ctx.metrics.nodes_without_instance.set(0);
            return;
        }
        let working = self.ctx.heartbeat.begin();
        let answers = self.instances.instances(&queries).await;
        working.beat();
        let mut failed = 0_usize;
        let mut first_error = None;
        let mut present = Vec::new();
        let mut missing = Vec::new();
        for (query, answer) in queries.iter().zip(answers) {
            match answer {
                Ok(InstanceAnswer::Present(instance)) => present.push((&query.node, instance)),
                Ok(InstanceAnswer::Foreign) => {}
                // Whether a Node without an instance goes is not for this controller to say.
                Ok(InstanceAnswer::Absent(proof)) => missing.push((&query.node, proof.to_string())),
                Err(error) => {
                    tracing::debug!(controller = NAME, node = %query.node.name, err = %error, "Node not refreshed");
                    if error.kind() == ErrorKind::NotFound {
                        missing.push((&query.node, error.message().to_owned()));
                    } else {
                        failed += 1;
                        first_error.get_or_insert(error);
                    }
                }
            }
        }
        // One line for a cloud that is down, not one per Node, and none for each pass.
        let blind = missing.first().filter(|_| present.is_empty());
        if self.is_news("blind", blind.map(|(_, why)| why.clone())) {
            tracing::warn!(
                controller = NAME,
                nodes = missing.len(),
                err = blind.map(|(_, why)| why),
                "The cloud shows no instance of any node; every pass asks again"
            );
        }
        if self.is_news("error", first_error.as_ref().map(ToString::to_string)) {
            tracing::warn!(
                controller = NAME,
                nodes = failed,
                err = first_error.map(tracing::field::display),
                "Some nodes were not refreshed; every pass tries again"
            );
        }
        // Where the cloud shows no instance at all, it is not about single ones.
        let without = match present.is_empty() {
            true => 0,
            false => missing
                .iter()
                .filter(|(node, why)| self.is_without_instance(node, why))
                .count(),
        };
        let gauge = i64::try_from(without).unwrap_or(i64::MAX);
        self.ctx.metrics.nodes_without_instance.set(gauge);
        stream::iter(present)
            .for_each_concurrent(AT_ONCE, async |(node, instance)| {
                self.refresh(node, &instance.metadata).await;
                working.beat();
            })
            .await;
    }

    /// Whether what is said of a pass is news.
    fn is_news(&self, subject: &'static str, text: Option<String>) -> bool {
        let mut dedup = self.dedup.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(text) = text else {
            dedup.over(subject);
            return false;
        };
        dedup.is_news(subject, &text)
    }

    /// Whether two passes in a row found no instance of a Node whose kubelet goes on, which is told once. Such a Node is not deleted, and
    /// nobody else looks at it. One that is being removed is ready for some seconds yet, so one pass tells nothing.
    fn is_without_instance(&self, asked: &Arc<Node>, why: &str) -> bool {
        let node = self.ctx.nodes.get(&asked.name);
        // One that was never labelled, as where it registered with its provider ID and without the taint, had an instance too.
        let node = node.filter(|node| node.uid == asked.uid && is_ready(node) && node.provider_id.is_some());
        let Some(node) = node else {
            self.has_instance(asked);
            return false;
        };
        if self.remembered.is_news(&node, UNSEEN, Some("")) {
            return false;
        }
        let text = format!(
            "The cloud shows no instance of this node, and its kubelet reports it as ready, so it stays: {why}"
        );
        let reason = events::INSTANCE_MISSING.reason;
        if self.remembered.is_news(&node, reason, Some(&text)) {
            tracing::warn!(controller = NAME, node = %node.name, err = why, "A node is ready and has no instance");
            self.ctx.event(&*node, events::INSTANCE_MISSING.note(text));
        }
        true
    }

    fn has_instance(&self, node: &Node) {
        self.remembered.is_news(node, UNSEEN, None);
        self.remembered
            .is_news(node, events::INSTANCE_MISSING.reason, None);
    }

    async fn refresh(&self, asked: &Arc<Node>, metadata: &InstanceMetadata) {
        self.has_instance(asked);
        // The cache may have moved on while the cloud was asked.
        let Some(node) = self.ctx.nodes.get(&asked.name) else {
            return;
        };
        if node.uid != asked.uid || node.is_uninitialized() {
            return;
        }
        self.tell_other_id(&node, metadata);
        let (update, problem) = intent::refresh(&node, metadata, self.settings.keeps_additional_labels);
        self.log_problem(&node, problem.map(|problem| problem.to_string()));
        let shown = update.addresses.as_ref().unwrap_or(&node.addresses);
        self.tell_without_address(&node, !addresses::can_be_reached(shown));
        match self.write_refreshed(&node, update).await {
            Ok(refused) => {
                self.remembered.is_news(&node, UNWRITTEN, None);
                self.tell_refused(&node, &refused);
            }
            Err(error) => self.tell_unwritten(&node, &error),
        }
    }

    /// Gives what was refused.
    async fn write_refreshed(&self, node: &Node, mut update: NodeUpdate) -> Result<Refused, KubeError> {
        let mut refused = Refused::default();
        refused.note(node, &update.skipped);
        if let Some(addresses) = update.addresses.take()
            && self.addresses.may_write(&self.ctx, node, &addresses).await
        {
            match self.ctx.kube.patch_node_addresses(node, &addresses).await {
                Err(error) if is_refusal(&error) => refused.addresses(&error),
                written => {
                    let version = written?.resource_version;
                    self.addresses.written(node, addresses, &version);
                    tracing::info!(controller = NAME, node = %node.name, "Addresses of a node changed");
                }
            }
        }
        if update.has_patch() && self.labels.may_write(&self.ctx, node, &update.labels).await {
            let labels = update.labels.clone();
            let patch = update.into_patch();
            match self.ctx.kube.patch_node(node, &patch).await {
                Err(error) if is_refusal(&error) => self.write_parts(node, patch, &mut refused).await?,
                written => {
                    let version = written?.resource_version;
                    self.labels.written(node, labels, &version);
                    tracing::info!(controller = NAME, node = %node.name, "Labels of a node changed");
                }
            }
        }
        Ok(refused)
    }

    /// Logs why a Node could not be written to, once. One that is gone, or was created anew, needs no refresh; nor has a process
    /// that stops one to make.
    fn tell_unwritten(&self, node: &Node, error: &KubeError) {
        let is_expected = matches!(
            error,
            KubeError::NotFound(_) | KubeError::Conflict(_) | KubeError::GateClosed
        );
        if !is_expected && self.remembered.is_news(node, UNWRITTEN, Some(&error.to_string())) {
            tracing::warn!(controller = NAME, node = %node.name, err = %error, "Failed to refresh a node; every pass tries again");
        }
    }

    /// Logs why the addresses of a Node stay as they are, once.
    fn log_problem(&self, node: &Node, problem: Option<String>) {
        if self.remembered.is_news(node, "addresses", problem.as_deref())
            && let Some(problem) = problem
        {
            tracing::warn!(controller = NAME, node = %node.name, err = %problem, "Addresses of a node left as they are");
        }
    }
}
