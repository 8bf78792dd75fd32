//! How many Services are worked on at once whose balancers are being made: who has begun comes to its end before others begin.
//!
//! A balancer in the making is the most that a Service ever holds in memory: what was read, what is planned, and every write
//! that waits for the cloud. If a thousand new Services went on side by side, all of them would hold that until the very end,
//! and the first would have its address no sooner than the last. The cloud takes no more than a few calls at a time anyway.
//!
//! While the cloud is busy with a balancer for a moment, its Service keeps its permit: else all others would begin meanwhile.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout_at};

/// Eight times the calls that a cloud takes at a time, so that there is always one to be sent while half of the Services wait for their
/// balancers to come to rest, or for a list.
const AT_ONCE: usize = 128;

/// A permit is given back after this time, wherever its work has got to: nobody is to wait long behind a cloud that is slow.
const AT_MOST: Duration = Duration::from_secs(10);

/// The limit.
pub(super) struct ConcurrencyLimit(Arc<Semaphore>);

impl Default for ConcurrencyLimit {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(AT_ONCE)))
    }
}

impl ConcurrencyLimit {
    /// Waits for a permit.
    pub(super) async fn permit(&self) -> Permit {
        // The semaphore is never closed.
        let permit = Arc::clone(&self.0).acquire_owned().await.ok();
        Permit(permit.map(|permit| (permit, Instant::now() + AT_MOST)))
    }
}

/// A permit, and until when it is one; given back when it is dropped.
pub(super) struct Permit(Option<(OwnedSemaphorePermit, Instant)>);

impl Permit {
    /// That of work that needs none.
    pub(super) const NONE: Self = Self(None);

    /// Works. Gives the permit back when its time is over; what is left of it comes with the result.
    ///
    /// # Cancellation
    ///
    /// Dropping it gives the permit back, and abandons the work.
    pub(super) async fn run<T>(self, work: impl Future<Output = T>) -> (T, Self) {
        let mut work = pin!(work);
        if let Some((_, until)) = &self.0
            && let Ok(done) = timeout_at(*until, work.as_mut()).await
        {
            return (done, self);
        }
        drop(self);
        (work.await, Self::NONE)
    }

    /// What is left of it for work that goes on after this time: nothing if its time is over by then.
    pub(super) fn for_later(self, after: Duration) -> Self {
        let later = Instant::now() + after;
        Self(self.0.filter(|(_, until)| later < *until))
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
            let ((), _permit) = limit.permit().await.run(async { sleep(time).await }).await;
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
        assert_eq!((ends[0], ends[AT_ONCE]), (600, 610));
    }

    #[tokio::test(start_paused = true)]
    async fn a_permit_is_kept_for_work_that_goes_on_within_its_time() {
        let limit = ConcurrencyLimit::default();
        let free = || limit.0.available_permits();
        let ((), permit) = limit.permit().await.run(sleep(Duration::from_secs(4))).await;
        let permit = permit.for_later(Duration::from_secs(5));
        assert_eq!(free(), AT_ONCE - 1);
        let ((), permit) = permit.run(sleep(Duration::from_secs(5))).await;
        assert_eq!(free(), AT_ONCE - 1);
        let _permit = permit.for_later(Duration::from_secs(1));
        assert_eq!(free(), AT_ONCE);
    }
}
