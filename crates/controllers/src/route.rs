//! The route controller (`node-route-controller`): gives each pod network of each Node its route in the cloud, takes routes away
//! that lead nowhere, and says on the Node whether its network can be reached.
//!
//! It is driven by the watch: a change of Nodes begins a pass at once, with the changes of half a second together. A
//! periodic pass is the safety net, which repairs what was changed in the cloud. Every pass reads all routes, once,
//! whatever the number of Nodes; passes never overlap.
//!
//! ```text
//! route.rs           when a pass begins
//! route/pass.rs      one pass: read, create and delete, publish
//! route/calls.rs     the calls that bring changes to the cloud, many changes in one where the cloud takes that
//! route/plan.rs      what is to be done, as a table                    (pure)
//! route/verdict.rs   the condition and the event                       (pure)
//! route/attempts.rs  what failed, and when it is tried again
//! ```

mod attempts;
mod calls;
mod pass;
pub mod plan;
mod verdict;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bowline_cloud_provider::{Node, Routes};
use bowline_kube_io::Change;
use bowline_plan::EventSpec;
use futures::future::{BoxFuture, FutureExt as _};
use ipnet::IpNet;
use tokio::time::{Instant, sleep_until};

use crate::cluster_cidr::{self, CidrListError};
use crate::controller::{Context, Controller};
use crate::last_written::LastWritten;
use crate::metrics::gauges::ROUTES_FAILING;
use crate::put_back::Part;
use crate::queue::{Backoff, Jitter, WorkQueue};
use attempts::Attempts;
use pass::Outcome;
use verdict::Verdict;

/// The canonical name.
pub const NAME: &str = "node-route-controller";
/// The name under which its events appear, as the Go managers have it.
pub const COMPONENT: &str = "route_controller";
/// The name of its queue in the series of work queues.
const QUEUE: &str = "Routes";
/// The first delay before something that failed is tried again.
const FIRST_RETRY: Duration = Duration::from_secs(1);
/// The longest one, so that what works again is seen to work within a minute.
const LAST_RETRY: Duration = Duration::from_secs(50);

/// When passes begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RouteTiming {
    /// At changes of Nodes, and this long after the start of the last pass: `--route-reconciliation-period`.
    Periodic(Duration),
    /// At changes of Nodes, at most one pass in ten seconds: the feature gate
    /// `CloudControllerManagerWatchBasedRoutesReconciliation`. A safety pass follows after five to ten minutes of rest.
    WatchBased,
}

impl RouteTiming {
    /// How long changes are collected from the first one on.
    fn batch(self) -> Duration {
        match self {
            Self::Periodic(_) => Duration::from_millis(500),
            Self::WatchBased => Duration::from_secs(2),
        }
    }

    /// The least time from the start of a pass to the start of the next.
    fn distance(self) -> Duration {
        match self {
            Self::Periodic(_) => Duration::from_secs(1),
            Self::WatchBased => Duration::from_secs(10),
        }
    }

    /// The time from the start of a pass to the start of the next if nothing calls for one.
    fn rest(self, jitter: &Jitter) -> Duration {
        match self {
            Self::Periodic(period) => period,
            Self::WatchBased => jitter.between(Duration::from_secs(5 * 60), Duration::from_secs(10 * 60)),
        }
    }

    /// What the first pass is called for, as upstream: with watches, every Node is a new one at the start.
    fn first(self) -> Trigger {
        match self {
            Self::Periodic(_) => Trigger::Periodic,
            Self::WatchBased => Trigger::NodeChange,
        }
    }

    fn backoff(self, jitter: Jitter) -> Backoff {
        let max = match self {
            Self::Periodic(period) => LAST_RETRY.min(period),
            Self::WatchBased => LAST_RETRY,
        };
        Backoff {
            base: FIRST_RETRY.min(max),
            max,
            jitter: Some(jitter),
        }
    }
}

/// Why a pass begins. One pass answers whatever called for it until then, and bears the name of what called first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Trigger {
    /// Nodes came, went, or changed what their routes are made of.
    NodeChange,
    /// The period has passed, or something that failed is to be tried again.
    Periodic,
}

impl Trigger {
    /// All of them.
    pub(crate) const ALL: [Self; 2] = [Self::NodeChange, Self::Periodic];

