//! A cache with its watch, what its listeners were told, and how long it had heard nothing at most.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bowline_cloud_provider::{Node, Service};
use bowline_kube_io::{Cache, CacheKey, Change, Kube, watch_nodes, watch_services};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

pub(crate) struct Watched<T: CacheKey> {
    pub(crate) cache: Arc<Cache<T>>,
    seen: Arc<Mutex<Vec<String>>>,
    unheard: Arc<AtomicU64>,
    tasks: [JoinHandle<()>; 2],
}

/// What a cache holds.
pub(crate) trait Kept: CacheKey + Sized {
    fn watch(kube: Kube, cache: Arc<Cache<Self>>) -> impl Future<Output = ()> + Send + 'static;
    fn shown(&self) -> Value;
}

impl Kept for Node {
    fn watch(kube: Kube, cache: Arc<Cache<Self>>) -> impl Future<Output = ()> + Send + 'static {
        watch_nodes(kube, cache)
    }

    fn shown(&self) -> Value {
        let labels: serde_json::Map<_, _> = self
            .labels
            .iter()
            .map(|(key, value)| (key.into(), json!(value)))
            .collect();
        json!({ "uid": &*self.uid, "version": &*self.resource_version, "labels": labels })
    }
}

impl Kept for Service {
    fn watch(kube: Kube, cache: Arc<Cache<Self>>) -> impl Future<Output = ()> + Send + 'static {
        watch_services(kube, cache)
    }

    fn shown(&self) -> Value {
        json!(self)
    }
}

impl<T: Kept> Watched<T> {
    pub(crate) fn start(kube: Kube) -> Self {
        let cache = Arc::new(Cache::<T>::new());
        let seen = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&seen);
        cache.subscribe(Arc::new(move |change| {
            let text = match change {
                Change::Added(object) => format!("+{}", object.reference().name),
                Change::Updated { new, .. } => format!("~{}", new.reference().name),
                Change::Deleted(object) => format!("-{}", object.reference().name),
            };
            log.lock().unwrap().push(text);
        }));
        let watch = tokio::spawn(T::watch(kube, Arc::clone(&cache)));
        let unheard = Arc::new(AtomicU64::new(0));
        let (looked, most) = (Arc::clone(&cache), Arc::clone(&unheard));
        let look = tokio::spawn(async move {
            loop {
                let heard = looked.heard().map_or(0, |heard| heard.elapsed().as_millis());
                most.fetch_max(u64::try_from(heard).unwrap(), Ordering::Relaxed);
                tokio::time::sleep(Duration::from_millis(500)).await;
            }
        });
        Self {
            cache,
            seen,
            unheard,
            tasks: [watch, look],
        }
    }

    pub(crate) fn see(&self) -> Value {
        let all = self.cache.all();
        let shown = all
            .iter()
            .map(|object| (object.reference().name.to_string(), object.shown()));
        let unreadable = self.cache.unreadable();
        let unreadable = unreadable.borrow();
        let unreadable = unreadable
            .values()
            .map(|it| format!("{}: {}", it.object.name, it.why));
        json!({
            "names": all.iter().map(|object| object.reference().name.to_string()).collect::<Vec<_>>(),
            "by_name": shown.collect::<serde_json::Map<_, _>>(),
            "seen": self.seen.lock().unwrap().join(" "),
            "unheard_ms": self.unheard.load(Ordering::Relaxed),
            "synced": self.cache.is_synced(),
            "refusal": self.cache.refusal().map(|error| error.to_string()),
            "unreadable": unreadable.collect::<Vec<_>>(),
            "nameless": self.cache.nameless(),
            "ended": self.tasks[0].is_finished(),
        })
    }
}

impl<T: CacheKey> Drop for Watched<T> {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}
