//! The service loop (`service-lb-controller`): one load balancer per Service of type `LoadBalancer`.
//!
//! One owner per balancer: create, change, node change, deletion, the periodic check all go through the Service's one
//! key, and a key is worked on once at a time. A reconcile that waits for the cloud is parked, not blocked: the key is
//! free for later events, and nothing else waits behind it. So the number of workers does not limit how many Services
//! make progress; the cloud's own budget does.
//!
//! ```text
//! service.rs      who is looked at, when, and what its outcome means
//! changes.rs      which change of a Service counts                                     (pure)
//! reconcile.rs    a wanted balancer: intent, finalizer, drive, publish
//! removal.rs      an unwanted one: drive, status, finalizer
//! drive.rs        observe, plan, apply, until settled: the same for all
//! lanes.rs        what may not be written side by side
//! status.rs       whether a status is already published                                (pure)
//! tracking.rs     what is remembered between two syncs of one Service
//! background.rs   a provider's work that belongs to no single Service
//! node_annotations.rs   what a provider notes on Nodes
//! ```

mod background;
mod changes;
mod drive;
mod lanes;
mod node_annotations;
mod node_changes;
mod reconcile;
mod removal;
mod status;
mod tracking;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bowline_cloud_provider::{
    ClusterFacts, DynBackgroundWork, DynLoadBalancer, Service, ServiceFacts, ServiceKey, ServicesView, facts,
};
use bowline_kube_io::{Change, Kube, NodeCache, Recorder, ServiceCache};
use bowline_plan::{Note, NoteKind};
use futures::stream::{FuturesUnordered, StreamExt as _};
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::metrics::ControllerMetrics;
use crate::queue::WorkQueue;
use lanes::Lanes;
use node_annotations::WrittenFrom;
use node_changes::NodeChanges;
use reconcile::{Failure, Outcome};
use tracking::{BalancedNodes, Causes, Progress, Tracked};

/// The canonical name.
pub const NAME: &str = "service-lb-controller";
/// The name under which its events appear.
pub const COMPONENT: &str = "service-controller";

/// Time to the next try after something moved under a sync.
const SOON: Duration = Duration::from_millis(100);
/// Conflicts in a row after which a sync counts as failed.
const MAX_CONFLICTS: u32 = 10;

/// Event reasons of this loop; the whole table with meanings is in [`crate::events`].
mod reasons {
    pub(super) const ENSURING: &str = "EnsuringLoadBalancer";
    pub(super) const ENSURED: &str = "EnsuredLoadBalancer";
    pub(super) const UPDATED: &str = "UpdatedLoadBalancer";
    pub(super) const DELETING: &str = "DeletingLoadBalancer";
    pub(super) const DELETED: &str = "DeletedLoadBalancer";
    pub(super) const UNAVAILABLE: &str = "UnAvailableLoadBalancer";
    pub(super) const SYNC_FAILED: &str = "SyncLoadBalancerFailed";
    pub(super) const UPDATE_FAILED: &str = "UpdateLoadBalancerFailed";
    pub(super) const DELETE_FAILED: &str = "DeleteLoadBalancerFailed";
    pub(super) const NO_NODES: &str = "There are no available nodes for LoadBalancer";
    pub(super) const FAILURES: &[&str] = &[SYNC_FAILED, UPDATE_FAILED, DELETE_FAILED];
}

/// What an operator can set.
#[derive(Debug, Clone)]
pub struct ServiceSettings {
    /// Time between two checks of all balancers against the cloud; zero: never.
    pub verify_period: Duration,
    /// How long the set of Nodes must have been quiet before it is acted on.
    pub node_quiet: Duration,
    /// How long a set of Nodes that never gets quiet is waited for at most.
    pub node_patience: Duration,
}

impl Default for ServiceSettings {
    fn default() -> Self {
        Self {
            verify_period: Duration::from_secs(600),
            node_quiet: Duration::from_millis(500),
            node_patience: Duration::from_secs(2),
        }
    }
}

