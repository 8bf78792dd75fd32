//! Bringing the writes of one user of the client to their end.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use crate::error::KubeError;

/// The writes of one user of the client, such as a controller that has to stop: none begins any more, and those that are
/// under way come to their end. Clones are the same.
#[derive(Debug, Clone, Default)]
pub struct Writes {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct State {
    under_way: usize,
    is_stopped: bool,
}

impl Writes {
    /// Lets no write begin any more: they fail with [`KubeError::GateClosed`].
    pub fn stop(&self) {
        self.lock().is_stopped = true;
        self.shared.changed.notify_waiters();
    }

    /// Waits for [`stop`](Self::stop), and then until no write is under way.
    ///
    /// # Cancellation
    ///
    /// May be dropped and called again.
    pub async fn drained(&self) {
        loop {
            let mut changed = std::pin::pin!(self.shared.changed.notified());
            changed.as_mut().enable(); // before the look, so that no change is missed
            {
                let state = self.lock();
                if state.is_stopped && state.under_way == 0 {
                    return;
                }
            }
            changed.await;
        }
    }

    pub(crate) fn begin(&self) -> Result<UnderWay<'_>, KubeError> {
        let mut state = self.lock();
        if state.is_stopped {
            return Err(KubeError::GateClosed);
        }
        state.under_way += 1;
        Ok(UnderWay { writes: self })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A write, from the moment at which it has its turn to the end of its answer.
pub(crate) struct UnderWay<'a> {
    writes: &'a Writes,
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.writes.lock().under_way -= 1;
        self.writes.shared.changed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    async fn is_drained(writes: &Writes) -> bool {
        let patience = Duration::from_secs(1);
        tokio::time::timeout(patience, writes.drained()).await.is_ok()
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_under_way_ends_and_nothing_begins() {
        let writes = Writes::default();
        assert!(!is_drained(&writes).await, "nobody has asked for it");
        let (first, second) = (writes.begin().unwrap(), writes.begin().unwrap());
        writes.stop();
        assert_eq!(writes.begin().err(), Some(KubeError::GateClosed));
        drop(first);
        assert!(!is_drained(&writes).await);
        let waiting = tokio::spawn({
            let writes = writes.clone();
            async move { writes.drained().await }
        });
        tokio::task::yield_now().await;
        drop(second);
        waiting.await.unwrap();
        assert!(is_drained(&writes).await);
    }
}
