//! Tasks by name: nothing runs in the process that is not here.

use std::collections::BTreeMap;
use std::future::Future;

use tokio::task::{Id, JoinSet};

/// The tasks of the process.
#[derive(Default)]
pub(crate) struct Tasks {
    set: JoinSet<()>,
    names: BTreeMap<Id, &'static str>,
}

/// A task that came to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Finished {
    pub(crate) name: &'static str,
    pub(crate) panicked: bool,
}

impl Tasks {
    pub(crate) fn spawn(&mut self, name: &'static str, task: impl Future<Output = ()> + Send + 'static) {
        let handle = self.set.spawn(task);
        self.names.insert(handle.id(), name);
    }

    /// The next task that ends; none if there is no task.
    ///
    /// # Cancellation
    ///
    /// No end is lost.
    pub(crate) async fn next(&mut self) -> Option<Finished> {
        let (id, panicked) = match self.set.join_next_with_id().await? {
            Ok((id, ())) => (id, false),
            Err(error) => (error.id(), error.is_panic()),
        };
        let name = self.names.remove(&id).unwrap_or("task");
        Some(Finished { name, panicked })
    }

    /// Ends all tasks where they are, and waits for that.
    pub(crate) async fn abort(&mut self) {
        self.set.shutdown().await;
        self.names.clear();
    }
}
