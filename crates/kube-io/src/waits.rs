//! What passes by itself: how long to wait before the API server is asked again, and which reads are asked again here.

use std::time::Duration;

use bowline_transport::Backoff;
use tokio::time::Instant;

use crate::client::Kube;
use crate::error::KubeError;
use crate::exchange::Call;

/// The waits after failures: 0.8 s, doubled each time, at most 30 s.
pub(crate) const FIRST_WAIT: Duration = Duration::from_millis(800);
pub(crate) const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// For how long a read is asked again before its failure is its caller's matter. A continuation of a list is good for five
/// minutes.
const PATIENCE: Duration = Duration::from_secs(60);

/// The waits after failures: doubled each time.
///
/// There is no jitter: a manager has two watches and one or two standby replicas, and a test can replay it.
#[derive(Debug)]
pub(crate) struct Waits {
    backoff: Backoff,
    failures: u32,
}

impl Waits {
    pub(crate) fn new(base: Duration, max: Duration) -> Self {
        let backoff = Backoff {
            base,
            max,
            jitter: None,
        };
        Self { backoff, failures: 0 }
    }

    pub(crate) fn reset(&mut self) {
        self.failures = 0;
    }

    /// The next wait.
    pub(crate) fn next(&mut self) -> Duration {
        let wait = self.backoff.delay(self.failures, 1.0);
        self.failures = self.failures.saturating_add(1);
        wait
    }

    /// The next wait, not shorter than what the API server asked for.
    pub(crate) fn after(&mut self, failure: &KubeError) -> Duration {
        self.next().max(failure.retry_after().unwrap_or_default())
    }
}

/// Whether the same request may well succeed later: the API server is busy, ill or out of reach.
pub(crate) fn is_passing(error: &KubeError) -> bool {
    matches!(
        error,
        KubeError::Transport(_)
            | KubeError::Timeout
            | KubeError::Throttled { .. }
            | KubeError::Server { code: 500.., .. }
    )
}

impl Kube {
    /// Reads, and asks again for a minute after failures that pass. For a read whose failure would cost more than the
    /// read: whoever called would have to begin anew.
    pub(crate) async fn read_patiently(
        &self,
        call: impl Fn() -> Call,
        passes: fn(&KubeError) -> bool,
    ) -> Result<Vec<u8>, KubeError> {
        let begun = Instant::now();
        let mut waits = Waits::new(FIRST_WAIT, LONGEST_WAIT);
        loop {
            let error = match self.exchange(call()).await {
                Err(error) if passes(&error) => error,
                done => return done,
            };
            let wait = waits.after(&error);
            if begun.elapsed() + wait > PATIENCE {
                return Err(error);
            }
            tracing::debug!(err = %error, wait_seconds = wait.as_secs_f64(), "A read failed and is asked again");
            tokio::time::sleep(wait).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_from_800_ms_to_30_s_and_are_as_long_as_was_asked_for() {
        let mut waits = Waits::new(FIRST_WAIT, LONGEST_WAIT);
        let found: Vec<_> = (0..8).map(|_| waits.next().as_millis()).collect();
        assert_eq!(found, [800, 1600, 3200, 6400, 12800, 25600, 30000, 30000]);
        waits.reset();
        assert_eq!(waits.next(), FIRST_WAIT);
        let after = Duration::from_secs(40);
        let busy = KubeError::Throttled {
            code: 429,
            after,
            message: String::new(),
        };
        assert_eq!(waits.after(&busy), after);
    }
}
