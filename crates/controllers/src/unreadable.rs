//! Tells of objects that cannot be understood: each has an event of its own, and nobody else is kept from anything.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bowline_kube_io::{Cache, CacheKey, NodeCache, Recorder, ServiceCache};
use tokio::time::timeout;

use crate::event_dedup::EventDedup;
use crate::events::OBJECT_NOT_UNDERSTOOD;

/// How often it is looked whether an event about what still holds is due again.
const LOOK: Duration = Duration::from_secs(5 * 60);

/// Of a kind so many are told of at once: a proxy that spoils one object spoils a thousand.
const MOST: usize = 100;

/// Tells of them as long as this process leads. Never returns; drop it to stop.
pub async fn tell_of_unreadable(nodes: Arc<NodeCache>, services: Arc<ServiceCache>, recorder: Recorder) {
    tokio::join!(tell(&nodes, &recorder), tell(&services, &recorder));
}

async fn tell<T: CacheKey>(cache: &Cache<T>, recorder: &Recorder) {
    let mut unreadable = cache.unreadable();
    let mut dedup: BTreeMap<T::Key, EventDedup> = BTreeMap::new();
    loop {
        let all = unreadable.borrow_and_update().clone();
        dedup.retain(|key, _| all.contains_key(key));
        for (key, it) in all.into_iter().take(MOST) {
            let note = OBJECT_NOT_UNDERSTOOD.note(format!(
                "The API server shows this object in a way that cannot be understood, so what was known of it stays in force: {}",
                it.why
            ));
            if dedup.entry(key).or_default().is_news(note.reason, &note.text) {
                recorder.record(&it.object, note.kind, note.reason, note.text);
            }
        }
        // The cache, which is borrowed, keeps the other end.
        drop(timeout(LOOK, unreadable.changed()).await);
    }
}