/// Everything the loop works with.
pub struct ServiceContext {
    /// The API server.
    pub kube: Kube,
    /// The same with the name under which the provider's own writes are made.
    pub provider_kube: Kube,
    /// All Services.
    pub services: Arc<ServiceCache>,
    /// All Nodes.
    pub nodes: Arc<NodeCache>,
    /// The cloud's balancers.
    pub load_balancer: Arc<dyn DynLoadBalancer>,
    /// The cloud's work that belongs to no single Service.
    pub background: Vec<Arc<dyn DynBackgroundWork>>,
    /// The cluster.
    pub cluster: Arc<ClusterFacts>,
    /// Where events go; its component should be [`COMPONENT`].
    pub recorder: Recorder,
    /// The loop's series.
    pub metrics: ControllerMetrics,
    /// The queue's series are those of the name `service`.
    pub queue: Arc<WorkQueue<Key>>,
    /// The passes over all Services after Nodes changed; its series are those of the name `node`.
    pub node_queue: Arc<WorkQueue<NodePass>>,
    /// What an operator can set.
    pub settings: ServiceSettings,
}

/// What is queued.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Key {
    /// A Service.
    Service(ServiceKey),
    /// A provider's background work, by its place in the list.
    Background(usize),
    /// What the provider notes on Nodes.
    Nodes,
}

/// A pass over all Services, because the set of Nodes has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct NodePass;

/// The service loop.
pub struct ServiceController {
    kube: Kube,
    provider_kube: Kube,
    services: Arc<ServiceCache>,
    nodes: Arc<NodeCache>,
    load_balancer: Arc<dyn DynLoadBalancer>,
    background: Vec<Arc<dyn DynBackgroundWork>>,
    cluster: Arc<ClusterFacts>,
    recorder: Recorder,
    metrics: ControllerMetrics,
    queue: Arc<WorkQueue<Key>>,
    node_queue: Arc<WorkQueue<NodePass>>,
    settings: ServiceSettings,
    lanes: Lanes,
    node_changes: NodeChanges,
    balanced: Mutex<Option<BalancedNodes>>,
    annotated_from: Mutex<WrittenFrom>,
    tracked: Mutex<BTreeMap<ServiceKey, Tracked>>,
    /// What the last run of each background work had to say.
    background_notes: Mutex<BTreeMap<usize, BTreeSet<Note>>>,
    is_stopping: AtomicBool,
    stop: Notify,
}

impl ServiceController {
    /// Builds the loop and subscribes it to both caches. Nothing is called before [`run`](Self::run).
    #[must_use]
    pub fn new(context: ServiceContext) -> Arc<Self> {
        let ServiceContext {
            kube,
            provider_kube,
            services,
            nodes,
            load_balancer,
            background,
            cluster,
            recorder,
            metrics,
            queue,
            node_queue,
            settings,
        } = context;
        let controller = Arc::new(Self {
            kube,
            provider_kube,
            services,
            nodes,
            load_balancer,
            background,
            cluster,
            recorder,
            metrics,
            queue,
            node_queue,
            lanes: Lanes::default(),
            node_changes: NodeChanges::new(settings.node_quiet, settings.node_patience),
            settings,
            balanced: Mutex::default(),
            annotated_from: Mutex::default(),
            tracked: Mutex::default(),
            background_notes: Mutex::default(),
            is_stopping: AtomicBool::new(false),
            stop: Notify::new(),
        });
        controller
            .services
            .subscribe_weakly(&controller, Self::on_service);
        controller.nodes.subscribe_weakly(&controller, Self::on_node);
        controller
    }

