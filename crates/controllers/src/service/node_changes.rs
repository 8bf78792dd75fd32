//! Changes of Nodes, collected until they have settled.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bowline_cloud_provider::NodeName;
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
/// A Node that was drained twice within this time has a condition that flaps.
const FLAPPING: Duration = Duration::from_secs(5 * 60);
/// How long such a Node stays out after it is drained no more, so that it costs one change of members, and not one each time.
const REST: Duration = Duration::from_secs(30);

/// Collects changes until they have been quiet for a moment: thirty Nodes that join together are one change.
#[derive(Default)]
pub(super) struct NodeChanges {
    pending: Mutex<Pending>,
    /// When Nodes that were drained came back last.
    returned: Mutex<BTreeMap<NodeName, Instant>>,
    /// Those that came back twice in a short time, and when each is a member again.
    resting: Mutex<BTreeMap<NodeName, Instant>>,
    changed: Notify,
}

/// What was collected.
pub(super) struct Taken {
    /// Labels changed.
    pub(super) with_labels: bool,
    /// A Node has rested, so that the set is another one.
    pub(super) has_rested: bool,
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
        let mut pending = lock(&self.pending);
        if change.is_first_of_two {
            pending.begun.get_or_insert(now);
        } else {
            let first = pending.whole.map_or(now, |(first, _)| first);
            pending.whole = Some((first, now));
        }
        pending.with_labels |= change.with_labels;
        self.changed.notify_one();
    }

    /// A Node is drained no more. Answers whether it rests before it is a member again, because this is not the first time.
    pub(super) fn rests(&self, node: &NodeName) -> bool {
        let now = Instant::now();
        let mut returned = lock(&self.returned);
        returned.retain(|_, at| now < *at + FLAPPING);
        if returned.insert(node.clone(), now).is_none() {
            return false;
        }
        lock(&self.resting).insert(node.clone(), now + REST);
        self.changed.notify_one();
        true
    }

    /// A Node is drained again, or gone. Answers whether it was out all the while.
    pub(super) fn end_rest(&self, node: &NodeName) -> bool {
        lock(&self.resting).remove(node).is_some()
    }

    /// Whether a Node rests.
    pub(super) fn is_resting(&self, node: &NodeName) -> bool {
        lock(&self.resting).contains_key(node)
    }

    fn due(&self) -> Option<Instant> {
        let pending = *lock(&self.pending);
        let whole = pending
            .whole
            .map(|(first, last)| (last + QUIET).min(first + PATIENCE));
        let begun = pending.begun.map(|begun| begun + INITIALIZATION);
        whole.into_iter().chain(begun).min()
    }

    /// Waits until there are changes and they have settled.
    pub(super) async fn settled(&self) {
        loop {
            let rested = lock(&self.resting).values().min().copied();
            let due = self.due().into_iter().chain(rested).min();
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

    /// Takes all changes up to now.
    pub(super) fn take(&self) -> Taken {
        let now = Instant::now();
        let mut resting = lock(&self.resting);
        let before = resting.len();
        resting.retain(|_, until| *until > now);
        Taken {
            with_labels: std::mem::take(&mut *lock(&self.pending)).with_labels,
            has_rested: resting.len() < before,
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
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
