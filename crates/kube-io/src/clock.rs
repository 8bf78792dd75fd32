//! Wall time as something that is handed in.

use jiff::Timestamp;
use tokio::time::Instant;

/// Tells the wall time.
pub trait Clock: Send + Sync {
    /// The time now.
    fn now(&self) -> Timestamp;
}

/// The clock of the computer.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }
}

/// Wall time that runs with the runtime's clock, so that it stands still when a test stops that.
#[derive(Debug, Clone, Copy)]
pub struct TokioClock {
    start: Timestamp,
    begun: Instant,
}

impl TokioClock {
    /// A clock that shows `start` now. Call it inside the runtime.
    pub fn starting_at(start: Timestamp) -> Self {
        Self {
            start,
            begun: Instant::now(),
        }
    }
}

impl Clock for TokioClock {
    fn now(&self) -> Timestamp {
        // Saturates at the end of time, in the year 9999.
        self.start
            .checked_add(self.begun.elapsed())
            .unwrap_or(Timestamp::MAX)
    }
}
