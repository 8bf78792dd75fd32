//! The calls of the cloud's API, by the second.

use bowline_cloud_kit::{Journal, Mark, Outcome};
use serde::Serialize;

use super::seconds::Seconds;

/// The calls of one second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct Calls {
    reads: u32,
    writes: u32,
    /// Of both.
    failed: u32,
}

/// Reads the journal as it grows.
pub(super) struct Counter {
    journal: Journal,
    seen: Mark,
    /// Calls that were under way.
    waiting: Vec<u64>,
    seconds: Seconds<Calls>,
    writes: u64,
}

/// What the page shows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Shown {
    /// Of all time.
    total: usize,
    /// Of these the changes.
    writes: u64,
    /// Of the last minute.
    history: Vec<Calls>,
}

impl Counter {
    pub(super) fn new(journal: Journal) -> Self {
        Self {
            seen: Journal::default().mark(),
            journal,
            waiting: Vec::new(),
            seconds: Seconds::default(),
            writes: 0,
        }
    }

    pub(super) fn shown(&mut self) -> Shown {
        let next = self.journal.mark();
        let fresh = self.journal.since(self.seen);
        self.seen = next;
        for entry in &fresh {
            let calls = self.seconds.now();
            match entry.write {
                true => calls.writes += 1,
                false => calls.reads += 1,
            }
            self.writes += u64::from(entry.write);
            self.waiting.push(entry.seq);
        }
        if let Some(first) = self.waiting.first().copied() {
            let ended = self
                .journal
                .filter(|entry| entry.seq >= first && entry.outcome.is_some());
            for entry in ended {
                let Ok(place) = self.waiting.binary_search(&entry.seq) else {
                    continue;
                };
                self.waiting.remove(place);
                self.seconds.now().failed += u32::from(has_failed(entry.outcome));
            }
        }
        Shown {
            total: self.journal.len(),
            writes: self.writes,
            history: self.seconds.over().copied().collect(),
        }
    }
}

/// Whether the API failed. An answer such as "not found" is none.
fn has_failed(outcome: Option<Outcome>) -> bool {
    matches!(
        outcome,
        Some(Outcome::Answered(429 | 500..) | Outcome::Dropped | Outcome::Hung)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn not_found_is_no_failure() {
        assert!(!has_failed(Some(Outcome::Answered(404))));
        assert!(!has_failed(None));
        assert!(has_failed(Some(Outcome::Answered(503))));
        assert!(has_failed(Some(Outcome::Dropped)));
    }
}
