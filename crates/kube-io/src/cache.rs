//! What is known of the cluster: an ordered store that tells its listeners about each change.
//!
//! A plain structure behind a lock. A watch feeds it; a test can push objects in and read the results at once, with no
//! API server and nothing to wait for.

mod doubts;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use bowline_cloud_provider::{Node, NodeName, Readiness, Service, ServiceKey};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::error::KubeError;
use crate::events::ObjectRef;
use crate::shape::version_number;
use doubts::Doubts;

pub(crate) use doubts::Settled;
pub use doubts::Unreadable;

/// An object that can be kept in a [`Cache`].
pub trait CacheKey: Send + Sync + 'static {
    /// What names the object.
    type Key: Ord + Clone + fmt::Debug + Send + Sync;
    /// The object's name.
    fn key(&self) -> Self::Key;
    /// `metadata.uid`.
    fn uid(&self) -> &str;
    /// `metadata.resourceVersion`.
    fn resource_version(&self) -> &str;
    /// The object as events name it.
    fn reference(&self) -> ObjectRef;
    /// Which field an earlier version of this object had and this one lacks, although it is never taken off an object.
    fn lost_since(&self, before: &Self) -> Option<&'static str>;
}

impl CacheKey for Node {
    type Key = NodeName;

    fn key(&self) -> NodeName {
        self.name.clone()
    }

    fn uid(&self) -> &str {
        &self.uid
    }

    fn resource_version(&self) -> &str {
        &self.resource_version
    }

    fn reference(&self) -> ObjectRef {
        ObjectRef::from(self)
    }

    /// `ValidateNodeUpdate` lets nobody clear the provider ID and the pod networks. A status is written by the kubelet, which
    /// never empties it.
    fn lost_since(&self, before: &Self) -> Option<&'static str> {
        let has_status = |node: &Self| !node.addresses.is_empty() || node.readiness != Readiness::Missing;
        [
            (before.deleting && !self.deleting, "metadata.deletionTimestamp"),
            (
                before.provider_id.is_some() && self.provider_id.is_none(),
                "spec.providerID",
            ),
            (
                !before.pod_cidrs.is_empty() && self.pod_cidrs.is_empty(),
                "spec.podCIDRs",
            ),
            (has_status(before) && !has_status(self), "status"),
        ]
        .into_iter()
        .find_map(|(is_lost, field)| is_lost.then_some(field))
    }
}

impl CacheKey for Service {
    type Key = ServiceKey;

    fn key(&self) -> ServiceKey {
        ServiceKey::of(self)
    }

    fn uid(&self) -> &str {
        self.metadata.uid.as_deref().unwrap_or_default()
    }

    fn resource_version(&self) -> &str {
        self.metadata.resource_version.as_deref().unwrap_or_default()
    }

    fn reference(&self) -> ObjectRef {
        ObjectRef::from(self)
    }

    fn lost_since(&self, before: &Self) -> Option<&'static str> {
        let is_deleted = |service: &Self| service.metadata.deletion_timestamp.is_some();
        (is_deleted(before) && !is_deleted(self)).then_some("metadata.deletionTimestamp")
    }
}

/// What happened to an object.
pub enum Change<T> {
    /// It is there.
    Added(Arc<T>),
    /// It is another version of the same object.
    Updated {
        /// What was known before.
        old: Arc<T>,
        /// What is known now.
        new: Arc<T>,
    },
    /// It is gone; this is the last that was known of it.
    Deleted(Arc<T>),
}

impl<T> Clone for Change<T> {
    fn clone(&self) -> Self {
        match self {
            Self::Added(object) => Self::Added(Arc::clone(object)),
            Self::Updated { old, new } => Self::Updated {
                old: Arc::clone(old),
                new: Arc::clone(new),
            },
            Self::Deleted(object) => Self::Deleted(Arc::clone(object)),
        }
    }
}

impl<T: CacheKey> fmt::Debug for Change<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Added(object) => write!(f, "Added({:?})", object.key()),
            Self::Updated { new, .. } => write!(f, "Updated({:?})", new.key()),
            Self::Deleted(object) => write!(f, "Deleted({:?})", object.key()),
        }
    }
}

/// The Nodes of the cluster.
pub type NodeCache = Cache<Node>;
/// The Services of the cluster.
pub type ServiceCache = Cache<Service>;

/// What is called after each change.
pub type Listener<T> = Arc<dyn Fn(&Change<T>) + Send + Sync>;
type Objects<T> = BTreeMap<<T as CacheKey>::Key, Arc<T>>;

