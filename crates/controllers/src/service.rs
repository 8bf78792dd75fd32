//! The service controller (`service-lb-controller`): one load balancer per Service of type `LoadBalancer`.
//!
//! One owner per balancer: create, change, node change, deletion and the periodic check all go through the Service's one
//! key, and a key is worked on once at a time. A sync that waits for the cloud is parked, not blocked: its key is free for
//! later events, and nothing waits behind it. So the number of workers does not limit how many Services make progress; the
//! cloud's own budget does.
//!
//! ```text
//!   Services            Nodes               every 10 min      every period,     Nodes handed
//!      |                  |                      |            a removal         to a sync
//!  enqueue.rs         node_changes.rs        enqueue.rs           |                 |
//!  needs_update.rs    node_sync.rs               |                |                 |
//!      |                  |                      |                |                 |
//!      +---- the Service, and why: tracked.rs ---+                |                 |
//!                         |                                       |                 |
//!   +------------> queue, one entry per key <---------------------+-----------------+
//!   |                     |                                       |                 |
//!   |                  sync.rs                              background.rs   node_annotations.rs
//!   |                 /       \                                   |
//!   |          ensure.rs     delete.rs                            |
//!   |                 \       /                                   |
//!   |              crates/drive  <--------------------------------+
//!   |                     |    observe, plan, apply a wave, and again
//!   |                     |    (events, and writes to the Service: sync_hooks.rs)
//!   |                 outcome.rs
//!   +-- parked, failed ---+--- settled: the status is published (status.rs)
//!         state.rs
//! ```
//!
//! What others change back on a Service has a key of its own, and is put back without a call to the cloud (`fights.rs`). So has the
//! condition of a Service in trouble (`condition.rs`).
//!
//! `needs_update.rs` and `status.rs` are pure. What `tracked.rs` remembers between two syncs spares calls and events. Two
//! removals lean on it besides, because nothing in Kubernetes asks for them any more: that of the balancer of a Service that
//! vanished without its finalizer, and of one that got a class or another type without it. If a process ends before such a
//! removal, the balancer stays. The next process finds it in the cloud, at its start and every 10 min, and reports it
//! (`left_behind.rs`; why it does not delete it: `docs/decisions/0016-gone-by-name.md`).

mod background;
mod causes;
mod class_note;
mod concurrency;
mod condition;
mod delete;
mod enqueue;
mod ensure;
mod failure;
mod fights;
pub mod left_behind;
mod needs_update;
mod node_annotations;
mod node_changes;
mod node_identities;
mod node_sync;
mod outcome;
mod pace;
mod state;
mod status;
mod sync;
mod sync_hooks;
mod tracked;
mod unanswered;
mod unsettled;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bowline_cloud_provider::{
    BackgroundWork, LoadBalancer, Service, ServiceClasses, ServiceKey, ServicesView, facts,
};
use bowline_drive::{GivenUp, Lanes};
use bowline_kube_io::{Kube, ServiceCache};
use bowline_transport::Silences;
use futures::future::{BoxFuture, FutureExt as _};
use tokio::sync::Notify;

use crate::controller::{Context, Controller};
use crate::event_dedup::EventDedup;
use crate::metrics::gauges::LEFT_BEHIND;
use crate::queue::{WorkQueue, of_services};
use crate::workers::{self, Work};
use concurrency::{ConcurrencyLimit, Permit};
use left_behind::LeftBehind;
use node_annotations::WrittenFrom;
use node_changes::NodeChanges;
use node_identities::KnownIdentities;
use node_sync::{Balanced, NodeSync};
use outcome::Outcome;
use pace::Pace;
use tracked::Tracked;
use unanswered::LateOfOthers;

/// The canonical name.
pub const NAME: &str = "service-lb-controller";
/// The name under which its events appear.
pub const COMPONENT: &str = "service-controller";
/// The names of its queues in the series of work queues: of Services, and of passes over all of them after Nodes changed.
const QUEUE: &str = "service";
const NODE_QUEUE: &str = "node";

