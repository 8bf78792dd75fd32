//! What is logged while a test runs.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tracing::subscriber::{DefaultGuard, NoSubscriber, set_default};
use tracing::{Dispatch, Level};

/// What was logged by one thread.
#[derive(Clone, Default)]
pub struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.lock().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Log {
    /// Takes what this thread logs at this level and above, as long as the guards are there.
    #[must_use]
    pub fn listen(level: Level) -> (Self, (Dispatch, DefaultGuard)) {
        let log = Self::default();
        let writer = log.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_max_level(level)
            .with_ansi(false)
            .with_writer(move || writer.clone())
            .finish();
        // While there is but one subscriber, a line that another thread meets first is off for all of them.
        let second = Dispatch::new(NoSubscriber::default());
        (log, (second, set_default(subscriber)))
    }

    /// All that was logged, but for what was [taken](Self::take).
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.lock()).into_owned()
    }

    /// The lines since the last call of this.
    pub fn take(&self) -> Vec<String> {
        let log = std::mem::take(&mut *self.lock());
        String::from_utf8_lossy(&log).lines().map(str::to_owned).collect()
    }

    /// How many lines have these words in them.
    #[must_use]
    pub fn count(&self, words: &str) -> usize {
        self.text().lines().filter(|line| line.contains(words)).count()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<u8>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
