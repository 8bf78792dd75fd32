//! What this process knows of claims under which addresses are asked for. About those of other processes their age alone tells.

use std::collections::BTreeMap;
use std::time::Duration;

use bowline_cloud_provider::Kept;
use bowline_cloudstack_client::{ApiError, Class};
use jiff::Timestamp;
use tokio::time::Instant;

use crate::load_balancer::claim::{self, AFTERMATH, AddressRequest, PATIENCE};
use crate::load_balancer::intent::Identity;

/// Claims that this process planned, by the UID of their Service.
#[derive(Default)]
pub(crate) struct AddressRequests(Kept<(String, AddressRequest), Standing>);

/// Until when it is not known what came of a request under a claim; `None` if nothing was asked for.
struct Standing(Option<Instant>);

impl AddressRequests {
    /// Claims are about to be written on a Service.
    pub(crate) fn planned(&self, identity: &Identity, claims: Vec<AddressRequest>) {
        for claim in claims {
            if identity.claim.open_requests().all(|known| known != claim) {
                let key = (identity.uid.clone(), claim);
                self.0
                    .with(&key, |ask| ask.get_or_insert(Standing(None)).0.is_some());
            }
        }
    }

    /// An address is asked for, or it is not known any more what became of that.
    pub(crate) fn asked(&self, uid: &str, request: &AddressRequest) {
        self.set(uid, request, Some(PATIENCE));
    }

    /// Its job says that it failed.
    pub(crate) fn failed(&self, uid: &str, request: &AddressRequest) {
        self.set(uid, request, Some(AFTERMATH));
    }

    /// The request ended in an error. Unless nothing was asked for after all, nobody knows what came of it: a server makes the address
    /// before it queues the job, and what fails in between is a 5xx (`ApiServer.processAsyncCmd`).
    pub(crate) fn answered(&self, uid: &str, request: &AddressRequest, error: &ApiError) {
        if !error.maybe_applied() || error.class == Class::NotSent {
            self.set(uid, request, None);
        }
    }

    fn set(&self, uid: &str, request: &AddressRequest, time: Option<Duration>) {
        let until = time.map(|time| Instant::now() + time);
        let key = (uid.to_owned(), request.clone());
        self.0.with(&key, |ask| *ask = Some(Standing(until)));
    }

    /// What may have been asked for under the claims on a Service, and how long each still stands in the way of another one.
    pub(crate) fn standing(&self, identity: &Identity, now: Timestamp) -> BTreeMap<AddressRequest, Duration> {
        let left = |request: &AddressRequest| {
            let key = (identity.uid.clone(), request.clone());
            self.0.with(&key, |ask| match ask {
                Some(Standing(until)) => until.and_then(|until| until.checked_duration_since(Instant::now())),
                None => claim::stands_for(request.since, now),
            })
        };
        let open_requests = identity.claim.open_requests();
        open_requests
            .filter_map(|request| {
                let left = left(&request).filter(|left| !left.is_zero())?;
                Some((request, left))
            })
            .collect()
    }
}
