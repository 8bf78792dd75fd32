//! The cloud-node controller (`cloud-node-controller`): gives a new Node what its cloud knows of the instance, takes the taint
//! away that it waits with, and keeps addresses, type, zone and region true afterwards.
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
//! intent.rs        what is to be written, as data       (pure)
//! addresses.rs     which addresses a Node should show   (pure)
//! labels.rs        type, zone, region under both names  (pure)
//! ```

pub mod addresses;
mod initialize;
pub mod intent;
pub mod labels;
mod question;
mod refresh;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bowline_cloud_provider::{Instance, InstancesV2, Node, NodeName, keys};
use bowline_kube_io::{Change, KubeError, Written};
use bowline_plan::Said;
use futures::future::{self, BoxFuture, FutureExt as _};
use futures::stream::{self, StreamExt as _};

use crate::controller::{Context, Controller};
use crate::events;
use crate::metrics::gauges::{Standing, UNINITIALIZED, UNINITIALIZED_OLDEST};
use crate::queue::{Stated, WorkQueue, of_nodes};
use crate::workers::{self, Work};
use initialize::{Failure, Initialized};
use question::Found;

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
}

impl Default for NodeSettings {
    fn default() -> Self {
        Self {
            node_status_update_frequency: Duration::from_secs(5 * 60),
            needs_witnesses: true,
        }
    }
}

/// The cloud-node controller.
pub struct NodeController {
    ctx: Context,
    instances: Arc<dyn InstancesV2>,
    settings: NodeSettings,
    queue: Arc<WorkQueue<NodeName>>,
    /// Most Nodes are as usual and have no entry.
    told: Mutex<BTreeMap<NodeName, Told>>,
    /// Whether a Node may wait because of what is said of the others.
    is_held: AtomicBool,
}

