//! Services whose rules no router can read, and that are left as they are until they are changed.
//!
//! The Go manager leaves such rules. To make them anew interrupts their ports, so a process that takes over does not: it
//! says so, and waits for a change of the Service. Nothing of it is written down: a new process waits for the next change.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use crate::intent::Wanted;
use crate::objects::Rule;

/// What Services asked for when such a rule of theirs was seen first, by their UID.
#[derive(Default)]
pub(super) struct BrokenRouters(Mutex<BTreeMap<String, u64>>);

impl BrokenRouters {
    /// Whether a Service with such a rule was changed since that was seen first.
    pub(super) fn is_changed(&self, wanted: &Wanted, rules: &[Rule]) -> bool {
        let uid = &wanted.identity.uid;
        if !rules.iter().any(Rule::breaks_router) {
            self.forget(uid);
            return false;
        }
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *seen.entry(uid.clone()).or_insert(wanted.asked) != wanted.asked
    }

    /// A Service wants no balancer any more.
    pub(super) fn forget(&self, uid: &str) {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        seen.remove(uid);
    }
}
