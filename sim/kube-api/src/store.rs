//! Objects under one growing revision, as etcd keeps them, with enough history for watches and paged lists.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use serde_json::Value;
use tokio::sync::watch;

use crate::kind::Kind;
use crate::path;

/// Namespace (empty for cluster scope) and name.
pub(crate) type Key = (String, String);

/// One committed write.
#[derive(Debug)]
pub(crate) struct Change {
    pub(crate) revision: u64,
    pub(crate) kind: &'static Kind,
    pub(crate) key: Key,
    /// The object before the write; `None` if the write created it.
    pub(crate) before: Option<Arc<Value>>,
    /// The object after the write, or, for a deletion, the last state under the revision of the deletion.
    pub(crate) object: Arc<Value>,
    pub(crate) deletion: bool,
}

/// The place up to which a running watch has read. Keeps what comes after it from being compacted away.
#[derive(Clone, Debug)]
pub(crate) struct Cursor(Arc<AtomicU64>);

impl Cursor {
    pub(crate) fn revision(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    pub(crate) fn advance(&self, revision: u64) {
        self.0.store(revision, Ordering::Relaxed);
    }
}

pub(crate) struct Store {
    objects: BTreeMap<&'static str, BTreeMap<Key, Arc<Value>>>,
    revision: u64,
    compacted: u64,
    log: VecDeque<Arc<Change>>,
    history: usize,
    cursors: Vec<Weak<AtomicU64>>,
    committed: watch::Sender<u64>,
}

impl Store {
    /// `history`: how many changes to keep before the oldest are compacted of themselves.
    pub(crate) fn new(history: usize) -> Self {
        Self {
            objects: BTreeMap::new(),
            revision: 1,
            compacted: 0,
            log: VecDeque::new(),
            history,
            cursors: Vec::new(),
            committed: watch::Sender::new(1),
        }
    }

    pub(crate) fn revision(&self) -> u64 {
        self.revision
    }

    /// Watches and historical lists below this revision have expired.
    pub(crate) fn compacted(&self) -> u64 {
        self.compacted
    }

    /// Tells of every commit.
    pub(crate) fn subscribe(&self) -> watch::Receiver<u64> {
        self.committed.subscribe()
    }

    pub(crate) fn get(&self, kind: &Kind, namespace: &str, name: &str) -> Option<&Arc<Value>> {
        self.objects
            .get(kind.plural)?
            .get(&(namespace.to_owned(), name.to_owned()))
    }

    /// All objects of a kind, by namespace and name.
    pub(crate) fn all(&self, kind: &Kind) -> impl Iterator<Item = (&Key, &Arc<Value>)> {
        self.objects.get(kind.plural).into_iter().flatten()
    }

    /// The objects of a kind as they were at `revision`, which must not be compacted.
    pub(crate) fn at_revision(&self, kind: &Kind, revision: u64) -> BTreeMap<Key, Arc<Value>> {
        let mut objects = self.objects.get(kind.plural).cloned().unwrap_or_default();
        for change in self
            .log
            .iter()
            .rev()
            .take_while(|change| change.revision > revision)
        {
            if change.kind == kind {
                match &change.before {
                    Some(before) => objects.insert(change.key.clone(), Arc::clone(before)),
                    None => objects.remove(&change.key),
                };
            }
        }
        objects
    }

    /// Stores an object under a new revision and returns it with that revision.
    pub(crate) fn put(&mut self, kind: &'static Kind, mut object: Value) -> Arc<Value> {
        self.revision += 1;
        path::set(&mut object, "metadata.resourceVersion", self.revision.to_string());
        let key = key_of(&object);
        let object = Arc::new(object);
        let before = self
            .objects
            .entry(kind.plural)
            .or_default()
            .insert(key.clone(), Arc::clone(&object));
        self.commit(Change {
            revision: self.revision,
            kind,
            key,
            before,
            object: Arc::clone(&object),
            deletion: false,
        });
        object
    }

    /// Removes an object; returns its last state under the revision of the deletion.
    pub(crate) fn delete(&mut self, kind: &'static Kind, key: &Key) -> Option<Arc<Value>> {
        let before = self.objects.get_mut(kind.plural)?.remove(key)?;
        self.revision += 1;
        let mut last = Value::clone(&before);
        path::set(&mut last, "metadata.resourceVersion", self.revision.to_string());
        let object = Arc::new(last);
        self.commit(Change {
            revision: self.revision,
            kind,
            key: key.clone(),
            before: Some(before),
            object: Arc::clone(&object),
            deletion: true,
        });
        Some(object)
    }

