//! What every controller is, and what it works with.

use std::sync::Arc;
use std::time::Duration;

use bowline_cloud_provider::ClusterFacts;
use bowline_kube_io::{Kube, LeaseNote, NodeCache, ObjectRef, Recorder, Writes};
use bowline_plan::Note;
use futures::future::BoxFuture;
use tokio_util::sync::CancellationToken;

use crate::metrics::ControllerMetrics;
use crate::queue::{Backoff, Heartbeat, Jitter, Pulse, WorkQueue};

/// Age of a piece of work at which a controller counts as stuck. Some clouds take minutes to make a route, and a batch of
/// instances takes minutes where each is asked for by itself at a low rate. Waiting for a cloud that is busy is no work.
const STUCK_AFTER: Duration = Duration::from_secs(8 * 60);

/// A controller, as whoever runs it sees it.
pub trait Controller: Send + Sync + 'static {
    /// What it works with.
    fn context(&self) -> &Context;

    /// Works until [`stop`](Self::stop) is called; then no work begins any more, and it returns when the writes under way
    /// have ended.
    ///
    /// # Cancellation
    ///
    /// May be dropped at any await: each implementation says what the next process finds.
    fn run(self: Arc<Self>) -> BoxFuture<'static, ()>;

    /// Lets no work begin any more; see [`run`](Self::run).
    fn stop(&self) {
        self.context().stop.cancel();
    }

    /// Whether it gets on with its work. Its name is the controller's.
    fn heartbeat(&self) -> &Arc<Heartbeat> {
        &self.context().heartbeat
    }
}

/// What every controller works with.
pub struct Context {
    pub(crate) kube: Kube,
    pub(crate) nodes: Arc<NodeCache>,
    pub(crate) cluster: Arc<ClusterFacts>,
    recorder: Recorder,
    pub(crate) metrics: ControllerMetrics,
    pub(crate) jitter: Jitter,
    pub(crate) heartbeat: Arc<Heartbeat>,
    pub(crate) stop: CancellationToken,
    /// Those of a controller that ends as soon as none of them is under way.
    writes: Writes,
    /// What is noted on the lease that the controller waits for; `None` without an election.
    pub(crate) note: Option<Arc<LeaseNote>>,
}

impl Context {
    /// What the controller of this name works with: the API server, all Nodes, the cluster, where its events go, its series
    /// and the seed of its jitter.
    #[must_use]
    pub fn new(
        name: &'static str,
        kube: Kube,
        nodes: Arc<NodeCache>,
        cluster: Arc<ClusterFacts>,
        recorder: Recorder,
        metrics: ControllerMetrics,
        seed: u64,
    ) -> Self {
        Self {
            kube,
            nodes,
            cluster,
            recorder,
            metrics,
            jitter: Jitter::seeded(seed),
            heartbeat: Heartbeat::new(name, STUCK_AFTER),
            stop: CancellationToken::new(),
            writes: Writes::default(),
            note: None,
        }
    }

    /// The same for a controller that notes on its lease what the next leader has to know.
    #[must_use]
    pub fn noting_on(mut self, note: Option<Arc<LeaseNote>>) -> Self {
        self.note = note;
        self
    }

    /// The same for a controller that works [until its writes have ended](Self::until_written).
    pub(crate) fn with_own_writes(mut self) -> Self {
        self.kube = self.kube.with_writes(&self.writes);
        self
    }

    /// Works until the controller is told to stop. For work that has no end of its own and may be dropped while it reads:
    /// it is at its end as soon as none of its writes to the API server is under way.
    pub(crate) async fn until_written(&self, work: impl Future<Output = ()>) {
        let written = async {
            self.stop.cancelled().await;
            self.writes.stop();
            self.writes.drained().await;
        };
        tokio::select! {
            biased;
            () = written => {}
            () = work => {}
        }
    }

    /// Records an event on an object.
    pub(crate) fn event<'a, T>(&self, object: &'a T, note: Note)
    where
        ObjectRef: From<&'a T>,
    {
        self.recorder
            .record(&ObjectRef::from(object), note.kind, note.reason, note.text);
    }

    /// The same in the name of another component.
    pub(crate) fn event_of<'a, T>(&self, component: &'static str, object: &'a T, note: Note)
    where
        ObjectRef: From<&'a T>,
    {
        let recorder = self.recorder.clone().named(component);
        recorder.record(&ObjectRef::from(object), note.kind, note.reason, note.text);
    }

    /// A queue whose oldest key is a matter of the controller's health. The name is that of its series.
    pub(crate) fn queue<K: Ord + Clone + Send + 'static>(
        &self,
        name: &'static str,
        backoff: Backoff,
    ) -> Arc<WorkQueue<K>> {
        let queue = WorkQueue::new(name, backoff, &self.metrics.queues);
        self.heartbeat.watch(Arc::clone(&queue) as Arc<dyn Pulse>);
        queue
    }
}
