//! Firewall rules that the API refused when others had gone for them.
//!
//! Where a rule cannot be made beside the one that it follows, the one that works has to go before the server says whether it takes the
//! other. If it does not, the old one is opened again, and this says that it is not closed once more for the same: not before the
//! Service is changed, if the server refused by itself, else not for a while, longer and longer. Nothing of it is written down: a
//! new process tries once more.
//!
//! A failure by which nobody knows what became of the new rule opens nothing again. So what was closed is handed to the next
//! reconcile, which makes the new rule, or hears that it is refused.

use std::time::Duration;

use bowline_cloud_provider::{ErrorKind, Kept};
use tokio::time::Instant;

use super::Remembered;
use crate::intent::Wanted;
use crate::objects::{FirewallId, FirewallRule};
use crate::step::Opening;

/// How long the same is not tried after a failure that may pass. The time doubles with each further one.
const SHORTEST: Duration = Duration::from_secs(30);

/// The longest time for which the same is not tried.
pub(super) const LONGEST_PAUSE: Duration = Duration::from_secs(3_600);

/// What nothing is closed for.
#[derive(Debug, Clone)]
pub(crate) struct Refused {
    openings: Vec<Opening>,
    /// What the API said.
    pub(crate) error: String,
    /// Whether it was because of a limit.
    pub(crate) is_limit: bool,
}

impl Refused {
    /// What a reconcile closed others for and heard that it cannot be, if that is so.
    pub(crate) fn of(own: &Remembered) -> Option<Self> {
        let failure = own.failure.as_ref()?;
        let is_for = |new: &Opening, (at, old): &(FirewallId, FirewallRule)| {
            *at == new.at.id && old.ingress == new.ingress
        };
        let had_closed = |new: &&Opening| own.closed.iter().any(|old| is_for(new, old));
        let openings: Vec<_> = own.unopened.iter().filter(had_closed).cloned().collect();
        (!openings.is_empty()).then(|| Self {
            openings,
            error: failure.error.to_string(),
            is_limit: failure.error.kind() == ErrorKind::Exhausted,
        })
    }

    /// Whether it is among them.
    pub(crate) fn holds(&self, new: &Opening) -> bool {
        self.openings.contains(new)
    }
}

/// What was refused and what was closed, by the UID of the Service.
#[derive(Default)]
pub(super) struct RefusedOpenings(Kept<String, Entry>);

struct Entry {
    /// What the Service asked for.
    asked: u64,
    /// What was closed, and of which it is not known whether another one came for it.
    closed: Vec<(FirewallId, FirewallRule)>,
    refused: Option<Refused>,
    /// How often that was.
    times: u32,
    /// Until when nothing is closed for it; for ever if none.
    until: Option<Instant>,
}

impl RefusedOpenings {
    /// What nothing is to be closed for.
    pub(super) fn of(&self, wanted: &Wanted) -> Option<Refused> {
        self.0.with(&wanted.identity.uid, |entry| {
            let known = entry.as_ref().filter(|known| known.asked == wanted.asked)?;
            let is_over = known.until.is_some_and(|until| until <= Instant::now());
            known.refused.clone().filter(|_| !is_over)
        })
    }

    /// What an earlier reconcile closed.
    pub(super) fn closed(&self, wanted: &Wanted) -> Vec<(FirewallId, FirewallRule)> {
        self.0.with(&wanted.identity.uid, |entry| match entry {
            Some(known) if known.asked == wanted.asked => known.closed.clone(),
            _ => Vec::new(),
        })
    }

    /// A reconcile failed.
    pub(super) fn remember(&self, wanted: &Wanted, own: &Remembered) {
        let Some(failure) = own.failure.as_ref().filter(|_| !own.closed.is_empty()) else {
            return;
        };
        let mut refused = Refused::of(own);
        let is_refused = refused.is_some();
        let is_final = matches!(failure.error.kind(), ErrorKind::Invalid | ErrorKind::Conflict);
        let now = Instant::now();
        self.0.with(&wanted.identity.uid, |entry| {
            let before = entry.as_ref().filter(|known| known.asked == wanted.asked);
            let times = before.map_or(0, |known| known.times) + u32::from(is_refused);
            // Or else ports would take turns at being closed.
            if let (Some(refused), Some(before)) =
                (&mut refused, before.and_then(|known| known.refused.as_ref()))
            {
                let others = before
                    .openings
                    .iter()
                    .filter(|new| !refused.openings.contains(new));
                let others: Vec<Opening> = others.cloned().collect();
                refused.openings.extend(others);
            }
            *entry = Some(Entry {
                asked: wanted.asked,
                closed: if is_refused {
                    Vec::new()
                } else {
                    own.closed.clone()
                },
                refused,
                times,
                until: (!is_final).then(|| now + pause(times)),
            });
        });
    }

    /// A reconcile came to its end, and nothing is missing.
    pub(super) fn forget(&self, uid: &String) {
        self.0.with(uid, |entry| *entry = None);
    }
}

/// How long the same is not tried after so many failures.
pub(super) fn pause(times: u32) -> Duration {
    let doubled = |doublings: u32| SHORTEST.saturating_mul(1 << doublings.min(16));
    times
        .checked_sub(1)
        .map_or(Duration::ZERO, doubled)
        .min(LONGEST_PAUSE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_is_not_tried_for_longer_and_longer() {
        let pauses = [0, 1, 2, 3, 7, 8, 100].map(|times| pause(times).as_secs());
        assert_eq!(pauses, [0, 30, 60, 120, 1_920, 3_600, 3_600]);
    }
}
