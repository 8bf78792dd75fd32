//! What the service loop remembers of a Service between two syncs: why to look again, and what was said already.
//!
//! Nothing here is needed for correctness of the cloud: a new process starts with none of it.

use std::collections::BTreeMap;
use std::sync::Arc;

use bowline_cloud_provider::plan::Note;
use bowline_cloud_provider::{KubeWrite, Node, NodeName, Reconcile, Service, ServiceFacts, facts};
use prometheus_client::metrics::histogram::Histogram;
use tokio::time::Instant;

use super::changes::needs_update;

/// Why a Service is to be looked at. Causes add up until the next sync takes them all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Causes {
    /// A person (or a program on their behalf) changed the Service: the sync is announced by events.
    pub(crate) changed: bool,
    /// The set of Nodes changed.
    pub(crate) nodes: bool,
    /// It is time to look whether all is still as it should be; also the first look after a start.
    pub(crate) verify: bool,
    /// An earlier sync failed.
    pub(crate) retry: bool,
}

impl Causes {
    /// Whether there is no cause: then a sync only goes on with what is parked.
    pub(crate) fn is_empty(self) -> bool {
        self == Self::default()
    }

    /// Both.
    pub(crate) fn and(self, other: Self) -> Self {
        Self {
            changed: self.changed || other.changed,
            nodes: self.nodes || other.nodes,
            verify: self.verify || other.verify,
            retry: self.retry || other.retry,
        }
    }

    /// Whether nothing is known to have changed.
    pub(crate) fn is_verify_only(self) -> bool {
        self == Self {
            verify: true,
            ..Self::default()
        }
    }

    /// Whether this is about Nodes and nothing else: upstream's "update" in contrast to its "ensure".
    pub(crate) fn is_nodes_only(self) -> bool {
        self.nodes && !self.changed && !self.retry && !self.verify
    }
}

/// Which Nodes a balancer was brought up to date with: names and provider IDs, in name order.
pub(crate) type NodeIdentities = Arc<[(NodeName, Option<Arc<str>>)]>;

/// The Nodes to balance over, and who they are.
#[derive(Clone)]
pub(crate) struct BalancedNodes {
    pub(crate) nodes: Arc<[Arc<Node>]>,
    pub(crate) identities: NodeIdentities,
}

impl BalancedNodes {
    pub(crate) fn new(nodes: Vec<Arc<Node>>) -> Self {
        Self {
            identities: identities(&nodes),
            nodes: nodes.into(),
        }
    }
}

/// Who these Nodes are.
pub(crate) fn identities(nodes: &[Arc<Node>]) -> NodeIdentities {
    nodes
        .iter()
        .map(|node| (node.name.clone(), node.provider_id.clone()))
        .collect()
}

/// How far a sync has come; survives being parked.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Progress {
    /// All causes that the sync serves.
    pub(crate) causes: Causes,
    /// Its beginning was said in an event.
    pub(crate) is_announced: bool,
    /// It wrote to the cloud.
    pub(crate) has_written: bool,
    /// It wrote to the cloud since the last full read.
    pub(crate) is_unverified: bool,
}

/// A reconcile that waits for the cloud.
pub(crate) struct Parked {
    pub(crate) session: Box<dyn Reconcile<ServiceFacts>>,
    pub(crate) progress: Progress,
}

/// A pass over the Services after the set of Nodes changed. Held by each Service that it concerns; measured when the last
/// of them has been brought up to date, or could not be.
pub(crate) struct NodePass {
    begun: Instant,
    latency: Histogram,
}

impl NodePass {
    /// Begins now.
    pub(crate) fn begin(latency: &Histogram) -> Arc<Self> {
        Arc::new(Self {
            begun: Instant::now(),
            latency: latency.clone(),
        })
    }
}

impl Drop for NodePass {
    fn drop(&mut self) {
        self.latency.observe(self.begun.elapsed().as_secs_f64());
    }
}

