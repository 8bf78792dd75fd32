//! Turns at things that several Services share: an ACL list takes equal items, so two Services that open a port of one tier
//! at once would both make one.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{Mutex as Turn, OwnedMutexGuard};

/// One turn at a time for each thing. Entries stay: there are as many as ACL lists.
#[derive(Debug, Default)]
pub(crate) struct Turns(Mutex<BTreeMap<String, Arc<Turn<()>>>>);

impl Turns {
    /// Waits for a turn, which ends when the answer is dropped.
    pub(crate) async fn take(&self, id: &str) -> OwnedMutexGuard<()> {
        let turn = {
            let mut turns = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(turns.entry(id.to_owned()).or_default())
        };
        turn.lock_owned().await
    }
}