    /// Works until [`stop`](Self::stop) is called; then no sync begins any more, and it returns when those under way have
    /// reached the end of their wave.
    ///
    /// # Cancellation
    ///
    /// Dropping it abandons what is under way; the next process observes what came of it.
    pub async fn run(self: Arc<Self>) {
        let _while_it_runs = self.metrics.measurements.shown_for_now();
        self.services.synced().await;
        self.nodes.synced().await;
        for (index, work) in self.background.iter().enumerate() {
            self.queue.add_after(Key::Background(index), work.first());
        }
        let mut under_way = FuturesUnordered::new();
        let mut verify_at = self.next_verify();
        loop {
            if self.is_stopping() && under_way.is_empty() {
                return;
            }
            tokio::select! {
                biased;
                Some((key, outcome)) = under_way.next(), if !under_way.is_empty() => {
                    let (key, outcome): (Key, Option<Outcome>) = (key, outcome);
                    if let (Key::Service(key), Some(outcome)) = (&key, outcome) {
                        self.conclude(key, outcome);
                    }
                    self.queue.done(&key);
                }
                () = self.stop.notified(), if !self.is_stopping() => {}
                () = self.node_changes.settled(), if !self.is_stopping() => {
                    self.node_queue.add(NodePass);
                    let pass = self.node_queue.next().await; // at once: nobody else takes from it
                    self.node_pass();
                    self.node_queue.done(&pass);
                }
                () = tokio::time::sleep_until(verify_at), if !self.is_stopping() => {
                    self.verify_all();
                    verify_at = self.next_verify();
                }
                key = self.queue.next(), if !self.is_stopping() => {
                    let this = &*self;
                    under_way.push(async move {
                        let outcome = match &key {
                            Key::Service(key) => Some(this.sync(key).await),
                            Key::Background(index) => {
                                this.run_background(*index).await;
                                None
                            }
                            Key::Nodes => {
                                this.annotate_nodes().await;
                                None
                            }
                        };
                        (key, outcome)
                    });
                }
            }
        }
    }

    /// Lets no sync begin any more; see [`run`](Self::run).
    pub fn stop(&self) {
        self.is_stopping.store(true, Ordering::SeqCst);
        self.stop.notify_one();
    }

    fn is_stopping(&self) -> bool {
        self.is_stopping.load(Ordering::SeqCst)
    }

    fn next_verify(&self) -> Instant {
        // All balancers are checked together: then the project-wide lists are read once for all of them.
        let never = Duration::from_secs(365 * 24 * 3600);
        let period = self.settings.verify_period;
        Instant::now() + if period.is_zero() { never } else { period }
    }

    /// Access to what is remembered of a Service.
    fn tracked<T>(&self, key: &ServiceKey, access: impl FnOnce(&mut Tracked) -> T) -> T {
        let mut tracked = self.tracked.lock().unwrap_or_else(PoisonError::into_inner);
        access(tracked.entry(key.clone()).or_default())
    }

    fn enqueue(&self, key: &ServiceKey, causes: Causes) {
        self.tracked(key, |tracked| tracked.add_causes(causes));
        self.queue.add(Key::Service(key.clone()));
    }

    /// A Service changed. Decides only whether it is looked at; what is done is decided when it is.
    fn on_service(&self, change: &Change<Service>) {
        let changed = Causes {
            changed: true,
            ..Causes::default()
        };
        match change {
            Change::Added(service) => {
                let key = ServiceKey::of(service);
                self.tracked(&key, |tracked| {
                    tracked.is_foreign = facts::class(service).is_some()
                });
                if facts::needs_cleanup(service) {
                    self.enqueue(&key, changed);
                } else if facts::wants_load_balancer(service) {
                    // One that was ensured before, by us or by another manager, is only checked: no news, no events.
                    let is_new =
                        !facts::has_finalizer(service) || facts::published_addresses(service).is_empty();
                    let verify = Causes {
                        verify: true,
                        ..Causes::default()
                    };
                    self.enqueue(&key, if is_new { changed } else { verify });
                } else {
                    self.forget_unused(&key);
                }
            }
            Change::Updated { old, new } => {
                let key = ServiceKey::of(new);
                let concerns_us = self.tracked(&key, |tracked| {
                    tracked.is_foreign |= facts::class(new).is_some();
                    tracked.is_changed(old, new)
                });
                let begins_cleanup = facts::needs_cleanup(new) && !facts::needs_cleanup(old);
                if concerns_us || begins_cleanup {
                    self.enqueue(&key, changed);
                } else {
                    self.forget_unused(&key);
                }
            }
            Change::Deleted(service) => {
                let key = ServiceKey::of(service);
                let is_ghost = self.tracked(&key, |tracked| {
                    let ghost = tracked
                        .synced
                        .take()
                        .filter(|synced| facts::wants_load_balancer(synced));
                    let is_ghost = ghost.is_some();
                    tracked.ghosts.extend(ghost);
                    tracked.parked = None;
                    is_ghost
                });
                if is_ghost {
                    self.enqueue(&key, changed);
                } else {
                    self.forget_unused(&key);
                }
            }
        }
    }

