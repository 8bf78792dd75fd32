//! How long a call may go without an answer: for its whole time limit, and not so long where something newer waits for whoever makes it.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::SetOnce;
use tokio::time::{Instant, sleep, sleep_until};

/// How long a call may go without an answer in any case. A cloud that takes 5 s for each is slow, and gets its work done.
const SHORTEST: Duration = Duration::from_millis(5_500);

/// How long a call may go without an answer that was given up so many times in a row: twice as long each time. So a cloud that is slower
/// gets its work done as well, at last within the whole time limit.
#[must_use]
pub fn shortest(given_up: u32) -> Duration {
    SHORTEST.saturating_mul(2_u32.saturating_pow(given_up))
}

tokio::task_local! {
    static CURRENT: Patience;
}

/// The patience with the calls of one step, or of one look. Its clones are one.
#[derive(Debug, Clone, Default)]
pub struct Patience {
    /// It is over, and a call had so much time by then.
    is_over: Arc<SetOnce<Duration>>,
    gave_up: Arc<SetOnce<()>>,
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

    /// Runs work whose calls are answered [`in_time`].
    pub async fn with<F: Future>(&self, work: F) -> F::Output {
        CURRENT.scope(self.clone(), work).await
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

    fn current() -> Option<Self> {
        CURRENT.try_with(Clone::clone).ok()
    }
}

/// Ends when this patience is to be given up with something that began then.
async fn ends(patience: Option<Patience>, begun: Instant) {
    match patience {
        Some(patience) => patience.ends(begun).await,
        None => std::future::pending().await,
    }
}

/// What a call answers within `limit`, and within the [`Patience`] of the step or look that it is made for, if it is made for one.
///
/// # Errors
///
/// How long it went without an answer.
///
/// # Cancellation
///
/// A call without an answer is dropped.
pub async fn in_time<F: Future>(limit: Duration, call: F) -> Result<F::Output, Duration> {
    let begun = Instant::now();
    let patience_ends = ends(Patience::current(), begun);
    tokio::select! {
        biased;
        answer = call => Ok(answer),
        () = sleep(limit) => Err(limit),
        () = patience_ends => Err(begun.elapsed()),
    }
}

/// Waits for a read that others wait for too. It never ends where it is for a look whose [`Patience`] is: that drops it, and the others
/// wait on.
pub async fn with_others<F: Future>(read: F) -> F::Output {
    let patience = Patience::current().filter(|patience| patience.is_of_look);
    let given_up = async {
        ends(patience, Instant::now()).await;
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
        Some(patience) if patience.is_of_look => Patience::default().with(read).await,
        _ => read.await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(60);

    /// How a call ends that takes so many seconds and was given up so many times, if something newer waits after so many seconds.
    async fn called(takes_s: u64, given_up: u32, newer_after_s: u64) -> (Result<(), Duration>, bool) {
        let patience = Patience::default();
        let newer = async {
            sleep(Duration::from_secs(newer_after_s)).await;
            patience.is_over(shortest(given_up));
        };
        let call = patience.with(in_time(LIMIT, sleep(Duration::from_secs(takes_s))));
        let (answer, ()) = tokio::join!(call, newer);
        (answer, patience.gave_up())
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_is_given_up_when_something_newer_waits_and_not_before_it_had_its_time() {
        assert_eq!(called(5, 0, 0).await, (Ok(()), false), "slow");
        assert_eq!(called(50, 0, 0).await, (Err(SHORTEST), true));
        assert_eq!(called(50, 0, 20).await, (Err(Duration::from_secs(20)), true));
        assert_eq!(called(50, 0, 55).await, (Ok(()), false));
        assert_eq!(called(70, 0, 80).await, (Err(LIMIT), false));
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_that_was_given_up_has_twice_the_time_and_at_last_all_of_it() {
        assert_eq!(called(10, 1, 0).await, (Ok(()), false));
        assert_eq!(called(50, 1, 0).await, (Err(SHORTEST * 2), true));
        assert_eq!(called(59, 4, 0).await, (Ok(()), false));
        assert_eq!(called(70, 99, 0).await, (Err(LIMIT), false));
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_of_no_step_has_all_its_time() {
        assert_eq!(in_time(LIMIT, sleep(LIMIT / 2)).await, Ok(()));
        assert_eq!(in_time(LIMIT, sleep(LIMIT * 2)).await, Err(LIMIT));
    }
}
