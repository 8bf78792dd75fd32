//! Node IPAM (`node-ipam-controller`): gives each Node its pod networks, a block of each of the cluster's.
//!
//! Off by default: kube-controller-manager does this in most clusters, and only one of them may. It is the range allocator
//! of Kubernetes' node IPAM: what Nodes show at the start is taken, everything else is given in turn.
//!
//! ```text
//! node_ipam.rs            which Node gets networks, and when
//! node_ipam/ranges.rs     what an operator says, checked          (pure)
//! node_ipam/allocator.rs  who holds what                          (pure)
//! node_ipam/cidr_set.rs   the blocks of one network               (pure)
//! ```

mod allocator;
mod cidr_set;
pub mod ranges;

use std::collections::BTreeSet;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bowline_cloud_provider::{Node, NodeName};
use bowline_kube_io::{Change, Kube, KubeError, NodeCache, ObjectRef, Recorder};
use bowline_plan::NoteKind;
use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use ipnet::IpNet;
use tokio::sync::Notify;
use tokio::time::sleep;

use crate::events;
use crate::metrics::{ControllerMetrics, IpamLabels};
use crate::queue::{Backoff, Heartbeat, Jitter, Pulse, QueueMetrics, WorkQueue};
use allocator::{Allocator, Grant};
use ranges::Ranges;

/// The canonical name.
pub const NAME: &str = "node-ipam-controller";
/// The name under which its events appear, as the Go managers have it.
pub const COMPONENT: &str = "cidrAllocator";
/// The name of its queue in the series of work queues.
const QUEUE: &str = "cidrallocator_node";
/// Nodes that are written at once, as in Kubernetes' range allocator.
const WORKERS: usize = 30;
/// Tries of one write.
const TRIES: usize = 3;
/// The pause between two tries to list the Nodes at the start, and how many there are: ten minutes.
const LIST_PAUSE: Duration = Duration::from_secs(10);
const LIST_TRIES: usize = 60;
/// Age of a piece of work at which the loop counts as stuck.
const STUCK_AFTER: Duration = Duration::from_secs(8 * 60);

/// Everything the loop works with.
pub struct NodeIpamContext {
    /// The API server.
    pub kube: Kube,
    /// All Nodes.
    pub nodes: Arc<NodeCache>,
    /// From which networks Nodes get theirs.
    pub ranges: Ranges,
    /// Where events go; its component should be [`COMPONENT`].
    pub recorder: Recorder,
    /// The loop's series.
    pub metrics: ControllerMetrics,
    /// The series of the work queues.
    pub queue_metrics: QueueMetrics,
    /// The seed of the back-off's jitter.
    pub seed: u64,
}

/// The node IPAM loop.
pub struct NodeIpamController {
    kube: Kube,
    nodes: Arc<NodeCache>,
    recorder: Recorder,
    metrics: ControllerMetrics,
    queue: Arc<WorkQueue<NodeName>>,
    heartbeat: Arc<Heartbeat>,
    books: Mutex<Books>,
    is_stopping: AtomicBool,
    stop: Notify,
}

/// What the loop knows.
struct Books {
    allocator: Allocator,
    /// Nodes for which there was no block.
    starving: BTreeSet<NodeName>,
    /// UIDs of Nodes that went while the list was read: it may still show them.
    gone: Option<BTreeSet<Arc<str>>>,
    /// What the counters show already, of each network.
    shown: Vec<(u64, u64)>,
}

impl NodeIpamController {
    /// Builds the loop and subscribes it to the Nodes. Nothing is written before [`run`](Self::run).
    #[must_use]
    pub fn new(context: NodeIpamContext) -> Arc<Self> {
        let backoff = Backoff::node(Jitter::seeded(context.seed));
        let queue = WorkQueue::new(QUEUE, backoff, &context.queue_metrics);
        let heartbeat = Heartbeat::new(NAME, STUCK_AFTER);
        heartbeat.watch(Arc::clone(&queue) as Arc<dyn Pulse>);
        let controller = Arc::new(Self {
            kube: context.kube,
            nodes: context.nodes,
            recorder: context.recorder,
            metrics: context.metrics,
            queue,
            heartbeat,
            books: Mutex::new(Books {
                allocator: Allocator::new(&context.ranges),
                starving: BTreeSet::new(),
                gone: Some(BTreeSet::new()),
                shown: vec![(0, 0); context.ranges.cluster.len()],
            }),
            is_stopping: AtomicBool::new(false),
            stop: Notify::new(),
        });
        controller.nodes.subscribe_weakly(&controller, Self::on_node);
        controller
    }