/// Time to the next try after something moved under a sync.
const SOON: Duration = Duration::from_millis(100);

/// What a cloud has to offer for Services.
pub struct ServiceProvider {
    /// Its balancers.
    pub load_balancer: Arc<dyn LoadBalancer>,
    /// Its work that belongs to no single Service.
    pub background: Vec<Arc<dyn BackgroundWork>>,
    /// The API server, with the name under which the provider's own writes are made.
    pub kube: Kube,
    /// Which Services it serves.
    pub classes: ServiceClasses,
    /// The reads of the cloud that have no answer for long.
    pub silences: Silences,
}

/// The Services of the cluster, as providers see them.
struct ServedServices {
    services: Arc<ServiceCache>,
    classes: ServiceClasses,
}

impl ServicesView for ServedServices {
    fn services(&self) -> Vec<Arc<Service>> {
        self.services.all()
    }

    fn classes(&self) -> &ServiceClasses {
        &self.classes
    }

    fn service(&self, key: &ServiceKey) -> Option<Arc<Service>> {
        self.services.get(key)
    }

    fn has_uid(&self, uid: &str) -> bool {
        self.services.has_uid(uid)
    }
}

/// What is queued.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Key {
    /// A Service.
    Service(ServiceKey),
    /// What others changed back on a Service.
    PutBack(ServiceKey),
    /// The condition of a Service in trouble.
    Condition(ServiceKey),
    /// A provider's background work, by its place in the list.
    Background(usize),
    /// What the provider notes on Nodes.
    Nodes,
    /// Balancers that may have been left behind.
    LeftBehind,
}

/// The service controller.
pub struct ServiceController {
    ctx: Context,
    services: Arc<ServiceCache>,
    /// The same with what is served of them.
    view: Arc<dyn ServicesView>,
    provider: ServiceProvider,
    queue: Arc<WorkQueue<Key>>,
    /// Never holds more than one key, for no longer than a moment: it is there for its series.
    node_queue: Arc<WorkQueue<NodeSync>>,
    lanes: Lanes,
    limit: ConcurrencyLimit,
    pace: Mutex<Pace>,
    node_changes: NodeChanges,
    /// The Nodes to balance over, until what is read of them changes.
    balanced: Mutex<Option<Balanced>>,
    known_identities: Mutex<KnownIdentities>,
    annotated_from: Mutex<WrittenFrom>,
    /// Each in a place of its own, because a map keeps room for nearly as many again.
    tracked: Mutex<BTreeMap<ServiceKey, Box<Tracked>>>,
    /// A cause to look at some Service has come.
    news: Notify,
    left_behind: Mutex<LeftBehind>,
    /// Until when a call may take effect on what several Services go by.
    late_of_others: Mutex<LateOfOthers>,
    /// What the last run of each background work had to say, and which calls of its runs were given up.
    background_runs: Mutex<BTreeMap<usize, (EventDedup, GivenUp)>>,
}

impl Work for ServiceController {
    type Piece = Key;

    async fn take(&self) -> Key {
        self.queue.next().await
    }

    async fn work(&self, key: Key) {
        match &key {
            Key::Service(service) => self.work_on(service, &key).await,
            Key::PutBack(service) => Box::pin(self.put_back(service, &key)).await,
            Key::Condition(service) => Box::pin(self.show_condition(service, &key)).await,
            // On the heap, so that the many Services that wait for their turn do not each keep room for what is rare.
            Key::Background(index) => Box::pin(self.run_background(*index)).await,
            Key::Nodes => Box::pin(self.annotate_nodes()).await,
            Key::LeftBehind => Box::pin(self.look_for_left_behind()).await,
        }
        self.queue.done(&key);
    }
}

impl Controller for ServiceController {
    fn context(&self) -> &Context {
        &self.ctx
    }

