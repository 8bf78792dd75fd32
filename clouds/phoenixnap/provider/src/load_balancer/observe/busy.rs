//! When a network that is at work is asked again.
//!
//! The API refuses an attachment while it is at work on the network, as on the one before, and does not say how long that takes. Of all
//! who wait, one asks at each look, and while a block of this process is on its way, hardly anybody: the look itself tells when that has
//! ended.

use std::sync::Mutex;
use std::time::Duration;

use bowline_cloud_provider::{Pauses, lock};
use tokio::time::Instant;

/// Between two looks at what the API is at work on, from its beginning on: that takes seconds to minutes.
pub(super) const LOOKS: Pauses =
    Pauses::of_micros(&[1_000_000, 1_000_000, 2_000_000, 3_000_000, 3_000_000, 10_000_000]);

/// How long nobody asks after the last time while a block is on its way.
const PATIENCE: Duration = Duration::from_secs(10);

/// Why something is not done yet, and how long until the next look.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Later {
    pub(crate) why: String,
    pub(crate) look: Duration,
}

/// Whether the network is at work, as far as this process knows.
#[derive(Default)]
pub(super) struct Busy(Mutex<State>);

#[derive(Default)]
struct State {
    work: Option<Work>,
    /// Whether it was seen to take no block while another one of this process is on its way.
    is_serial: bool,
}

struct Work {
    why: String,
    /// Since when, as far as this process knows.
    since: Instant,
    /// When the network was asked last.
    asked: Instant,
}

impl Busy {
    /// Why the network is not asked now; `None`: it is. `is_attaching`: a block of this process is on its way.
    pub(super) fn later(&self, is_attaching: bool) -> Option<Later> {
        let state = lock(&self.0);
        let work = state.work.as_ref()?;
        let pause = match is_attaching {
            true => PATIENCE,
            false => LOOKS.next(work.asked - work.since),
        };
        (work.asked.elapsed() < pause).then(|| work.later())
    }

    /// Whether it is at work.
    pub(super) fn is_known(&self) -> bool {
        lock(&self.0).work.is_some()
    }

    /// It has refused to take a block now, while one is on its way since then.
    pub(super) fn refuses(&self, why: String, begun: Option<Instant>) -> Later {
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
        state.work.insert(Work { why, since, asked }).later()
    }

    /// It has begun to attach a block now.
    pub(super) fn begins(&self, now: Instant) {
        let mut state = lock(&self.0);
        state.work = state.is_serial.then(|| Work {
            why: "the network is attaching another IP block".to_owned(),
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
    fn later(&self) -> Later {
        Later {
            why: self.why.clone(),
            look: LOOKS.next(self.since.elapsed()),
        }
    }
}
