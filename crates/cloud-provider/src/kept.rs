//! What outlives a reconcile in the memory of the process.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The most entries: ten for each Service of a cluster that is large for its cloud.
const MOST: usize = 10_000;

/// What a process remembers from one reconcile to the next, by the UID of the Service or by another key that a reconcile of one
/// Service alone uses.
///
/// A new process begins without it, and the entry that was not used for the longest time goes when there are too many: what is
/// kept spares a call, a write, a wait or an event. `docs/architecture.md` lists every use, how long it is kept, and what its loss
/// costs.
#[derive(Debug)]
pub struct Kept<K, T>(Mutex<Entries<K, T>>);

/// How often entries were used so far; and the entries, each with that number at its last use.
type Entries<K, T> = (u64, BTreeMap<K, (u64, T)>);

impl<K, T> Default for Kept<K, T> {
    fn default() -> Self {
        Self(Mutex::new((0, BTreeMap::new())))
    }
}

impl<K: Ord + Clone, T> Kept<K, T> {
    /// Hands out what is kept under a key, to be read, changed, added (`Some`) or forgotten (`None`). `act` must not ask the
    /// same memory again.
    pub fn with<R>(&self, key: &K, act: impl FnOnce(&mut Option<T>) -> R) -> R {
        let mut entries = lock(&self.0);
        let (uses, by_key) = &mut *entries;
        let mut entry = by_key.remove(key).map(|(_, kept)| kept);
        let result = act(&mut entry);
        if let Some(kept) = entry {
            *uses += 1;
            by_key.insert(key.clone(), (*uses, kept));
        }
        if by_key.len() > MOST
            && let Some((oldest, _)) = by_key.iter().min_by_key(|(_, (used, _))| *used)
        {
            by_key.remove(&oldest.clone());
        }
        result
    }

    /// Changes all that is kept. `act` must not ask the same memory again.
    pub fn each(&self, act: impl Fn(&mut T)) {
        let mut entries = lock(&self.0);
        entries.1.values_mut().for_each(|(_, kept)| act(kept));
    }

    /// Whether anything that is kept is so.
    pub fn any(&self, is_so: impl Fn(&T) -> bool) -> bool {
        let entries = lock(&self.0);
        entries.1.values().any(|(_, kept)| is_so(kept))
    }
}

/// Locks what no panic leaves half done.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_too_many_entries_the_one_longest_not_used_is_forgotten() {
        let kept = Kept::default();
        let is_kept = |key| kept.with(&key, |entry| entry.is_some());
        for key in 0..MOST {
            kept.with(&key, |entry| *entry = Some(()));
        }
        assert!(is_kept(0));
        kept.with(&MOST, |entry| *entry = Some(()));
        assert_eq!([0, 1, 2, MOST].map(is_kept), [true, false, true, true]);
        kept.with(&2, |entry| *entry = None);
        assert!(!is_kept(2));
        kept.with(&3, |entry| *entry = None);
        assert!(kept.any(|()| true) && !kept.any(|()| false));
    }
}