/// The objects of one kind, in key order.
///
/// Listeners are called one after the other, on the thread that made the change, before the change's method returns.
/// They may read the cache. They must not change it or subscribe to it: that would wait for itself.
pub struct Cache<T: CacheKey> {
    /// Held over a change and its announcement, so that all listeners see all changes in the same order.
    listeners: Mutex<Vec<Listener<T>>>,
    /// Held only while looking or changing, so that listeners can read.
    objects: RwLock<Objects<T>>,
    filling: watch::Sender<Filling>,
    /// When the API server was last known to have told everything.
    heard: Mutex<Option<Instant>>,
    /// Why this cache cannot be read, if so.
    refusal: Mutex<Option<KubeError>>,
    /// How many objects the last list had that do not tell which objects they are.
    nameless: AtomicUsize,
    /// What is said to be gone and not proved to be.
    doubts: Doubts<T::Key>,
}

/// Which filling of a cache is asked for, and how far it is.
#[derive(Debug, Clone, Copy, Default)]
struct Filling {
    asked: u64,
    /// The last for which there was a list.
    listed: Option<u64>,
    /// The last for which it was also settled what was missing from the list.
    done: Option<u64>,
}

impl Filling {
    fn is_done(self) -> bool {
        self.done == Some(self.asked)
    }
}

impl<T: CacheKey> Default for Cache<T> {
    fn default() -> Self {
        Self {
            listeners: Mutex::default(),
            objects: RwLock::default(),
            filling: watch::Sender::default(),
            heard: Mutex::default(),
            refusal: Mutex::default(),
            nameless: AtomicUsize::new(0),
            doubts: Doubts::default(),
        }
    }
}

impl<T: CacheKey> fmt::Debug for Cache<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cache")
            .field("len", &self.len())
            .field("is_synced", &self.is_synced())
            .finish_non_exhaustive()
    }
}

impl<T: CacheKey> Cache<T> {
    /// A cache that knows nothing and is not synced.
    pub fn new() -> Self {
        Self::default()
    }

    /// The object of this key.
    pub fn get(&self, key: &T::Key) -> Option<Arc<T>> {
        self.read(|objects| objects.get(key).cloned())
    }

    /// The version of this very object that is kept, if it is newer than the known one.
    pub fn newer_than(&self, known: &T) -> Option<Arc<T>> {
        let version = |object: &T| version_number(object.resource_version());
        let newest = self.get(&known.key())?;
        (newest.uid() == known.uid() && version(&newest) > version(known)).then_some(newest)
    }

    /// The object that is known, if it is the same version; else this one.
    pub(crate) fn as_known(&self, object: Arc<T>) -> Arc<T> {
        let known = self.get(&object.key());
        known
            .filter(|known| is_same(&**known, &*object))
            .unwrap_or(object)
    }

    /// All objects in key order.
    pub fn all(&self) -> Vec<Arc<T>> {
        self.read(|objects| objects.values().cloned().collect())
    }

    /// How many objects there are.
    pub fn len(&self) -> usize {
        self.read(BTreeMap::len)
    }

    /// Whether there is no object.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether the cache has been filled, and since it was last asked to be [filled anew](Self::renew).
    pub fn is_synced(&self) -> bool {
        self.filling.borrow().is_done()
    }

    /// Waits until the cache [is synced](Self::is_synced).
    pub async fn synced(&self) {
        // Fails only if the sender is gone, which is part of self.
        let _ = self
            .filling
            .subscribe()
            .wait_for(|filling| filling.is_done())
            .await;
    }

    /// Asks for the cache to be filled anew, with what is listed from now on. What is known stays until then.
    ///
    /// Who begins to act on the cache asks for this first: a watch that is open may be dead without having been noticed,
    /// and what it shows may be some time old.
    pub fn renew(&self) {
        self.filling.send_modify(|filling| filling.asked += 1);
    }

    /// Which filling is asked for.
    pub(crate) fn asked(&self) -> u64 {
        self.filling.borrow().asked
    }

    /// Waits until another filling than this one is asked for.
    pub(crate) async fn asked_again(&self, before: u64) {
        let mut filling = self.filling.subscribe();
        // Fails only if the sender is gone, which is part of self.
        let _ = filling.wait_for(|filling| filling.asked != before).await;
    }

    /// What a list showed is known, which began after this filling was asked for.
    fn listed(&self, asked: u64) {
        self.hear();
        self.filling.send_modify(|filling| filling.listed = Some(asked));
        self.fill_if_certain();
    }

    /// The last list was untrue.
    fn unlisted(&self) {
        self.filling.send_modify(|filling| filling.listed = None);
    }

