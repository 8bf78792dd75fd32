//! Whether a controller still gets on with its work, for the health checks.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// Something that may be stuck.
pub trait Pulse: Send + Sync + 'static {
    /// For how long the oldest piece of work has been waiting or under way, without any part of it coming to an end. `None`:
    /// there is no work.
    fn busy_for(&self) -> Option<Duration>;
}

/// The health of one controller: fine, unless a piece of work has been waiting or under way for longer than a limit.
///
/// A controller without work is healthy, however long it has nothing to do. So is one that gets on: with each part of a piece of
/// work that ends, be it one of a hundred writes to a slow cloud, the age of the piece begins anew.
pub struct Heartbeat {
    name: &'static str,
    limit: Duration,
    pulses: Mutex<Vec<Arc<dyn Pulse>>>,
    under_way: Arc<UnderWay>,
}

/// Why a controller is not healthy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{name} has been busy with one item for {} s, which is longer than {} s", busy_for.as_secs(), limit.as_secs())]
pub struct Stalled {
    /// The controller.
    pub name: &'static str,
    /// The age of its oldest work.
    pub busy_for: Duration,
    /// How old work may become.
    pub limit: Duration,
}

impl Heartbeat {
    /// The heartbeat of a controller that needs no longer than `limit` for anything, if all is well.
    #[must_use]
    pub fn new(name: &'static str, limit: Duration) -> Arc<Self> {
        let under_way = Arc::new(UnderWay::default());
        Arc::new(Self {
            name,
            limit,
            pulses: Mutex::new(vec![Arc::clone(&under_way) as Arc<dyn Pulse>]),
            under_way,
        })
    }

    /// Watches a queue, or something else, too.
    pub fn watch(&self, pulse: Arc<dyn Pulse>) {
        self.pulses
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(pulse);
    }

    /// Says that a piece of work begins; it ends when the guard is dropped.
    #[must_use]
    pub fn begin(&self) -> Working {
        let mut work = self.under_way.lock();
        let id = work.begun;
        work.begun += 1;
        work.since.push((id, Instant::now()));
        Working {
            id,
            under_way: Arc::clone(&self.under_way),
        }
    }

    /// The controller's name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Looks at all that is watched.
    ///
    /// # Errors
    ///
    /// Something has been waiting or under way for longer than the limit.
    pub fn check(&self) -> Result<(), Stalled> {
        let pulses = self.pulses.lock().unwrap_or_else(PoisonError::into_inner);
        match pulses.iter().filter_map(|pulse| pulse.busy_for()).max() {
            Some(busy_for) if busy_for > self.limit => Err(Stalled {
                name: self.name,
                busy_for,
                limit: self.limit,
            }),
            _ => Ok(()),
        }
    }
}

impl fmt::Debug for Heartbeat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Heartbeat")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// A piece of work under way.
#[derive(Debug)]
pub struct Working {
    id: u64,
    under_way: Arc<UnderWay>,
}

impl Working {
    /// A part of it has come to its end: its age begins anew.
    pub fn beat(&self) {
        let mut work = self.under_way.lock();
        if let Some((_, since)) = work.since.iter_mut().find(|(id, _)| *id == self.id) {
            *since = Instant::now();
        }
    }
}

impl Drop for Working {
    fn drop(&mut self) {
        self.under_way.lock().since.retain(|(id, _)| *id != self.id);
    }
}

#[derive(Debug, Default)]
struct UnderWay(Mutex<Work>);

#[derive(Debug, Default)]
struct Work {
    begun: u64,
    since: Vec<(u64, Instant)>,
}

impl UnderWay {
    fn lock(&self) -> std::sync::MutexGuard<'_, Work> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Pulse for UnderWay {
    fn busy_for(&self) -> Option<Duration> {
        let oldest = self.lock().since.iter().map(|(_, since)| *since).min()?;
        Some(oldest.elapsed())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::{QueueMetrics, WorkQueue, of_services};

    const LIMIT: Duration = Duration::from_secs(60);

    #[tokio::test(start_paused = true)]
    async fn a_loop_without_work_is_healthy() {
        let heartbeat = Heartbeat::new("service", LIMIT);
        tokio::time::advance(LIMIT * 100).await;
        assert_eq!(heartbeat.check(), Ok(()));
    }

    #[tokio::test(start_paused = true)]
    async fn work_that_takes_too_long_is_reported_until_it_ends() {
        let heartbeat = Heartbeat::new("service", LIMIT);
        let working = heartbeat.begin();
        tokio::time::advance(LIMIT).await;
        assert_eq!(heartbeat.check(), Ok(()));
        tokio::time::advance(Duration::from_secs(1)).await;
        let stalled = heartbeat.check().unwrap_err();
        assert_eq!(
            stalled.to_string(),
            "service has been busy with one item for 61 s, which is longer than 60 s"
        );
        drop(working);
        assert_eq!(heartbeat.check(), Ok(()));
    }

    #[tokio::test(start_paused = true)]
    async fn a_key_that_nobody_takes_and_one_that_nobody_finishes_are_reported() {
        let queue = WorkQueue::new("service", of_services(), &QueueMetrics::default());
        let heartbeat = Heartbeat::new("service", LIMIT);
        heartbeat.watch(Arc::clone(&queue) as Arc<dyn Pulse>);

        queue.add_after("later", LIMIT * 2);
        tokio::time::advance(LIMIT * 2).await;
        assert_eq!(
            heartbeat.check(),
            Ok(()),
            "a key that is not due waits for nobody"
        );
        tokio::time::advance(LIMIT * 2).await;
        assert!(heartbeat.check().is_err(), "nobody took it");
        assert_eq!(queue.take_due(9), ["later"]);
        assert_eq!(heartbeat.check(), Ok(()));
        tokio::time::advance(LIMIT * 2).await;
        assert!(heartbeat.check().is_err(), "nobody finished it");
        queue.done(&"later");
        assert_eq!(heartbeat.check(), Ok(()));
    }

    #[tokio::test(start_paused = true)]
    async fn work_that_gets_on_is_healthy_however_long_it_takes() {
        let queue = WorkQueue::new("service", of_services(), &QueueMetrics::default());
        let heartbeat = Heartbeat::new("service", LIMIT);
        heartbeat.watch(Arc::clone(&queue) as Arc<dyn Pulse>);
        for key in 0..10 {
            queue.add(key);
        }
        let working = heartbeat.begin();
        for _ in 0..10 {
            let [key] = queue.take_due(1)[..] else { panic!() };
            for _ in 0..3 {
                tokio::time::advance(LIMIT).await;
                queue.touch(&key);
                working.beat();
                assert_eq!(heartbeat.check(), Ok(()));
            }
            queue.done(&key);
        }
        drop(working);
        queue.add(1);
        queue.take_due(1);
        queue.rest(&1);
        tokio::time::advance(LIMIT * 9).await;
        assert_eq!(heartbeat.check(), Ok(()), "it waits for its turn");
        queue.touch(&1);
        tokio::time::advance(LIMIT * 2).await;
        assert!(heartbeat.check().is_err(), "its turn takes too long");
    }
}
