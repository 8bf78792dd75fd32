//! How long a call may go without an answer: for its whole time limit, and not so long where something newer waits for whoever makes it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{SetOnce, watch};
use tokio::time::{Instant, sleep, sleep_until, timeout};

/// How long a call may go without an answer in any case. A cloud that takes 5 s for each is slow, and gets its work done.
pub const SHORTEST: Duration = Duration::from_millis(5_500);

/// How long a write goes without an answer at least before that is told. Less than a process that is told to stop waits for its calls, and less than
/// [`SHORTEST`]: however a call ends, it is told by then.
pub const SILENT: Duration = Duration::from_secs(4);

/// How often in a row a call of each step, or of a look, was given up, by their labels.
#[derive(Debug, Default)]
pub struct GivenUp(BTreeMap<String, u32>);

impl GivenUp {
    /// A step or a look has ended; `gave_up`: one of its calls was given up before its time limit.
    pub fn made(&mut self, label: &str, gave_up: bool) {
        match gave_up {
            true => *self.0.entry(label.to_owned()).or_default() += 1,
            false => drop(self.0.remove(label)),
        }
    }

    /// How long a call may go without an answer in any case: twice as long each time that it was given up. So a cloud that is slower gets its
    /// work done as well, at last within the whole time limit.
    #[must_use]
    pub fn patience(&self, label: &str) -> Duration {
        let times = self.0.get(label).copied().unwrap_or_default();
        SHORTEST.saturating_mul(2_u32.saturating_pow(times))
    }
}

tokio::task_local! {
    static CURRENT: Patience;
}

/// How long calls took.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Took {
    /// The longest of those that were answered, if there are any.
    pub answered: Option<Duration>,
    /// The longest of those that got no answer: so long was one waited for.
    pub silent: Option<Duration>,
}

impl Took {
    fn and(self, other: Self) -> Self {
        Self {
            answered: self.answered.max(other.answered),
            silent: self.silent.max(other.silent),
        }
    }
}

/// The patience with the calls of one step, or of one look. Its clones are one.
#[derive(Debug, Clone, Default)]
pub struct Patience {
    /// It is over, and a call had so much time by then.
    is_over: Arc<SetOnce<Duration>>,
    /// A call was given up before its time limit.
    gave_up: Arc<SetOnce<()>>,
    /// A write has no answer, and may take effect until its time limit has passed.
    unanswered: watch::Sender<Option<Instant>>,
    /// How long its calls took.
    took: Arc<Mutex<Took>>,
    /// Whether the work may be dropped, because it only reads.
    is_of_look: bool,
}

impl Patience {
    /// The patience with a look: what waits for a read that others share gives up as well, and ends with the look.
    #[must_use]
    pub fn of_look() -> Self {
        Self {
            is_of_look: true,
            ..Self::default()
        }
    }

    /// Runs work whose calls are answered [`in_time`]. How long they took is known to the patience outside of this one, too.
    pub async fn with<F: Future>(&self, work: F) -> F::Output {
        let outside = Self::current();
        let output = CURRENT.scope(self.clone(), work).await;
        if let Some(outside) = outside {
            outside.add(self.took());
        }
        output
    }

    /// Something newer waits: from now on no call goes without an answer for longer than this time.
    pub fn is_over(&self, after: Duration) {
        let _ = self.is_over.set(after); // it was over before
    }

    /// Whether a call was given up before its time limit.
    #[must_use]
    pub fn gave_up(&self) -> bool {
        self.gave_up.initialized()
    }

    /// Until when a write may take effect that got no answer, if there is one.
    #[must_use]
    pub fn unanswered(&self) -> Option<Instant> {
        *self.unanswered.borrow()
    }

    /// Whatever changes [`unanswered`](Self::unanswered).
    #[must_use]
    pub fn silences(&self) -> watch::Receiver<Option<Instant>> {
        self.unanswered.subscribe()
    }

    /// How long its calls took.
    #[must_use]
    pub fn took(&self) -> Took {
        *self.took.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, more: Took) {
        let mut took = self.took.lock().unwrap_or_else(PoisonError::into_inner);
        *took = took.and(more);
    }

    /// Ends when a call was given up before its time limit.
    pub async fn has_given_up(&self) {
        self.gave_up.wait().await;
    }

    /// Ends when a call is to be given up that began then.
    async fn ends(&self, begun: Instant) {
        let after = *self.is_over.wait().await;
        sleep_until(begun + after).await;
        let _ = self.gave_up.set(()); // another call was given up
    }

    /// Tells that a write has no answer that began then.
    async fn is_silent(&self, begun: Instant, limit: Duration) {
        sleep_until(begun + SILENT).await;
        self.unanswered.send_replace(Some(begun + limit));
    }

    /// A write that began then has its answer.
    fn is_answered(&self, begun: Instant, limit: Duration) {
        self.unanswered.send_if_modified(|until| {
            let is_it = *until == Some(begun + limit);
            if is_it {
                *until = None;
            }
            is_it
        });
    }

    fn current() -> Option<Self> {
        CURRENT.try_with(Clone::clone).ok()
    }
}

/// What a call can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Does {
    /// It reads.
    Read,
    /// It may change something, also after nobody waits for its answer any more.
    Write,
}

/// How a call went without an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unanswered {
    /// Its time limit has passed, which is this.
    Within(Duration),
    /// It was given up after this time, because something newer waits.
    GivenUp(Duration),
}

