//! Changes of the set of Nodes: collected, and acted on once they have settled.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bowline_cloud_provider::{Node, NodeSet, Service, ServiceKey, facts};
use bowline_kube_io::Change;
use bowline_plan::NoteKind;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::tracking::{BalancedNodes, Causes, NodeIdentities, NodePass};
use super::{ServiceController, reasons};
use crate::node_set;

/// At most this many node names stand in one message; upstream's limit.
const MAX_NAMED_NODES: usize = 20;

/// Collects changes until they have been quiet for a moment: thirty Nodes that join together are one change.
pub(super) struct NodeChanges {
    quiet: Duration,
    patience: Duration,
    pending: Mutex<Option<Pending>>,
    changed: Notify,
}

#[derive(Clone, Copy)]
struct Pending {
    first: Instant,
    last: Instant,
    /// Labels changed that a selector of a Service may look at.
    with_labels: bool,
}

impl NodeChanges {
    pub(super) fn new(quiet: Duration, patience: Duration) -> Self {
        Self {
            quiet,
            patience,
            pending: Mutex::default(),
            changed: Notify::new(),
        }
    }

    fn note(&self, with_labels: bool) {
        let now = Instant::now();
        let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        *pending = Some(match *pending {
            Some(p) => Pending {
                last: now,
                with_labels: p.with_labels || with_labels,
                ..p
            },
            None => Pending {
                first: now,
                last: now,
                with_labels,
            },
        });
        self.changed.notify_one();
    }

    fn due(&self) -> Option<Instant> {
        let pending = (*self.pending.lock().unwrap_or_else(PoisonError::into_inner))?;
        Some((pending.last + self.quiet).min(pending.first + self.patience))
    }

    /// Waits until there are changes and they have settled.
    pub(super) async fn settled(&self) {
        loop {
            match self.due() {
                Some(due) if due <= Instant::now() => return,
                Some(due) => tokio::select! {
                    biased;
                    () = self.changed.notified() => {}
                    () = tokio::time::sleep_until(due) => {}
                },
                None => self.changed.notified().await,
            }
        }
    }

    /// Whether changes are waiting to settle.
    pub(super) fn is_pending(&self) -> bool {
        self.due().is_some()
    }

    fn take(&self) -> bool {
        let pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner).take();
        pending.is_some_and(|pending| pending.with_labels)
    }
}

impl ServiceController {
    /// A Node changed. What most changes of a Node are about, its heartbeat above all, concerns no balancer.
    pub(super) fn on_node(&self, change: &Change<Node>) {
        *self.balanced.lock().unwrap_or_else(PoisonError::into_inner) = None;
        let kind = self.load_balancer.node_set();
        let (is_trigger, with_labels) = match change {
            Change::Added(_) | Change::Deleted(_) => (true, true),
            Change::Updated { old, new } => (
                node_set::concerns_balancers(old, new, kind),
                old.labels != new.labels,
            ),
        };
        if is_trigger || (with_labels && self.any_service_selects_by_label()) {
            self.node_changes.note(with_labels);
        }
    }

    fn any_service_selects_by_label(&self) -> bool {
        if !self.load_balancer.follows_nodes() {
            return false;
        }
        let tracked = self.tracked.lock().unwrap_or_else(PoisonError::into_inner);
        tracked
            .values()
            .filter_map(|tracked| tracked.synced.as_deref())
            .any(|service| self.load_balancer.selects_nodes_by_label(service))
    }

    /// The set of Nodes has settled: every Service that was synced with another set is looked at again, or, if its balancer
    /// follows no Nodes, is served by that.
    pub(super) fn node_pass(&self) {
        let follows_nodes = self.load_balancer.follows_nodes();
        let pass = NodePass::begin(&self.metrics.nodesync_latency_seconds);
        let with_labels = self.node_changes.take();
        let balanced = self.balanced_nodes();
        let concerned: BTreeSet<ServiceKey> = {
            let tracked = self.tracked.lock().unwrap_or_else(PoisonError::into_inner);
            tracked
                .iter()
                .filter(|(_, tracked)| {
                    let Some(service) = tracked
                        .synced
                        .as_deref()
                        .filter(|service| facts::wants_load_balancer(service))
                    else {
                        return false;
                    };
                    // One that was never brought up to date is under way, or waits for its next try with the Nodes of then.
                    tracked.nodes.as_ref().is_some_and(|nodes| {
                        *nodes != balanced.identities
                            || (with_labels
                                && follows_nodes
                                && self.load_balancer.selects_nodes_by_label(service))
                    })
                })
                .map(|(key, _)| key.clone())
                .collect()
        };
        for key in concerned {
            if !follows_nodes {
                self.update_nothing(&key, &balanced.identities);
                continue;
            }
            self.metrics.loadbalancer_sync_total.inc();
            self.tracked(&key, |tracked| tracked.join(&pass));
            self.enqueue(
                &key,
                Causes {
                    nodes: true,
                    ..Causes::default()
                },
            );
        }
    }