    /// Drops what is remembered of a Service that is none of ours.
    fn forget_unused(&self, key: &ServiceKey) {
        let mut tracked = self.tracked.lock().unwrap_or_else(PoisonError::into_inner);
        let is_unused = |t: &Tracked| {
            t.causes.is_empty()
                && t.synced.is_none()
                && t.parked.is_none()
                && t.unfinished.is_none()
                && t.ghosts.is_empty()
                && !t.is_foreign
        };
        if tracked.get(key).is_some_and(is_unused) {
            tracked.remove(key);
        }
    }

    /// One sync of one Service.
    async fn sync(&self, key: &ServiceKey) -> Outcome {
        let (causes, ghost, is_foreign, may_have_balancer) = self.tracked(key, |tracked| {
            let causes = std::mem::take(&mut tracked.causes);
            (
                causes,
                tracked.ghosts.first().cloned(),
                tracked.is_foreign,
                tracked.may_have_balancer(),
            )
        });
        if let Some(ghost) = ghost {
            let outcome = self.remove_ghost(key, ghost, causes).await;
            self.count("delete", &outcome);
            return match outcome {
                Outcome::Removed => {
                    self.tracked(key, |tracked| tracked.ghosts.remove(0));
                    Outcome::Superseded(Progress {
                        causes,
                        ..Progress::default()
                    }) // its successor may be waiting
                }
                outcome => outcome,
            };
        }
        let Some(service) = self.services.get(key) else {
            return Outcome::Removed;
        };
        if facts::needs_cleanup(&service) && !is_foreign {
            let outcome = self.remove(key, service, causes).await;
            self.count("delete", &outcome);
            outcome
        } else if facts::wants_load_balancer(&service) && service.metadata.deletion_timestamp.is_none() {
            let begun = Instant::now();
            let outcome = self.ensure(key, service, causes).await;
            let is_update = causes.is_nodes_only();
            if is_update {
                self.metrics
                    .update_loadbalancer_host_latency_seconds
                    .observe(begun.elapsed().as_secs_f64());
            }
            self.count(if is_update { "update" } else { "ensure" }, &outcome);
            outcome
        } else if may_have_balancer && !is_foreign {
            // The finalizer was taken off by hand.
            let outcome = self.remove(key, service, causes).await;
            self.count("delete", &outcome);
            outcome
        } else {
            Outcome::Nothing
        }
    }

    fn count(&self, operation: &'static str, outcome: &Outcome) {
        let result = match outcome {
            Outcome::Settled(_) | Outcome::Removed => "settled",
            Outcome::Parked(..) => "waiting",
            Outcome::Superseded(_) => "interrupted",
            Outcome::Conflict(_) => "conflict",
            Outcome::Failed(..) => "failed",
            Outcome::Nothing => return,
        };
        self.metrics.synced(operation, result);
    }

    /// Measures how long the changes took that a settled sync has served.
    fn observe_settled(&self, key: &ServiceKey) {
        if let Some(changed_at) = self.tracked(key, Tracked::served) {
            let seconds = changed_at.elapsed().as_secs_f64();
            self.metrics.settle_duration_seconds.observe(seconds);
        }
    }

