//! How many requests are under way at once, and how fast they may begin.

use std::pin::pin;
use std::time::Duration;

use tokio::sync::{Mutex, Notify, Semaphore, SemaphorePermit};
use tokio::time::Instant;

use crate::client::Pace;

/// Slots that requests of low priority leave to the others.
const RESERVED: usize = 4;

/// The bound on requests under way. Those that wait are served in order; events wait behind them all.
#[derive(Debug)]
pub(crate) struct InFlight {
    slots: Semaphore,
    reserved: usize,
    freed: Notify,
}

/// The right to have one request under way.
#[derive(Debug)]
pub(crate) struct Slot<'a> {
    permit: Option<SemaphorePermit<'a>>,
    freed: &'a Notify,
}

impl Drop for Slot<'_> {
    fn drop(&mut self) {
        self.permit = None; // first the slot is free, then it is told
        self.freed.notify_waiters();
    }
}

impl InFlight {
    pub(crate) fn new(slots: usize) -> Self {
        let slots = slots.max(1);
        Self {
            slots: Semaphore::new(slots),
            // With few slots some reserve has to be given up, or nothing of low priority would ever be sent.
            reserved: RESERVED.min(slots - 1),
            freed: Notify::new(),
        }
    }

    pub(crate) async fn slot(&self) -> Slot<'_> {
        // The semaphore is never closed.
        let permit = self.slots.acquire().await.ok();
        Slot {
            permit,
            freed: &self.freed,
        }
    }

    /// Waits until more slots are free than are reserved for others.
    pub(crate) async fn slot_of_low_priority(&self) -> Slot<'_> {
        loop {
            let mut freed = pin!(self.freed.notified());
            freed.as_mut().enable(); // before the look, so that no slot is freed unseen
            if self.slots.available_permits() > self.reserved
                && let Ok(permit) = self.slots.try_acquire()
            {
                return Slot {
                    permit: Some(permit),
                    freed: &self.freed,
                };
            }
            freed.await;
        }
    }
}

/// A token bucket: requests wait for their token in the order in which they came.
#[derive(Debug)]
pub(crate) struct Pacer {
    interval: Duration,
    burst: Duration,
    /// The moment at which the bucket is or was full.
    full_at: Mutex<Option<Instant>>,
}

impl Pacer {
    pub(crate) fn new(pace: Pace) -> Self {
        // Not slower than one request in 1,000 s, which is no sensible wish but a finite one.
        let interval = Duration::from_secs_f64(1.0 / pace.qps.max(0.001));
        Self {
            interval,
            burst: interval.saturating_mul(pace.burst.max(1)),
            full_at: Mutex::new(None),
        }
    }

    /// Waits for the next token; gives how long that took.
    pub(crate) async fn turn(&self) -> Duration {
        let asked = Instant::now();
        // The lock is held while waiting: that is the queue.
        let mut full_at = self.full_at.lock().await;
        let now = Instant::now();
        let after = full_at.unwrap_or(now).max(now) + self.interval;
        let begin = after.checked_sub(self.burst).unwrap_or(now).max(now);
        tokio::time::sleep_until(begin).await;
        *full_at = Some(after);
        asked.elapsed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn low_priority_leaves_slots_to_others() {
        let limit = InFlight::new(6);
        let _a = limit.slot_of_low_priority().await;
        let b = limit.slot_of_low_priority().await;
        let waited = tokio::time::timeout(Duration::from_secs(1), limit.slot_of_low_priority()).await;
        assert!(waited.is_err());
        let _c = limit.slot().await;
        drop(b);
        let waited = tokio::time::timeout(Duration::from_secs(1), limit.slot_of_low_priority()).await;
        assert!(waited.is_err(), "the freed slot belongs to the reserve");
        drop(_c);
        let waited = tokio::time::timeout(Duration::from_secs(1), limit.slot_of_low_priority()).await;
        assert!(waited.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn low_priority_is_served_with_a_single_slot() {
        let limit = InFlight::new(1);
        let _slot = limit.slot_of_low_priority().await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_burst_goes_at_once_and_the_rest_at_the_rate() {
        let pacer = Pacer::new(Pace { qps: 10.0, burst: 3 });
        let begun = Instant::now();
        let mut sent = Vec::new();
        for _ in 0..5 {
            pacer.turn().await;
            sent.push(begun.elapsed().as_millis());
        }
        assert_eq!(sent, [0, 0, 0, 100, 200]);
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert_eq!(pacer.turn().await, Duration::ZERO);
    }
}
