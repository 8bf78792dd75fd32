//! Counts by the second, of the last minute.

use std::collections::VecDeque;

use tokio::time::Instant;

/// How many seconds are shown.
pub(super) const SHOWN: usize = 60;

/// One count for each second, the running one last.
#[derive(Debug)]
pub(super) struct Seconds<T> {
    start: Instant,
    /// How many have begun.
    begun: u64,
    counts: VecDeque<T>,
}

impl<T: Clone + Default> Default for Seconds<T> {
    fn default() -> Self {
        Self {
            start: Instant::now(),
            begun: 1,
            counts: VecDeque::from([T::default()]),
        }
    }
}

impl<T: Clone + Default> Seconds<T> {
    /// The count of the running second.
    pub(super) fn now(&mut self) -> &mut T {
        self.advance();
        if self.counts.is_empty() {
            self.counts.push_back(T::default());
        }
        let last = self.counts.len() - 1;
        &mut self.counts[last]
    }

    /// Those that are over, the latest one last.
    pub(super) fn over(&mut self) -> impl DoubleEndedIterator<Item = &T> {
        self.advance();
        self.counts.iter().take(self.counts.len() - 1)
    }

    fn advance(&mut self) {
        let due = self.start.elapsed().as_secs() + 1;
        let missing = due.saturating_sub(self.begun).min(SHOWN as u64 + 1);
        self.begun = self.begun.max(due);
        self.counts.extend((0..missing).map(|_| T::default()));
        let excess = self.counts.len().saturating_sub(SHOWN + 1);
        self.counts.drain(..excess);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn each_second_has_its_own_count_and_a_minute_is_kept() {
        let mut seconds = Seconds::<u32>::default();
        *seconds.now() += 2;
        assert_eq!(seconds.over().count(), 0, "the running second is not shown");
        tokio::time::advance(Duration::from_millis(1100)).await;
        *seconds.now() += 5;
        tokio::time::advance(Duration::from_secs(2)).await;
        assert_eq!(seconds.over().copied().collect::<Vec<_>>(), [2, 5, 0]);
        tokio::time::advance(Duration::from_secs(500)).await;
        assert_eq!(seconds.over().copied().sum::<u32>(), 0);
        assert_eq!(seconds.over().count(), SHOWN);
    }
}
