//! A token bucket: so much at once, so much in the long run.

use std::time::Duration;

use tokio::time::Instant;

/// What may be taken at once and how fast it comes back.
#[derive(Debug)]
pub(super) struct Bucket {
    /// The time in which one unit comes back.
    interval: Duration,
    /// The time in which the whole bucket comes back.
    burst: Duration,
    /// When it is or was full.
    full_at: Instant,
}

impl Bucket {
    /// A full bucket of `burst` units, of which `rate` come back in a second.
    pub(super) fn new(burst: u32, rate: u32) -> Self {
        let interval = Duration::from_secs(1) / rate.max(1);
        Self {
            interval,
            burst: interval * burst,
            full_at: Instant::now(),
        }
    }

    /// Takes some units, if need be on credit; says when there are units again.
    pub(super) fn take(&mut self, units: u32) -> Instant {
        let now = Instant::now();
        self.full_at = self.full_at.max(now) + self.interval * units;
        self.full_at.checked_sub(self.burst).unwrap_or(now).max(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_burst_is_free_and_what_is_beyond_it_comes_back_at_the_rate() {
        let mut bucket = Bucket::new(4, 2);
        let begun = Instant::now();
        let waits: Vec<u128> = [2, 2, 1, 3]
            .map(|units| (bucket.take(units) - begun).as_millis())
            .to_vec();
        assert_eq!(waits, [0, 0, 500, 2000]);
        tokio::time::advance(Duration::from_secs(60)).await;
        assert_eq!(bucket.take(4), Instant::now());
    }
}
