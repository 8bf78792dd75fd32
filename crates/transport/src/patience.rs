//! How long a call may go without an answer: for its whole time limit, and not so long where something newer waits for whoever makes it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;

/// How long a call may go without an answer in any case. A cloud that takes 5 s for each is slow, and gets its work done.
pub const SHORTEST: Duration = Duration::from_millis(5_500);

tokio::task_local! {
    static OF_STEP: Patience;
}

/// The patience with the calls of one step. Its clones are one.
#[derive(Debug, Clone, Default)]
pub struct Patience {
    is_over: CancellationToken,
    gave_up: Arc<AtomicBool>,
}

impl Patience {
    /// Runs work whose calls are answered [`in_time`].
    pub async fn with<F: Future>(&self, work: F) -> F::Output {
        OF_STEP.scope(self.clone(), work).await
    }

    /// Something newer waits: from now on no call goes without an answer for longer than [`SHORTEST`].
    pub fn is_over(&self) {
        self.is_over.cancel();
    }

    /// Whether a call was given up before its time limit.
    #[must_use]
    pub fn gave_up(&self) -> bool {
        self.gave_up.load(Ordering::Relaxed)
    }

    /// Ends when a call is to be given up that began then.
    async fn ends(self, begun: Instant) {
        self.is_over.cancelled().await;
        sleep_until(begun + SHORTEST).await;
        self.gave_up.store(true, Ordering::Relaxed);
    }
}

/// What a call answers within `limit`, and within the [`Patience`] of the step that it is made for, if it is made for one.
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
    let patience = OF_STEP.try_with(Clone::clone).ok();
    let patience_ends = async {
        match patience {
            Some(patience) => Patience::ends(patience, begun).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        biased;
        answer = call => Ok(answer),
        () = sleep(limit) => Err(limit),
        () = patience_ends => Err(begun.elapsed()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(60);

    /// How a call ends that takes so many seconds, if something newer waits after so many.
    async fn called(takes_s: u64, newer_after_s: u64) -> (Result<(), Duration>, bool) {
        let patience = Patience::default();
        let newer = async {
            sleep(Duration::from_secs(newer_after_s)).await;
            patience.is_over();
        };
        let call = patience.with(in_time(LIMIT, sleep(Duration::from_secs(takes_s))));
        let (answer, ()) = tokio::join!(call, newer);
        (answer, patience.gave_up())
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_is_given_up_when_something_newer_waits_and_not_before_it_had_its_time() {
        assert_eq!(called(5, 0).await, (Ok(()), false), "slow");
        assert_eq!(called(50, 0).await, (Err(SHORTEST), true));
        assert_eq!(called(50, 20).await, (Err(Duration::from_secs(20)), true));
        assert_eq!(called(50, 55).await, (Ok(()), false));
        assert_eq!(called(70, 80).await, (Err(LIMIT), false));
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_of_no_step_has_all_its_time() {
        assert_eq!(in_time(LIMIT, sleep(LIMIT / 2)).await, Ok(()));
        assert_eq!(in_time(LIMIT, sleep(LIMIT * 2)).await, Err(LIMIT));
    }
}
