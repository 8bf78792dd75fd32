//! The work queue of the controllers: keyed, ordered, one entry per key.
//!
//! - A key is waiting once at most; of two deadlines the earlier one wins.
//! - What a cloud or the API server stated with a failure holds, whoever asks for the key meanwhile: it is due no sooner.
//! - A key that is being worked on is held: asked for again meanwhile, it comes back after [`WorkQueue::done`].
//! - Keys come out in the order in which they became due, equal ones in the order in which they were added. Nothing
//!   depends on hashing, so the same calls at the same times give the same order.
//! - Time is tokio's, so a test that stops the clock steers it.

mod backoff;
mod heartbeat;
mod metrics;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

pub use backoff::{RetryAfter, of_nodes, of_services};
pub use bowline_transport::{Backoff, Jitter};
pub use heartbeat::{Heartbeat, Pulse, Stalled, Working};
pub use metrics::QueueMetrics;
use metrics::{Gauges, QueueSeries};

/// Waits until then; `None`: for ever.
pub(crate) async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

/// A queue of keys.
pub struct WorkQueue<K> {
    name: &'static str,
    backoff: Backoff,
    state: Mutex<State<K>>,
    /// Given when the first deadline may have moved forward.
    changed: Notify,
    series: QueueSeries,
}

struct State<K> {
    /// Every key that is waiting and not held, by deadline and then by the order of adding.
    order: BTreeMap<Due, K>,
    entries: BTreeMap<K, Entry>,
    added: u64,
    /// When the work on any key has got on for the last time.
    moved: Option<Instant>,
}

/// When a key is to come out, and its turn among equals.
type Due = (Instant, u64);

#[derive(Default)]
struct Entry {
    due: Option<Due>,
    /// It is not taken sooner: somebody has asked to be left alone until then.
    not_before: Option<Instant>,
    /// Since when the key is being worked on.
    held: Option<Instant>,
    /// Since when the piece of work takes that is under way on it; `None` while it waits for its turn.
    busy: Option<Instant>,
    failures: u32,
}

