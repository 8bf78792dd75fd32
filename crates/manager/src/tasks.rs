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

impl Tasks {
    pub(crate) fn spawn(&mut self, name: &'static str, task: impl Future<Output = ()> + Send + 'static) {
        let handle = self.set.spawn(task);
        self.names.insert(handle.id(), (name, handle));
    }

    /// The name of the next task that ends; `None` if there is no task.
    ///
    /// # Cancellation
    ///
    /// No end is lost.
    pub(crate) async fn next(&mut self) -> Option<&'static str> {
        let id = match self.set.join_next_with_id().await? {
            Ok((id, ())) => id,
            Err(error) => error.id(),
        };
        Some(self.names.remove(&id).map_or("task", |(name, _)| name))
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
    async fn an_end_is_told_by_name() {
        let mut tasks = Tasks::default();
        tasks.spawn("endless", std::future::pending());
        tasks.spawn("short", async {});
        assert_eq!(tasks.next().await, Some("short"));
        tasks.spawn("broken", async { panic!("on purpose") });
        assert_eq!(tasks.next().await, Some("broken"));
        tasks.cancel("endless");
        assert_eq!(tasks.next().await, Some("endless"));
        assert_eq!(tasks.next().await, None);
    }
}