    /// The cache is filled when it is also settled what became of that which was missing from the list: who acts on it
    /// could take an object that is gone for one that is there.
    fn fill_if_certain(&self) {
        if !self.is_certain() {
            return;
        }
        self.filling.send_if_modified(|filling| {
            let is_news = filling.listed == Some(filling.asked) && !filling.is_done();
            if is_news {
                filling.done = filling.listed;
            }
            is_news
        });
    }

    /// The API server has shown everything until now, or shows it at this moment.
    pub(crate) fn hear(&self) {
        *self.heard.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
    }

    /// When the API server was heard of last; `None`: never. A watch that is well is heard of every half minute, also if
    /// nothing changes; where watches fail, a list is.
    pub fn heard(&self) -> Option<Instant> {
        *self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Why this cache cannot be read: the role lacks a rule, or the identity is not known. `None` while it is read, and while the
    /// API server cannot be reached.
    pub fn refusal(&self) -> Option<KubeError> {
        self.refusal
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    pub(crate) fn set_refusal(&self, refusal: Option<KubeError>) {
        *self.refusal.lock().unwrap_or_else(PoisonError::into_inner) = refusal;
    }

    /// How many objects were shown that do not tell which objects they are. They are passed over.
    pub fn nameless(&self) -> usize {
        self.nameless.load(Ordering::Relaxed)
    }

    pub(crate) fn set_nameless(&self, count: usize) {
        self.nameless.store(count, Ordering::Relaxed);
    }

    /// Calls the listener for each change from now on, after calling it with [`Change::Added`] for everything present.
    pub fn subscribe(&self, listener: Listener<T>) {
        let mut listeners = self.lock();
        for object in self.all() {
            listener(&Change::Added(object));
        }
        listeners.push(listener);
    }

    /// [`subscribe`](Self::subscribe) for something that may go away before the cache does, such as a controller: it is told as
    /// long as it is there.
    pub fn subscribe_weakly<S: Send + Sync + 'static>(&self, subscriber: &Arc<S>, tell: fn(&S, &Change<T>)) {
        let subscriber = Arc::downgrade(subscriber);
        self.subscribe(Arc::new(move |change| {
            if let Some(subscriber) = subscriber.upgrade() {
                tell(&subscriber, change);
            }
        }));
    }

    /// Stores an object. The same version again is no change; another object of the same name is a deletion and an
    /// addition.
    pub fn apply(&self, object: impl Into<Arc<T>>) {
        let object = object.into();
        let listeners = self.lock();
        let before = self.write(|objects| match objects.get(&object.key()) {
            Some(known) if is_same(&**known, &*object) => None,
            _ => Some(objects.insert(object.key(), Arc::clone(&object))),
        });
        if let Some(before) = before {
            announce(&listeners, before, Some(object));
        }
    }

    /// Forgets an object.
    pub fn delete(&self, key: &T::Key) {
        let listeners = self.lock();
        let before = self.write(|objects| objects.remove(key));
        announce(&listeners, before, None);
    }

    /// Stores these objects and forgets all others; announces the differences in key order. From now on the cache is
    /// synced.
    pub fn reset(&self, objects: Vec<Arc<T>>) {
        self.replace(objects);
        self.listed(self.asked());
    }

    /// Stores these objects and forgets all others; announces the differences in key order.
    pub(crate) fn replace(&self, objects: Vec<Arc<T>>) {
        let listeners = self.lock();
        let mut after: Objects<T> = objects.into_iter().map(|object| (object.key(), object)).collect();
        let mut before = self.write(|objects| {
            for (key, known) in objects.iter() {
                if let Some(object) = after.get_mut(key)
                    && is_same(&**known, &**object)
                {
                    *object = Arc::clone(known); // one copy of what has not changed
                }
            }
            std::mem::replace(objects, after.clone())
        });
        let mut changes = BTreeMap::new();
        for (key, object) in after {
            match before.remove(&key) {
                Some(known) if Arc::ptr_eq(&known, &object) => {}
                known => drop(changes.insert(key, (known, Some(object)))),
            }
        }
        changes.extend(before.into_iter().map(|(key, known)| (key, (Some(known), None))));
        for (before, after) in changes.into_values() {
            announce(&listeners, before, after);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Listener<T>>> {
        self.listeners.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn read<R>(&self, look: impl FnOnce(&Objects<T>) -> R) -> R {
        look(&self.objects.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn write<R>(&self, change: impl FnOnce(&mut Objects<T>) -> R) -> R {
        change(&mut self.objects.write().unwrap_or_else(PoisonError::into_inner))
    }
}

impl ServiceCache {
    /// Whether a Service with this UID exists.
    pub fn has_uid(&self, uid: &str) -> bool {
        self.read(|services| services.values().any(|service| service.uid() == uid))
    }
}

/// Whether nothing has changed. An object without a version, as only tests make them, counts as changed.
fn is_same<T: CacheKey>(known: &T, object: &T) -> bool {
    known.uid() == object.uid()
        && known.resource_version() == object.resource_version()
        && !object.resource_version().is_empty()
}

fn announce<T: CacheKey>(listeners: &[Listener<T>], before: Option<Arc<T>>, after: Option<Arc<T>>) {
    let tell = |change: &Change<T>| listeners.iter().for_each(|listener| listener(change));
    match (before, after) {
        (None, None) => {}
        (None, Some(new)) => tell(&Change::Added(new)),
        (Some(old), None) => tell(&Change::Deleted(old)),
        (Some(old), Some(new)) if old.uid() == new.uid() => tell(&Change::Updated { old, new }),
        (Some(old), Some(new)) => {
            tell(&Change::Deleted(old));
            tell(&Change::Added(new));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shape::{Bearer, Found, Listing, Shown};

    fn listing(names: &[&str], version: &str) -> Listing<Node> {
        let objects = names.iter().map(|name| Shown::whole(node(name, "1", "1")));
        Listing {
            objects: objects.collect(),
            nameless: 0,
            resource_version: version.to_owned(),
        }
    }

    fn node(name: &str, uid: &str, version: &str) -> Node {
        Node {
            uid: Arc::from(uid),
            resource_version: Arc::from(version),
            ..Node::named(name)
        }
    }

    fn watched() -> (NodeCache, Arc<Mutex<Vec<String>>>) {
        let cache = NodeCache::new();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&seen);
        cache.subscribe(Arc::new(move |change| {
            log.lock().unwrap().push(format!("{change:?}"))
        }));
        (cache, seen)
    }

    fn taken(seen: &Mutex<Vec<String>>) -> Vec<String> {
        std::mem::take(&mut seen.lock().unwrap())
    }

    #[test]
    fn a_reset_announces_only_differences_in_key_order() {
        let (cache, seen) = watched();
        cache.apply(node("b", "1", "5"));
        cache.apply(node("c", "2", "6"));
        cache.apply(node("d", "3", "7"));
        cache.apply(node("e", "4", "7"));
        taken(&seen);
        let unchanged = cache.get(&NodeName::new("b")).unwrap();
        cache.reset(
            [
                node("e", "9", "9"),
                node("b", "1", "5"),
                node("c", "2", "8"),
                node("a", "5", "9"),
            ]
            .map(Arc::new)
            .to_vec(),
        );
        assert_eq!(
            taken(&seen),
            [
                r#"Added("a")"#,
                r#"Updated("c")"#,
                r#"Deleted("d")"#,
                r#"Deleted("e")"#,
                r#"Added("e")"#
            ]
        );
        assert!(Arc::ptr_eq(&unchanged, &cache.get(&NodeName::new("b")).unwrap()));
        let names: Vec<_> = cache.all().iter().map(|node| node.name.to_string()).collect();
        assert_eq!(names, ["a", "b", "c", "e"]);
    }

    #[test]
    fn the_same_version_again_is_no_change() {
        let (cache, seen) = watched();
        cache.apply(node("a", "1", "5"));
        cache.apply(node("a", "1", "5"));
        cache.apply(node("a", "1", "6"));
        cache.delete(&NodeName::new("b"));
        cache.delete(&NodeName::new("a"));
        assert_eq!(
            taken(&seen),
            [r#"Added("a")"#, r#"Updated("a")"#, r#"Deleted("a")"#]
        );
    }

    #[test]
    fn another_object_of_the_same_name_is_a_deletion_and_an_addition() {
        let (cache, seen) = watched();
        cache.apply(node("a", "1", "5"));
        cache.apply(node("a", "2", "6"));
        assert_eq!(
            taken(&seen),
            [r#"Added("a")"#, r#"Deleted("a")"#, r#"Added("a")"#]
        );
    }

    #[test]
    fn a_late_listener_is_given_what_is_present_and_may_read() {
        let cache = Arc::new(NodeCache::new());
        cache.apply(node("b", "2", "1"));
        cache.apply(node("a", "1", "1"));
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (log, view) = (Arc::clone(&seen), Arc::clone(&cache));
        cache.subscribe(Arc::new(move |change| {
            log.lock().unwrap().push(format!("{change:?} of {}", view.len()));
        }));
        cache.apply(node("c", "3", "1"));
        assert_eq!(
            taken(&seen),
            [r#"Added("a") of 2"#, r#"Added("b") of 2"#, r#"Added("c") of 3"#]
        );
    }

    #[test]
    fn a_service_on_its_way_out_does_not_come_back() {
        let service = |version: &str, deleted: Option<&str>| -> Service {
            let wire = serde_json::json!({"metadata": {
                "namespace": "default", "name": "a", "uid": "1", "resourceVersion": version, "deletionTimestamp": deleted,
            }});
            serde_json::from_value(wire).unwrap()
        };
        let cache = ServiceCache::new();
        let show = |version, deleted| {
            cache.observe(Shown::whole(service(version, deleted)));
            let unreadable = cache.unreadable();
            let why = unreadable.borrow().values().next().map(|it| it.why.clone());
            why.unwrap_or_default()
        };
        assert_eq!(show("5", Some("2026-03-01T10:00:00Z")), "");
        assert_eq!(show("4", None), "", "it did not have it yet");
        let why = show("6", None);
        assert!(why.contains("`metadata.deletionTimestamp`"), "{why}");
        assert_eq!(cache.all()[0].resource_version(), "5");
    }

    #[tokio::test(start_paused = true)]
    async fn a_cache_to_be_filled_anew_is_synced_after_a_list_that_began_later() {
        let cache = NodeCache::new();
        cache.reset(vec![Arc::new(node("a", "1", "1"))]);
        let before = cache.asked();
        cache.renew();
        assert!(!cache.is_synced() && cache.len() == 1);
        cache.asked_again(before).await;
        cache.refill(listing(&["a"], "7"), before);
        assert!(!cache.is_synced(), "that list began too early");
        cache.refill(listing(&["a"], "8"), cache.asked());
        cache.synced().await;
        assert!(cache.is_synced());
    }

    #[tokio::test(start_paused = true)]
    async fn a_cache_is_not_synced_before_what_is_missing_from_the_list_is_settled() {
        let found = |version| Found {
            bearer: Bearer::Nobody,
            version,
        };
        let cache = NodeCache::new();
        cache.reset(
            ["a", "b", "c"]
                .map(|name| Arc::new(node(name, "1", "1")))
                .to_vec(),
        );
        cache.renew();
        cache.refill(listing(&["a"], "8"), cache.asked());
        for name in ["b", "c"] {
            assert!(!cache.is_synced());
            assert_eq!(cache.settle(&NodeName::new(name), 8, found(9)), Settled::Over);
        }
        assert!(cache.is_synced());
        // Later doubts are no reason to stop.
        cache.doubt(NodeName::new("a"), 10);
        assert!(cache.is_synced());
        // A list that was untrue fills nothing.
        cache.renew();
        cache.refill(listing(&[], "11"), cache.asked());
        let bearer = Bearer::Object(Shown::whole(node("a", "1", "1")));
        let there = Found { bearer, version: 12 };
        assert_eq!(cache.settle(&NodeName::new("a"), 11, there), Settled::Disproved);
        assert!(!cache.is_synced());
    }

    #[tokio::test(start_paused = true)]
    async fn what_a_question_found_is_known_and_a_late_watch_does_not_undo_it() {
        let (cache, seen) = watched();
        let name = NodeName::new("a");
        cache.apply(node("a", "1", "5"));
        let ask = |bearer, version| {
            cache.ask_about(&node("a", "1", "5"));
            cache.settle(&name, 5, Found { bearer, version })
        };
        let version = || cache.get(&name).map(|node| node.resource_version.to_string());
        let late = ask(Bearer::Nobody, 4);
        assert_eq!((late, version()), (Settled::Open, Some("5".into())));
        let newer = Bearer::Object(Shown::whole(node("a", "1", "9")));
        assert_eq!((ask(newer, 9), version()), (Settled::Over, Some("9".into())));
        cache.observe(Shown::whole(node("a", "1", "7")));
        assert_eq!(version(), Some("9".into()));
        assert_eq!((ask(Bearer::Nobody, 12), version()), (Settled::Over, None));
        taken(&seen);
        cache.observe(Shown::whole(node("a", "1", "11")));
        assert_eq!(taken(&seen), [""; 0], "it is gone since");
        cache.observe(Shown::whole(node("a", "2", "13")));
        assert_eq!(version(), Some("13".into()));
    }

    #[tokio::test(start_paused = true)]
    async fn a_cache_is_synced_after_its_first_reset() {
        let cache = NodeCache::new();
        cache.apply(node("a", "1", "1"));
        assert!(!cache.is_synced());
        cache.reset(Vec::new());
        cache.synced().await;
        assert!(cache.is_synced() && cache.is_empty());
    }
}
