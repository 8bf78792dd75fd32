//! How many exchanges may be under way, and how fast they may begin.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::{Instant, sleep_until};

use crate::config::{CloudHttpConfig, Rate};

/// The budget of one provider. Those who wait are let through in the order in which they came.
pub(crate) struct Budget {
    places: Semaphore,
    pace: Mutex<Pace>,
}

struct Pace {
    bucket: Option<Bucket>,
    paused_until: Option<Instant>,
}

/// A token bucket kept as the time at which it will be full again, so it holds no fractions and drifts nowhere.
struct Bucket {
    interval: Duration,
    burst: u32,
    full_at: Instant,
}

impl Bucket {
    fn new(rate: Rate) -> Self {
        Self {
            interval: Duration::from_secs(1) / rate.per_second.get(),
            burst: rate.burst.get(),
            full_at: Instant::now(),
        }
    }

    /// Takes a token; the answer is when it may be used.
    fn take(&mut self, now: Instant) -> Instant {
        self.full_at = self.full_at.max(now) + self.interval;
        let depth = self.interval * self.burst;
        self.full_at
            .checked_sub(depth)
            .map_or(now, |ready| ready.max(now))
    }

    fn left(&self, now: Instant) -> usize {
        let taken = self
            .full_at
            .saturating_duration_since(now)
            .as_nanos()
            .div_ceil(self.interval.as_nanos().max(1));
        (self.burst as usize).saturating_sub(usize::try_from(taken).unwrap_or(usize::MAX))
    }
}

impl Budget {
    pub(crate) fn new(config: &CloudHttpConfig) -> Self {
        Self {
            places: Semaphore::new(config.max_in_flight.clamp(1, Semaphore::MAX_PERMITS)),
            pace: Mutex::new(Pace {
                bucket: config.rate.map(Bucket::new),
                paused_until: None,
            }),
        }
    }

    /// Waits for a place, a token and the end of a pause.
    ///
    /// # Cancellation
    ///
    /// A waiter that goes away gives its place back; a token that it took is lost.
    pub(crate) async fn acquire(&self) -> SemaphorePermit<'_> {
        #[expect(clippy::expect_used, reason = "the semaphore is private and is never closed")]
        let place = self.places.acquire().await.expect("an open semaphore");
        let now = Instant::now();
        let ready = self.pace().bucket.as_mut().map_or(now, |bucket| bucket.take(now));
        if ready > now {
            sleep_until(ready).await;
        }
        // Another answer may lengthen the pause while this one waits.
        loop {
            let paused_until = self.pace().paused_until;
            match paused_until {
                Some(until) if until > Instant::now() => sleep_until(until).await,
                _ => return place,
            }
        }
    }

    /// Lets nothing begin for a while.
    pub(crate) fn pause(&self, duration: Duration) {
        let until = Instant::now() + duration;
        let mut pace = self.pace();
        pace.paused_until = Some(pace.paused_until.map_or(until, |earlier| earlier.max(until)));
    }

    /// How many exchanges could begin at once.
    pub(crate) fn left(&self) -> usize {
        let now = Instant::now();
        let pace = self.pace();
        if pace.paused_until.is_some_and(|until| until > now) {
            return 0;
        }
        let tokens = pace.bucket.as_ref().map_or(usize::MAX, |bucket| bucket.left(now));
        tokens.min(self.places.available_permits())
    }

    fn pace(&self) -> MutexGuard<'_, Pace> {
        // No code that can panic runs under the lock.
        self.pace.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use super::*;

    fn budget(places: usize, rate: Option<(u32, u32)>) -> Budget {
        let mut config = CloudHttpConfig::new("nimbus", "test");
        config.max_in_flight = places;
        config.rate = rate.map(|(per_second, burst)| Rate {
            per_second: NonZeroU32::new(per_second).unwrap(),
            burst: NonZeroU32::new(burst).unwrap(),
        });
        Budget::new(&config)
    }

    #[tokio::test(start_paused = true)]
    async fn a_burst_goes_at_once_and_then_the_rate_holds() {
        let budget = budget(100, Some((10, 3)));
        let begun = Instant::now();
        let mut times = Vec::new();
        for _ in 0..6 {
            drop(budget.acquire().await);
            times.push(begun.elapsed().as_millis());
        }
        assert_eq!(times, [0, 0, 0, 100, 200, 300]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_bucket_fills_up_again_but_not_beyond_its_burst() {
        let budget = budget(100, Some((10, 2)));
        for _ in 0..2 {
            drop(budget.acquire().await);
        }
        assert_eq!(budget.left(), 0);
        tokio::time::advance(Duration::from_secs(60)).await;
        assert_eq!(budget.left(), 2);
        let begun = Instant::now();
        for _ in 0..3 {
            drop(budget.acquire().await);
        }
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
