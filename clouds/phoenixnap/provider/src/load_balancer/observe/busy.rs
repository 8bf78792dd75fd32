//! When a network that is at work is asked again.
//!
//! The API refuses an attachment while it is at work on the network, as on the one before, and does not say how long that takes. Of all
//! who wait, one asks at each look, and while a block of this process is on its way, hardly anybody: the look itself tells when that has
//! ended. The same holds for detachments: a network that refuses the one need not refuse the other.

use std::sync::Mutex;
use std::time::Duration;

use bowline_cloud_provider::{Pauses, lock};
use tokio::time::Instant;

/// Between two looks at what the API is at work on, from its beginning on: that takes seconds to minutes.
pub(crate) const LOOKS: Pauses =
    Pauses::of_micros(&[1_000_000, 1_000_000, 2_000_000, 3_000_000, 3_000_000, 10_000_000]);

/// How long nobody asks after the last time while a block is on its way.
const PATIENCE: Duration = Duration::from_secs(10);

/// Which way a block goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Move {
    /// To the network.
    On,
    /// Off it.
    Off,
}

/// Why something is not done yet, and how long until the next look.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Later {
    pub(crate) why: String,
    pub(crate) look: Duration,
    /// How long that has been so.
    pub(crate) lasts: Duration,
}

impl Later {
    /// What takes its time since then.
    pub(super) fn since(since: Instant, why: String) -> Self {
        let lasts = since.elapsed();
        let look = LOOKS.next(lasts);
        Self { why, look, lasts }
    }
}

/// Whether the network is at work, as far as this process knows: then it makes no move of one kind.
#[derive(Default)]
pub(super) struct Busy(Mutex<State>);

#[derive(Default)]
struct State {
    work: Option<Work>,
    /// Whether it was seen to refuse that while a block of this process is on its way.
    is_serial: bool,
}

struct Work {
    /// Which block it refused, and in which words; `None`: another one has begun to move since.
    refused: Option<(String, String)>,
    /// Since when, as far as this process knows.
    since: Instant,
    /// When the network was asked last.
    asked: Instant,
}

impl Busy {
    /// Why the network is not asked to move this block now; `None`: it is. `is_moving`: a block of this process is on its way.
    pub(super) fn later(&self, block: &str, is_moving: bool) -> Option<Later> {
        let state = lock(&self.0);
        let work = state.work.as_ref()?;
        let pause = match is_moving {
            true => PATIENCE,
            false => LOOKS.next(work.asked - work.since),
        };
        (work.asked.elapsed() < pause).then(|| work.later(block))
    }

    /// Whether it is at work.
    pub(super) fn is_known(&self) -> bool {
        lock(&self.0).work.is_some()
    }

    /// It has refused to move this block now, while one is on its way since then.
    pub(super) fn refuses(&self, block: &str, words: String, begun: Option<Instant>) -> Later {
        let asked = Instant::now();
        let mut state = lock(&self.0);
        state.is_serial |= begun.is_some();
        // Whoever waits asks at least as often; a refusal long ago was another one.
        let before = state
            .work
            .as_ref()
            .filter(|work| work.asked.elapsed() <= 2 * PATIENCE);
        let before = before.map(|work| work.since);
        let since = before.or(begun).unwrap_or(asked);
        let refused = Some((block.to_owned(), words));
        let work = Work {
            refused,
            since,
            asked,
        };
        state.work.insert(work).later(block)
    }

    /// It has begun to move a block now.
    pub(super) fn begins(&self, now: Instant) {
        let mut state = lock(&self.0);
        state.work = state.is_serial.then_some(Work {
            refused: None,
            since: now,
            asked: now,
        });
    }

    /// The block has arrived, or never will.
    pub(super) fn ends(&self) {
        lock(&self.0).work = None;
    }
}

impl Work {
    /// What was said of another block is none of this one's.
    fn later(&self, block: &str) -> Later {
        let refused = self.refused.as_ref().filter(|(of, _)| of == block);
        let why = refused.map_or("the network is at work on another IP block", |(_, words)| words);
        Later::since(self.since, why.to_owned())
    }
}
