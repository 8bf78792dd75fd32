//! Which keys were good last. The API refuses a command that the role of an account may not use by the same words as wrong keys.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::{SignedDuration, Timestamp};

use crate::remedy;
use crate::sign::Keys;

/// How long keys that were good count as good: a Service is looked at right before it is written to, and keys can be taken away.
const GOOD_FOR: SignedDuration = SignedDuration::from_mins(1);

/// What the keys in use were good for, and what not.
#[derive(Default)]
pub(crate) struct Accepted(Mutex<Option<Known>>);

struct Known {
    keys: Arc<Keys>,
    /// How many answers there were.
    answers: u64,
    /// The last good answer.
    good: Option<Good>,
    /// The commands that were refused and not taken since, with the number of the first refusal.
    refused: BTreeMap<&'static str, u64>,
}

struct Good {
    command: &'static str,
    at: Timestamp,
    answer: u64,
}

impl Accepted {
    /// A command had a good answer.
    pub(crate) fn note(&self, keys: &Arc<Keys>, command: &'static str, at: Timestamp) {
        self.with(keys, |known| {
            known.refused.remove(command);
            let answer = known.answers;
            known.good = Some(Good { command, at, answer });
        });
    }

    /// A command was refused. What to do, where it was refused before and its keys were good for another one since: a single refusal
    /// may be the first word of keys that were revoked, or of a clock that was set.
    pub(crate) fn refused(&self, keys: &Arc<Keys>, command: &'static str, now: Timestamp) -> Option<String> {
        let reason = "the keys were good for another command meanwhile";
        self.with(keys, |known| {
            let first = *known.refused.entry(command).or_insert(known.answers);
            let good = known.good.as_ref()?;
            let is_meant = good.command != command && good.answer > first;
            let is_recent = now.duration_since(good.at).abs() <= GOOD_FOR;
            (is_meant && is_recent).then(|| remedy::of_role(reason, command))
        })
    }

    /// Counts an answer to these keys. What is known of others is forgotten.
    fn with<R>(&self, keys: &Arc<Keys>, tell: impl FnOnce(&mut Known) -> R) -> R {
        let mut known = self.lock();
        known.take_if(|known| !Arc::ptr_eq(&known.keys, keys));
        let known = known.get_or_insert_with(|| Known {
            keys: Arc::clone(keys),
            answers: 0,
            good: None,
            refused: BTreeMap::new(),
        });
        known.answers += 1;
        tell(known)
    }

    fn lock(&self) -> MutexGuard<'_, Option<Known>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use bowline_cloud_http::Secret;

    use super::*;

    #[test]
    fn a_command_that_is_refused_again_after_another_one_was_taken_points_to_the_role() {
        let keys = || {
            Arc::new(Keys {
                api_key: Secret::new("a"),
                secret_key: Secret::new("s"),
                doubt: String::new(),
            })
        };
        let (ours, others) = (keys(), keys());
        let at = |second| Timestamp::from_second(second).unwrap_or_default();
        let accepted = Accepted::default();
        let is_role = |keys, command, second| accepted.refused(keys, command, at(second)).is_some();
        // Good before says nothing: the keys may just have been revoked.
        accepted.note(&ours, "listNetworks", at(0));
        assert!(!is_role(&ours, "associateIpAddress", 1));
        assert!(!is_role(&ours, "associateIpAddress", 6));
        accepted.note(&ours, "listNetworks", at(10));
        assert!(is_role(&ours, "associateIpAddress", 11));
        assert!(is_role(&ours, "associateIpAddress", 70));
        assert!(!is_role(&ours, "associateIpAddress", 71));
        assert!(!is_role(&ours, "listNetworks", 11));
        // It was taken, so its next refusal is a first one.
        accepted.note(&ours, "associateIpAddress", at(80));
        accepted.note(&ours, "listNetworks", at(81));
        assert!(!is_role(&ours, "associateIpAddress", 82));
        assert!(!is_role(&others, "associateIpAddress", 83));
    }
}