/// What is remembered of a Node while it is not as usual.
#[derive(Default, PartialEq, Eq)]
struct Told {
    /// The failure and the other provider ID of its events, and in the log why its addresses were left as they are.
    said: Said,
    /// The version that this controller wrote last, until the watch has brought it: what the cache shows is older.
    written: Option<u64>,
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
        let mut disagreeing = Vec::new();
        for key in keys {
            match self.ctx.nodes.get(&key) {
                // It was initialised a moment ago: the watch has not brought it yet.
                Some(node) if self.is_behind(&node) => self.queue.finish(&key),
                Some(node) if node.is_uninitialized() => new.push(node),
                Some(node) => disagreeing.push(node),
                None => self.queue.finish(&key),
            }
        }
        future::join(self.initialize_all(new), self.agree_all(disagreeing)).await;
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
            told: Mutex::default(),
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
        let node = match change {
            Change::Added(node) => node,
            // Changes that came while the cache was behind were left out.
            Change::Updated { old, new } if self.has_caught_up(new) || matters(old, new) => new,
            Change::Updated { .. } => return,
            Change::Deleted(node) => {
                self.queue.remove(&node.name);
                self.told().remove(&node.name);
                self.let_go();
                return;
            }
        };
        if node.is_uninitialized() || !labels::agreed(node).is_empty() {
            self.queue.forget(&node.name);
            self.queue.add(node.name.clone());
        }
    }

    /// A Node went, which may have held others back: they need not wait for their next try.
    fn let_go(&self) {
        if !self.is_held.swap(false, Ordering::Relaxed) {
            return;
        }
        for node in self.ctx.nodes.all() {
            if node.is_uninitialized() {
                self.queue.forget(&node.name);
                self.queue.add(node.name.clone());
            }
        }
    }

    /// Asks for the instances of new Nodes, then initialises each whose instance is there.
    async fn initialize_all(&self, nodes: Vec<Arc<Node>>) {
        if nodes.is_empty() {
            return;
        }
        let mut failed = Vec::new();
        let mut present = Vec::with_capacity(nodes.len());
        for (node, found) in self.ask(nodes).await {
            match found {
                Ok(Found::Instance(instance)) => present.push((node, instance)),
                Ok(Found::Foreign) => {
                    tracing::info!(controller = NAME, node = %node.name, provider_id = node.provider_id.as_deref(), "Node of another cloud left alone");
                    self.queue.finish(&node.name);
                }
                Err(failure) => failed.push((node, failure)),
            }
        }
        // Nodes that failed on one answer are tried again together, so that they share the next question, too.
        let mut again = Vec::new();
        for (node, failure) in failed {
            if matches!(failure, Failure::OnlyName) {
                self.is_held.store(true, Ordering::Relaxed);
            }
            self.tell_failure(&node, &failure);
            match failure.stated() {
                Stated::Nothing => again.push(node.name.clone()),
                stated => {
                    self.queue.retry_after(node.name.clone(), stated);
                    self.queue.done(&node.name);
                }
            }
        }
        self.queue.retry_together(again.iter().cloned());
        for key in &again {
            self.queue.done(key);
        }
        self.wait_for_their_turn(present.iter().map(|(node, _)| node));
        let initialize = |(node, instance): (Arc<Node>, Box<Instance>)| async move {
            let node = &node;
            match self.initialize(node, &instance.metadata).await {
                Ok(Initialized::Done) => self.tell_other_id(node, &instance.metadata),
                Ok(Initialized::NotNeeded) => {}
                Err(failure) => {
                    self.tell_failure(node, &failure);
                    self.queue.retry_after(node.name.clone(), failure.stated());
                    self.queue.done(&node.name);
                    return;
                }
            }
            self.queue.finish(&node.name);
        };
        stream::iter(present)
            .for_each_concurrent(AT_ONCE, initialize)
            .await;
    }

    /// Of these Nodes only some are written to at a time: for the others nothing is under way yet.
    fn wait_for_their_turn<'a>(&self, nodes: impl IntoIterator<Item = &'a Arc<Node>>) {
        for node in nodes {
            self.queue.rest(&node.name);
        }
    }

    async fn agree_all(&self, nodes: Vec<Arc<Node>>) {
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
                Ok(_) | Err(KubeError::NotFound(_)) => {}
                Err(error) => {
                    // After a conflict the next try looks at the Node anew, which may be another one by then.
                    if !matches!(error, KubeError::Conflict(_) | KubeError::GateClosed) {
                        tracing::warn!(controller = NAME, node = %node.name, err = %error, "Failed to bring the labels of a node together");
                    }
                    self.queue.retry(node.name.clone());
                    self.queue.done(&node.name);
                    return;
                }
            }
        }
        self.queue.finish(&node.name);
    }

    /// Records why an initialisation failed, if that is news.
    fn tell_failure(&self, node: &Node, failure: &Failure) {
        if matches!(failure, Failure::NotLeading) {
            return;
        }
        let text = failure.for_node(node);
        if self.is_news(node, events::NODE_INIT_FAILED.reason, Some(&text)) {
            tracing::warn!(controller = NAME, node = %node.name, err = %text, "Failed to initialize a node; it will be tried again");
            self.ctx.event(node, events::NODE_INIT_FAILED.note(text));
        } else {
            tracing::debug!(controller = NAME, node = %node.name, err = %text, "Failed to initialize a node again");
        }
    }

    /// Records that the cloud knows the instance under another ID, if that is news.
    fn tell_other_id(&self, node: &Node, metadata: &bowline_cloud_provider::InstanceMetadata) {
        let other = intent::other_provider_id(node, metadata);
        let is_news = self.is_news(node, events::PROVIDER_ID_MISMATCH.reason, other);
        if let (true, Some(id), Some(shown)) = (is_news, other, &node.provider_id) {
            let text =
                format!("The cloud gives this instance the provider ID {id}, but the Node has {shown}");
            self.ctx.event(node, events::PROVIDER_ID_MISMATCH.note(text));
        }
    }

    /// Remembers the version that was written, so that an older one from the cache is not taken for a new Node.
    fn remember_written(&self, node: &Node, written: &Written) {
        let version = written.resource_version.parse().ok();
        let mut told = self.told();
        let cached = self.ctx.nodes.get(&node.name);
        let is_behind =
            cached.is_some_and(|cached| *cached.uid == *written.uid && version_before(&cached, version));
        if is_behind {
            let entry = Told {
                written: version,
                ..Told::default()
            };
            told.insert(node.name.clone(), entry);
        } else {
            told.remove(&node.name);
        }
    }

    /// Whether the cache shows a Node as it was before this controller wrote to it.
    fn is_behind(&self, node: &Node) -> bool {
        let told = self.told();
        told.get(&node.name)
            .is_some_and(|told| version_before(node, told.written))
    }

    /// Whether the watch has now brought what this controller wrote, or more.
    fn has_caught_up(&self, node: &Node) -> bool {
        let mut told = self.told();
        match told.get_mut(&node.name) {
            Some(entry) if entry.written.is_some() && !version_before(node, entry.written) => {
                entry.written = None;
                if *entry == Told::default() {
                    told.remove(&node.name);
                }
                true
            }
            _ => false,
        }
    }

    /// Whether what is said of a Node is news; `None`: nothing holds on this subject. Of one that went meanwhile nothing is
    /// remembered: nobody would ever forget it.
    fn is_news(&self, node: &Node, subject: &'static str, text: Option<&str>) -> bool {
        let mut told = self.told(); // before the look: a Node that goes after it is forgotten after this
        let Some(text) = text else {
            if let Some(told) = told.get_mut(&node.name) {
                told.said.over(subject);
            }
            return false;
        };
        let there = self.ctx.nodes.get(&node.name);
        there.is_some_and(|there| there.uid == node.uid)
            && told
                .entry(node.name.clone())
                .or_default()
                .said
                .is_news(subject, text)
    }

    fn told(&self) -> MutexGuard<'_, BTreeMap<NodeName, Told>> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The resource version as a number, which may be compared within one kind of objects. `None` if it is not one: then
/// nothing counts as older.
fn version(node: &Node) -> Option<u64> {
    node.resource_version.parse().ok()
}

fn version_before(node: &Node, other: Option<u64>) -> bool {
    matches!((version(node), other), (Some(version), Some(other)) if version < other)
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
    use bowline_cloud_provider::{AddressType, Labels, NodeAddress, Readiness, Taint};

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
