//! When a finalizer is put back that somebody took off a Service which goes on asking for a balancer.

use std::time::Duration;

use tokio::time::Instant;

/// Time to the second time that it is put back; doubled with each one after that.
const FIRST: Duration = Duration::from_secs(5);
/// The longest.
const LONGEST: Duration = Duration::from_secs(5 * 60);
/// What happens again within this time happens in a row.
const ROW: Duration = Duration::from_secs(10 * 60);

/// How often in a row it was taken off.
#[derive(Default)]
pub(super) struct Stripped {
    count: u32,
    last: Option<Instant>,
}

impl Stripped {
    /// It was taken off once more: how long to wait before it is put back. Once may be an accident. Who does it again will do it
    /// as often as we undo it.
    pub(super) fn again(&mut self) -> Duration {
        let now = Instant::now();
        let is_in_row = self.last.replace(now).is_some_and(|last| now < last + ROW);
        self.count = if is_in_row {
            self.count.saturating_add(1)
        } else {
            0
        };
        match self.count.checked_sub(1) {
            None => Duration::ZERO,
            Some(doublings) => FIRST
                .saturating_mul(1u32.checked_shl(doublings).unwrap_or(u32::MAX))
                .min(LONGEST),
        }
    }
}
