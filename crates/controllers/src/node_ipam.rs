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

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bowline_cloud_provider::{Node, NodeName};
use bowline_kube_io::{Change, KubeError};
use bowline_plan::EventSpec;
use futures::future::{BoxFuture, FutureExt as _};
use ipnet::IpNet;
use tokio::time::sleep;

use crate::controller::{Context, Controller};
use crate::event_dedup::EventDedup;
use crate::metrics::IpamLabels;
use crate::queue::{RetryAfter, WorkQueue, of_nodes};
use crate::workers::{self, Work};
use crate::{conflict, events};
use allocator::{Allocator, Grant, Odd};
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
/// The pause between two tries to list the Nodes at the start.
const LIST_PAUSE: Duration = Duration::from_secs(10);

/// The node IPAM controller.
pub struct NodeIpamController {
    ctx: Context,
    queue: Arc<WorkQueue<NodeName>>,
    allocations: Mutex<Allocations>,
}

/// What the controller knows.
struct Allocations {
    allocator: Allocator,
    /// Nodes for which there was no block.
    starving: BTreeSet<NodeName>,
    /// UIDs of Nodes that went while the list was read: it may still show them. `None` from then on.
    gone: Option<BTreeSet<Arc<str>>>,
    /// What was told of Nodes whose networks are odd.
    told: BTreeMap<NodeName, EventDedup>,
    /// What the counters show already, of each network.
    shown: Vec<(u64, u64)>,
}

impl Work for NodeIpamController {
    type Piece = NodeName;

    async fn take(&self) -> NodeName {
        self.queue.next().await
    }

    async fn work(&self, key: NodeName) {
        if let Some(node) = self.ctx.nodes.get(&key) {
            if !node.pod_cidrs.is_empty() {
                self.note(&node);
            } else if !node.deleting
                && let Some(networks) = self.grant(&node)
                && let Err(retry_after) = self.write(&node, &networks).await
            {
                self.queue.retry_after(key.clone(), retry_after);
                self.queue.done(&key);
                return;
            }
        }
        self.queue.finish(&key);
    }
}

impl Controller for NodeIpamController {
    fn context(&self) -> &Context {
        &self.ctx
    }

    /// # Cancellation
    ///
    /// Dropping it abandons the writes under way. What came of them is what the Nodes show to the next process.
    fn run(self: Arc<Self>) -> BoxFuture<'static, ()> {
        async move {
            if !self.take_stock().await {
                return;
            }
            self.ctx.nodes.synced().await;
            // Before anything is given: what the list did not show, the watch may.
            let (with, without): (Vec<_>, Vec<_>) = self
                .ctx
                .nodes
                .all()
                .into_iter()
                .partition(|node| !node.pod_cidrs.is_empty());
            with.iter().for_each(|node| self.note(node));
            without.iter().for_each(|node| self.queue.add(node.name.clone()));
            workers::run(&*self, WORKERS, self.ctx.stop.cancelled()).await;
        }
        .boxed()
    }
}

impl NodeIpamController {
    /// Builds the controller and subscribes it to the Nodes. Nothing is written before [`run`](Controller::run).
    #[must_use]
    pub fn new(ctx: Context, ranges: &Ranges) -> Arc<Self> {
        let controller = Arc::new(Self {
            queue: ctx.queue(QUEUE, of_nodes(ctx.jitter.clone())),
            allocations: Mutex::new(Allocations {
                allocator: Allocator::new(ranges),
                starving: BTreeSet::new(),
                gone: Some(BTreeSet::new()),
                told: BTreeMap::new(),
                shown: vec![(0, 0); ranges.cluster.len()],
            }),
            ctx,
        });
        let nodes = &controller.ctx.nodes;
        nodes.subscribe_weakly(&controller, Self::on_node);
        controller
    }

