//! The gate: requests begin only while nobody else can hold the lease.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bowline_kube_io::{Clock, SystemClock};
use bowline_transport::{Gate, GateClosed};
use jiff::Timestamp;
use tokio::time::Instant;

/// How long before the end of the lease requests stop to begin: what a request may need to reach the other side.
const MARGIN: Duration = Duration::from_secs(2);

/// Open while this process surely leads.
///
/// It is the innermost layer of every client, asked after queues, budgets and retries, and once more when a connection
/// is ready to send. Between two renewals it closes by itself: a process that was stopped for a minute finds it closed
/// at its first request, before it has noticed anything. A virtual machine that was suspended has a monotonic clock that stood
/// still with it, so the clock on the wall has to say so, too. What passes here is every request to the cloud and every write
/// to the API server, but not the reads that keep a follower's caches warm, nor the lease itself.
///
/// A leader that could not renew its lease in time, and goes on trying because `--leader-recovery-limit` says so, suspends the gate.
/// It is let go when the lease was renewed and the controllers of before have ended.
///
/// With leader migration there are two leases. From the moment at which the second one is held, both have to last: the
/// loss of either ends the process.
pub struct FencingGate {
    bound: Mutex<Bound>,
    clock: Arc<dyn Clock>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Bound {
    /// There is no election.
    Open,
    /// We do not lead any more.
    Closed,
    /// Until the first of these moments by either clock, one for each lease that was taken. None was taken: closed.
    Leases(Ends),
    /// Closed, whatever becomes of the leases, until it is let go.
    Suspended(Ends),
}

type Ends = BTreeMap<String, (Instant, Timestamp)>;

impl FencingGate {
    /// A gate that is always open: there is no election.
    pub fn open() -> Self {
        Self {
            bound: Mutex::new(Bound::Open),
            clock: Arc::new(SystemClock), // nobody looks at it
        }
    }

    /// A gate that is closed until the lease is ours. `clock` tells the time on the wall.
    pub fn closed(clock: Arc<dyn Clock>) -> Self {
        Self {
            bound: Mutex::new(Bound::Leases(BTreeMap::new())),
            clock,
        }
    }

    /// Whether a request may begin at this moment.
    pub fn is_open(&self) -> bool {
        match &*self.lock() {
            Bound::Open => true,
            Bound::Closed | Bound::Suspended(_) => false,
            Bound::Leases(ends) => {
                let (now, wall) = (Instant::now(), self.clock.now());
                !ends.is_empty() && ends.values().all(|end| now < end.0 && wall < end.1)
            }
        }
    }

    /// The lease was taken or renewed by a request that was sent at `sent`, by either clock.
    pub(crate) fn renewed(&self, lease: &str, sent: (Instant, Timestamp), lease_duration: Duration) {
        // The lease says whole seconds, and by these others take it over.
        let lease_duration = Duration::from_secs(lease_duration.as_secs());
        // A lease so short that the margin would swallow it keeps three quarters of itself.
        let margin = MARGIN.min(lease_duration / 4);
        if let Bound::Leases(ends) | Bound::Suspended(ends) = &mut *self.lock() {
            let lasts = lease_duration - margin;
            ends.insert(lease.to_owned(), (sent.0 + lasts, sent.1 + lasts));
        }
    }

    /// A lease is lost or about to be given up. The gate does not open again.
    pub(crate) fn close(&self) {
        *self.lock() = Bound::Closed;
    }

    /// The lease could not be renewed in time and may still be ours. A renewal alone does not open the gate any more.
    pub(crate) fn suspend(&self) {
        let mut bound = self.lock();
        if let Bound::Leases(ends) = &mut *bound {
            *bound = Bound::Suspended(std::mem::take(ends));
        }
    }

    /// What began before it was suspended has ended: from now on the lease decides again. Whether it was suspended.
    pub(crate) fn resume(&self) -> bool {
        let mut bound = self.lock();
        let Bound::Suspended(ends) = &mut *bound else {
            return false;
        };
        *bound = Bound::Leases(std::mem::take(ends));
        true
    }

    fn lock(&self) -> MutexGuard<'_, Bound> {
        self.bound.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for FencingGate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("FencingGate").field(&*self.lock()).finish()
    }
}

