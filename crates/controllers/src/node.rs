//! The cloud-node controller (`cloud-node-controller`): gives a new Node what its cloud knows of the instance, takes the taint
//! away that it waits with, and keeps addresses, type, zone and region true afterwards, and its cloud's further labels if asked to.
//!
//! Nodes are asked for in batches: whatever is due when the controller looks goes into one question, and several batches may
//! be under way. The writes of a batch run side by side, bounded by the client of the API server alone. So
//! `--concurrent-node-syncs` and `--concurrent-node-status-updates` keep their names and limit nothing.
//!
//! ```text
//! node.rs          who is looked at, when, and what an outcome means
//! question.rs      the question for new Nodes, and what is believed
//! initialize.rs    the writes of an initialisation
//! refresh.rs       the periodic pass
//! refused.rs       what the API server refuses of a Node, and how the rest is written
//! agree.rs         what somebody else changes: the two names of labels, and the taint
//! remembered.rs    what was said and written, while a Node is not as usual
//! intent.rs        what is to be written, as data       (pure)
//! addresses.rs     which addresses a Node should show   (pure)
//! labels.rs        type, zone, region under both names  (pure)
//! ```

pub mod addresses;
mod agree;
mod failure;
mod initialize;
pub mod intent;
pub mod labels;
mod question;
mod refresh;
mod refused;
mod remembered;

use std::collections::BTreeSet;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bowline_cloud_provider::{InstanceMetadata, InstancesV2, Node, NodeAddress, NodeName, keys};
use bowline_kube_io::Change;
use bowline_plan::EventSpec;
use futures::future::{self, BoxFuture, FutureExt as _};

use crate::controller::{Context, Controller};
use crate::event_dedup::EventDedup;
use crate::events;
use crate::last_written::LastWritten;
use crate::metrics::gauges::{Standing, UNINITIALIZED, UNINITIALIZED_OLDEST};
use crate::ownership::Ownership;
use crate::put_back::Part;
use crate::queue::{RetryAfter, WorkQueue, of_nodes};
use crate::workers::{self, Work};
use failure::Failure;
use remembered::{Remembered, Wait};

/// The canonical name, which is also the one under which its events appear.
pub const NAME: &str = "cloud-node-controller";
/// The name of its queue in the series of work queues.
const QUEUE: &str = "Nodes";
/// Nodes that are initialised at once. As many as there can be requests to the API server under way; more would only
/// stand in memory, with the bodies of their writes, and wait.
const AT_ONCE: usize = 32;

/// What an operator can set.
#[derive(Debug, Clone, PartialEq)]
pub struct NodeSettings {
    /// `--node-status-update-frequency`: from the end of one periodic pass to the start of the next.
    pub node_status_update_frequency: Duration,
    /// Whether an instance that has only a Node's name is taken for the Node's only while the cloud shows an instance of the
    /// Nodes that run; see [`NodeLifecycleSettings::is_guarded`](crate::node_lifecycle::NodeLifecycleSettings::is_guarded).
    pub needs_witnesses: bool,
    /// Whose Nodes are looked at, where other managers share the cluster.
    pub ownership: Option<Ownership>,
    /// The gate `CloudNodeAdditionalLabelsReconciliation`: whether the cloud's further labels are written in each periodic pass
    /// where they are missing or have another value. Otherwise a Node gets them when it is initialised, and never again.
    pub keeps_additional_labels: bool,
}

impl Default for NodeSettings {
    fn default() -> Self {
        Self {
            node_status_update_frequency: Duration::from_secs(5 * 60),
            needs_witnesses: true,
            ownership: None,
            keeps_additional_labels: false,
        }
    }
}

/// The cloud-node controller.
pub struct NodeController {
    ctx: Context,
    instances: Arc<dyn InstancesV2>,
    settings: NodeSettings,
    queue: Arc<WorkQueue<NodeName>>,
    remembered: Remembered,
    /// What the periodic pass said of the cloud, and wrote last.
    dedup: Mutex<EventDedup>,
    addresses: LastWritten<Vec<NodeAddress>>,
    labels: LastWritten<labels::Changes>,
    /// Whether a Node may wait because of what is said of the others.
    is_held: AtomicBool,
}

impl Work for NodeController {
    /// Keys that are due together.
    type Piece = Vec<NodeName>;

    async fn take(&self) -> Vec<NodeName> {
        self.queue.next_batch(usize::MAX).await
    }

