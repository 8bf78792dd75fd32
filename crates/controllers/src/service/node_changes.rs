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
/// How long a Node that is about to be initialised is waited for: then it has its provider ID and addresses, and the balancers
/// are looked at once and not twice. One that nobody initialises is balanced over all the same.
const INITIALIZATION: Duration = Duration::from_secs(10);

/// Collects changes until they have been quiet for a moment: thirty Nodes that join together are one change.
#[derive(Default)]
pub(super) struct NodeChanges {
    pending: Mutex<Pending>,
    changed: Notify,
}

/// A change of a Node that the balancers are to follow.
#[derive(Clone, Copy)]
pub(super) struct NodeChange {
    /// Labels changed that a selector of a Service may look at.
    pub(super) with_labels: bool,
    /// The Node is not initialised yet, so another change follows.
    pub(super) is_first_of_two: bool,
}

#[derive(Clone, Copy, Default)]
struct Pending {
    /// The first and the last change that nothing need follow.
    whole: Option<(Instant, Instant)>,
    /// The first change that another follows.
    begun: Option<Instant>,
    with_labels: bool,
}

impl NodeChanges {
    /// A Node changed.
    pub(super) fn note(&self, change: NodeChange) {
        let now = Instant::now();
        let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        if change.is_first_of_two {
            pending.begun.get_or_insert(now);
        } else {
            let first = pending.whole.map_or(now, |(first, _)| first);
            pending.whole = Some((first, now));
        }
        pending.with_labels |= change.with_labels;
        self.changed.notify_one();
    }

    fn due(&self) -> Option<Instant> {
        let pending = *self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        let whole = pending
            .whole
            .map(|(first, last)| (last + QUIET).min(first + PATIENCE));
        let begun = pending.begun.map(|begun| begun + INITIALIZATION);
        whole.into_iter().chain(begun).min()
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
        let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *pending).with_labels
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: NodeChange = NodeChange {
        with_labels: false,
        is_first_of_two: false,
    };
    const BEGUN: NodeChange = NodeChange {
        is_first_of_two: true,
        ..WHOLE
    };

    #[tokio::test(start_paused = true)]
    async fn changes_are_acted_on_when_quiet_or_when_patience_ends() {
        let changes = NodeChanges::default();
        let begun = Instant::now();
        let steady = async {
            loop {
                changes.note(WHOLE);
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        };
        tokio::select! { () = changes.settled() => {}, () = steady => {} }
        assert_eq!(begun.elapsed(), PATIENCE);
        changes.take();
        changes.note(WHOLE);
        let begun = Instant::now();
        changes.settled().await;
        assert_eq!(begun.elapsed(), QUIET);
    }

    #[tokio::test(start_paused = true)]
    async fn a_node_that_is_about_to_be_initialised_is_waited_for_but_not_for_ever() {
        let changes = NodeChanges::default();
        for (follows_after, acted_on_after) in [
            (None, INITIALIZATION),
            (Some(Duration::from_secs(1)), Duration::from_millis(1500)),
            (Some(Duration::from_millis(9900)), INITIALIZATION),
        ] {
            let begun = Instant::now();
            changes.note(BEGUN);
            let rest = async {
                if let Some(after) = follows_after {
                    tokio::time::sleep(after).await;
                    changes.note(WHOLE);
                }
            };
            futures::join!(changes.settled(), rest);
            assert_eq!(begun.elapsed(), acted_on_after, "{follows_after:?}");
            changes.take();
            assert!(!changes.is_pending());
        }
    }
}
