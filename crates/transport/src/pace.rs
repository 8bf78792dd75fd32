//! How fast requests may begin, and how many may be under way.

use std::pin::pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, Semaphore, SemaphorePermit};
use tokio::time::{Instant, sleep_until};

/// A bound on a rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rate {
    /// How many per second in the long run.
    pub per_second: f64,
    /// How many at once after a rest.
    pub burst: u32,
}

/// A token bucket, kept as the time at which it will be full again, so it holds no fractions and drifts nowhere.
#[derive(Debug)]
pub struct Bucket {
    /// The time in which one token comes back.
    interval: Duration,
    burst: u32,
    /// When it is or was full.
    full_at: Mutex<Instant>,
}

impl Bucket {
    /// A full bucket. Call it inside the runtime.
    pub fn new(rate: Rate) -> Self {
        Self {
            // Not slower than one in 1,000 s, which is no sensible wish but a finite one.
            interval: Duration::from_secs_f64(1.0 / rate.per_second.max(0.001)),
            burst: rate.burst.max(1),
            full_at: Mutex::new(Instant::now()),
        }
    }

    /// Takes some tokens, if need be on credit; says when they may be used.
    pub fn take(&self, tokens: u32) -> Instant {
        let now = Instant::now();
        let mut full_at = self.full_at();
        *full_at = full_at.max(now) + self.interval * tokens;
        full_at
            .checked_sub(self.interval * self.burst)
            .unwrap_or(now)
            .max(now)
    }

    /// Waits for the next token, in the order of asking.
    ///
    /// # Cancellation
    ///
    /// The token of a waiter that goes away is lost.
    pub async fn turn(&self) {
        sleep_until(self.take(1)).await;
    }

    /// How many tokens are in it.
    pub fn left(&self) -> usize {
        let missing = self.full_at().saturating_duration_since(Instant::now());
        let taken = missing.as_nanos().div_ceil(self.interval.as_nanos().max(1));
        (self.burst as usize).saturating_sub(usize::try_from(taken).unwrap_or(usize::MAX))
    }

    fn full_at(&self) -> MutexGuard<'_, Instant> {
        // No code that can panic runs under the lock.
        self.full_at.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A bound on what is under way at once. Those that wait are served in order; what gives way to others waits behind them
/// all.
#[derive(Debug)]
pub struct Places {
    free: Semaphore,
    reserved: usize,
    given_back: Notify,
}

/// The right to have one thing under way.
#[derive(Debug)]
pub struct Place<'a> {
    permit: Option<SemaphorePermit<'a>>,
    given_back: &'a Notify,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.permit = None; // first the place is free, then it is told
        self.given_back.notify_waiters();
    }
}

impl Places {
    /// So many, at least one. What [gives way](Self::take_giving_way) leaves `reserved` of them to the others; with few places
    /// some reserve has to be given up, or it would never get one.
    pub fn new(places: usize, reserved: usize) -> Self {
        let places = places.clamp(1, Semaphore::MAX_PERMITS);
        Self {
            free: Semaphore::new(places),
            reserved: reserved.min(places - 1),
            given_back: Notify::new(),
        }
    }

    /// How many are free.
    pub fn free(&self) -> usize {
        self.free.available_permits()
    }

    /// Waits for a place.
    pub async fn take(&self) -> Place<'_> {
        // The semaphore is never closed.
        self.place(self.free.acquire().await.ok())
    }

    /// Waits until more places are free than are reserved for others.
    pub async fn take_giving_way(&self) -> Place<'_> {
        loop {
            let mut given_back = pin!(self.given_back.notified());
            given_back.as_mut().enable(); // before the look, so that no place is given back unseen
            if self.free() > self.reserved
                && let Ok(permit) = self.free.try_acquire()
            {
                return self.place(Some(permit));
            }
            given_back.await;
        }
    }

    fn place<'a>(&'a self, permit: Option<SemaphorePermit<'a>>) -> Place<'a> {
        Place {
            permit,
            given_back: &self.given_back,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bucket(per_second: f64, burst: u32) -> Bucket {
        Bucket::new(Rate { per_second, burst })
    }

    #[tokio::test(start_paused = true)]
    async fn a_burst_is_free_and_what_is_beyond_it_comes_back_at_the_rate() {
        let bucket = bucket(2.0, 4);
        let begun = Instant::now();
        let waits = [2, 2, 1, 3].map(|tokens| (bucket.take(tokens) - begun).as_millis());
        assert_eq!(waits, [0, 0, 500, 2000]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_bucket_fills_up_again_but_not_beyond_its_burst() {
        let bucket = bucket(10.0, 2);
        bucket.take(2);
        assert_eq!(bucket.left(), 0);
        tokio::time::advance(Duration::from_secs(60)).await;
        assert_eq!(bucket.left(), 2);
        let begun = Instant::now();
        let mut turns = Vec::new();
        for _ in 0..4 {
            bucket.turn().await;
            turns.push(begun.elapsed().as_millis());
        }
        assert_eq!(turns, [0, 0, 100, 200]);
    }

    #[tokio::test(start_paused = true)]
    async fn what_gives_way_leaves_places_to_others() {
        let places = Places::new(6, 4);
        let patience = Duration::from_secs(1);
        let _a = places.take_giving_way().await;
        let b = places.take_giving_way().await;
        let waited = tokio::time::timeout(patience, places.take_giving_way()).await;
        assert!(waited.is_err());
        let c = places.take().await;
        drop(b);
        let waited = tokio::time::timeout(patience, places.take_giving_way()).await;
        assert!(
            waited.is_err(),
            "the place that was given back belongs to the reserve"
        );
        drop(c);
        let waited = tokio::time::timeout(patience, places.take_giving_way()).await;
        assert!(waited.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn what_gives_way_is_served_with_a_single_place() {
        let places = Places::new(1, 4);
        let waited = tokio::time::timeout(Duration::from_secs(1), places.take_giving_way()).await;
        assert!(waited.is_ok());
    }
}
