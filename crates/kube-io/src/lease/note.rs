//! What a leader notes on its lease for whoever leads next: how many Nodes were deleted lately.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;
use tokio::time::Instant;

use super::LeaseRecord;

/// The annotation of the lease that holds a [`DeletionNote`] as JSON.
pub const DELETIONS: &str = "bowline/node-deletions";

/// A note with more times than this is none of ours: the times of a window are rounded, to 20 or so.
const MOST_TIMES: usize = 64;

/// The deletions of Nodes of the last window, by the clock of the computer that renews the lease.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct DeletionNote {
    /// The `spec.leaseTransitions` of the term up to which the note is complete. `None`: somebody led who does not write it, or
    /// a clock was set, so it may lack deletions, or show them as older than they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) term: Option<u32>,
    /// In Unix seconds, since when the note has all deletions.
    pub since: i64,
    /// In Unix seconds, rounded up: how many deletions were begun until then, since the time before it.
    pub deleted: BTreeMap<i64, u32>,
}

impl DeletionNote {
    /// The deletions since then, for a term that [`LeaseRecord::note`] fills in.
    pub fn new(since: i64, deleted: BTreeMap<i64, u32>) -> Self {
        Self {
            term: None,
            since,
            deleted,
        }
    }

    /// Reads an annotation; `None` if it is none of ours.
    pub(super) fn read(text: &str) -> Option<Self> {
        let note: Self = serde_json::from_slice(text.as_bytes()).ok()?;
        (note.deleted.len() <= MOST_TIMES).then_some(note)
    }

    pub(super) fn text(&self) -> Option<String> {
        serde_json::to_string(self).ok()
    }

    /// The same for a new term, after this record.
    ///
    /// The times were those of another computer's clock. How old a deletion was when the lease was renewed last is known by
    /// that clock alone, and the time since then counts as none: a deletion is never older than it is said to be.
    pub(super) fn taken_over(&self, before: &LeaseRecord, transitions: u32, wall: Timestamp) -> Self {
        let now = wall.as_second();
        let renewed = before.renew_time.map(Timestamp::as_second);
        let later = now.saturating_sub(renewed.unwrap_or(now));
        let moved = |at: i64| at.saturating_add(later).min(now);
        let mut deleted = BTreeMap::<i64, u32>::new();
        for (at, count) in &self.deleted {
            let sum = deleted.entry(moved(*at)).or_default();
            *sum = sum.saturating_add(*count);
        }
        let is_complete = renewed.is_some() && self.term == Some(before.transitions);
        Self {
            term: is_complete.then_some(transitions),
            since: moved(self.since),
            deleted,
        }
    }
}

/// A note as it was found on the lease when that was won.
#[derive(Debug, Clone, PartialEq)]
pub struct FoundNote {
    /// The note, in times of our clock.
    pub note: DeletionNote,
    /// Whether everybody who led since its beginning has written down what was deleted.
    pub is_complete: bool,
    /// When that was.
    pub at: Instant,
    /// The same by the clock on the wall.
    pub wall: Timestamp,
}

/// Between the one who deletes Nodes and the one who holds the lease, who alone writes it.
#[derive(Debug, Default)]
pub struct LeaseNote {
    state: watch::Sender<State>,
}

#[derive(Debug, Default)]
struct State {
    wanted: Option<DeletionNote>,
    /// How often another note was asked for.
    asked: u64,
    /// Which of them the lease was written for last.
    answered: u64,
    /// Whether the lease holds it.
    is_held: bool,
    found: Option<FoundNote>,
}

impl LeaseNote {
    /// What the lease held when it was won.
    pub fn found(&self) -> Option<FoundNote> {
        self.state.borrow().found.clone()
    }

    /// Asks for a note on the lease, in place of the one before it. Answers what [`held`](Self::held) waits for.
    pub fn ask(&self, note: DeletionNote) -> u64 {
        self.state.send_if_modified(|state| {
            let is_there =
                state.wanted.as_ref() == Some(&note) && (state.is_held || state.asked > state.answered);
            if !is_there {
                state.wanted = Some(note);
                state.asked += 1;
            }
            !is_there
        });
        self.state.borrow().asked
    }

    /// Waits until the lease was written with this note or a later one. False: the API server took it, and holds another one.
    ///
    /// # Cancellation
    ///
    /// May be dropped: the note is written all the same.
    pub async fn held(&self, asked: u64) -> bool {
        let mut state = self.state.subscribe();
        let answered = state.wait_for(|state| state.answered >= asked).await;
        answered.is_ok_and(|state| state.is_held)
    }

    /// Waits until a note is asked for that the lease was not written for.
    pub async fn is_asked(&self) {
        let mut state = self.state.subscribe();
        if state
            .wait_for(|state| state.asked > state.answered)
            .await
            .is_err()
        {
            std::future::pending().await // the sender is this very note's
        }
    }

    /// What is to be on the lease, and which asking that is.
    pub fn wanted(&self) -> (u64, Option<DeletionNote>) {
        let state = self.state.borrow();
        (state.asked, state.wanted.clone())
    }

    /// The lease was written for this asking.
    pub fn written(&self, asked: u64, is_held: bool) {
        self.state.send_if_modified(|state| {
            let is_news = state.answered != asked || state.is_held != is_held;
            (state.answered, state.is_held) = (asked, is_held);
            is_news
        });
    }

    /// The API server takes the lease without a note alone. None is wanted until the next is asked for.
    pub fn refused(&self, asked: u64) {
        self.state.send_modify(|state| {
            if state.asked == asked {
                state.wanted = None;
            }
            (state.answered, state.is_held) = (asked, false);
        });
    }

    /// The lease was won, or is certainly ours again. What was asked for before that is void.
    pub fn won(&self, found: Option<FoundNote>) {
        self.state.send_modify(|state| {
            (state.wanted, state.found) = (None, found);
            (state.answered, state.is_held) = (state.asked, false);
        });
    }
}