    /// Decides when a key comes back, and says what has to be said.
    fn conclude(&self, key: &ServiceKey, outcome: Outcome) {
        let queued = Key::Service(key.clone());
        match outcome {
            Outcome::Settled(identities) => {
                self.tracked(key, Tracked::leave_passes);
                self.observe_settled(key);
                let current = self.balanced_nodes().identities;
                // They changed while it was under way.
                let is_behind = identities != current && !self.node_changes.is_pending();
                let follows_nodes = self.load_balancer.follows_nodes();
                self.tracked(key, |tracked| {
                    if follows_nodes || !is_behind {
                        tracked.nodes = Some(identities);
                    }
                    tracked.unfinished = None;
                    tracked.conflicts = 0;
                    tracked
                        .said
                        .retain(|reason, _| !reasons::FAILURES.contains(reason));
                });
                self.queue.forget(&queued);
                if is_behind && follows_nodes {
                    self.enqueue(
                        key,
                        Causes {
                            nodes: true,
                            ..Causes::default()
                        },
                    );
                } else if is_behind {
                    self.update_nothing(key, &current);
                }
            }
            Outcome::Removed | Outcome::Nothing => {
                if matches!(outcome, Outcome::Removed) {
                    self.observe_settled(key);
                }
                self.queue.forget(&queued);
                self.tracked(key, |tracked| {
                    tracked.served();
                    tracked.leave_passes();
                    tracked.synced = None;
                    tracked.parked = None;
                    tracked.unfinished = None;
                    tracked.said.clear();
                });
                self.forget_unused(key);
            }
            Outcome::Parked(parked, after) => {
                self.tracked(key, |tracked| tracked.parked = Some(parked));
                self.queue.add_after(queued, after);
            }
            Outcome::Superseded(progress) | Outcome::Conflict(progress) => {
                let (is_changed, conflicts) = self.tracked(key, |tracked| {
                    tracked.unfinished = Some(progress);
                    tracked.conflicts += 1;
                    (tracked.causes.changed, tracked.conflicts)
                });
                // At once only for a change that has come meanwhile: whatever else moved, the watch has to catch up first.
                if is_changed {
                    self.queue.add(queued);
                } else if conflicts > MAX_CONFLICTS {
                    self.queue.retry(queued);
                } else {
                    self.queue.add_after(queued, SOON);
                }
            }
            Outcome::Failed(failure, progress) => self.conclude_failure(key, &failure, progress),
        }
    }

    fn conclude_failure(&self, key: &ServiceKey, failure: &Failure, progress: Progress) {
        let queued = Key::Service(key.clone());
        let service = self.services.get(key);
        let ghost = self.tracked(key, |tracked| tracked.ghosts.first().cloned());
        let was_nodes_only = progress.causes.is_nodes_only();
        let (reason, text) = if ghost.is_some() {
            (
                reasons::DELETE_FAILED,
                format!("Error deleting load balancer: {}", failure.text),
            )
        } else if was_nodes_only {
            self.metrics.nodesync_error_total.inc();
            (reasons::UPDATE_FAILED, self.update_failed_text(&failure.text))
        } else {
            (
                reasons::SYNC_FAILED,
                format!("Error syncing load balancer: {}", failure.text),
            )
        };
        let retry = Causes {
            retry: true,
            ..progress.causes
        };
        let is_said = self.tracked(key, |tracked| {
            tracked.leave_passes();
            tracked.unfinished = Some(Progress {
                causes: retry,
                ..progress
            });
            tracked.is_news(reason, &text) || !failure.is_quiet
        });
        tracing::warn!(service = %key, err = %failure.text, "load balancer sync failed, will be tried again");
        if is_said && let Some(service) = ghost.or(service) {
            self.event(&service, NoteKind::Warning, reason, &text);
        }
        match failure.after {
            Some(after) => self.queue.add_after(queued, after),
            None if was_nodes_only => self.queue.add(queued), // a full sync follows at once
            None => self.queue.retry(queued),
        }
    }

    fn facts(&self, service: Arc<Service>, is_wanted: bool, balanced: &BalancedNodes) -> ServiceFacts {
        ServiceFacts {
            service,
            is_wanted,
            nodes: Arc::clone(&balanced.nodes),
            services: Arc::clone(&self.services) as Arc<dyn ServicesView>,
            cluster: Arc::clone(&self.cluster),
            now: self.kube.clock().now(),
        }
    }

    /// Every balancer is to be checked against the cloud.
    fn verify_all(&self) {
        let verify = Causes {
            verify: true,
            ..Causes::default()
        };
        for service in self.services.all() {
            if facts::wants_load_balancer(&service) && !facts::needs_cleanup(&service) {
                self.enqueue(&ServiceKey::of(&service), verify);
            }
        }
    }
}
