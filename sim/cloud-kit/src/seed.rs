//! Ids and jitter from one seed.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rand::rngs::ChaCha8Rng;
use rand::{Rng, RngExt, SeedableRng};
use uuid::Uuid;

/// A shared source of numbers that looks random and is decided by its seed. Clones draw from the same stream.
#[derive(Clone, Debug)]
pub struct Seed {
    value: u64,
    rng: Arc<Mutex<ChaCha8Rng>>,
}

impl Default for Seed {
    fn default() -> Self {
        Self::new(0)
    }
}

impl Seed {
    /// The stream that belongs to `value`.
    pub fn new(value: u64) -> Self {
        Self {
            value,
            rng: Arc::new(Mutex::new(ChaCha8Rng::seed_from_u64(value))),
        }
    }

    /// The number this stream was made from, to print when a test fails.
    pub fn value(&self) -> u64 {
        self.value
    }

    /// The next version 4 UUID.
    pub fn uuid(&self) -> Uuid {
        let mut bytes = [0_u8; 16];
        self.with(|rng| rng.fill_bytes(&mut bytes));
        uuid::Builder::from_random_bytes(bytes).into_uuid()
    }

    /// A number below `bound`; 0 if the bound is 0.
    pub fn below(&self, bound: u64) -> u64 {
        if bound == 0 {
            0
        } else {
            self.with(|rng| rng.random_range(0..bound))
        }
    }

    /// A duration from 0 up to and including `max`, in whole microseconds.
    pub fn jitter(&self, max: Duration) -> Duration {
        let micros = u64::try_from(max.as_micros()).unwrap_or(u64::MAX - 1);
        Duration::from_micros(self.below(micros + 1))
    }

    fn with<T>(&self, draw: impl FnOnce(&mut ChaCha8Rng) -> T) -> T {
        draw(&mut self.rng.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn same_seed_gives_same_ids() {
        let (one, two) = (Seed::new(7), Seed::new(7));
        let ids: Vec<_> = (0..5).map(|_| one.uuid()).collect();
        assert_eq!(ids, (0..5).map(|_| two.uuid()).collect::<Vec<_>>());
        assert_ne!(ids[0], Seed::new(8).uuid());
        assert!(ids.iter().all(|id| id.get_version_num() == 4));
    }

    #[test]
    fn jitter_stays_within_its_bound() {
        let seed = Seed::new(1);
        assert_eq!(seed.jitter(Duration::ZERO), Duration::ZERO);
        assert!((0..100).all(|_| seed.jitter(Duration::from_millis(3)) <= Duration::from_millis(3)));
    }
}
