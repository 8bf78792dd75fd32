//! Where lines go, and how long an info line may wait on its way.

use std::convert::Infallible;
use std::io::{BufWriter, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::args::SplitStream;

/// Where lines go. A test hands in memory.
pub type Sink = Arc<Mutex<dyn Write + Send>>;

/// The streams of a log. Clones share them.
#[derive(Clone)]
pub struct Streams {
    info: Sink,
    others: Sink,
    /// How often info lines are flushed; `None`: they are not held back.
    flush_period: Option<Duration>,
}

impl Streams {
    /// Everything into one.
    pub fn one(sink: Sink) -> Self {
        Self {
            info: Arc::clone(&sink),
            others: sink,
            flush_period: None,
        }
    }

    /// Info lines into `info`, through a buffer if one is asked for.
    pub fn split(split: SplitStream, info: impl Write + Send + 'static, others: Sink) -> Self {
        Self {
            info: if split.buffer == 0 {
                Arc::new(Mutex::new(info))
            } else {
                Arc::new(Mutex::new(BufWriter::with_capacity(split.buffer, info)))
            },
            others,
            flush_period: (split.buffer > 0).then_some(split.flush_period),
        }
    }

    /// Those of the process: stderr, and stdout for info lines if they are to be apart.
    pub fn of_process(split: Option<SplitStream>) -> Self {
        let stderr: Sink = Arc::new(Mutex::new(std::io::stderr()));
        match split {
            None => Self::one(stderr),
            Some(split) => Self::split(split, std::io::stdout(), stderr),
        }
    }

    pub(super) fn write(&self, line: &str, is_info: bool) {
        let sink = if is_info { &self.info } else { &self.others };
        let mut sink = sink.lock().unwrap_or_else(PoisonError::into_inner);
        // Nobody is left to tell if the stream is gone.
        let _ = sink.write_all(line.as_bytes());
    }

    /// Writes what waits in the buffer.
    pub fn flush(&self) {
        let mut sink = self.info.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = sink.flush();
    }

    /// The same from within a panic, which may have come in the middle of a line: then the buffer is left as it is.
    pub fn try_flush(&self) {
        if let Ok(mut sink) = self.info.try_lock() {
            let _ = sink.flush();
        }
    }

    /// Flushes at every period, if lines wait at all. It never ends.
    pub async fn keep_flushed(&self) -> Infallible {
        let Some(period) = self.flush_period else {
            return std::future::pending().await;
        };
        loop {
            tokio::time::sleep(period).await;
            self.flush();
        }
    }
}