    /// The value of the label `trigger`.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::NodeChange => "node_change",
            Self::Periodic => "periodic",
        }
    }
}

/// What an operator can set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RouteSettings {
    /// `--configure-cloud-routes`: whether routes are kept at all, where the provider has them.
    pub is_wanted: bool,
    /// `--cluster-cidr`: routes to destinations outside of it are never deleted. What is wrong with it matters only where the
    /// controller runs: a manifest may well give something else, or nothing, to a provider without routes.
    pub cluster_cidrs: Result<Vec<IpNet>, CidrListError>,
    /// When passes begin.
    pub timing: RouteTiming,
}

impl RouteSettings {
    /// What is wrong with the pod networks of a Node; see [`odd_networks`](crate::cluster_cidr::odd_networks).
    #[must_use]
    pub fn odd_networks(&self, node: &Node, nodes: &[Arc<Node>]) -> Vec<(&'static EventSpec, String)> {
        let cluster = self.cluster_cidrs.as_deref().unwrap_or_default();
        cluster_cidr::odd_networks(node, nodes, cluster)
    }

    /// Reads `--cluster-cidr`.
    #[must_use]
    pub fn new(is_wanted: bool, cluster_cidr: &str, timing: RouteTiming) -> Self {
        Self {
            is_wanted,
            cluster_cidrs: cluster_cidr::parse(cluster_cidr),
            timing,
        }
    }
}

impl Default for RouteSettings {
    fn default() -> Self {
        Self::new(true, "", RouteTiming::Periodic(Duration::from_secs(10)))
    }
}

/// The route controller.
pub struct RouteController {
    ctx: Context,
    routes: Arc<dyn Routes>,
    cluster_cidrs: Vec<IpNet>,
    timing: RouteTiming,
    /// What calls for a pass.
    queue: Arc<WorkQueue<Trigger>>,
    attempts: Mutex<Attempts>,
    /// The condition `NetworkUnavailable`, as it was written last.
    conditions: LastWritten<Verdict>,
    /// The pod networks that Nodes had since this process began to watch. There are no more than the cluster has blocks.
    seen: Mutex<BTreeSet<IpNet>>,
}

impl Controller for RouteController {
    fn context(&self) -> &Context {
        &self.ctx
    }

    /// # Cancellation
    ///
    /// Dropping it abandons what is under way; the next process reads all routes and finishes.
    fn run(self: Arc<Self>) -> BoxFuture<'static, ()> {
        async move {
            self.ctx.nodes.synced().await;
            let mut last_begun = None;
            while let Some((trigger, is_safety_pass)) = self.next_pass(last_begun).await {
                last_begun = Some(Instant::now());
                self.answer_all();
                if let Some(outcome) = self.pass(is_safety_pass).await {
                    self.ctx.metrics.route_synced(outcome.name(), trigger.name());
                    if let (Outcome::Error, Some(begun)) = (outcome, last_begun) {
                        // As upstream: what could not be read is asked for again under the key that asked for it.
                        self.call_again(trigger, begun);
                    }
                }
                self.queue.done(&trigger);
            }
        }
        .boxed()
    }
}

impl RouteController {
    /// Builds the controller and subscribes it to the Nodes. Nothing is called before [`run`](Controller::run).
    #[must_use]
    pub fn new(ctx: Context, routes: Arc<dyn Routes>, settings: &RouteSettings) -> Arc<Self> {
        let timing = settings.timing;
        let cluster_cidrs = settings.cluster_cidrs.clone().unwrap_or_else(|fault| {
            // Whoever starts a manager has checked this. Without networks no route counts as the cluster's: none is deleted.
            tracing::error!(controller = NAME, err = %fault, "--cluster-cidr cannot be used, routes are not deleted");
            Vec::new()
        });
        let backoff = timing.backoff(ctx.jitter.clone());
        let controller = Arc::new(Self {
            routes,
            cluster_cidrs,
            timing,
            // A call for a pass may have to wait for its turn, so the queue's age says nothing about health.
            queue: WorkQueue::new(QUEUE, backoff.clone(), &ctx.metrics.queues),
            attempts: Mutex::new(Attempts::new(backoff)),
            conditions: LastWritten::of(Part::NetworkUnavailable),
            seen: Mutex::default(),
            ctx,
        });
        let nodes = &controller.ctx.nodes;
        nodes.subscribe_weakly(&controller, Self::on_node);
        let probes = &controller.ctx.metrics.probes;
        probes.probe_weakly(&ROUTES_FAILING, &controller, |controller| {
            controller.attempts().failing()
        });
        controller
    }