/// One Service.
#[derive(Default)]
pub(crate) struct Tracked {
    /// Why to look again; taken by the next sync.
    pub(crate) causes: Causes,
    /// The passes over changed Nodes that wait for it.
    node_passes: Vec<Arc<NodePass>>,
    /// When the oldest change was seen that no settled sync has served yet.
    changed_at: Option<Instant>,
    /// The Service as it was last handed to a sync, with our own annotations since then.
    pub(crate) synced: Option<Arc<Service>>,
    /// The same with a write of ours that is under way: the watch may show it before the answer has come.
    expected: Option<Arc<Service>>,
    /// The Nodes of the last sync that succeeded.
    pub(crate) nodes: Option<NodeIdentities>,
    /// The sync that waits for the cloud.
    pub(crate) parked: Option<Parked>,
    /// A plan was made for it since the process started.
    pub(crate) is_planned: bool,
    /// What was said, by event reason: the same text is not said again.
    pub(crate) said: BTreeMap<&'static str, String>,
    /// What the last sync had come to when it ended early: the next one goes on with its causes, and does not announce it again.
    pub(crate) unfinished: Option<Progress>,
    /// Services that vanished before their balancers were removed.
    pub(crate) ghosts: Vec<Arc<Service>>,
    /// It was seen with a class: its finalizer and balancer belong to another controller.
    pub(crate) is_foreign: bool,
    /// Conflicts in a row; many of them are a failure.
    pub(crate) conflicts: u32,
}

impl Tracked {
    /// Adds causes to look again.
    pub(crate) fn add_causes(&mut self, causes: Causes) {
        if causes.changed || causes.nodes {
            self.changed_at.get_or_insert_with(Instant::now);
        }
        self.causes = self.causes.and(causes);
    }

    /// A pass over changed Nodes waits for the next sync.
    pub(crate) fn join(&mut self, pass: &Arc<NodePass>) {
        self.node_passes.push(Arc::clone(pass));
    }

    /// A sync has come to an end, good or bad: passes over changed Nodes no longer wait for it, unless they came meanwhile.
    pub(crate) fn leave_passes(&mut self) {
        if !self.causes.nodes {
            self.node_passes.clear();
        }
    }

    /// A sync has served everything up to now: gives when the oldest change was seen, unless there is a new one.
    pub(crate) fn served(&mut self) -> Option<Instant> {
        if self.causes.changed || self.causes.nodes {
            return None;
        }
        self.changed_at.take()
    }

    /// Whether a note or failure text is new for this Service, and remembers it.
    pub(crate) fn is_news(&mut self, reason: &'static str, text: &str) -> bool {
        if self.said.get(reason).is_some_and(|said| said == text) {
            return false;
        }
        self.said.insert(reason, text.to_owned());
        true
    }

    /// Forgets what was said under reasons that this plan no longer has: if it comes back, it is news.
    pub(crate) fn keep_said(&mut self, notes: &[Note], failure_reasons: &[&'static str]) {
        self.said.retain(|reason, _| {
            failure_reasons.contains(reason) || notes.iter().any(|note| note.reason == *reason)
        });
    }

    /// Our own write to the Service is about to be sent.
    pub(crate) fn expect_write(&mut self, write: &KubeWrite) {
        self.expected = self.synced.clone();
        if let Some(expected) = &mut self.expected {
            write.predict(Arc::make_mut(expected));
        }
    }

    /// The write that was expected has been answered. If it was made, it is remembered, so that its echo is no change.
    pub(crate) fn written(&mut self, write: &KubeWrite, is_made: bool) {
        self.expected = None;
        if is_made && let Some(synced) = &mut self.synced {
            write.predict(Arc::make_mut(synced));
        }
    }

    /// Whether this change is more than our own writing.
    pub(crate) fn is_changed(&self, old: &Service, new: &Service) -> bool {
        // What was wanted before may still be remembered; its removal was asked for when that ended.
        if !facts::wants_load_balancer(old) && !facts::wants_load_balancer(new) {
            return false;
        }
        let is_echo = |expected: &Arc<Service>| !needs_update(expected, new);
        needs_update(self.synced.as_deref().unwrap_or(old), new)
            && !self.expected.as_ref().is_some_and(is_echo)
    }

    /// Whether a balancer may exist for a Service that this loop has synced.
    pub(crate) fn may_have_balancer(&self) -> bool {
        self.synced.as_deref().is_some_and(facts::wants_load_balancer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_text_is_said_once_until_it_goes_away() {
        let mut tracked = Tracked::default();
        assert!(tracked.is_news("NoValidNodes", "no node"));
        assert!(!tracked.is_news("NoValidNodes", "no node"));
        tracked.keep_said(&[], &[]);
        assert!(tracked.is_news("NoValidNodes", "no node"));
    }

    #[test]
    fn a_node_change_beside_another_cause_is_a_full_sync() {
        let nodes = Causes {
            nodes: true,
            ..Causes::default()
        };
        assert!(nodes.is_nodes_only());
        assert!(
            !nodes
                .and(Causes {
                    changed: true,
                    ..Causes::default()
                })
                .is_nodes_only()
        );
    }
}