    /// What is under way at the stop reaches the end of its wave.
    ///
    /// # Cancellation
    ///
    /// Dropping it abandons what is under way; the next process observes what came of it.
    fn run(self: Arc<Self>) -> BoxFuture<'static, ()> {
        async move {
            let _while_it_runs = self.ctx.metrics.measurements.shown_for_now();
            self.services.synced().await;
            self.ctx.nodes.synced().await;
            self.schedule_background();
            self.queue.add(Key::LeftBehind);
            let until_stopped = &self.ctx.stop;
            futures::join!(
                workers::run(&*self, usize::MAX, until_stopped.cancelled()),
                until_stopped.run_until_cancelled(self.follow_nodes()),
                until_stopped.run_until_cancelled(self.verify_periodically()),
            );
        }
        .boxed()
    }
}

impl ServiceController {
    /// Builds the controller and subscribes it to both caches. Nothing is called before [`run`](Controller::run).
    #[must_use]
    pub fn new(ctx: Context, services: Arc<ServiceCache>, provider: ServiceProvider) -> Arc<Self> {
        let controller = Arc::new(Self {
            queue: ctx.queue(QUEUE, of_services()),
            node_queue: ctx.queue(NODE_QUEUE, of_services()),
            lanes: Lanes::default(),
            limit: ConcurrencyLimit::default(),
            pace: Mutex::default(),
            node_changes: NodeChanges::default(),
            balanced: Mutex::default(),
            known_identities: Mutex::default(),
            annotated_from: Mutex::default(),
            tracked: Mutex::default(),
            news: Notify::new(),
            left_behind: Mutex::default(),
            late_of_others: Mutex::default(),
            background_runs: Mutex::default(),
            view: Arc::new(ServedServices {
                services: Arc::clone(&services),
                classes: provider.classes.clone(),
            }),
            ctx,
            services,
            provider,
        });
        let (services, nodes) = (&controller.services, &controller.ctx.nodes);
        services.subscribe_weakly(&controller, Self::on_service);
        nodes.subscribe_weakly(&controller, Self::on_node);
        let probes = &controller.ctx.metrics.probes;
        controller.show_unsettled(probes);
        probes.probe_weakly(&LEFT_BEHIND, &controller, Self::count_left_behind);
        controller
    }

    /// Which Services are served.
    fn classes(&self) -> &ServiceClasses {
        self.view.classes()
    }

    /// One sync; one that is to make a balancer has its turn.
    async fn work_on(&self, service: &ServiceKey, key: &Key) {
        if self.queue.is_held(&Key::PutBack(service.clone())) {
            return self.queue.add_after(key.clone(), SOON); // what it writes is shown by then
        }
        let is_to_be_made =
            |it: Arc<Service>| self.classes().is_wanted(&it) && facts::published_addresses(&it).is_empty();
        let permit = if let Some(permit) = self.tracked(service, |tracked| tracked.state.take_permit()) {
            permit
        } else if self.services.get(service).is_some_and(is_to_be_made) {
            self.queue.rest(key);
            let Some(permit) = self.ctx.stop.run_until_cancelled(self.limit.permit()).await else {
                return; // nothing begins any more
            };
            self.queue.touch(key);
            permit
        } else {
            Permit::NONE
        };
        // A sync may be long. What a process before this one told stands until a sync has ended.
        if self.tracked(service, |tracked| tracked.unsettled.is_some()) {
            self.condition_is_due(service);
        }
        // On the heap, because those that wait for their turn are many, and need no room for it yet.
        let (mut outcome, permit) = Box::pin(permit.run(self.sync(service))).await;
        if let Outcome::Parked(parked, after) = &mut outcome {
            parked.permit = permit.for_later(*after);
        }
        self.conclude(service, outcome);
    }

    /// What is done for a key has got on; see [`Heartbeat`](crate::queue::Heartbeat).
    fn progressed(&self, key: &Key, is_working: bool) {
        if is_working {
            self.queue.touch(key);
        } else {
            self.queue.rest(key);
        }
    }

    /// Access to what is remembered of a Service.
    fn tracked<T>(&self, key: &ServiceKey, access: impl FnOnce(&mut Tracked) -> T) -> T {
        access(lock(&self.tracked).entry(key.clone()).or_default())
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
