//! Answers that are remembered for a while.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// Answers remembered at once; beyond, the one that ends soonest is forgotten.
pub(super) const MAX_REMEMBERED: usize = 1024;

/// Answers with an end.
pub(super) struct Remembered<K, V>(pub(super) Mutex<BTreeMap<K, (Instant, V)>>);

impl<K, V> Default for Remembered<K, V> {
    fn default() -> Self {
        Self(Mutex::new(BTreeMap::new()))
    }
}

impl<K: Ord + Clone, V: Clone> Remembered<K, V> {
    pub(super) fn recall<Q: Ord + ?Sized>(&self, key: &Q) -> Option<V>
    where
        K: std::borrow::Borrow<Q>,
    {
        let entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (end, value) = entries.get(key)?;
        (Instant::now() < *end).then(|| value.clone())
    }

    pub(super) fn remember(&self, key: K, value: V, ttl: Duration) {
        if ttl.is_zero() {
            return;
        }
        let now = Instant::now();
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        entries.retain(|_, (end, _)| now < *end);
        if entries.len() >= MAX_REMEMBERED {
            let soonest = entries
                .iter()
                .min_by_key(|(_, (end, _))| *end)
                .map(|(key, _)| key.clone());
            if let Some(soonest) = soonest {
                entries.remove(&soonest);
            }
        }
        entries.insert(key, (now + ttl, value));
    }
}