    /// Marks what the Nodes show as taken; gives whether it could. They are listed for that, until they can be: the cache of a new
    /// leader may lack what its predecessor wrote last.
    async fn take_stock(&self) -> bool {
        let mut dedup = EventDedup::default();
        let nodes = loop {
            let list = self.ctx.kube.list_nodes();
            let error = match self.ctx.stop.run_until_cancelled(list).await {
                None => return false,
                Some(Ok(nodes)) => break nodes,
                Some(Err(error)) => error,
            };
            if dedup.is_news("list", &error.to_string()) {
                tracing::warn!(controller = NAME, err = %error, "Failed to list nodes; no pod network is given before they can be, and they are asked for again every 10 s");
            }
            let pause = RetryAfter::by_kube(&error).delay(LIST_PAUSE);
            self.ctx.stop.run_until_cancelled(sleep(pause)).await;
        };
        // Holding the allocations all the time: the end of a Node that goes meanwhile is noted after that.
        let odd: Vec<(Arc<Node>, Odd)> = {
            let mut allocations = self.allocations();
            let gone = allocations.gone.take().unwrap_or_default();
            let present = nodes
                .into_iter()
                .filter(|node| !node.pod_cidrs.is_empty() && !gone.contains(&node.uid));
            let odd = present.map(|node| {
                let odd = allocations.allocator.observe(&node);
                (node, odd)
            });
            let odd = odd.filter(|(_, odd)| *odd != Odd::default()).collect();
            self.show(&mut allocations);
            odd
        };
        for (node, odd) in odd {
            self.tell_odd(&node, odd);
        }
        true
    }

