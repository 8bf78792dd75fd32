//! Objects that are said to be gone, and stay known until that is proved.
//!
//! On the word that an object is gone, members leave their pools, routes and pod networks are freed, and balancers are
//! removed. That an object is missing from a list proves nothing, and a watch is only what some proxy let through. So
//! whatever would take a known object (one of this UID) out of the cache is a doubt first: the object is asked for by its
//! name, and leaves when the answer shows that nobody, or somebody else, bears it.
//!
//! Nor does a watch tell that it is behind. A write that is refused because the object has another version by now, which
//! the watch does not show, is a doubt of the same kind about what is known.
//!
//! What cannot be understood is there all the same. What was known of it stays; if nothing was, the cache is not filled.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use super::{Cache, CacheKey, is_same};
use crate::error::KubeError;
use crate::reads::{Found, Unreadable, version_number};

/// Why an object is asked for by its name.
#[derive(Debug, Clone, Copy)]
struct Doubt {
    /// Only an answer that is as new as this version counts.
    since: u64,
    /// It is said to be gone. Else it is said to be there, in a version that nothing has shown yet.
    is_said_gone: bool,
}

/// The open doubts of a cache.
pub(super) struct Doubts<K> {
    open: Mutex<BTreeMap<K, Doubt>>,
    /// How many doubts were raised.
    raised: watch::Sender<u64>,
    /// Whether what the API server said last was found to be untrue.
    is_disproved: watch::Sender<bool>,
    /// What the last list showed in a way that could not be understood, and nothing has shown better since.
    unreadable: Mutex<BTreeSet<K>>,
}

impl<K> Default for Doubts<K> {
    fn default() -> Self {
        Self {
            open: Mutex::default(),
            raised: watch::Sender::new(0),
            is_disproved: watch::Sender::new(false),
            unreadable: Mutex::default(),
        }
    }
}

/// What became of a doubt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Settled {
    /// The object is gone, or the doubt is over otherwise, or has to be asked about again.
    Over,
    /// The object is there, as it was, and was never gone; or the watch has not shown a change of it; or the answer is older
    /// than what was said before it. Something that the API server said is untrue or late, so everything is listed again.
    Disproved,
}