    /// Nodes that wait for their cloud share one question.
    async fn work(&self, keys: Vec<NodeName>) {
        let mut new = Vec::with_capacity(keys.len());
        let mut reverted = Vec::new();
        for key in keys {
            match self.ctx.nodes.get(&key) {
                // It was initialised a moment ago: the watch has not brought it yet.
                Some(node) if self.remembered.is_behind(&node) => self.queue.finish(&key),
                Some(node) if node.is_uninitialized() && !self.remembered.is_fought(&node) => new.push(node),
                Some(node) => reverted.push(node),
                None => self.queue.finish(&key),
            }
        }
        future::join(self.initialize_all(new), self.put_back_all(reverted)).await;
    }
}

impl Controller for NodeController {
    fn context(&self) -> &Context {
        &self.ctx
    }

    /// # Cancellation
    ///
    /// Dropped at any await. Between the two writes of an initialisation the Node has its addresses and still its
    /// taint: the next process asks again and finishes. Everything else is one write.
    fn run(self: Arc<Self>) -> BoxFuture<'static, ()> {
        async move {
            let work = async {
                self.ctx.nodes.synced().await;
                // New Nodes first: nothing runs on them yet.
                let batches = workers::run(&*self, usize::MAX, future::pending());
                future::join(batches, self.refresh_periodically()).await;
            };
            self.ctx.until_written(work).await;
        }
        .boxed()
    }
}

impl NodeController {
    /// Builds the controller and subscribes it to the Nodes. Nothing is asked or written before [`run`](Controller::run).
    #[must_use]
    pub fn new(ctx: Context, instances: Arc<dyn InstancesV2>, settings: NodeSettings) -> Arc<Self> {
        let ctx = ctx.with_own_writes();
        let controller = Arc::new(Self {
            instances,
            settings,
            queue: ctx.queue(QUEUE, of_nodes(ctx.jitter.clone())),
            remembered: Remembered::new(Arc::clone(&ctx.nodes)),
            dedup: Mutex::default(),
            addresses: LastWritten::of(Part::Addresses),
            labels: LastWritten::with_keys(Part::Labels, |labels| labels.keys().cloned().collect()),
            is_held: AtomicBool::new(false),
            ctx,
        });
        let nodes = &controller.ctx.nodes;
        nodes.subscribe_weakly(&controller, Self::on_node);
        let probes = &controller.ctx.metrics.probes;
        probes.probe_weakly(&UNINITIALIZED, &controller, |it| {
            vec![("", it.uninitialized().count())]
        });
        probes.probe_weakly(&UNINITIALIZED_OLDEST, &controller, |it| {
            vec![("", it.uninitialized().oldest())]
        });
        controller
    }

    /// The Nodes that wait with the taint.
    fn uninitialized(&self) -> Standing {
        let (now, mut standing) = (self.ctx.kube.clock().now(), Standing::default());
        let nodes = self.ctx.nodes.all();
        for node in nodes.iter().filter(|node| node.is_uninitialized()) {
            // 0 where the clocks differ.
            standing.add(now.duration_since(node.created).try_into().unwrap_or_default());
        }
        standing
    }

    /// A Node changed. Of what waits for its cloud, only a change that can alter the outcome is worth a try before the
    /// back-off is over: the kubelet's heartbeats are not.
    fn on_node(&self, change: &Change<Node>) {
        let (node, wait) = match change {
            Change::Added(node) if reverted(node).is_empty() => return,
            Change::Added(node) => (node, Wait::default()),
            Change::Updated { old, new } => {
                if old.uid != new.uid {
                    self.remembered.forget(&new.name);
                }
                // Changes that came while the cache was behind were left out.
                let has_caught_up = self.remembered.has_caught_up(new);
                let mut reverted = reverted(new);
                if !(has_caught_up || matters(old, new)) || reverted.is_empty() {
                    return;
                }
                let was_done = old.uid == new.uid && !old.is_uninitialized();
                match (has_caught_up, was_done) {
                    (true, _) => {}
                    (false, true) => reverted.retain(|part| !self::reverted(old).contains(part)),
                    (false, false) => reverted.clear(),
                }
                (new, self.remembered.changed(new, &reverted))
            }
            Change::Deleted(node) => {
                self.queue.remove(&node.name);
                self.remembered.forget(&node.name);
                self.addresses.forget(&node.name);
                self.labels.forget(&node.name);
                self.let_go();
                return;
            }
        };
        if wait.is_fight {
            self.tell_failure(node, &Failure::Reverted);
        } else if wait.after.is_zero() {
            self.queue.forget(&node.name);
        }
        self.queue.add_after(node.name.clone(), wait.after);
    }

