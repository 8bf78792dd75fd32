//! Jobs that were started for a Service and whose end nobody has seen, whatever became of the sync that started them.
//!
//! A change of the Service ends a sync that waits for a job; some servers go on with a job only when it is asked after.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::Pending;

/// Jobs by the name of the balancer.
#[derive(Default)]
pub(super) struct Underway(Mutex<BTreeMap<String, Vec<Pending>>>);

impl Underway {
    /// A job was started.
    pub(super) fn started(&self, balancer: &str, pending: &Pending) {
        self.lock()
            .entry(balancer.to_owned())
            .or_default()
            .push(pending.clone());
    }

    /// These are left.
    pub(super) fn left(&self, balancer: &str, pending: &[Pending]) {
        if pending.is_empty() {
            self.lock().remove(balancer);
        } else {
            self.lock().insert(balancer.to_owned(), pending.to_vec());
        }
    }

    /// Those of a balancer.
    pub(super) fn of(&self, balancer: &str) -> Vec<Pending> {
        self.lock().get(balancer).cloned().unwrap_or_default()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Vec<Pending>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
