//! Rules that the API refused to make in the place of others, or beside others.
//!
//! The API takes one rule for a port, so the old one has to go before the server says whether it takes the new one. If it
//! does not, the old one comes back; but each try leaves the port without a rule for a moment. So the same is tried again once,
//! and then only after a while, longer and longer, as long as there is an old one. A change of the Service is tried at once.
//! Nothing of it is written down: a new process tries once more.
//!
//! The same holds for the second rule of a port that is asked for as TCP and as UDP, which only some servers take. There it
//! spares a new Service that an address is acquired and released with each try.

use bowline_cloud_provider::{ErrorKind, Kept};
use tokio::time::Instant;

use super::refused_openings::{LONGEST_PAUSE, pause};
use super::{Declined, Remembered};
use crate::intent::Wanted;
use crate::objects::NewRule;

/// What was refused, by the UID of the Service.
#[derive(Default)]
pub(super) struct DeclinedRules(Kept<String, Entry>);

struct Entry {
    /// What the Service asked for.
    asked: u64,
    declined: Declined,
    /// How often it was refused.
    times: u32,
    /// Until when it is not tried again.
    until: Instant,
}

impl DeclinedRules {
    /// What is not to be tried now.
    pub(super) fn of(&self, wanted: &Wanted) -> Option<Declined> {
        self.0.with(&wanted.identity.uid, |entry| {
            let known = entry.as_ref()?;
            let is_held_back = known.asked == wanted.asked && Instant::now() < known.until;
            is_held_back.then(|| known.declined.clone())
        })
    }

    /// A reconcile failed.
    pub(super) fn remember(&self, wanted: &Wanted, own: &Remembered) {
        let replaced = &wanted.identity.replaced;
        let takes_a_place = |new: &&NewRule| {
            let mut before = replaced.iter().filter(|before| before.at() == new.at());
            before.any(|before| before != *new && wanted.is_followed_by(before.ingress(), new))
        };
        let rules: Vec<_> = own.unmade.iter().filter(takes_a_place).cloned().collect();
        let seconds = own.seconds.clone();
        let is_declined = !rules.is_empty() || !seconds.is_empty();
        let Some(failure) = own.failure.as_ref().filter(|_| is_declined) else {
            return;
        };
        let now = Instant::now();
        self.0.with(&wanted.identity.uid, |entry| {
            let is_same = |known: &&Entry| known.asked == wanted.asked && now < known.until + LONGEST_PAUSE;
            let before = entry.as_ref().filter(is_same);
            let times = before.map_or(1, |known| known.times.saturating_add(1));
            *entry = Some(Entry {
                asked: wanted.asked,
                declined: Declined {
                    rules,
                    seconds,
                    error: failure.error.to_string(),
                    is_limit: failure.error.kind() == ErrorKind::Exhausted,
                },
                times,
                until: now + pause(times - 1), // the second try comes at once
            });
        });
    }
}