    /// Whether the loop gets on with its work.
    #[must_use]
    pub fn heartbeat(&self) -> &Arc<Heartbeat> {
        &self.heartbeat
    }

    /// Works until [`stop`](Self::stop) is called; then no write begins any more, and it returns when those under way have
    /// ended. It also returns, after an error in the log, if the Nodes cannot be listed or show networks that are not the
    /// cluster's: to go on would be to give networks twice.
    ///
    /// # Cancellation
    ///
    /// Dropping it abandons the writes under way. What came of them is what the Nodes show to the next process.
    pub async fn run(self: Arc<Self>) {
        if !self.take_stock().await {
            return;
        }
        self.nodes.synced().await;
        let mut under_way = FuturesUnordered::new();
        while !(self.is_stopping() && under_way.is_empty()) {
            tokio::select! {
                biased;
                Some(key) = under_way.next(), if !under_way.is_empty() => self.queue.done(&key),
                () = self.stop.notified(), if !self.is_stopping() => {}
                key = self.queue.next(), if !self.is_stopping() && under_way.len() < WORKERS => {
                    let this = &*self;
                    under_way.push(async move {
                        this.work(&key).await;
                        key
                    });
                }
            }
        }
    }

    /// Lets no write begin any more; see [`run`](Self::run).
    pub fn stop(&self) {
        self.is_stopping.store(true, Ordering::SeqCst);
        self.stop.notify_one();
    }

    fn is_stopping(&self) -> bool {
        self.is_stopping.load(Ordering::SeqCst)
    }

    /// Marks what the Nodes show as taken. They are listed for that: the cache of a new leader may lack what its
    /// predecessor wrote last.
    async fn take_stock(&self) -> bool {
        let mut tries = 1;
        let nodes = loop {
            match self.kube.list_nodes().await {
                Ok(nodes) => break nodes,
                Err(error) if tries < LIST_TRIES && !self.is_stopping() => {
                    tracing::warn!(controller = NAME, err = %error, "failed to list nodes, no pod network is given before they can be");
                    tries += 1;
                    tokio::select! {
                        biased;
                        () = self.stop.notified() => return false,
                        () = sleep(LIST_PAUSE) => {}
                    }
                }
                Err(error) => {
                    tracing::error!(controller = NAME, err = %error, "nodes cannot be listed, no pod network can be given");
                    return false;
                }
            }
        };
        let mut books = self.books();
        let gone = books.gone.take().unwrap_or_default();
        let present = nodes
            .iter()
            .filter(|node| !node.pod_cidrs.is_empty() && !gone.contains(&node.uid));
        for node in present {
            if let Err(error) = books.allocator.observe(node) {
                tracing::error!(controller = NAME, node = %node.name, err = %error, "a node has a pod network that is not the cluster's; correct the flags or the node");
                return false;
            }
        }
        self.show(&mut books);
        true
    }

    fn on_node(&self, change: &Change<Node>) {
        match change {
            Change::Added(node) => self.queue.add(node.name.clone()),
            Change::Updated { old, new }
                if old.pod_cidrs != new.pod_cidrs || old.deleting != new.deleting =>
            {
                self.queue.forget(&new.name);
                self.queue.add(new.name.clone());
            }
            Change::Updated { .. } => {}
            Change::Deleted(node) => {
                self.queue.remove(&node.name);
                let mut books = self.books();
                if let Some(gone) = &mut books.gone {
                    gone.insert(Arc::clone(&node.uid));
                }
                books.starving.remove(&node.name);
                if books.allocator.release(node) {
                    self.feed(&mut books);
                }
                self.show(&mut books);
            }
        }
    }

    async fn work(&self, key: &NodeName) {
        let Some(node) = self.nodes.get(key) else {
            self.queue.forget(key);
            return;
        };
        if !node.pod_cidrs.is_empty() {
            self.note(&node);
        } else if !node.deleting
            && let Some(networks) = self.grant(&node)
        {
            return self.write(&node, &networks).await;
        }
        self.queue.forget(key);
    }