impl Gate for FencingGate {
    fn check(&self) -> Result<(), GateClosed> {
        if self.is_open() {
            return Ok(());
        }
        Err(GateClosed::new(
            "this process does not hold the lease, or may have lost it",
        ))
    }
}

#[cfg(test)]
mod tests {
    use bowline_kube_io::TokioClock;

    use super::*;

    fn now() -> (Instant, Timestamp) {
        (Instant::now(), SystemClock.now())
    }

    fn closed() -> FencingGate {
        FencingGate::closed(Arc::new(SystemClock))
    }

    /// As on a virtual machine that was suspended: the monotonic clock stood still with it.
    #[tokio::test(start_paused = true)]
    async fn the_clock_on_the_wall_closes_it_too() {
        let clock = Arc::new(TokioClock::starting_at(Timestamp::UNIX_EPOCH));
        let gate = FencingGate::closed(clock.clone());
        let renewed = |wall: Timestamp| gate.renewed("main", (Instant::now(), wall), Duration::from_secs(15));
        renewed(clock.now());
        assert!(gate.is_open());
        let minute = Duration::from_secs(60);
        renewed(clock.now() - minute);
        assert!(
            !gate.is_open(),
            "a minute has passed of which this process knows nothing"
        );
        renewed(clock.now() + minute);
        assert!(
            gate.is_open(),
            "a clock that was set back says nothing of the lease"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn writes_stop_two_seconds_before_the_lease_ends() {
        let gate = closed();
        assert!(!gate.is_open());
        gate.renewed("main", now(), Duration::from_secs(15));
        assert!(gate.is_open());
        tokio::time::advance(Duration::from_millis(12_999)).await;
        assert!(gate.is_open());
        tokio::time::advance(Duration::from_millis(1)).await;
        assert!(!gate.is_open(), "nothing happened but that time went by");
    }

    #[tokio::test(start_paused = true)]
    async fn a_lease_counts_as_long_as_others_read_that_it_does() {
        let gate = closed();
        gate.renewed("main", now(), Duration::from_millis(2900));
        tokio::time::advance(Duration::from_millis(1500)).await;
        assert!(!gate.is_open(), "the lease says two seconds");
    }

    #[tokio::test(start_paused = true)]
    async fn what_counts_is_when_the_renewal_was_sent() {
        let gate = closed();
        let sent = now();
        tokio::time::advance(Duration::from_secs(14)).await;
        gate.renewed("main", sent, Duration::from_secs(15));
        assert!(!gate.is_open());
    }

    #[tokio::test(start_paused = true)]
    async fn a_second_lease_counts_from_when_it_is_held_and_the_first_one_to_end_closes() {
        let gate = closed();
        let begun = now();
        let lease = Duration::from_secs(15);
        gate.renewed("main", begun, lease);
        assert!(gate.is_open());
        tokio::time::advance(Duration::from_secs(5)).await;
        gate.renewed("migration", now(), lease);
        tokio::time::advance(Duration::from_secs(8)).await;
        assert!(!gate.is_open(), "the first one is over");
        gate.renewed("main", now(), lease);
        assert!(gate.is_open());
        tokio::time::advance(Duration::from_secs(5)).await;
        assert!(!gate.is_open(), "the second one is over");
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_closed_stays_closed() {
        let gate = closed();
        gate.renewed("main", now(), Duration::from_secs(15));
        gate.close();
        gate.renewed("main", now(), Duration::from_secs(15));
        assert!(!gate.is_open());
    }

    #[tokio::test(start_paused = true)]
    async fn a_renewal_does_not_open_what_is_suspended() {
        let gate = closed();
        let lease = Duration::from_secs(15);
        gate.renewed("main", now(), lease);
        gate.suspend();
        gate.renewed("main", now(), lease);
        assert!(!gate.is_open());
        assert!(gate.resume() && gate.is_open());
        gate.close();
        gate.suspend();
        assert!(!gate.resume() && !gate.is_open());
    }

    #[tokio::test(start_paused = true)]
    async fn without_an_election_it_is_always_open() {
        let gate = FencingGate::open();
        tokio::time::advance(Duration::from_secs(1_000_000)).await;
        assert!(gate.is_open());
    }
}
