//! How many exchanges may be under way, how fast they may begin, and the pause that a cloud asks for.

use std::collections::BTreeMap;
use std::fmt;
use std::pin::pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bowline_transport::{Bucket, Place, Places};
use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

use crate::config::CloudHttpConfig;

/// How long the others wait for the first one after a pause. A refusal of the rate comes at once: whatever takes longer was let in.
const PROBE: Duration = Duration::from_secs(1);

/// Of how many calls is remembered that the cloud refused them.
const MOST_REFUSED: usize = 64;

/// The budget of one provider. Those who wait are let through in the order in which they came; after a pause first a single
/// one, which finds out whether the cloud takes requests again.
pub(crate) struct Budget {
    places: Places,
    pace: Option<Bucket>,
    /// Of those who wait for the end of a pause, the one whose turn is next.
    next: tokio::sync::Mutex<()>,
    course: Mutex<Course>,
    changed: Notify,
    /// The calls that the cloud refused for the rate the last time, and whether it took others since.
    refused: Mutex<BTreeMap<String, bool>>,
}

#[derive(Debug, Clone, Copy)]
enum Course {
    Free,
    PausedUntil(Instant),
    /// The first one is under way. Nobody else begins before it has ended, or before this time.
    ProbedUntil(Instant),
}

/// The right to begin an exchange; it ends when this is dropped.
pub(crate) struct Turn<'a> {
    /// Whose pause has ended with this exchange.
    probed: Option<&'a Budget>,
    _place: Place<'a>,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let Some(budget) = self.probed else { return };
        // Unless it was told to pause again.
        let mut course = budget.course();
        if let Course::ProbedUntil(_) = *course {
            *course = Course::Free;
            budget.changed.notify_waiters();
        }
    }
}

impl Budget {
    pub(crate) fn new(config: &CloudHttpConfig) -> Self {
        Self {
            places: Places::new(config.max_in_flight, 0),
            pace: config.rate.map(Bucket::new),
            next: tokio::sync::Mutex::new(()),
            course: Mutex::new(Course::Free),
            changed: Notify::new(),
            refused: Mutex::default(),
        }
    }

    /// Waits for a place, a token and the end of a pause.
    ///
    /// # Cancellation
    ///
    /// A waiter that goes away gives its place back; a token that it took is lost.
    pub(crate) async fn acquire(&self) -> Turn<'_> {
        let place = self.places.take().await;
        if let Some(pace) = &self.pace {
            pace.turn().await;
        }
        // Its queue is in order. Without it the same few could find out after each pause, and the others never.
        let next = self.next.lock().await;
        let is_probe = self.pause_is_over().await;
        drop(next);
        Turn {
            probed: is_probe.then_some(self),
            _place: place,
        }
    }

    /// Waits until an exchange may begin. Whether it is the first one after a pause.
    async fn pause_is_over(&self) -> bool {
        loop {
            let mut changed = pin!(self.changed.notified());
            changed.as_mut().enable(); // before the look, so that no change is missed
            let until = {
                let now = Instant::now();
                let mut course = self.course();
                match *course {
                    Course::Free => return false,
                    Course::PausedUntil(until) if until <= now => {
                        *course = Course::ProbedUntil(now + PROBE);
                        return true;
                    }
                    Course::ProbedUntil(until) if until <= now => {
                        *course = Course::Free;
                        return false;
                    }
                    Course::PausedUntil(until) | Course::ProbedUntil(until) => until,
                }
            };
            // Another answer may begin, lengthen or end what is waited for.
            let _ = timeout_at(until, changed).await;
        }
    }

    /// The cloud refuses a call and asks for a pause: nothing begins for so long, unless the limit is that of this call. So it is if the
    /// cloud refused it before and took others since: it would hold up everything each time that it is tried again.
    pub(crate) fn refused(&self, call: &impl fmt::Debug, asked: Duration) {
        let is_alone = {
            let mut refused = lock(&self.refused);
            if refused.len() >= MOST_REFUSED {
                refused.clear();
            }
            refused.insert(format!("{call:?}"), false).unwrap_or_default()
        };
        if !is_alone {
            self.pause(asked);
        }
    }

    /// The cloud takes a call.
    pub(crate) fn taken(&self, call: &impl fmt::Debug) {
        let mut refused = lock(&self.refused);
        if refused.is_empty() {
            return;
        }
        refused.remove(&format!("{call:?}"));
        refused
            .values_mut()
            .for_each(|has_taken_others| *has_taken_others = true);
    }

    /// Lets nothing begin for a while.
    fn pause(&self, duration: Duration) {
        if duration.is_zero() {
            return;
        }
        let asked = Instant::now() + duration;
        let mut course = self.course();
        let until = match *course {
            Course::PausedUntil(until) => until.max(asked),
            Course::Free | Course::ProbedUntil(_) => asked,
        };
        *course = Course::PausedUntil(until);
        self.changed.notify_waiters();
    }

    /// How long a pause lasts from now on; `None` if there is no pause, or the cloud takes requests again.
    pub(crate) fn pause_left(&self) -> Option<Duration> {
        match *self.course() {
            Course::Free => None,
            Course::PausedUntil(until) | Course::ProbedUntil(until) => {
                Some(until.saturating_duration_since(Instant::now()))
            }
        }
    }

    /// How many exchanges could begin at once.
    pub(crate) fn left(&self) -> usize {
        let now = Instant::now();
        let allowed = match *self.course() {
            Course::Free => usize::MAX,
            Course::PausedUntil(until) if until <= now => 1,
            Course::ProbedUntil(until) if until <= now => usize::MAX,
            Course::PausedUntil(_) | Course::ProbedUntil(_) => 0,
        };
        let tokens = self.pace.as_ref().map_or(usize::MAX, Bucket::left);
        allowed.min(tokens).min(self.places.free())
    }

    fn course(&self) -> MutexGuard<'_, Course> {
        lock(&self.course)
    }
}

