//! What this process knows of claims under which addresses are asked for. About those of other processes their age alone tells.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

use crate::claim::{self, AFTERMATH, Asking, PATIENCE};
use crate::intent::Identity;

/// Claims that this process planned, by the UID of their Service.
#[derive(Default)]
pub(crate) struct Asks(Mutex<BTreeMap<(String, Asking), Ask>>);

/// A claim.
struct Ask {
    planned: Instant,
    /// Until when it is not known what came of a request under it; none if nothing was asked for.
    until: Option<Instant>,
}

impl Asks {
    /// Claims are about to be written on a Service.
    pub(crate) fn planned(&self, identity: &Identity, claims: Vec<Asking>) {
        let new: Vec<Asking> = claims
            .into_iter()
            .filter(|claim| identity.claim.askings().all(|known| known != *claim))
            .collect();
        if new.is_empty() {
            return;
        }
        let now = Instant::now();
        let mut asks = self.lock();
        // Older ones stand in nobody's way.
        asks.retain(|_, ask| now - ask.planned < PATIENCE || ask.until.is_some_and(|until| until > now));
        for claim in new {
            asks.entry((identity.uid.clone(), claim)).or_insert(Ask {
                planned: now,
                until: None,
            });
        }
    }

    /// An address is asked for, or it is not known any more what became of that.
    pub(crate) fn asked(&self, uid: &str, asking: &Asking) {
        self.set(uid, asking, Some(PATIENCE));
    }

    /// The server says that it failed.
    pub(crate) fn failed(&self, uid: &str, asking: &Asking) {
        self.set(uid, asking, Some(AFTERMATH));
    }

    /// Nothing was asked for after all, or it was refused.
    pub(crate) fn refused(&self, uid: &str, asking: &Asking) {
        self.set(uid, asking, None);
    }

    fn set(&self, uid: &str, asking: &Asking, time: Option<Duration>) {
        let now = Instant::now();
        let ask = Ask {
            planned: now,
            until: time.map(|time| now + time),
        };
        self.lock().insert((uid.to_owned(), asking.clone()), ask);
    }

    /// What may have been asked for under the claims on a Service, and how long each still stands in the way of another one.
    pub(crate) fn standing(&self, identity: &Identity, now: Timestamp) -> BTreeMap<Asking, Duration> {
        let asks = self.lock();
        let left = |asking: &Asking| match asks.get(&(identity.uid.clone(), asking.clone())) {
            Some(ask) => ask
                .until
                .and_then(|until| until.checked_duration_since(Instant::now())),
            None => claim::stands_for(asking.since, now),
        };
        let askings = identity.claim.askings();
        askings
            .filter_map(|asking| {
                let left = left(&asking).filter(|left| !left.is_zero())?;
                Some((asking, left))
            })
            .collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<(String, Asking), Ask>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
