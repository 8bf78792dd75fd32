//! What is logged while a test runs.

#![expect(clippy::unwrap_used, reason = "a test ends on a surprise")]

use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use tracing::Dispatch;
use tracing::subscriber::{DefaultGuard, NoSubscriber, set_default};

/// What was logged, at the levels that are on by default.
#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Log {
    /// Takes what this thread logs, as long as the guards are there.
    pub(crate) fn listen() -> (Self, (Dispatch, DefaultGuard)) {
        let log = Self::default();
        let writer = log.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_ansi(false)
            .with_writer(move || writer.clone())
            .finish();
        // While there is but one subscriber, a line that another thread meets first is off for all of them.
        let second = Dispatch::new(NoSubscriber::default());
        (log, (second, set_default(subscriber)))
    }

    /// The lines since the last call of this.
    pub(crate) fn take(&self) -> Vec<String> {
        let log = std::mem::take(&mut *self.0.lock().unwrap());
        String::from_utf8_lossy(&log).lines().map(str::to_owned).collect()
    }
}