    /// Takes note of the networks that a Node shows.
    fn note(&self, node: &Node) {
        let mut books = self.books();
        books.starving.remove(&node.name);
        if let Err(error) = books.allocator.observe(node) {
            tracing::warn!(controller = NAME, node = %node.name, err = %error, "a node has a pod network that is not the cluster's");
        }
        self.show(&mut books);
    }

    /// The networks to write on a Node, if there are any.
    fn grant(&self, node: &Node) -> Option<Vec<IpNet>> {
        let mut books = self.books();
        let (grant, passed) = books.allocator.grant(node);
        for (account, passed) in books.allocator.accounts().iter().zip(passed) {
            let labels = IpamLabels::of(account.network());
            self.metrics
                .ipam
                .tries
                .get_or_create(&labels)
                .observe(passed as f64);
        }
        self.show(&mut books);
        match grant {
            Grant::Networks(networks) => {
                books.starving.remove(&node.name);
                Some(networks)
            }
            Grant::Written => None,
            Grant::Exhausted => {
                // It waits for a block, not for a time.
                if books.starving.insert(node.name.clone()) {
                    drop(books);
                    tracing::warn!(controller = NAME, node = %node.name, "no pod network is left for a node");
                    self.record(node, events::CIDR_NOT_AVAILABLE);
                }
                None
            }
        }
    }

    async fn write(&self, node: &Node, networks: &[IpNet]) {
        let texts: Vec<String> = networks.iter().map(ToString::to_string).collect();
        let mut tries = 1;
        let error = loop {
            match self.kube.set_pod_networks(node, &texts).await {
                Ok(_) => {
                    self.books().allocator.written(node);
                    tracing::info!(controller = NAME, node = %node.name, networks = texts.join(","), "pod networks given");
                    self.queue.forget(&node.name);
                    return;
                }
                Err(error) if tries < TRIES && is_worth_a_try(&error) && !self.is_stopping() => tries += 1,
                Err(error) => break error,
            }
        };
        // Where no answer came, the write may have been made: then the networks are the Node's, and the next try says so.
        if !matches!(error, KubeError::Timeout | KubeError::Transport(_)) {
            let mut books = self.books();
            if books.allocator.give_back(node) {
                self.feed(&mut books);
            }
            self.show(&mut books);
        }
        match error {
            // It is gone, or another Node has its name by now: the watch brings the news.
            KubeError::NotFound(_) | KubeError::Conflict(_) => self.queue.forget(&node.name),
            KubeError::GateClosed => self.queue.retry(node.name.clone()),
            error => {
                tracing::warn!(controller = NAME, node = %node.name, err = %error, "failed to give a node its pod networks; it will be tried again");
                if self.queue.failures(&node.name) == 0 {
                    self.record(node, events::CIDR_ASSIGNMENT_FAILED);
                }
                self.queue.retry(node.name.clone());
            }
        }
    }

    /// A block is free: whoever waits for one is looked at again, in name order.
    fn feed(&self, books: &mut Books) {
        for name in &books.starving {
            self.queue.add(name.clone());
        }
    }

    fn record(&self, node: &Node, reason: &'static str) {
        self.recorder.record(
            &ObjectRef::from(node),
            NoteKind::Normal,
            reason,
            format!("Node {} status is now: {reason}", node.name),
        );
    }

    /// Brings the series up to date.
    fn show(&self, books: &mut Books) {
        let Books { allocator, shown, .. } = books;
        for (account, (allocations, releases)) in allocator.accounts().iter().zip(shown) {
            let labels = IpamLabels::of(account.network());
            let ipam = &self.metrics.ipam;
            ipam.allocations
                .get_or_create(&labels)
                .inc_by(account.allocations - *allocations);
            ipam.releases
                .get_or_create(&labels)
                .inc_by(account.releases - *releases);
            let blocks = i64::try_from(account.blocks()).unwrap_or(i64::MAX);
            ipam.blocks.get_or_create(&labels).set(blocks);
            ipam.usage.get_or_create(&labels).set(account.usage());
            (*allocations, *releases) = (account.allocations, account.releases);
        }
    }

    fn books(&self) -> MutexGuard<'_, Books> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for NodeIpamController {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NodeIpamController").finish_non_exhaustive()
    }
}

fn is_worth_a_try(error: &KubeError) -> bool {
    !matches!(
        error,
        KubeError::NotFound(_) | KubeError::Conflict(_) | KubeError::GateClosed
    )
}
