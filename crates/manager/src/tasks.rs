//! Tasks by name: nothing runs in the process that is not here.

use std::collections::BTreeMap;
use std::future::Future;

use tokio::task::{AbortHandle, Id, JoinSet};

/// The tasks of the process.
#[derive(Default)]
pub(crate) struct Tasks {
    set: JoinSet<()>,
    names: BTreeMap<Id, (&'static str, AbortHandle)>,
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
        self.names.insert(handle.id(), (name, handle));
    }

    /// The next task that ends; `None` if there is no task.
    ///
    /// # Cancellation
    ///
    /// No end is lost.
    pub(crate) async fn next(&mut self) -> Option<Finished> {
        let (id, panicked) = match self.set.join_next_with_id().await? {
            Ok((id, ())) => (id, false),
            Err(error) => (error.id(), error.is_panic()),
        };
        let name = self.names.remove(&id).map_or("task", |(name, _)| name);
        Some(Finished { name, panicked })
    }

    /// Ends the tasks of this name where they are; their end is told by [`next`](Self::next).
    pub(crate) fn cancel(&self, name: &str) {
        let handles = self.names.values().filter(|(of_task, _)| *of_task == name);
        handles.for_each(|(_, handle)| handle.abort());
    }

    /// Ends all tasks where they are, and waits for that.
    pub(crate) async fn abort(&mut self) {
        self.set.shutdown().await;
        self.names.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_end_is_told_by_name_with_its_kind() {
        let mut tasks = Tasks::default();
        tasks.spawn("endless", std::future::pending());
        tasks.spawn("short", async {});
        let end = |name, panicked| Some(Finished { name, panicked });
        assert_eq!(tasks.next().await, end("short", false));
        tasks.spawn("broken", async { panic!("on purpose") });
        assert_eq!(tasks.next().await, end("broken", true));
        tasks.cancel("endless");
        assert_eq!(tasks.next().await, end("endless", false));
        assert_eq!(tasks.next().await, None);
    }
}
