//! How talkative the log is, changed while the process runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

/// How talkative the log is. Clones share it.
#[derive(Debug, Clone)]
pub struct Verbosity(Arc<AtomicU8>);

impl Verbosity {
    /// A verbosity that nobody else has yet.
    pub fn new(level: u8) -> Self {
        Self(Arc::new(AtomicU8::new(level)))
    }

    /// The level now.
    pub fn level(&self) -> u8 {
        self.0.load(Ordering::Relaxed)
    }

    /// Changes the level, from the next line on.
    pub fn set(&self, level: u8) {
        self.0.store(level, Ordering::Relaxed);
        // Each place in the code remembers whether its lines are wanted.
        tracing::callsite::rebuild_interest_cache();
    }
}
