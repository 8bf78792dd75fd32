//! The ways to the API server for reviews: few at a time, few waiting, and what was granted before on a way of its own.
//!
//! Whoever can reach the port can cause a review, by a token or a path that was made up. Reviews share the connections
//! and the API server's patience with the controllers, so their number and rate are bounded, and whoever comes when the
//! queue is full is told so at once.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bowline_transport::{Bucket, Rate};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::Origin;

/// Reviews at once about what is not known yet. Together with [`KNOWN_AT_ONCE`] they leave most of the connections to the
/// API server to the controllers.
pub(super) const UNKNOWN_AT_ONCE: usize = 2;

/// Reviews at once about what was granted before: a scrape must not wait behind tokens that were made up.
const KNOWN_AT_ONCE: usize = 1;

/// Requests that wait for a review, in all and of one address.
pub(super) const MAX_WAITING: usize = 16;
pub(super) const MAX_WAITING_PER_ORIGIN: usize = 8;

/// How long a request waits for its review to begin.
const PATIENCE: Duration = Duration::from_secs(5);

/// Reviews about what is not known yet, at once and in a second. The API server counts each against our share of it.
const RATE: Rate = Rate {
    per_second: 10.0,
    burst: 20,
};

/// There are too many requests before this one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Full;

/// One way to the API server.
pub(super) struct Lane {
    turns: Arc<Semaphore>,
    pace: Option<Bucket>,
    waiting: Mutex<BTreeMap<Option<Origin>, usize>>,
}

impl Lane {
    /// For what is not known yet.
    pub(super) fn unknown() -> Self {
        Self::new(UNKNOWN_AT_ONCE, Some(Bucket::new(RATE)))
    }

    /// For what was granted before.
    pub(super) fn known() -> Self {
        Self::new(KNOWN_AT_ONCE, None)
    }

    fn new(at_once: usize, pace: Option<Bucket>) -> Self {
        Self {
            turns: Arc::new(Semaphore::new(at_once)),
            pace,
            waiting: Mutex::default(),
        }
    }

    /// Waits for the turn of a request of this origin.
    pub(super) async fn turn(&self, origin: Option<Origin>) -> Result<OwnedSemaphorePermit, Full> {
        let _waiting = Waiting::begin(self, origin)?;
        let turn = async {
            // The semaphore is never closed.
            let turn = Arc::clone(&self.turns).acquire_owned().await.map_err(|_| Full)?;
            // Waited for with the turn in hand: that keeps the order.
            if let Some(pace) = &self.pace {
                pace.turn().await;
            }
            Ok(turn)
        };
        tokio::time::timeout(PATIENCE, turn).await.unwrap_or(Err(Full))
    }

    fn waiting(&self) -> MutexGuard<'_, BTreeMap<Option<Origin>, usize>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request that waits.
struct Waiting<'a> {
    lane: &'a Lane,
    origin: Option<Origin>,
}

impl<'a> Waiting<'a> {
    fn begin(lane: &'a Lane, origin: Option<Origin>) -> Result<Self, Full> {
        let mut waiting = lane.waiting();
        let own = waiting.get(&origin).copied().unwrap_or(0);
        if own >= MAX_WAITING_PER_ORIGIN || waiting.values().sum::<usize>() >= MAX_WAITING {
            return Err(Full);
        }
        waiting.insert(origin, own + 1);
        Ok(Self { lane, origin })
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let mut waiting = self.lane.waiting();
        if let Some(own) = waiting.get_mut(&self.origin) {
            *own -= 1;
            if *own == 0 {
                waiting.remove(&self.origin);
            }
        }
    }
}