    /// Waits until a pass is to begin, the last of which began then. Answers what called for it, and whether it is a safety
    /// pass; `None`: the controller is stopping.
    async fn next_pass(&self, last_begun: Option<Instant>) -> Option<(Trigger, bool)> {
        let timing = self.timing;
        let mut safety_pass = Instant::now();
        if let Some(last_begun) = last_begun {
            let earliest = sleep_until(last_begun + timing.distance());
            self.ctx.stop.run_until_cancelled(earliest).await?;
            safety_pass = last_begun + timing.rest(&self.ctx.jitter).max(timing.distance());
            self.call_again(Trigger::Periodic, last_begun);
        } else {
            self.answer_all();
            self.queue.add(timing.first());
        }
        let trigger = tokio::select! {
            biased;
            () = self.ctx.stop.cancelled() => return None,
            trigger = self.queue.next() => trigger,
            () = sleep_until(safety_pass) => {
                self.queue.add(Trigger::Periodic);
                self.queue.next().await
            }
        };
        Some((trigger, safety_pass <= Instant::now()))
    }

    fn on_node(&self, change: &Change<Node>) {
        let node = match change {
            Change::Added(node) => node,
            Change::Deleted(node) => {
                self.conditions.forget(&node.name);
                node
            }
            Change::Updated { old, new } if matters(old, new) => new,
            Change::Updated { .. } => return,
        };
        let networks = node.pod_cidrs.iter();
        self.seen()
            .extend(networks.filter_map(|text| cluster_cidr::pod_network(text)));
        self.attempts().node_changed(&node.name);
        let batch = self.timing.batch();
        self.queue.add_after(Trigger::NodeChange, batch);
    }

    /// Whatever called for a pass before now is answered by the one that begins.
    fn answer_all(&self) {
        for trigger in Trigger::ALL {
            self.queue.remove(&trigger);
        }
    }

    /// Calls for a pass when what failed is to be tried again, if something is that the last pass could not try.
    fn call_again(&self, trigger: Trigger, last_pass: Instant) {
        let put_back = self.conditions.next_due().filter(|due| *due > last_pass);
        let failed = self.attempts().next_due(last_pass);
        if let Some(due) = failed.into_iter().chain(put_back).min() {
            let after = due.saturating_duration_since(Instant::now());
            self.queue.add_after(trigger, after);
        }
    }

    fn seen(&self) -> MutexGuard<'_, BTreeSet<IpNet>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn attempts(&self) -> MutexGuard<'_, Attempts> {
        self.attempts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a change of a Node can change its routes. The order of addresses counts, as it does upstream.
fn matters(old: &Node, new: &Node) -> bool {
    old.pod_cidrs != new.pod_cidrs
        || old.addresses != new.addresses
        || old.provider_id != new.provider_id
        || old.uid != new.uid
}

#[cfg(test)]
mod tests {
    use bowline_cloud_provider::{AddressType, NodeAddress, Readiness};

    use super::*;

    #[test]
    fn only_what_routes_are_made_of_calls_for_a_pass() {
        let node = Node::named("n1");
        let changed = |change: fn(&mut Node)| {
            let mut new = node.clone();
            change(&mut new);
            matters(&node, &new)
        };
        assert!(!changed(|node| node.resource_version = "8".into()));
        assert!(!changed(|node| node.readiness = Readiness::Ready));
        assert!(!changed(|node| {
            node.network_unavailable = Some(bowline_cloud_provider::NetworkUnavailable {
                is_unavailable: false,
                reason: "RouteCreated".into(),
            });
        }));
        assert!(changed(|node| node.pod_cidrs = vec!["10.0.0.0/24".into()]));
        assert!(changed(|node| node.provider_id = Some("fake://1".into())));
        assert!(changed(|node| node.uid = "new".into()));
        assert!(changed(
            |node| node.addresses = vec![NodeAddress::new(AddressType::InternalIp, "10.1.0.1")]
        ));
    }
}