    /// Starts a watch after `revision`.
    pub(crate) fn cursor(&mut self, revision: u64) -> Cursor {
        self.cursors.retain(|cursor| cursor.strong_count() > 0);
        let place = Arc::new(AtomicU64::new(revision));
        self.cursors.push(Arc::downgrade(&place));
        Cursor(place)
    }

    /// Changes after the cursor, or none if they have been dropped.
    pub(crate) fn changes_after(&self, cursor: &Cursor) -> Option<impl Iterator<Item = &Arc<Change>>> {
        let revision = cursor.revision();
        let kept_from = self.log.front().map_or(self.revision, |first| first.revision - 1);
        let start = self.log.partition_point(|change| change.revision <= revision);
        (revision >= kept_from.min(self.revision)).then(|| self.log.range(start..))
    }

    /// Forgets history as etcd's compaction does. Running watches that have not yet read it still get it.
    pub(crate) fn compact(&mut self) {
        self.compacted = self.revision;
        self.trim();
    }

    fn commit(&mut self, change: Change) {
        self.log.push_back(Arc::new(change));
        if self.log.len() > self.history
            && let Some(oldest) = self.log.pop_front()
        {
            self.compacted = self.compacted.max(oldest.revision);
        }
        self.trim();
        self.committed.send_replace(self.revision);
    }

    /// Drops what is compacted and read by everybody.
    fn trim(&mut self) {
        let places = self
            .cursors
            .iter()
            .filter_map(Weak::upgrade)
            .map(|place| place.load(Ordering::Relaxed));
        let needed = places.min().unwrap_or(u64::MAX).min(self.compacted);
        while self.log.front().is_some_and(|change| change.revision <= needed) {
            self.log.pop_front();
        }
    }
}

pub(crate) fn key_of(object: &Value) -> Key {
    (
        path::text(object, "metadata.namespace").to_owned(),
        path::text(object, "metadata.name").to_owned(),
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn node(name: &str, mark: u32) -> Value {
        json!({"metadata": {"name": name}, "mark": mark})
    }

    fn names(objects: &BTreeMap<Key, Arc<Value>>) -> Vec<(&str, u64)> {
        objects
            .iter()
            .map(|(key, object)| (key.1.as_str(), object["mark"].as_u64().unwrap()))
            .collect()
    }

    #[test]
    fn the_past_can_be_listed_until_it_is_compacted() {
        let kind = Kind::named("Node").unwrap();
        let mut store = Store::new(100);
        store.put(kind, node("a", 1));
        store.put(kind, node("b", 1));
        let then = store.revision();
        store.put(kind, node("a", 2));
        store.delete(kind, &(String::new(), "b".into()));
        store.put(kind, node("c", 1));
        assert_eq!(names(&store.at_revision(kind, then)), [("a", 1), ("b", 1)]);
        assert_eq!(
            names(&store.at_revision(kind, store.revision())),
            [("a", 2), ("c", 1)]
        );
        assert_eq!(store.compacted(), 0);
        store.compact();
        assert_eq!(store.compacted(), store.revision());
    }

    #[test]
    fn a_running_watch_keeps_its_unread_changes_through_a_compaction() {
        let kind = Kind::named("Node").unwrap();
        let mut store = Store::new(100);
        let cursor = store.cursor(store.revision());
        store.put(kind, node("a", 1));
        store.compact();
        assert_eq!(store.changes_after(&cursor).unwrap().count(), 1);
        cursor.advance(store.revision());
        store.compact();
        assert_eq!(store.changes_after(&cursor).unwrap().count(), 0);
    }

    #[test]
    fn a_watch_that_is_too_slow_for_the_history_loses_its_place() {
        let kind = Kind::named("Node").unwrap();
        let mut store = Store::new(2);
        let cursor = store.cursor(store.revision());
        for mark in 0..3 {
            store.put(kind, node("a", mark));
        }
        assert!(store.changes_after(&cursor).is_none());
    }
}
