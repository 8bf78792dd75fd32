//! Objects that are said to be gone, or that cannot be understood, and stay known until there is proof or a better answer.
//!
//! On the word that an object is gone, members leave their pools, routes and pod networks are freed, and balancers are
//! removed. That an object is missing from a list proves nothing, and a watch is only what some proxy let through. So
//! whatever would take a known object (one of this UID) out of the cache is a doubt first: the object is asked for by its
//! name, and leaves when the answer shows that nobody, or somebody else, bears it.
//!
//! Nor does a watch tell that it is behind. A write that is refused because the object has another version by now, which
//! the watch does not show, is a doubt about what is known, and so is an object that a watch shows in a way that cannot be
//! understood. What the answer shows is what is known from then on; the watch goes on.
//!
//! What cannot be understood is there all the same. What was known of it stays; if nothing was, as much is known as can be
//! understood. It is that one object's trouble: whoever acts on the cache goes on with all others.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use super::{Cache, CacheKey};
use crate::error::KubeError;
use crate::events::ObjectRef;
use crate::shape::{Bearer, Found, Listing, Shown, version_number};

/// Why an object is asked for by its name.
#[derive(Debug, Clone, Copy)]
struct Doubt {
    /// Only an answer that is as new as this version counts.
    since: u64,
    /// It is said to be gone. Else it is said to be there, in a version that nothing has shown yet.
    is_said_gone: bool,
    /// Somebody bears its name, and the answer does not tell whether it is still this object: it is asked about again, and
    /// nobody waits for that.
    is_hopeless: bool,
}

/// An object that the API server shows in a way that cannot be understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unreadable {
    /// The object.
    pub object: ObjectRef,
    /// What of it, and why.
    pub why: String,
}

/// The open doubts of a cache.
pub(super) struct Doubts<K> {
    open: Mutex<BTreeMap<K, Doubt>>,
    /// How many doubts were raised.
    raised: watch::Sender<u64>,
    /// Whether what the API server said last was found to be untrue.
    is_disproved: watch::Sender<bool>,
    /// What was shown last in a way that could not be understood, and nothing has shown better since.
    unreadable: watch::Sender<BTreeMap<K, Unreadable>>,
    /// Objects that an answer showed to be gone before the watch did, and the version of that answer. What the watch shows
    /// of them up to there is the past.
    gone: Mutex<BTreeMap<K, u64>>,
}

impl<K> Default for Doubts<K> {
    fn default() -> Self {
        Self {
            open: Mutex::default(),
            raised: watch::Sender::new(0),
            is_disproved: watch::Sender::new(false),
            unreadable: watch::Sender::new(BTreeMap::new()),
            gone: Mutex::default(),
        }
    }
}

/// What became of a doubt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Settled {
    /// It is over, or there was news meanwhile, about which is asked at once.
    Over,
    /// The answer settles nothing: it is asked again after a while.
    Open,
    /// The object was said to be gone and is there, or the answer is older than that word. Something that the API server said
    /// is untrue, so everything is listed again.
    Disproved,
}

