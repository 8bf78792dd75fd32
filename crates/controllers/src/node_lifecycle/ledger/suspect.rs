//! One Node that is not ready, or that carries the shutdown taint although it is.

use std::sync::Arc;
use std::time::Duration;

use bowline_plan::Said;
use tokio::time::Instant;

use super::Seen;

/// What is known of it.
#[derive(Debug)]
pub(super) struct Suspect {
    pub(super) uid: Arc<str>,
    pub(super) is_ready: bool,
    pub(super) stage: Stage,
    /// The distance to the next question.
    pub(super) interval: Duration,
    pub(super) last: Option<Seen>,
    /// Since when the answers have been like the last one.
    pub(super) since: Instant,
    /// When the first proof of absence came that nothing has contradicted since.
    pub(super) absent_since: Option<Instant>,
    pub(super) hold: Option<Hold>,
    /// Whether its deletion was tried, and failed.
    pub(super) has_failed: bool,
    pub(super) said: Said,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// To be looked at then.
    Due(Instant),
    /// Being looked at.
    Busy,
    /// Its deletion was accepted; nothing is left to do.
    Released,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hold {
    Frozen,
    Throttled,
}

impl Suspect {
    pub(super) fn due(&self) -> Option<Instant> {
        match self.stage {
            Stage::Due(at) => Some(at),
            Stage::Busy | Stage::Released => None,
        }
    }

    /// Holds the Node back. Answers whether that is news.
    pub(super) fn hold(&mut self, hold: Hold) -> bool {
        self.hold.replace(hold) != Some(hold)
    }
}

impl Stage {
    pub(super) fn earlier(self, other: Self) -> Self {
        match (self, other) {
            (Self::Due(a), Self::Due(b)) => Self::Due(a.min(b)),
            (stage, _) => stage,
        }
    }
}

/// The tick of the period that is nearest to this time: questions that are in no hurry are asked together. An answer comes
/// a moment after its question, so one period after it the nearest tick is the next one, not the one after that.
pub(super) fn align(started: Instant, period: Duration, at: Instant) -> Instant {
    if period.is_zero() {
        return at;
    }
    let over = at.saturating_duration_since(started).as_nanos() % period.as_nanos();
    let Ok(over) = u64::try_from(over).map(Duration::from_nanos) else {
        return at; // longer than five centuries
    };
    if over <= period / 2 {
        at - over
    } else {
        at + (period - over)
    }
}