impl<K: Ord + Clone + Send + 'static> WorkQueue<K> {
    /// An empty queue. The name is the label `name` of its series.
    #[must_use]
    pub fn new(name: &'static str, backoff: Backoff, metrics: &QueueMetrics) -> Arc<Self> {
        let queue = Arc::new(Self {
            name,
            backoff,
            state: Mutex::new(State {
                order: BTreeMap::new(),
                entries: BTreeMap::new(),
                added: 0,
                moved: None,
            }),
            changed: Notify::new(),
            series: metrics.series(name),
        });
        let probed = Arc::downgrade(&queue);
        metrics.probe(name, move || probed.upgrade().map(|queue| queue.gauges()));
        queue
    }

    /// Asks for a key at once.
    pub fn add(&self, key: K) {
        self.schedule(key, Duration::ZERO);
    }

    /// Asks for a key after a delay, unless it is due earlier anyway.
    pub fn add_after(&self, key: K, delay: Duration) {
        if !delay.is_zero() {
            self.series.retries.inc();
        }
        self.schedule(key, delay);
    }

    /// Asks for a key after its back-off, which grows with each call until [`forget`](Self::forget).
    pub fn retry(&self, key: K) {
        self.retry_after(key, RetryAfter::Nothing);
    }

    /// Asks for several keys after their back-off, with one draw of the jitter for all of them: keys that failed
    /// together come back together, so that they can share a call again.
    pub fn retry_together(&self, keys: impl IntoIterator<Item = K>) {
        let share = self.backoff.draw();
        for key in keys {
            self.retry_with(key, RetryAfter::Nothing, share);
        }
    }

    /// Asks for a key after its back-off, or after what was [stated](RetryAfter) with its failure; gives the time to that try.
    pub fn retry_after(&self, key: K, retry_after: RetryAfter) -> Duration {
        match retry_after {
            RetryAfter::Exactly(delay) | RetryAfter::Planned(delay) => {
                if retry_after == RetryAfter::Exactly(delay) {
                    self.put_off(&key, Instant::now() + delay);
                }
                self.add_after(key, delay);
                delay
            }
            RetryAfter::Nothing | RetryAfter::AtLeast(_) | RetryAfter::NotSooner(_) => {
                self.retry_with(key, retry_after, self.backoff.draw())
            }
        }
    }

    /// Lets a key be due no sooner than this, also where it is asked for already.
    fn put_off(&self, key: &K, not_before: Instant) {
        let mut guard = self.lock();
        let state = &mut *guard;
        let entry = state.entries.entry(key.clone()).or_default();
        entry.not_before = Some(not_before);
        if let Some(due) = entry.due
            && due.0 < not_before
        {
            let later = (not_before, due.1);
            entry.due = Some(later);
            if state.order.remove(&due).is_some() {
                state.order.insert(later, key.clone());
            }
        }
    }

    fn retry_with(&self, key: K, retry_after: RetryAfter, share: f64) -> Duration {
        let delay = {
            let mut state = self.lock();
            let entry = state.entries.entry(key.clone()).or_default();
            let delay = retry_after.delay(self.backoff.delay(entry.failures, share));
            entry.failures = entry.failures.saturating_add(1);
            delay
        };
        match retry_after {
            RetryAfter::AtLeast(stated) => self.put_off(&key, Instant::now() + stated),
            RetryAfter::NotSooner(_) => self.put_off(&key, Instant::now() + delay),
            _ => {}
        }
        self.add_after(key, delay);
        delay
    }

    /// Lets the back-off of a key begin anew.
    pub fn forget(&self, key: &K) {
        let mut state = self.lock();
        if let Some(entry) = state.entries.get_mut(key) {
            entry.failures = 0;
        }
        state.drop_if_idle(key);
    }

    /// Takes a key out of the queue with all that is known of it. One that is being worked on stays held until it is
    /// done.
    pub fn remove(&self, key: &K) {
        let mut state = self.lock();
        let Some(entry) = state.entries.get_mut(key) else {
            return;
        };
        entry.failures = 0;
        if let Some(due) = entry.due.take() {
            state.order.remove(&due);
        }
        state.drop_if_idle(key);
    }

    /// Waits for a key and takes it: it is held until [`done`](Self::done).
    ///
    /// # Cancellation
    ///
    /// Dropped while it waits, it has taken nothing.
    pub async fn next(&self) -> K {
        loop {
            if let Some(key) = self.take_due(1).pop() {
                return key;
            }
            self.first_due().await;
        }
    }

    /// Waits until a key is due, then takes all that are, up to `max`, in order.
    ///
    /// # Cancellation
    ///
    /// Dropped while it waits, it has taken nothing.
    pub async fn next_batch(&self, max: usize) -> Vec<K> {
        loop {
            let keys = self.take_due(max);
            if !keys.is_empty() {
                return keys;
            }
            self.first_due().await;
        }
    }

    /// The work on a key gets on: what is under way on it begins now, as far as health is concerned.
    pub fn touch(&self, key: &K) {
        self.set_busy(key, Some(Instant::now()));
    }

    /// The work on a key waits for its turn, behind work on others whose health is looked after there.
    pub fn rest(&self, key: &K) {
        self.set_busy(key, None);
    }

    fn set_busy(&self, key: &K, busy: Option<Instant>) {
        let mut state = self.lock();
        if let Some(entry) = state.entries.get_mut(key).filter(|entry| entry.held.is_some()) {
            entry.busy = busy;
            state.moved = busy.or(state.moved);
        }
    }

    /// Ends the work on a key. If it was asked for meanwhile, it waits again.
    pub fn done(&self, key: &K) {
        let now = Instant::now();
        let mut guard = self.lock();
        let state = &mut *guard;
        let Some(entry) = state.entries.get_mut(key) else {
            return;
        };
        state.moved = Some(now);
        entry.busy = None;
        if let Some(since) = entry.held.take() {
            self.series.work_duration.observe((now - since).as_secs_f64());
        }
        if let Some(due) = entry.due {
            state.order.insert(due, key.clone());
            drop(guard);
            self.changed.notify_one();
        } else {
            state.drop_if_idle(key);
        }
    }

    /// Ends the work on a key that came to a good end: its back-off begins anew.
    pub fn finish(&self, key: &K) {
        self.forget(key);
        self.done(key);
    }

    /// Whether a key is being worked on.
    #[must_use]
    pub fn is_held(&self, key: &K) -> bool {
        self.lock()
            .entries
            .get(key)
            .is_some_and(|entry| entry.held.is_some())
    }

    /// How many times in a row a key was given back for a retry.
    #[must_use]
    pub fn failures(&self, key: &K) -> u32 {
        self.lock().entries.get(key).map_or(0, |entry| entry.failures)
    }

    /// For how long keys that are due have been waiting while the work on no other has got on.
    #[must_use]
    pub fn oldest_waiting(&self) -> Option<Duration> {
        let now = Instant::now();
        let state = self.lock();
        let (due, _) = state.order.keys().next()?;
        now.checked_duration_since(state.moved.map_or(*due, |moved| moved.max(*due)))
    }

    /// For how long the oldest piece of work has been under way: since its key was taken, or [touched](Self::touch).
    #[must_use]
    pub fn longest_busy(&self) -> Option<Duration> {
        let now = Instant::now();
        let state = self.lock();
        let since = state.entries.values().filter_map(|entry| entry.busy).min()?;
        Some(now - since)
    }

    fn schedule(&self, key: K, delay: Duration) {
        let mut guard = self.lock();
        let state = &mut *guard;
        let entry = state.entries.entry(key.clone()).or_default();
        let at = entry
            .not_before
            .into_iter()
            .fold(Instant::now() + delay, Instant::max);
        if entry.due.is_some_and(|(due, _)| due <= at) {
            return;
        }
        if entry.due.is_none() {
            self.series.adds.inc();
        }
        let due = (at, state.added);
        state.added += 1;
        let earlier = entry.due.replace(due);
        if entry.held.is_some() {
            return;
        }
        if let Some(earlier) = earlier {
            state.order.remove(&earlier);
        }
        state.order.insert(due, key);
        drop(guard);
        self.changed.notify_one();
    }

    /// Takes all keys that are due now, up to `max`, in order. May be none.
    pub(crate) fn take_due(&self, max: usize) -> Vec<K> {
        let now = Instant::now();
        let mut guard = self.lock();
        let state = &mut *guard;
        let mut keys = Vec::new();
        while keys.len() < max
            && let Some(first) = state.order.first_entry()
            && first.key().0 <= now
        {
            let ((due, _), key) = first.remove_entry();
            if let Some(entry) = state.entries.get_mut(&key) {
                (entry.due, entry.not_before) = (None, None);
                entry.held = Some(now);
                entry.busy = Some(now);
            }
            self.series.queue_duration.observe((now - due).as_secs_f64());
            keys.push(key);
        }
        if !keys.is_empty() {
            state.moved = Some(now);
        }
        let more = !state.order.is_empty();
        drop(guard);
        if more && !keys.is_empty() {
            // The one permit may have stood for several keys: hand it on to the next that waits.
            self.changed.notify_one();
        }
        keys
    }

    /// Returns when the first deadline has come, or when it may have changed.
    async fn first_due(&self) {
        let changed = self.changed.notified();
        let first = self.lock().order.keys().next().map(|(due, _)| *due);
        tokio::select! {
            biased;
            () = changed => {}
            () = until(first) => {}
        }
    }

    fn gauges(&self) -> Gauges {
        let now = Instant::now();
        let state = self.lock();
        let held = state.entries.values().filter_map(|entry| entry.held);
        let mut gauges = Gauges {
            depth: state.order.keys().take_while(|(due, _)| *due <= now).count(),
            ..Gauges::default()
        };
        for since in held {
            let seconds = (now - since).as_secs_f64();
            gauges.unfinished_seconds += seconds;
            gauges.longest_running_seconds = gauges.longest_running_seconds.max(seconds);
        }
        gauges
    }

    fn lock(&self) -> MutexGuard<'_, State<K>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Ord + Clone + Send + 'static> Pulse for WorkQueue<K> {
    fn busy_for(&self) -> Option<Duration> {
        self.oldest_waiting().max(self.longest_busy())
    }
}

impl<K> fmt::Debug for WorkQueue<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkQueue")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl<K: Ord> State<K> {
    fn drop_if_idle(&mut self, key: &K) {
        if self
            .entries
            .get(key)
            .is_some_and(|entry| entry.due.is_none() && entry.held.is_none() && entry.failures == 0)
        {
            self.entries.remove(key);
        }
    }
}

#[cfg(test)]
mod tests;