impl<K: Ord + Clone> Doubts<K> {
    fn open(&self) -> MutexGuard<'_, BTreeMap<K, Doubt>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn gone(&self) -> MutexGuard<'_, BTreeMap<K, u64>> {
        self.gone.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: CacheKey> Cache<T> {
    /// An object is said to be gone, in this version.
    pub(crate) fn doubt(&self, key: T::Key, version: u64) {
        self.raise(key, version, true, false);
    }

    /// The API server holds another version of this object than the one that is known, and it is time that a watch had shown
    /// it: the object is asked for by its name.
    pub fn ask_about(&self, known: &T) {
        self.raise(known.key(), version_of(known), false, false);
    }

    fn raise(&self, key: T::Key, since: u64, is_said_gone: bool, is_hopeless: bool) {
        let raised = Doubt {
            since,
            is_said_gone,
            is_hopeless,
        };
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

    /// Takes what a list shows that was begun for this filling: what is known and not in it is in doubt.
    pub(crate) fn refill(&self, listing: Listing<T>, asked: u64) {
        self.doubts.is_disproved.send_replace(false);
        let version = version_number(&listing.resource_version).unwrap_or_default();
        let mut known: BTreeMap<T::Key, Arc<T>> = self
            .all()
            .into_iter()
            .map(|object| (object.key(), object))
            .collect();
        let mut unreadable = BTreeMap::new();
        let mut doubted = Vec::new();
        let mut objects = Vec::with_capacity(listing.objects.len());
        for seen in listing.objects {
            let key = seen.object.key();
            let known = known.remove(&key);
            if known
                .as_ref()
                .is_some_and(|known| known.uid() != seen.object.uid())
            {
                doubted.push(key);
                objects.extend(known);
                continue;
            }
            let (object, trouble) = understood(seen, known);
            if let Some(why) = trouble {
                unreadable.insert(key, Unreadable::of(&*object, &why));
            }
            objects.push(object);
        }
        for (key, known) in known {
            doubted.push(key);
            objects.push(known);
        }
        self.unlisted();
        // This list knows better than whatever raised them.
        let before = std::mem::take(&mut *self.doubts.open());
        self.doubts.gone().clear();
        self.replace(objects);
        self.doubts.unreadable.send_if_modified(|told| {
            let is_news = *told != unreadable;
            *told = unreadable;
            is_news
        });
        self.set_nameless(listing.nameless);
        for key in doubted {
            let is_hopeless = before.get(&key).is_some_and(|doubt| doubt.is_hopeless);
            self.raise(key, version, true, is_hopeless);
        }
        self.listed(asked);
    }

    /// What cannot be understood, as it changes. What was known of it stays known.
    pub fn unreadable(&self) -> watch::Receiver<BTreeMap<T::Key, Unreadable>> {
        self.doubts.unreadable.subscribe()
    }

    /// Whether this object is known, and was shown last in a way that cannot be understood.
    pub fn is_unreadable(&self, key: &T::Key) -> bool {
        self.doubts.unreadable.borrow().contains_key(key)
    }

    /// Takes note of whether what was shown of an object can be understood.
    fn note(&self, key: &T::Key, unreadable: Option<Unreadable>) {
        self.doubts.unreadable.send_if_modified(|told| {
            let is_news = told.get(key) != unreadable.as_ref();
            match unreadable {
                Some(unreadable) => drop(told.insert(key.clone(), unreadable)),
                None => drop(told.remove(key)),
            }
            is_news
        });
    }

    /// Whether nobody waits for an answer about what is in doubt.
    pub(crate) fn is_certain(&self) -> bool {
        self.doubts.open().values().all(|doubt| doubt.is_hopeless)
    }

    /// Takes what a watch shows of an object.
    pub(crate) fn observe(&self, seen: Shown<T>) {
        let (key, version) = (seen.object.key(), version_of(&*seen.object));
        let known = self.get(&key);
        if known
            .as_ref()
            .is_some_and(|known| known.uid() != seen.object.uid())
        {
            // Another one bears the name: then the one that is known is gone.
            return self.doubt(key, version);
        }
        let was_gone = self.doubts.gone().get(&key).is_some_and(|gone| version <= *gone);
        if was_gone || known.as_ref().is_some_and(|known| is_past(&*seen.object, known)) {
            return;
        }
        self.doubts.gone().remove(&key);
        let (object, trouble) = understood(seen, known);
        let unreadable = trouble.map(|why| Unreadable::of(&*object, &why));
        let is_understood = unreadable.is_none();
        let was_understood = !self.is_unreadable(&key);
        self.note(&key, unreadable);
        self.apply(object);
        if is_understood {
            let mut open = self.doubts.open();
            if open.get(&key).is_some_and(|doubt| doubt.since <= version) {
                open.remove(&key);
            }
        } else if was_understood {
            // The answer to a question may show it better. If it does not, the next one would not either.
            self.raise(key, version, false, false);
        }
        self.fill_if_certain();
    }

    /// Waits until there are doubts, and gives them all: each with the version that an answer must have reached. Also how many
    /// doubts were raised so far.
    pub(crate) async fn doubted(&self) -> (u64, BTreeMap<T::Key, u64>) {
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
        all.iter()
            .map(|object| version_of(&**object))
            .max()
            .unwrap_or_default()
    }

    fn known_version(&self, key: &T::Key) -> u64 {
        self.get(key).map_or(0, |known| version_of(&*known))
    }

    /// Waits until more doubts were raised than these.
    pub(crate) async fn next_doubt(&self, raised: u64) {
        let mut now = self.doubts.raised.subscribe();
        let _ = now.wait_for(|now| *now != raised).await;
    }

    /// Takes the answer to a question about a doubted object; `since` is the version that it must have reached.
    pub(crate) fn settle(&self, key: &T::Key, since: u64, found: Found<T>) -> Settled {
        let settled = self.weigh(key, since, found);
        if settled == Settled::Disproved {
            self.unlisted();
            self.doubts.open().clear(); // the next list decides about them
            self.doubts.is_disproved.send_replace(true);
        } else {
            self.fill_if_certain();
        }
        settled
    }

    fn weigh(&self, key: &T::Key, since: u64, found: Found<T>) -> Settled {
        let known = self.get(key);
        let mut open = self.doubts.open();
        let Some(doubt) = open.get_mut(key) else {
            return Settled::Over;
        };
        let is_said_gone = doubt.is_said_gone;
        if found.version < since {
            return if is_said_gone {
                Settled::Disproved
            } else {
                Settled::Open
            };
        }
        if found.version < doubt.since.max(self.known_version(key)) {
            return Settled::Over; // there was news meanwhile
        }
        let of_this_object = known.as_deref().filter(|known| match &found.bearer {
            Bearer::Object(seen) => known.uid() == seen.object.uid(),
            Bearer::Nobody | Bearer::Nameless(_) => false,
        });
        let unreadable = match &found.bearer {
            Bearer::Nameless(why) => Some(why.to_string()),
            Bearer::Object(seen) => trouble_of(seen, of_this_object),
            Bearer::Nobody => None,
        };
        if is_said_gone && unreadable.is_some() {
            doubt.is_hopeless = true;
        } else {
            open.remove(key);
        }
        drop(open);
        match (found.bearer, known, unreadable) {
            (Bearer::Nameless(_), None, _) => {} // nor does it bear a name by which it could be known
            (_, Some(known), Some(why)) => {
                self.note(key, Some(Unreadable::of(&*known, &why)));
                if is_said_gone {
                    return Settled::Open;
                }
            }
            (Bearer::Object(seen), known, _) => {
                let is_there = known.is_some_and(|known| known.uid() == seen.object.uid());
                let trouble = trouble_of(&seen, None);
                self.note(key, trouble.map(|why| Unreadable::of(&*seen.object, &why)));
                self.apply(seen.object);
                if is_said_gone && is_there {
                    return Settled::Disproved;
                }
            }
            (Bearer::Nobody | Bearer::Nameless(_), ..) => {
                self.note(key, None);
                self.delete(key);
                if !is_said_gone {
                    self.doubts.gone().insert(key.clone(), found.version);
                }
            }
        }
        Settled::Over
    }

    /// Waits until an answer has shown that what the API server said before was untrue.
    pub(crate) async fn disproved(&self) {
        let mut is_disproved = self.doubts.is_disproved.subscribe();
        let _ = is_disproved.wait_for(|is_disproved| *is_disproved).await;
    }
}

impl Unreadable {
    fn of<T: CacheKey>(object: &T, why: &str) -> Self {
        Self {
            object: object.reference(),
            why: why.to_owned(),
        }
    }
}

/// What is known of an object from now on, and why that is not what was shown.
fn understood<T: CacheKey>(seen: Shown<T>, known: Option<Arc<T>>) -> (Arc<T>, Option<String>) {
    match known {
        Some(known) if is_past(&*seen.object, &known) => (known, None),
        known => match (trouble_of(&seen, known.as_deref()), known) {
            (Some(trouble), Some(known)) => (known, Some(trouble)),
            (trouble, _) => (seen.object, trouble),
        },
    }
}

/// Why an object is not what was shown: it cannot be understood, or lacks something that it cannot have lost.
fn trouble_of<T: CacheKey>(seen: &Shown<T>, known: Option<&T>) -> Option<String> {
    let lost = || known.and_then(|known| seen.object.lost_since(known)).map(lost);
    seen.trouble
        .clone()
        .or_else(lost)
        .map(|trouble| trouble.to_string())
}

/// Whether this version is older than the one that is known. What is older did not have everything yet.
fn is_past<T: CacheKey>(object: &T, known: &T) -> bool {
    let version = |object: &T| version_number(object.resource_version());
    matches!((version(object), version(known)), (Some(object), Some(known)) if object < known)
}

fn version_of<T: CacheKey>(object: &T) -> u64 {
    version_number(object.resource_version()).unwrap_or_default()
}

fn lost(field: &str) -> KubeError {
    KubeError::Decode(format!(
        "it has lost its `{field}`, which the API server takes off no object. Look for a proxy that answers for the API server."
    ))
}
