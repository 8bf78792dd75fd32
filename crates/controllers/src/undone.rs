//! When something is written again that somebody undid: a finalizer that was taken off, a taint that was put back.

use std::time::Duration;

use tokio::time::Instant;

use crate::queue::of_services;

/// What happens again within this time happens in a row.
const ROW: Duration = Duration::from_secs(10 * 60);

/// How often in a row it was undone.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Undone {
    count: u32,
    last: Option<Instant>,
}

impl Undone {
    /// It was undone once more: how long to wait before it is written again. So many times in a row may be a person, and are
    /// answered at once. Who goes on will do it as often as we write, and is answered on the schedule of Services.
    pub(crate) fn again(&mut self, at_once: u32) -> Duration {
        let now = Instant::now();
        let is_in_row = self.last.replace(now).is_some_and(|last| now < last + ROW);
        self.count = if is_in_row {
            self.count.saturating_add(1)
        } else {
            0
        };
        match self.count.checked_sub(at_once) {
            None => Duration::ZERO,
            Some(doublings) => of_services().delay(doublings, 1.0),
        }
    }
}