    fn on_node(&self, change: &Change<Node>) {
        let is_stock_taken = self.allocations().gone.is_none();
        match change {
            // Until then nothing waits for anything but that, and all Nodes are looked at after it.
            Change::Added(_) | Change::Updated { .. } if !is_stock_taken => {}
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
                let mut allocations = self.allocations();
                if let Some(gone) = &mut allocations.gone {
                    gone.insert(Arc::clone(&node.uid));
                }
                allocations.starving.remove(&node.name);
                allocations.told.remove(&node.name);
                if allocations.allocator.release(node) {
                    self.feed(&mut allocations);
                }
                self.show(&mut allocations);
            }
        }
    }

    /// Takes note of the networks that a Node shows. What is odd about them is told once, and the Node keeps them.
    fn note(&self, node: &Node) {
        let odd = {
            let mut allocations = self.allocations();
            if !self.is_there(node) {
                return; // its end was noted already, and would not be again
            }
            allocations.starving.remove(&node.name);
            let odd = allocations.allocator.observe(node);
            self.show(&mut allocations);
            odd
        };
        self.tell_odd(node, odd);
    }

    fn tell_odd(&self, node: &Node, odd: Odd) {
        if !odd.outside.is_empty() {
            let networks = odd.outside.join(", ");
            let text = events::outside_network(&networks);
            self.tell(node, &events::POD_NETWORK_OUTSIDE, text);
        }
        for other in odd.shared_with {
            self.tell(
                node,
                &events::POD_NETWORK_SHARED,
                events::shared_network(&node.pod_cidrs.join(","), &other),
            );
            if let Some(there) = self.ctx.nodes.get(&other) {
                let text = events::shared_network(&there.pod_cidrs.join(","), &node.name);
                self.tell(&there, &events::POD_NETWORK_SHARED, text);
            }
        }
    }

    fn tell(&self, node: &Node, event: &EventSpec, text: String) {
        let is_news = {
            let mut allocations = self.allocations();
            let dedup = allocations.told.entry(node.name.clone()).or_default();
            dedup.is_news(event.reason, &text)
        };
        if is_news {
            tracing::warn!(controller = NAME, node = %node.name, reason = event.reason, "{text}");
            self.ctx.event(node, event.note(text));
        }
    }

    /// The networks to write on a Node, if there are any.
    fn grant(&self, node: &Node) -> Option<Vec<IpNet>> {
        let mut allocations = self.allocations();
        if !self.is_there(node) {
            return None; // its end was noted already, and would not be again
        }
        let (grant, passed) = allocations.allocator.grant(node);
        for (account, passed) in allocations.allocator.accounts().iter().zip(passed) {
            let labels = IpamLabels::of(account.network());
            self.ctx
                .metrics
                .ipam
                .tries
                .get_or_create(&labels)
                .observe(passed as f64);
        }
        self.show(&mut allocations);
        match grant {
            Grant::Networks(networks) => {
                allocations.starving.remove(&node.name);
                Some(networks)
            }
            Grant::Written => None,
            Grant::Exhausted => {
                // It waits for a block, not for a time.
                if allocations.starving.insert(node.name.clone()) {
                    drop(allocations);
                    tracing::warn!(controller = NAME, node = %node.name, "No pod network is left for a node");
                    self.record(node, &events::CIDR_NOT_AVAILABLE);
                }
                None
            }
        }
    }

    /// Writes networks on a Node, unless they need to be there no longer. An error is what was said about the next try.
    async fn write(&self, node: &Node, networks: &[IpNet]) -> Result<(), RetryAfter> {
        let texts: Vec<String> = networks.iter().map(ToString::to_string).collect();
        let mut tries = 1;
        let error = loop {
            match self.ctx.kube.set_pod_networks(node, &texts).await {
                Ok(_) => {
                    self.allocations().allocator.written(node);
                    tracing::info!(controller = NAME, node = %node.name, networks = texts.join(","), "Pod networks given");
                    return Ok(());
                }
                Err(error) => {
                    if error.may_be_made() {
                        self.allocations().allocator.doubt(node);
                    }
                    if tries == TRIES || !is_worth_a_try(&error) || self.ctx.stop.is_cancelled() {
                        break error;
                    }
                    tries += 1;
                    conflict::pause(&self.ctx.jitter).await;
                }
            }
        };
        {
            let mut allocations = self.allocations();
            let is_free = if self.is_there(node) {
                allocations.allocator.give_back(node)
            } else {
                allocations.allocator.release(node)
            };
            if is_free {
                self.feed(&mut allocations);
            }
            self.show(&mut allocations);
        }
        match error {
            // It is gone: the watch brings the news.
            KubeError::NotFound(_) => Ok(()),
            // Another Node has its name by now, or somebody else's write came between: the next try looks anew.
            KubeError::Conflict(_) | KubeError::GateClosed => Err(RetryAfter::Nothing),
            error => {
                tracing::warn!(controller = NAME, node = %node.name, err = %error, "Failed to give a node its pod networks; it will be tried again");
                if self.queue.failures(&node.name) == 0 {
                    self.record(node, &events::CIDR_ASSIGNMENT_FAILED);
                }
                Err(RetryAfter::by_kube(&error))
            }
        }
    }

    /// Whether this very Node is known. Asked with the allocations at hand: the end of a Node that goes later is noted after that.
    fn is_there(&self, node: &Node) -> bool {
        let there = self.ctx.nodes.get(&node.name);
        there.is_some_and(|there| there.uid == node.uid)
    }

    /// A block is free: whoever waits for one is looked at again, in name order.
    fn feed(&self, allocations: &mut Allocations) {
        for name in &allocations.starving {
            self.queue.add(name.clone());
        }
    }

    fn record(&self, node: &Node, event: &EventSpec) {
        let text = format!("Node {} status is now: {}", node.name, event.reason);
        self.ctx.event(node, event.note(text));
    }

    /// Brings the series up to date.
    fn show(&self, allocations: &mut Allocations) {
        let Allocations { allocator, shown, .. } = allocations;
        for (account, (allocations, releases)) in allocator.accounts().iter().zip(shown) {
            let labels = IpamLabels::of(account.network());
            let ipam = &self.ctx.metrics.ipam;
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

    fn allocations(&self) -> MutexGuard<'_, Allocations> {
        self.allocations.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_worth_a_try(error: &KubeError) -> bool {
    !matches!(
        error,
        KubeError::NotFound(_) | KubeError::Conflict(_) | KubeError::Throttled { .. } | KubeError::GateClosed
    )
}
