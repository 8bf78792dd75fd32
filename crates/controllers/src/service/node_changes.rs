//! Changes of Nodes, collected until they have settled.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use crate::queue::until;

/// How long the Nodes must have been quiet before their changes are acted on.
const QUIET: Duration = Duration::from_millis(500);
/// How long Nodes that never get quiet are waited for at most.
const PATIENCE: Duration = Duration::from_secs(2);

/// Collects changes until they have been quiet for a moment: thirty Nodes that join together are one change.
#[derive(Default)]
pub(super) struct NodeChanges {
    pending: Mutex<Option<Pending>>,
    changed: Notify,
}

#[derive(Clone, Copy)]
struct Pending {
    first: Instant,
    last: Instant,
    /// Labels changed that a selector of a Service may look at.
    with_labels: bool,
}

impl NodeChanges {
    /// A Node changed.
    pub(super) fn note(&self, with_labels: bool) {
        let now = Instant::now();
        let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        *pending = Some(match *pending {
            Some(p) => Pending {
                last: now,
                with_labels: p.with_labels || with_labels,
                ..p
            },
            None => Pending {
                first: now,
                last: now,
                with_labels,
            },
        });
        self.changed.notify_one();
    }

    fn due(&self) -> Option<Instant> {
        let pending = (*self.pending.lock().unwrap_or_else(PoisonError::into_inner))?;
        Some((pending.last + QUIET).min(pending.first + PATIENCE))
    }

    /// Waits until there are changes and they have settled.
    pub(super) async fn settled(&self) {
        loop {
            let due = self.due();
            if due.is_some_and(|due| due <= Instant::now()) {
                return;
            }
            tokio::select! {
                biased;
                () = self.changed.notified() => {}
                () = until(due) => {}
            }
        }
    }

    /// Whether changes are waiting to settle.
    pub(super) fn is_pending(&self) -> bool {
        self.due().is_some()
    }

    /// Takes all changes up to now. Answers whether labels were among them.
    pub(super) fn take(&self) -> bool {
        let pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner).take();
        pending.is_some_and(|pending| pending.with_labels)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn changes_are_acted_on_when_quiet_or_when_patience_ends() {
        let changes = NodeChanges::default();
        let begun = Instant::now();
        let steady = async {
            loop {
                changes.note(false);
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        };
        tokio::select! { () = changes.settled() => {}, () = steady => {} }
        assert_eq!(begun.elapsed(), PATIENCE);
        changes.take();
        changes.note(false);
        let begun = Instant::now();
        changes.settled().await;
        assert_eq!(begun.elapsed(), QUIET);
    }
}