impl<K: Ord + Clone> Doubts<K> {
    fn open(&self) -> MutexGuard<'_, BTreeMap<K, Doubt>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn unreadable(&self) -> MutexGuard<'_, BTreeSet<K>> {
        self.unreadable.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: CacheKey> Cache<T> {
    /// An object is said to be gone, in this version.
    pub(crate) fn doubt(&self, key: T::Key, version: u64) {
        self.raise(key, version, true);
    }

    /// The API server holds another version of this object than the one that is known, and it is time that a watch had shown
    /// it: the object is asked for by its name, and if there is news, everything is listed again.
    pub fn ask_about(&self, known: &T) {
        let version = version_number(known.resource_version()).unwrap_or_default();
        self.raise(known.key(), version, false);
    }

    fn raise(&self, key: T::Key, since: u64, is_said_gone: bool) {
        let raised = Doubt { since, is_said_gone };
        self.doubts
            .open()
            .entry(key)
            .and_modify(|open| {
                open.since = since.max(open.since);
                open.is_said_gone |= is_said_gone;
            })
            .or_insert(raised);
        self.doubts.raised.send_modify(|raised| *raised += 1);
    }

    /// Takes what a list shows, in this version, that was begun for this filling: what is known and not in it is in doubt.
    ///
    /// What lacks something that it cannot have lost is added to what is unreadable. If that leaves this filling incomplete, the
    /// answer is the first object of which nothing is known: a cache without it would say that it is gone. A cache that is
    /// filled already stays so, because its owner has never seen the object and nothing was done for it.
    pub(crate) fn refill(
        &self,
        mut listed: Vec<Arc<T>>,
        unreadable: &mut Unreadable<T>,
        version: u64,
        asked: u64,
    ) -> Option<T::Key> {
        self.doubts.is_disproved.send_replace(false);
        let mut known: BTreeMap<T::Key, Arc<T>> = self
            .all()
            .into_iter()
            .map(|object| (object.key(), object))
            .collect();
        let mut unknown = None;
        let mut kept = Vec::new();
        for key in unreadable.keys() {
            match known.remove(key) {
                Some(object) => kept.push(object),
                None => unknown = unknown.or_else(|| Some(key.clone())),
            }
        }
        let mut doubted = Vec::new();
        for object in &mut listed {
            let Some(known) = known.remove(&object.key()) else {
                continue;
            };
            if known.uid() != object.uid() {
                doubted.push(known.key());
                *object = known;
            } else if let Some(field) = object.lost_since(&known) {
                if !is_older(&**object, &known) {
                    unreadable.insert(known.key(), lost(field));
                }
                *object = known;
            }
        }
        for (key, known) in known {
            doubted.push(key);
            kept.push(known);
        }
        listed.extend(kept);
        self.unlisted();
        self.doubts.open().clear(); // this list knows better than whatever raised them
        self.replace(listed);
        *self.doubts.unreadable() = unreadable.keys().cloned().collect();
        for key in doubted {
            self.doubt(key, version);
        }
        if unknown.is_some() && !self.is_synced() {
            return unknown;
        }
        self.listed(asked);
        None
    }

    /// Whether the last list did not show this object any better.
    pub(crate) fn is_unreadable(&self, key: &T::Key) -> bool {
        self.doubts.unreadable().contains(key)
    }

    /// Whether nothing is in doubt.
    pub(crate) fn is_certain(&self) -> bool {
        self.doubts.open().is_empty()
    }

    /// Takes what a watch shows of an object.
    ///
    /// # Errors
    ///
    /// It lacks something that it cannot have lost: what was known of it stays.
    pub(crate) fn observe(&self, object: T) -> Result<(), KubeError> {
        let key = object.key();
        let version = version_number(object.resource_version()).unwrap_or_default();
        match self.get(&key) {
            // Another one bears the name: then the one that is known is gone.
            Some(known) if known.uid() != object.uid() => self.doubt(key, version),
            known => {
                if let Some(known) = known
                    && let Some(field) = object.lost_since(&known)
                {
                    // What is older did not have it yet.
                    return if is_older(&object, &known) {
                        Ok(())
                    } else {
                        Err(lost(field))
                    };
                }
                self.doubts.unreadable().remove(&key);
                self.apply(object);
                let mut open = self.doubts.open();
                if open.get(&key).is_some_and(|doubt| doubt.since <= version) {
                    open.remove(&key);
                }
                drop(open);
                self.fill_if_certain();
            }
        }
        Ok(())
    }

    /// Waits until there are doubts, and gives them all: each with the version that an answer must have reached. Also how many
    /// doubts were raised so far.
    pub(crate) async fn doubted(&self) -> (u64, Vec<(T::Key, u64)>) {
        let mut raised = self.doubts.raised.subscribe();
        loop {
            let count = *raised.borrow_and_update();
            let open = self.doubts.open().clone();
            if !open.is_empty() {
                let due = open.into_iter().map(|(key, doubt)| {
                    let since = doubt.since.max(self.known_version(&key));
                    (key, since)
                });
                return (count, due.collect());
            }
            // Fails only if the sender is gone, which is part of self.
            let _ = raised.changed().await;
        }
    }

    /// The version of the newest object that is known; 0 if none is.
    pub(crate) fn newest_version(&self) -> u64 {
        let all = self.all();
        let versions = all.iter().map(|object| version_number(object.resource_version()));
        versions.flatten().max().unwrap_or_default()
    }

    fn known_version(&self, key: &T::Key) -> u64 {
        let known = self.get(key);
        let version = known.and_then(|known| version_number(known.resource_version()));
        version.unwrap_or_default()
    }

    /// Waits until more doubts were raised than these.
    pub(crate) async fn next_doubt(&self, raised: u64) {
        let mut now = self.doubts.raised.subscribe();
        let _ = now.wait_for(|now| *now != raised).await;
    }

    /// Takes the answer to a question about a doubted object; `since` is the version that it must have reached.
    pub(crate) fn settle(&self, key: &T::Key, since: u64, found: Found<T>) -> Settled {
        let settled = self.weigh(key, since, found);
        match settled {
            Settled::Disproved => {
                self.unlisted();
                self.doubts.open().clear(); // the next list decides about them
                self.doubts.is_disproved.send_replace(true);
            }
            Settled::Over => self.fill_if_certain(),
        }
        settled
    }

    fn weigh(&self, key: &T::Key, since: u64, found: Found<T>) -> Settled {
        let known = self.get(key);
        let doubt = {
            let mut open = self.doubts.open();
            let Some(doubt) = open.get(key).copied() else {
                return Settled::Over;
            };
            if found.version < since {
                return Settled::Disproved;
            }
            if found.version < doubt.since.max(self.known_version(key)) {
                return Settled::Over; // there was news meanwhile, about which is asked again
            }
            open.remove(key);
            doubt
        };
        match (known, found.object) {
            (Some(known), Some(object)) if !doubt.is_said_gone && is_same(&*known, &*object) => {}
            (Some(known), Some(object)) if known.uid() == object.uid() => {
                if object.lost_since(&known).is_none() {
                    self.apply(object);
                }
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

fn is_older<T: CacheKey>(object: &T, known: &T) -> bool {
    let version = |object: &T| version_number(object.resource_version());
    matches!((version(object), version(known)), (Some(object), Some(known)) if object < known)
}

fn lost(field: &str) -> KubeError {
    KubeError::Decode(format!(
        "it has lost its `{field}`, which the API server takes off no object. Look for a proxy that answers for the API server."
    ))
}
