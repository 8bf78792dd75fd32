//! How many Services are worked on at once whose balancers are being made: who has begun comes to its end before others begin.
//!
//! A balancer in the making is the most that a Service ever holds in memory: what was read, what is planned, and every write
//! that waits for the cloud. If a thousand new Services went on side by side, all of them would hold that until the very end,
//! and the first would have its address no sooner than the last. The cloud takes no more than a few calls at a time anyway.

use std::pin::pin;
use std::time::Duration;

use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::timeout;

/// Four times the calls that a cloud takes at a time, so that there is always one to be sent.
const AT_ONCE: usize = 64;

/// A permit is given back after this time, wherever its work has got to: nobody is to wait long behind a cloud that is slow.
const AT_MOST: Duration = Duration::from_secs(5);

/// The limit.
pub(super) struct ConcurrencyLimit(Semaphore);

impl Default for ConcurrencyLimit {
    fn default() -> Self {
        Self(Semaphore::new(AT_ONCE))
    }
}

impl ConcurrencyLimit {
    /// Waits for a permit.
    pub(super) async fn permit(&self) -> Permit<'_> {
        // The semaphore is never closed.
        Permit(self.0.acquire().await.ok())
    }
}

/// A permit; given back when it is dropped.
pub(super) struct Permit<'a>(Option<SemaphorePermit<'a>>);

impl Permit<'_> {
    /// That of work that needs none.
    pub(super) const NONE: Self = Self(None);

    /// Works. Gives the permit back at the end, or after [`AT_MOST`].
    ///
    /// # Cancellation
    ///
    /// Dropping it gives the permit back, and abandons the work.
    pub(super) async fn run<T>(self, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        if self.0.is_some()
            && let Ok(done) = timeout(AT_MOST, work.as_mut()).await
        {
            return done;
        }
        drop(self);
        work.await
    }
}

#[cfg(test)]
mod tests {
    use futures::future::join_all;
    use tokio::time::{Instant, sleep};

    use super::*;

    /// When each of several pieces of work has ended.
    async fn ends(pieces: usize, time: Duration) -> Vec<u64> {
        let (limit, begun) = (ConcurrencyLimit::default(), Instant::now());
        let piece = async || {
            limit.permit().await.run(async { sleep(time).await }).await;
            begun.elapsed().as_secs()
        };
        join_all((0..pieces).map(|_| piece())).await
    }

    #[tokio::test(start_paused = true)]
    async fn so_many_work_at_once_and_the_others_follow_in_order() {
        let ends = ends(2 * AT_ONCE + 1, Duration::from_secs(2)).await;
        assert!(ends[..AT_ONCE].iter().all(|end| *end == 2));
        assert!(ends[AT_ONCE..2 * AT_ONCE].iter().all(|end| *end == 4));
        assert_eq!(ends[2 * AT_ONCE], 6);
    }

    #[tokio::test(start_paused = true)]
    async fn work_that_takes_long_holds_up_nobody_for_long_and_is_done_all_the_same() {
        let ends = ends(AT_ONCE + 1, Duration::from_secs(600)).await;
        assert_eq!((ends[0], ends[AT_ONCE]), (600, 605));
    }
}
