//! How long to wait before something that failed is tried again.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};

/// An exponential back-off: `base`, doubled with each failure, never more than `max`.
#[derive(Debug, Clone)]
pub struct Backoff {
    /// The first delay.
    pub base: Duration,
    /// The longest delay.
    pub max: Duration,
    /// Where to draw the share of the delay from that is waited: half of it to all of it, but never less than `base`.
    /// `None`: the delays are exact.
    pub jitter: Option<Jitter>,
}

impl Backoff {
    /// The share of the delay to wait, for [`delay`](Self::delay).
    pub fn draw(&self) -> f64 {
        self.jitter.as_ref().map_or(1.0, |jitter| jitter.share(0.5))
    }

    /// The delay after this many failures before the present one.
    pub fn delay(&self, failures: u32, share: f64) -> Duration {
        let doubled = 2_u32
            .checked_pow(failures)
            .and_then(|factor| self.base.checked_mul(factor))
            .map_or(self.max, |delay| delay.min(self.max));
        doubled.mul_f64(share).max(self.base)
    }
}

/// Chance from a seed: the same seed gives the same delays. Clones share one sequence.
#[derive(Clone)]
pub struct Jitter(Arc<Mutex<ChaCha8Rng>>);

impl Jitter {
    /// A sequence of its own.
    pub fn seeded(seed: u64) -> Self {
        Self(Arc::new(Mutex::new(ChaCha8Rng::seed_from_u64(seed))))
    }

    /// A number from `least` (below 1) up to 1.
    pub fn share(&self, least: f64) -> f64 {
        let mut random = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        random.random_range(least..1.0)
    }

    /// A time from `least` up to `most`.
    pub fn between(&self, least: Duration, most: Duration) -> Duration {
        least + most.saturating_sub(least).mul_f64(self.share(0.0))
    }
}

impl fmt::Debug for Jitter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Jitter")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_up_to_the_limit() {
        let backoff = Backoff {
            base: Duration::from_secs(5),
            max: Duration::from_secs(300),
            jitter: None,
        };
        let seconds: Vec<u64> = (0..9)
            .map(|failures| backoff.delay(failures, backoff.draw()).as_secs())
            .collect();
        assert_eq!(seconds, [5, 10, 20, 40, 80, 160, 300, 300, 300]);
        assert_eq!(backoff.delay(u32::MAX, 1.0), backoff.max);
    }

    #[test]
    fn jitter_waits_half_of_a_delay_or_more_and_never_less_than_the_first() {
        let backoff = Backoff {
            base: Duration::from_secs(1),
            max: Duration::from_secs(60),
            jitter: Some(Jitter::seeded(7)),
        };
        for failures in 0..40 {
            let exact = backoff.delay(failures, 1.0);
            let delay = backoff.delay(failures, backoff.draw());
            assert!(delay >= backoff.base && delay <= exact, "{failures}: {delay:?}");
            assert!(delay >= exact / 2, "{failures}: {delay:?}");
        }
        assert_eq!(backoff.delay(6, 1.0), Duration::from_secs(60));
    }

    #[test]
    fn one_seed_gives_one_sequence() {
        let draws = |seed| {
            let jitter = Jitter::seeded(seed);
            (0..5).map(|_| jitter.share(0.5)).collect::<Vec<_>>()
        };
        assert_eq!(draws(1), draws(1));
        assert_ne!(draws(1), draws(2));
    }
}