    /// Of these Nodes only some are written to at a time: for the others nothing is under way yet.
    fn wait_for_their_turn<'a>(&self, nodes: impl IntoIterator<Item = &'a Arc<Node>>) {
        for node in nodes {
            self.queue.rest(&node.name);
        }
    }

    /// Ends a try that failed: the next one is when the back-off says, or whoever refused it.
    fn give_back(&self, node: &Node, retry_after: RetryAfter) {
        self.queue.retry_after(node.name.clone(), retry_after);
        self.queue.done(&node.name);
    }

    /// Records why an initialisation failed, if that is news.
    fn tell_failure(&self, node: &Node, failure: &Failure) {
        let clock = self.ctx.kube.clock();
        let ownership = self.settings.ownership.as_ref();
        // It is told of as soon as its own manager has had the time to initialize it.
        let is_early = failure.is_missing() && ownership.is_some_and(|it| it.may_be_anothers(node, &**clock));
        if matches!(failure, Failure::NotLeading) || is_early {
            return;
        }
        let text = failure.for_node(node);
        if self
            .remembered
            .is_news(node, events::NODE_INIT_FAILED.reason, Some(&text))
        {
            tracing::warn!(controller = NAME, node = %node.name, err = %text, "Failed to initialize a node; it will be tried again");
            self.ctx.event(node, events::NODE_INIT_FAILED.note(text));
        } else {
            tracing::debug!(controller = NAME, node = %node.name, err = %text, "Failed to initialize a node again");
        }
    }

    fn warn(&self, node: &Node, event: &EventSpec, text: String) {
        tracing::warn!(controller = NAME, node = %node.name, reason = event.reason, "{text}");
        self.ctx.event(node, event.note(text));
    }

    /// Records that the cloud knows the instance under another ID, if that is news.
    fn tell_other_id(&self, node: &Node, metadata: &InstanceMetadata) {
        let other = intent::other_provider_id(node, metadata);
        let is_news = self
            .remembered
            .is_news(node, events::PROVIDER_ID_MISMATCH.reason, other);
        if let (true, Some(id)) = (is_news, other) {
            let text = events::other_provider_id(id, node);
            self.ctx.event(node, events::PROVIDER_ID_MISMATCH.note(text));
        }
    }
}

/// What is to be put right on a Node.
fn reverted(node: &Node) -> BTreeSet<Part> {
    let taint = node.is_uninitialized().then_some(Part::Taint);
    let labels = (!labels::agreed(node).is_empty()).then_some(Part::Labels);
    taint.into_iter().chain(labels).collect()
}

/// Whether a change can alter what the cloud answers or what is written.
fn matters(old: &Node, new: &Node) -> bool {
    old.uid != new.uid
        || old.provider_id != new.provider_id
        || old.taints != new.taints
        || old.labels != new.labels
        || provided_ips(old) != provided_ips(new)
}

fn provided_ips(node: &Node) -> Option<&str> {
    node.annotations.value(keys::ANNOTATION_PROVIDED_NODE_IP)
}

#[cfg(test)]
mod tests {
    use bowline_cloud_provider::{AddressType, Labels, Readiness, Taint};

    use super::*;

    #[test]
    fn a_heartbeat_does_not_matter_and_what_the_cloud_is_asked_with_does() {
        let node = Node::named("n1");
        let changed = |change: fn(&mut Node)| {
            let mut new = node.clone();
            change(&mut new);
            matters(&node, &new)
        };
        assert!(!changed(|node| node.resource_version = "8".into()));
        assert!(!changed(|node| node.readiness = Readiness::Ready));
        assert!(!changed(
            |node| node.addresses = vec![NodeAddress::new(AddressType::Hostname, "n1")]
        ));
        assert!(!changed(
            |node| node.annotations = Labels::from_iter([("volumes", "attached")])
        ));
        assert!(changed(
            |node| node.annotations = Labels::from_iter([(keys::ANNOTATION_PROVIDED_NODE_IP, "10.0.0.1")])
        ));
        assert!(changed(|node| node.labels = Labels::from_iter([("rack", "a")])));
        assert!(changed(|node| node.taints = vec![Taint::shutdown()]));
        assert!(changed(|node| node.provider_id = Some("fake://1".into())));
        assert!(changed(|node| node.uid = "new".into()));
    }
}
