//! Wall time that follows tokio's clock.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp, tz};
use tokio::time::Instant;

/// Wall time as a simulator tells it: a fixed start plus what has passed on tokio's clock.
///
/// Under a paused tokio clock the wall time stands still too, and moves exactly as far as the test advances it.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    start: Timestamp,
    origin: Instant,
}

impl Clock {
    /// A clock that shows `start` now.
    pub fn starting_at(start: Timestamp) -> Self {
        Self {
            start,
            origin: Instant::now(),
        }
    }

    /// A clock that shows the operating system's time now. For programs; tests take [`Clock::default`].
    pub fn system() -> Self {
        Self::starting_at(Timestamp::now())
    }

    /// What has passed since the clock was made.
    pub fn elapsed(&self) -> Duration {
        self.origin.elapsed()
    }

    /// Wall time now.
    pub fn now(&self) -> Timestamp {
        let elapsed = SignedDuration::try_from(self.elapsed()).unwrap_or(SignedDuration::MAX);
        self.start.saturating_add(elapsed).unwrap_or(Timestamp::MAX)
    }

    /// Wall time now as RFC 3339 in UTC with microseconds, as most cloud APIs write it.
    pub fn rfc3339_micros(&self) -> String {
        self.now()
            .to_zoned(tz::TimeZone::UTC)
            .strftime("%Y-%m-%dT%H:%M:%S.%6fZ")
            .to_string()
    }

    /// Wall time now as RFC 3339 in UTC with milliseconds, as clouds written in Java do.
    pub fn rfc3339_millis(&self) -> String {
        self.now()
            .to_zoned(tz::TimeZone::UTC)
            .strftime("%Y-%m-%dT%H:%M:%S.%3fZ")
            .to_string()
    }

    /// Wall time now as RFC 3339 in UTC with whole seconds, as OpenStack writes it.
    pub fn rfc3339_seconds(&self) -> String {
        format!("{:.0}", self.now())
    }

    /// Wall time in a while as RFC 3339 in UTC with microseconds.
    pub fn rfc3339_micros_after(&self, wait: Duration) -> String {
        let then = self.now().saturating_add(wait).unwrap_or(Timestamp::MAX);
        format!("{then:.6}")
    }

    /// Wall time now in UTC with whole seconds and `+0000` for the zone, as Apache CloudStack writes it.
    pub fn iso8601_seconds(&self) -> String {
        self.now()
            .to_zoned(tz::TimeZone::UTC)
            .strftime("%Y-%m-%dT%H:%M:%S%z")
            .to_string()
    }
}

impl Default for Clock {
    /// Starts at 2026-01-01T00:00:00Z, so that runs with the same seed show the same times.
    fn default() -> Self {
        Self::starting_at(Timestamp::constant(1_767_225_600, 0))
    }
}

/// The moment `after` from now; `None` if that is now.
pub fn later(after: Duration) -> Option<Instant> {
    (!after.is_zero()).then(|| Instant::now() + after)
}

/// Whether a moment is still to come.
pub fn pending(until: Option<Instant>) -> bool {
    until.is_some_and(|until| until > Instant::now())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn wall_time_follows_the_paused_clock() {
        let clock = Clock::default();
        assert_eq!(clock.rfc3339_micros(), "2026-01-01T00:00:00.000000Z");
        tokio::time::advance(Duration::from_millis(90_500)).await;
        assert_eq!(clock.rfc3339_micros(), "2026-01-01T00:01:30.500000Z");
        assert_eq!(clock.rfc3339_millis(), "2026-01-01T00:01:30.500Z");
        assert_eq!(clock.iso8601_seconds(), "2026-01-01T00:01:30+0000");
        assert_eq!(clock.rfc3339_seconds(), "2026-01-01T00:01:30Z");
        let later = clock.rfc3339_micros_after(Duration::from_secs(3_600));
        assert_eq!(later, "2026-01-01T01:01:30.500000Z");
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_is_pending_once_its_time_has_come() {
        assert_eq!(later(Duration::ZERO), None);
        let moment = later(Duration::from_secs(1));
        assert!(pending(moment));
        tokio::time::advance(Duration::from_secs(1)).await;
        assert!(!pending(moment) && !pending(None));
    }
}
