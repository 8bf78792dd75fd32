//! Objects that are said to be gone, and stay known until that is proved.
//!
//! On the word that an object is gone, members leave their pools, routes and pod networks are freed, and balancers are
//! removed. That an object is missing from a list proves nothing, and a watch is only what some proxy let through. So
//! whatever would take a known object (one of this UID) out of the cache is a doubt first: the object is asked for by its
//! name, and leaves when the answer shows that nobody, or somebody else, bears it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use super::{Cache, CacheKey};
use crate::reads::{Found, version_number};

/// The open doubts of a cache.
pub(super) struct Doubts<K> {
    /// The version in which each object is said to be gone. Only an answer that is as new counts.
    open: Mutex<BTreeMap<K, u64>>,
    /// How many doubts were raised.
    raised: watch::Sender<u64>,
    /// Whether what the API server said last was found to be untrue.
    is_disproved: watch::Sender<bool>,
}

impl<K> Default for Doubts<K> {
    fn default() -> Self {
        Self {
            open: Mutex::default(),
            raised: watch::Sender::new(0),
            is_disproved: watch::Sender::new(false),
        }
    }
}

/// What became of a doubt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Settled {
    /// The object is gone, or the doubt is over otherwise.
    Over,
    /// The answer is older than the doubt: it is asked for again.
    Stale,
    /// The object is there, as it was: it was never gone.
    Disproved,
}

impl<K: Ord + Clone> Doubts<K> {
    fn open(&self) -> MutexGuard<'_, BTreeMap<K, u64>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: CacheKey> Cache<T> {
    /// An object is said to be gone, in this version.
    pub(crate) fn doubt(&self, key: T::Key, version: u64) {
        {
            let mut open = self.doubts.open();
            let since = open.entry(key).or_insert(version);
            *since = version.max(*since);
        }
        self.doubts.raised.send_modify(|raised| *raised += 1);
    }

    /// Takes what a list shows, in this version: what is known and not in it is in doubt.
    pub(crate) fn refill(&self, mut listed: Vec<Arc<T>>, unreadable: &[T::Key], version: u64) {
        self.doubts.is_disproved.send_replace(false);
        let mut known: BTreeMap<T::Key, Arc<T>> = self
            .all()
            .into_iter()
            .map(|object| (object.key(), object))
            .collect();
        // What cannot be understood is not gone: what was known of it stays.
        let unreadable = unreadable.iter().filter_map(|key| known.remove(key));
        let mut kept: Vec<Arc<T>> = unreadable.collect();
        let mut doubted = Vec::new();
        for object in &mut listed {
            let known = known.remove(&object.key());
            if let Some(other) = known.filter(|known| known.uid() != object.uid()) {
                doubted.push(other.key());
                *object = other;
            }
        }
        for (key, known) in known {
            doubted.push(key);
            kept.push(known);
        }
        listed.extend(kept);
        self.doubts.open().clear(); // this list knows better than whatever raised them
        self.reset(listed);
        for key in doubted {
            self.doubt(key, version);
        }
    }

    /// Takes what a watch shows of an object.
    pub(crate) fn observe(&self, object: T) {
        let key = object.key();
        let version = version_number(object.resource_version()).unwrap_or_default();
        match self.get(&key) {
            // Another one bears the name: then the one that is known is gone.
            Some(known) if known.uid() != object.uid() => self.doubt(key, version),
            _ => {
                self.apply(object);
                let mut open = self.doubts.open();
                if open.get(&key).is_some_and(|since| *since <= version) {
                    open.remove(&key);
                }
            }
        }
    }

    /// Waits until there are doubts, and gives them all, with the number of doubts that were raised so far.
    pub(crate) async fn doubted(&self) -> (u64, Vec<T::Key>) {
        let mut raised = self.doubts.raised.subscribe();
        loop {
            let count = *raised.borrow_and_update();
            let keys: Vec<T::Key> = self.doubts.open().keys().cloned().collect();
            if !keys.is_empty() {
                return (count, keys);
            }
            // Fails only if the sender is gone, which is part of self.
            let _ = raised.changed().await;
        }
    }

    /// Waits until more doubts were raised than these.
    pub(crate) async fn next_doubt(&self, raised: u64) {
        let mut now = self.doubts.raised.subscribe();
        let _ = now.wait_for(|now| *now != raised).await;
    }

    /// Takes the answer to a question about a doubted object.
    pub(crate) fn settle(&self, key: &T::Key, found: Found<T>) -> Settled {
        let known = self.get(key);
        let known_version = known
            .as_ref()
            .and_then(|known| version_number(known.resource_version()));
        {
            let mut open = self.doubts.open();
            let Some(since) = open.get(key) else {
                return Settled::Over;
            };
            if found.version < (*since).max(known_version.unwrap_or_default()) {
                return Settled::Stale;
            }
            open.remove(key);
        }
        match (known, found.object) {
            (Some(known), Some(object)) if known.uid() == object.uid() => {
                self.apply(object);
                self.doubts.open().clear(); // the next list decides about the others
                self.doubts.is_disproved.send_replace(true);
                return Settled::Disproved;
            }
            (_, Some(object)) => self.apply(object),
            (_, None) => self.delete(key),
        }
        Settled::Over
    }

    /// Waits until an answer has shown that what the API server said before was untrue.
    pub(crate) async fn disproved(&self) {
        let mut is_disproved = self.doubts.is_disproved.subscribe();
        let _ = is_disproved.wait_for(|is_disproved| *is_disproved).await;
    }
}