/// No code that can panic runs under these locks.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use bowline_transport::Rate;

    use super::*;

    fn budget(places: usize, rate: Option<Rate>) -> Budget {
        let mut config = CloudHttpConfig::new("nimbus", "test");
        config.max_in_flight = places;
        config.rate = rate;
        Budget::new(&config)
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_left_is_bounded_by_tokens_and_places() {
        let rate = Rate {
            per_second: 10.0,
            burst: 3,
        };
        let budget = budget(2, Some(rate));
        assert_eq!(budget.left(), 2);
        for _ in 0..3 {
            drop(budget.acquire().await);
        }
        assert_eq!(budget.left(), 0);
        let begun = Instant::now();
        drop(budget.acquire().await);
        assert_eq!(begun.elapsed(), Duration::from_millis(100));
    }

    #[tokio::test(start_paused = true)]
    async fn no_more_than_the_allowed_number_is_in_flight() {
        let budget = budget(2, None);
        let first = budget.acquire().await;
        let _second = budget.acquire().await;
        assert_eq!(budget.left(), 0);
        assert!(
            tokio::time::timeout(Duration::from_secs(5), budget.acquire())
                .await
                .is_err()
        );
        drop(first);
        assert!(
            tokio::time::timeout(Duration::from_secs(5), budget.acquire())
                .await
                .is_ok()
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_pause_holds_everyone_and_the_longest_one_counts() {
        let budget = budget(8, None);
        budget.pause(Duration::from_secs(7));
        budget.pause(Duration::from_secs(2));
        let begun = Instant::now();
        drop(budget.acquire().await);
        assert_eq!(begun.elapsed(), Duration::from_secs(7));
    }
    /// How many of ten may begin side by side now.
    async fn begun(budget: &Budget) -> (usize, Vec<Turn<'_>>) {
        let mut turns = Vec::new();
        let short = Duration::from_millis(10);
        while turns.len() < 10
            && let Ok(turn) = tokio::time::timeout(short, budget.acquire()).await
        {
            turns.push(turn);
        }
        (turns.len(), turns)
    }

    #[tokio::test(start_paused = true)]
    async fn after_a_pause_a_single_exchange_finds_out_for_all_others() {
        let budget = budget(16, None);
        budget.pause(Duration::from_secs(7));
        assert_eq!(begun(&budget).await.0, 0);
        tokio::time::advance(Duration::from_secs(7)).await;
        assert_eq!(budget.left(), 1);
        let (count, probe) = begun(&budget).await;
        assert_eq!((count, budget.left()), (1, 0));

        // Refused again: the next one probes anew.
        budget.pause(Duration::from_secs(3));
        drop(probe);
        assert_eq!(begun(&budget).await.0, 0);
        tokio::time::advance(Duration::from_secs(3)).await;
        let (count, probe) = begun(&budget).await;
        assert_eq!(count, 1);

        // Taken: all the others may go, also while they wait already.
        let others = async { tokio::time::timeout(PROBE / 2, budget.acquire()).await.is_ok() };
        let (is_let_in, ()) = tokio::join!(others, async { drop(probe) });
        assert!(is_let_in);
        assert_eq!(begun(&budget).await.0, 10);
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_that_is_refused_while_others_are_taken_holds_nobody() {
        let budget = budget(8, None);
        let second = Duration::from_secs(1);
        // Nothing is known but refusals: all wait.
        for call in ["a", "b", "a"] {
            budget.refused(&call, second);
            assert_eq!(budget.pause_left(), Some(second), "{call}");
            drop(budget.acquire().await);
        }
        budget.taken(&"c");
        for _ in 0..3 {
            budget.refused(&"a", second);
            assert_eq!(budget.pause_left(), None);
            budget.taken(&"c");
        }
        // When it was taken, the next refusal is one of the rate again.
        budget.taken(&"a");
        budget.refused(&"a", second);
        assert_eq!(budget.pause_left(), Some(second));
    }

    #[tokio::test(start_paused = true)]
    async fn after_each_pause_it_is_somebody_elses_turn() {
        let budget = budget(16, None);
        let second = Duration::from_secs(1);
        let probes = Mutex::new(String::new());
        // Each is refused whenever it gets through, and asks again when the pause is over, as a read does.
        let asks = async |name: char| {
            loop {
                let turn = budget.acquire().await;
                probes.lock().unwrap().push(name);
                budget.pause(second);
                drop(turn);
                tokio::time::sleep(second).await;
            }
        };
        budget.pause(second);
        let all = async { tokio::join!(asks('a'), asks('b'), asks('c')) };
        assert!(tokio::time::timeout(second * 13 / 2, all).await.is_err());
        assert_eq!(*probes.lock().unwrap(), "abcabc");
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_exchange_after_a_pause_holds_nobody() {
        let budget = budget(16, None);
        budget.pause(Duration::from_secs(7));
        let begun = Instant::now();
        let _probe = budget.acquire().await;
        let _next = budget.acquire().await;
        assert_eq!(begun.elapsed(), Duration::from_secs(7) + PROBE);
        let _third = budget.acquire().await;
        assert_eq!(begun.elapsed(), Duration::from_secs(7) + PROBE);
    }
}