    /// The Nodes changed under a balancer that does not follow them: that is an update as others are, with nothing to do.
    pub(super) fn update_nothing(&self, key: &ServiceKey, identities: &NodeIdentities) {
        let is_news = self.tracked(key, |tracked| {
            tracked.nodes.replace(Arc::clone(identities)).as_ref() != Some(identities)
        });
        let service = self.services.get(key).filter(|service| {
            is_news && facts::wants_load_balancer(service) && !facts::needs_cleanup(service)
        });
        let Some(service) = service else { return };
        self.annotate_nodes_soon();
        self.metrics.loadbalancer_sync_total.inc();
        self.metrics.update_loadbalancer_host_latency_seconds.observe(0.0);
        self.metrics.synced("update", "settled");
        self.tell_updated(&service, identities);
    }

    /// Says that a balancer is up to date with these Nodes, after they have changed.
    pub(super) fn tell_updated(&self, service: &Service, identities: &NodeIdentities) {
        let (kind, reason, text) = if identities.is_empty() {
            (NoteKind::Warning, reasons::UNAVAILABLE, reasons::NO_NODES)
        } else {
            let text = "Updated load balancer with new hosts";
            (NoteKind::Normal, reasons::UPDATED, text)
        };
        self.event(service, kind, reason, text);
    }

    /// The Nodes to balance over now, in name order; worked out once per change of the Nodes.
    pub(super) fn balanced_nodes(&self) -> BalancedNodes {
        let mut balanced = self.balanced.lock().unwrap_or_else(PoisonError::into_inner);
        balanced
            .get_or_insert_with(|| BalancedNodes::new(self.select_nodes(self.load_balancer.node_set())))
            .clone()
    }

    fn select_nodes(&self, kind: NodeSet) -> Vec<Arc<Node>> {
        self.nodes
            .all()
            .into_iter()
            .filter(|node| node_set::is_balanced(node, kind))
            .collect()
    }

    /// Upstream's words for a failed update, with the Nodes' names limited.
    pub(super) fn update_failed_text(&self, error: &str) -> String {
        let nodes = self.balanced_nodes().identities;
        let names: Vec<&str> = nodes.iter().map(|(name, _)| name.as_str()).collect();
        format!(
            "Error updating load balancer with new hosts {} [node names limited, total number of nodes: {}], error: {error}",
            limited(&names),
            names.len()
        )
    }
}

fn limited(names: &[&str]) -> String {
    let more = names.len().saturating_sub(MAX_NAMED_NODES);
    let shown = names[..names.len() - more].join(" ");
    if more == 0 {
        format!("[{shown}]")
    } else {
        format!("[{shown} <{more} more>]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn at_most_twenty_nodes_are_named() {
        assert_eq!(limited(&["a", "b"]), "[a b]");
        let names: Vec<String> = (0..25).map(|n| format!("n{n:02}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        assert!(limited(&names).ends_with("n19 <5 more>]"));
    }

    #[tokio::test(start_paused = true)]
    async fn changes_are_acted_on_when_quiet_or_when_patience_ends() {
        let changes = NodeChanges::new(Duration::from_millis(500), Duration::from_secs(2));
        let begun = Instant::now();
        let steady = async {
            loop {
                changes.note(false);
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        };
        tokio::select! { () = changes.settled() => {}, () = steady => {} }
        assert_eq!(begun.elapsed(), Duration::from_secs(2));
        changes.take();
        changes.note(false);
        let begun = Instant::now();
        changes.settled().await;
        assert_eq!(begun.elapsed(), Duration::from_millis(500));
    }
}
