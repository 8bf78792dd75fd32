//! Which keys were good last. The API refuses a command that the role of an account may not use by the same words as wrong keys.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::{SignedDuration, Timestamp};

use crate::remedy;
use crate::settings::Keys;

/// How long keys that were good count as good: a Service is looked at right before it is written to, and keys can be taken away.
const GOOD_FOR: SignedDuration = SignedDuration::from_mins(1);

/// The last good answer.
#[derive(Default)]
pub(crate) struct Accepted(Mutex<Option<Good>>);

struct Good {
    keys: Arc<Keys>,
    command: &'static str,
    at: Timestamp,
}

impl Accepted {
    /// A command had a good answer.
    pub(crate) fn note(&self, keys: &Arc<Keys>, command: &'static str, at: Timestamp) {
        *self.lock() = Some(Good {
            keys: Arc::clone(keys),
            command,
            at,
        });
    }

    /// What to do where a command is refused although its keys were good for another one a moment ago.
    pub(crate) fn remedy(&self, keys: &Arc<Keys>, command: &str, now: Timestamp) -> Option<String> {
        let is_meant = |good: &Good| {
            Arc::ptr_eq(&good.keys, keys)
                && good.command != command
                && now.duration_since(good.at).abs() <= GOOD_FOR
        };
        let reason = "the keys were good for another command a moment ago";
        let is_meant = self.lock().as_ref().is_some_and(is_meant);
        is_meant.then(|| remedy::of_role(reason, command))
    }

    fn lock(&self) -> MutexGuard<'_, Option<Good>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use bowline_cloud_http::Secret;

    use super::*;

    #[test]
    fn only_the_same_keys_that_were_good_for_another_command_within_a_minute_point_to_the_role() {
        let keys = || {
            Arc::new(Keys {
                api_key: Secret::new("a"),
                secret_key: Secret::new("s"),
            })
        };
        let (ours, others) = (keys(), keys());
        let at = |second| Timestamp::from_second(second).unwrap_or_default();
        let accepted = Accepted::default();
        assert_eq!(accepted.remedy(&ours, "associateIpAddress", at(0)), None);
        accepted.note(&ours, "listNetworks", at(0));
        for (keys, command, second, is_told) in [
            (&ours, "associateIpAddress", 0, true),
            (&ours, "associateIpAddress", 60, true),
            (&ours, "associateIpAddress", 61, false),
            (&ours, "listNetworks", 0, false),
            (&others, "associateIpAddress", 0, false),
        ] {
            let remedy = accepted.remedy(keys, command, at(second));
            assert_eq!(
                remedy.is_some(),
                is_told,
                "{command} after {second} s: {remedy:?}"
            );
        }
    }
}
