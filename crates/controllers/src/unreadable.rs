//! Tells of objects that cannot be understood: each has an event of its own, and nobody else is kept from anything.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bowline_kube_io::{Cache, CacheKey, NodeCache, Recorder, ServiceCache};
use tokio::time::{Instant, timeout_at};

use crate::events::OBJECT_NOT_UNDERSTOOD;

/// How old an event about what still holds becomes at most.
const TOLD_AGAIN: Duration = Duration::from_secs(15 * 60);

/// Of a kind so many are told of at once: a proxy that spoils one object spoils a thousand.
const MOST: usize = 100;

/// Tells of them as long as this process leads. Never returns; drop it to stop.
pub async fn tell_of_unreadable(nodes: Arc<NodeCache>, services: Arc<ServiceCache>, recorder: Recorder) {
    tokio::join!(tell(&nodes, &recorder), tell(&services, &recorder));
}

async fn tell<T: CacheKey>(cache: &Cache<T>, recorder: &Recorder) {
    let mut unreadable = cache.unreadable();
    let mut told: BTreeMap<T::Key, (String, Instant)> = BTreeMap::new();
    loop {
        let now = Instant::now();
        let all = unreadable.borrow_and_update().clone();
        told.retain(|key, _| all.contains_key(key));
        for (key, it) in all.into_iter().take(MOST) {
            let is_told = |(why, at): &(String, Instant)| *why == it.why && now < *at + TOLD_AGAIN;
            if told.get(&key).is_some_and(is_told) {
                continue;
            }
            let note = OBJECT_NOT_UNDERSTOOD.note(format!(
                "The API server shows this object in a way that cannot be understood, so what was known of it stays in force: {}",
                it.why
            ));
            recorder.record(&it.object, note.kind, note.reason, note.text);
            told.insert(key, (it.why, now));
        }
        // The cache, which is borrowed, keeps the other end.
        drop(timeout_at(now + TOLD_AGAIN, unreadable.changed()).await);
    }
}