/// What a call answers within `limit`, and within the [`Patience`] of the step or look that it is made for, if it is made for one.
///
/// # Errors
///
/// How it went without an answer.
///
/// # Cancellation
///
/// A call without an answer is dropped.
pub async fn in_time<F: Future>(does: Does, limit: Duration, call: F) -> Result<F::Output, Unanswered> {
    let begun = Instant::now();
    let Some(patience) = Patience::current() else {
        return timeout(limit, call).await.map_err(|_| Unanswered::Within(limit));
    };
    let is_silent = async {
        if does == Does::Write {
            patience.is_silent(begun, limit).await;
        }
        std::future::pending::<()>().await;
    };
    let outcome = tokio::select! {
        biased;
        answer = call => {
            patience.is_answered(begun, limit);
            Ok(answer)
        }
        () = sleep(limit) => Err(Unanswered::Within(limit)),
        () = patience.ends(begun) => Err(Unanswered::GivenUp(begun.elapsed())),
        () = is_silent => Err(Unanswered::Within(limit)), // never
    };
    let time = Some(begun.elapsed());
    patience.add(match &outcome {
        Ok(_) => Took {
            answered: time,
            silent: None,
        },
        Err(_) => Took {
            answered: None,
            silent: time,
        },
    });
    outcome
}

/// Waits for a read that others wait for too. It never ends where it is for a look whose [`Patience`] is: that drops it, and the others
/// wait on.
pub async fn with_others<F: Future>(read: F) -> F::Output {
    let patience = Patience::current().filter(|patience| patience.is_of_look);
    let given_up = async {
        if let Some(patience) = patience {
            patience.ends(Instant::now()).await;
        }
        std::future::pending().await
    };
    tokio::select! {
        biased;
        answer = read => answer,
        answer = given_up => answer,
    }
}

/// Runs a read that is for many: the patience of a look of one of them is not that of the others.
pub async fn for_many<F: Future>(read: F) -> F::Output {
    match Patience::current() {
        Some(look) if look.is_of_look => Patience::default().with(read).await,
        _ => read.await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(60);

    /// How a call ends that takes so many seconds and was given up so many times, if something newer waits after so many seconds.
    async fn called(takes_s: u64, given_up: u32, newer_after_s: u64) -> (Result<(), Unanswered>, bool) {
        let patience = Patience::default();
        let newer = async {
            sleep(Duration::from_secs(newer_after_s)).await;
            let mut times = GivenUp::default();
            (0..given_up).for_each(|_| times.made("a", true));
            patience.is_over(times.patience("a"));
        };
        let call = patience.with(in_time(Does::Write, LIMIT, sleep(Duration::from_secs(takes_s))));
        let (answer, ()) = tokio::join!(call, newer);
        (answer, patience.gave_up())
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_is_given_up_when_something_newer_waits_and_not_before_it_had_its_time() {
        assert_eq!(called(5, 0, 0).await, (Ok(()), false), "slow");
        assert_eq!(called(50, 0, 0).await, (Err(Unanswered::GivenUp(SHORTEST)), true));
        assert_eq!(
            called(50, 0, 20).await,
            (Err(Unanswered::GivenUp(Duration::from_secs(20))), true)
        );
        assert_eq!(called(50, 0, 55).await, (Ok(()), false));
        assert_eq!(called(70, 0, 80).await, (Err(Unanswered::Within(LIMIT)), false));
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_that_was_given_up_has_twice_the_time_and_at_last_all_of_it() {
        assert_eq!(called(10, 1, 0).await, (Ok(()), false));
        assert_eq!(
            called(50, 1, 0).await,
            (Err(Unanswered::GivenUp(SHORTEST * 2)), true)
        );
        assert_eq!(called(59, 4, 0).await, (Ok(()), false));
        assert_eq!(called(70, 99, 0).await, (Err(Unanswered::Within(LIMIT)), false));
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_of_no_step_has_all_its_time() {
        assert_eq!(in_time(Does::Write, LIMIT, sleep(LIMIT / 2)).await, Ok(()));
        let answer = in_time(Does::Write, LIMIT, sleep(LIMIT * 2)).await;
        assert_eq!(answer, Err(Unanswered::Within(LIMIT)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_write_without_an_answer_is_told_until_it_has_one() {
        for (does, takes_s, newer_after_s, told, is_left) in [
            (Does::Write, 3, 0, None, false),
            (Does::Write, 5, 0, Some(LIMIT), false),
            (Does::Write, 50, 0, Some(LIMIT), true),
            (Does::Read, 50, 0, None, false),
        ] {
            let patience = Patience::default();
            let begun = Instant::now();
            let mut silences = patience.silences();
            let first = async {
                let told = silences.wait_for(Option::is_some);
                timeout(LIMIT, told).await.ok()?.ok()?.map(|until| until - begun)
            };
            let newer = async {
                sleep(Duration::from_secs(newer_after_s)).await;
                patience.is_over(SHORTEST);
            };
            let call = patience.with(in_time(does, LIMIT, sleep(Duration::from_secs(takes_s))));
            let (_, (), first) = tokio::join!(call, newer, first);
            assert_eq!(
                (first, patience.unanswered().is_some()),
                (told, is_left),
                "{takes_s} s"
            );
        }
    }
}
