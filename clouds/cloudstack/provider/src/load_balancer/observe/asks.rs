//! What this process knows of claims under which addresses are asked for. About those of other processes their age alone tells.

use std::collections::BTreeMap;
use std::time::Duration;

use bowline_cloud_provider::Kept;
use bowline_cloudstack_client::{ApiError, Class};
use jiff::Timestamp;
use tokio::time::Instant;

use crate::load_balancer::claim::{self, AFTERMATH, Asking, PATIENCE};
use crate::load_balancer::intent::Identity;

/// Claims that this process planned, by the UID of their Service.
#[derive(Default)]
pub(crate) struct Asks(Kept<(String, Asking), Ask>);

/// Until when it is not known what came of a request under a claim; `None` if nothing was asked for.
struct Ask(Option<Instant>);

impl Asks {
    /// Claims are about to be written on a Service.
    pub(crate) fn planned(&self, identity: &Identity, claims: Vec<Asking>) {
        for claim in claims {
            if identity.claim.askings().all(|known| known != claim) {
                let key = (identity.uid.clone(), claim);
                self.0.with(&key, |ask| ask.get_or_insert(Ask(None)).0.is_some());
            }
        }
    }

    /// An address is asked for, or it is not known any more what became of that.
    pub(crate) fn asked(&self, uid: &str, asking: &Asking) {
        self.set(uid, asking, Some(PATIENCE));
    }

    /// Its job says that it failed.
    pub(crate) fn failed(&self, uid: &str, asking: &Asking) {
        self.set(uid, asking, Some(AFTERMATH));
    }

    /// The request ended in an error. Unless nothing was asked for after all, nobody knows what came of it: a server makes the address
    /// before it queues the job, and what fails in between is a 5xx (`ApiServer.processAsyncCmd`).
    pub(crate) fn answered(&self, uid: &str, asking: &Asking, error: &ApiError) {
        if !error.maybe_applied() || error.class == Class::NotSent {
            self.set(uid, asking, None);
        }
    }

    fn set(&self, uid: &str, asking: &Asking, time: Option<Duration>) {
        let until = time.map(|time| Instant::now() + time);
        let key = (uid.to_owned(), asking.clone());
        self.0.with(&key, |ask| *ask = Some(Ask(until)));
    }

    /// What may have been asked for under the claims on a Service, and how long each still stands in the way of another one.
    pub(crate) fn standing(&self, identity: &Identity, now: Timestamp) -> BTreeMap<Asking, Duration> {
        let left = |asking: &Asking| {
            let key = (identity.uid.clone(), asking.clone());
            self.0.with(&key, |ask| match ask {
                Some(Ask(until)) => until.and_then(|until| until.checked_duration_since(Instant::now())),
                None => claim::stands_for(asking.since, now),
            })
        };
        let askings = identity.claim.askings();
        askings
            .filter_map(|asking| {
                let left = left(&asking).filter(|left| !left.is_zero())?;
                Some((asking, left))
            })
            .collect()
    }
}
