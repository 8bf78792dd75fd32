//! How many exchanges may be under way, how fast they may begin, and the pause that a cloud asks for.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bowline_edge::{Bucket, Place, Places};
use tokio::time::{Instant, sleep_until};

use crate::config::CloudHttpConfig;

/// The budget of one provider. Those who wait are let through in the order in which they came.
pub(crate) struct Budget {
    places: Places,
    pace: Option<Bucket>,
    paused_until: Mutex<Option<Instant>>,
}

impl Budget {
    pub(crate) fn new(config: &CloudHttpConfig) -> Self {
        Self {
            places: Places::new(config.max_in_flight, 0),
            pace: config.rate.map(Bucket::new),
            paused_until: Mutex::new(None),
        }
    }

    /// Waits for a place, a token and the end of a pause.
    ///
    /// # Cancellation
    ///
    /// A waiter that goes away gives its place back; a token that it took is lost.
    pub(crate) async fn acquire(&self) -> Place<'_> {
        let place = self.places.take().await;
        if let Some(pace) = &self.pace {
            pace.turn().await;
        }
        // Another answer may lengthen the pause while this one waits.
        loop {
            let paused_until = *self.paused_until();
            match paused_until {
                Some(until) if until > Instant::now() => sleep_until(until).await,
                _ => return place,
            }
        }
    }

    /// Lets nothing begin for a while.
    pub(crate) fn pause(&self, duration: Duration) {
        let until = Instant::now() + duration;
        let mut paused_until = self.paused_until();
        *paused_until = (*paused_until).max(Some(until));
    }

    /// How many exchanges could begin at once.
    pub(crate) fn left(&self) -> usize {
        if self.paused_until().is_some_and(|until| until > Instant::now()) {
            return 0;
        }
        let tokens = self.pace.as_ref().map_or(usize::MAX, Bucket::left);
        tokens.min(self.places.free())
    }

    fn paused_until(&self) -> MutexGuard<'_, Option<Instant>> {
        // No code that can panic runs under the lock.
        self.paused_until.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use bowline_edge::Rate;

    use super::*;

    fn budget(places: usize, rate: Option<Rate>) -> Budget {
        let mut config = CloudHttpConfig::new("nimbus", "test");
        config.max_in_flight = places;
        config.rate = rate;
        Budget::new(&config)
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_left_is_bounded_by_tokens_and_places() {
        let rate = Rate {
            per_second: 10.0,
            burst: 3,
        };
        let budget = budget(2, Some(rate));
        assert_eq!(budget.left(), 2);
        for _ in 0..3 {
            drop(budget.acquire().await);
        }
        assert_eq!(budget.left(), 0);
        let begun = Instant::now();
        drop(budget.acquire().await);
        assert_eq!(begun.elapsed(), Duration::from_millis(100));
    }

    #[tokio::test(start_paused = true)]
    async fn no_more_than_the_allowed_number_is_in_flight() {
        let budget = budget(2, None);
        let first = budget.acquire().await;
        let _second = budget.acquire().await;
        assert_eq!(budget.left(), 0);
        assert!(
            tokio::time::timeout(Duration::from_secs(5), budget.acquire())
                .await
                .is_err()
        );
        drop(first);
        assert!(
            tokio::time::timeout(Duration::from_secs(5), budget.acquire())
                .await
                .is_ok()
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_pause_holds_everyone_and_the_longest_one_counts() {
        let budget = budget(8, None);
        budget.pause(Duration::from_secs(7));
        budget.pause(Duration::from_secs(2));
        let begun = Instant::now();
        drop(budget.acquire().await);
        assert_eq!(begun.elapsed(), Duration::from_secs(7));
    }
}
