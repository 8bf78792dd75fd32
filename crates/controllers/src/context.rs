//! What every loop works with.

use std::sync::Arc;
use std::time::Duration;

use bowline_kube_io::{Kube, NodeCache, ObjectRef, Recorder};
use bowline_plan::Note;

use crate::metrics::ControllerMetrics;
use crate::queue::{Backoff, Heartbeat, Jitter, Pulse, QueueMetrics, WorkQueue};

/// Age of a piece of work at which a loop counts as stuck. Some clouds take minutes to make a route, and a batch of
/// machines takes minutes where each is asked for by itself at a low rate. Waiting for a cloud that is busy is no work.
const STUCK_AFTER: Duration = Duration::from_secs(8 * 60);

/// What every loop works with.
pub struct LoopContext {
    /// The API server.
    pub kube: Kube,
    /// All Nodes.
    pub nodes: Arc<NodeCache>,
    /// Where events go; its component should be the one that the loop's module names.
    pub recorder: Recorder,
    /// The loop's series.
    pub metrics: ControllerMetrics,
    /// The series of the work queues.
    pub queue_metrics: QueueMetrics,
    /// The seed of the loop's jitter.
    pub seed: u64,
}

impl LoopContext {
    /// Records an event on an object.
    pub(crate) fn event<'a, T>(&self, object: &'a T, note: Note)
    where
        ObjectRef: From<&'a T>,
    {
        self.recorder
            .record(&ObjectRef::from(object), note.kind, note.reason, note.text);
    }

    /// The chance that the loop draws from.
    pub(crate) fn jitter(&self) -> Jitter {
        Jitter::seeded(self.seed)
    }

    /// The health of the loop of this name.
    pub(crate) fn heartbeat(&self, name: &'static str) -> Arc<Heartbeat> {
        Heartbeat::new(name, STUCK_AFTER)
    }

    /// A queue whose oldest key is a matter of the loop's health. The name is that of its series.
    pub(crate) fn queue<K: Ord + Clone + Send + 'static>(
        &self,
        name: &'static str,
        backoff: Backoff,
        heartbeat: &Heartbeat,
    ) -> Arc<WorkQueue<K>> {
        let queue = WorkQueue::new(name, backoff, &self.queue_metrics);
        heartbeat.watch(Arc::clone(&queue) as Arc<dyn Pulse>);
        queue
    }
}
