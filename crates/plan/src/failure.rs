//! What to do next about a call to a cloud that failed: one [`Class`] for all clouds.
//!
//! A cloud's client sets the class when the call fails. It begins with what `bowline-cloud-http` says of the failure and
//! changes what its API means differently. `bowline-cloud-provider` turns whatever is [`Classified`] into the contract's
//! error, by the one table there.

use std::fmt::Display;
use std::time::Duration;

/// What to do next about a call that failed. A client adds to it what only its own API says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Class {
    /// There is no such object, as far as the answer goes. It proves nothing by itself: whether the API itself said so is
    /// for the client to tell.
    NotFound,
    /// The credentials, or a signature made with them, are refused.
    Unauthenticated,
    /// The credentials are known, but may not do this.
    Denied,
    /// The request itself is wrong, or the object is not in the right state: a person has to change something.
    Invalid,
    /// The object is busy, in use, or not as the call expects it: look again. [`AtRest`] says when it is a refusal all the same.
    Conflict,
    /// A limit is reached, or the cloud has no more of it: it works later, or when somebody makes room.
    Exhausted,
    /// Too many calls: wait.
    Throttled {
        /// How long the cloud asks to wait.
        after: Option<Duration>,
    },
    /// The cloud, or something on the way to it, is in trouble. A write may have had its effect.
    Unavailable {
        /// How long the cloud asks to wait.
        after: Option<Duration>,
    },
    /// No answer, or none that arrived whole. A write may have had its effect.
    Unanswered,
    /// The same, and as long as an answer is waited for: the next try may take as long.
    Silent,
    /// This one call was answered in a way that is of no use, as by a body that cannot be read; others may be fine. A write
    /// may have had its effect.
    Unusable,
    /// This process may not send now, or is shutting down: nothing was sent.
    NotSent,
}

impl Class {
    /// The class of an answer with this HTTP status, which is none from 200 to 299. `after` is how long the cloud asks to
    /// wait.
    ///
    /// A redirect, which is not followed, and a `408` come from something on the way. So do a `502` and a `504`, which had no answer
    /// themselves, or none that they understood: nobody says that a write failed. A `500` and a `503` are the cloud's own word.
    #[must_use]
    pub fn of_status(status: u16, after: Option<Duration>) -> Self {
        match status {
            401 => Self::Unauthenticated,
            403 => Self::Denied,
            404 => Self::NotFound,
            408 => Self::Unavailable { after },
            502 | 504 if after.is_none() => Self::Unanswered,
            409 | 423 => Self::Conflict,
            429 => Self::Throttled { after },
            400..=499 => Self::Invalid,
            _ => Self::Unavailable { after },
        }
    }
}

/// The writes of a reconcile that met a [`Class::Conflict`] of an object that each look showed at rest.
///
/// One rule for all clouds. Whatever is shown at work is waited for. What is shown at rest may have been at work when it refused, so the
/// write is made once more, after another look. A second conflict in a row is about what is asked: it is a refusal, goes by the schedule,
/// and holds up nothing else. So is each further one then, whatever is asked.
#[derive(Debug, Clone)]
pub struct AtRest<S> {
    met: Vec<S>,
    is_refuted: bool,
}

impl<S> Default for AtRest<S> {
    fn default() -> Self {
        let (met, is_refuted) = (Vec::new(), false);
        Self { met, is_refuted }
    }
}

impl<S: Clone> AtRest<S> {
    /// A write met one, and is put off.
    pub fn met(&mut self, step: &S) {
        self.met.push(step.clone());
    }

    /// Whether another one is a refusal of this write.
    pub fn is_refusal(&self, is_it: impl Fn(&S) -> bool) -> bool {
        self.is_refuted || self.met.iter().any(is_it)
    }

    /// One was a refusal: the object was at rest all the time.
    pub fn refute(&mut self) {
        (self.met, self.is_refuted) = (Vec::new(), true);
    }

    /// A look showed the object at work, which says why.
    pub fn is_explained(&mut self) {
        *self = Self::default();
    }
}

/// Whether a cloud's words say that a quota or limit is reached. For answers whose code says only that the request is refused:
/// words about how often somebody asks are none, so a [`Class::Throttled`] is not to be asked.
#[must_use]
pub fn speaks_of_limit(text: &str) -> bool {
    let text = text.to_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| text.contains(word));
    has(&["quota"]) || has(&["limit", "maximum number"]) && has(&["exceed", "reached"])
}

/// Whether a cloud's words say that a network or subnet has no address left.
#[must_use]
pub fn speaks_of_no_address(text: &str) -> bool {
    let text = text.to_lowercase();
    let mut words = ["no more ip addresses", "no free ip address", "no free address"].iter();
    words.any(|word| text.contains(word))
}

/// A failure of a call to a cloud. Its text is for people: what failed, on which object. It never holds a secret.
pub trait Classified: Display {
    /// What to do next.
    fn class(&self) -> Class;

    /// Whether a write may have had its effect all the same, so that one has to look before it is tried again.
    fn maybe_applied(&self) -> bool {
        matches!(
            self.class(),
            Class::Unavailable { .. } | Class::Unanswered | Class::Silent | Class::Unusable
        )
    }
}

impl<T: Classified + ?Sized> Classified for &T {
    fn class(&self) -> Class {
        (**self).class()
    }

    fn maybe_applied(&self) -> bool {
        (**self).maybe_applied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_a_limit_are_told_from_words_of_a_wrong_value() {
        for (text, is_limit) in [
            ("The quota for load balancers is exceeded.", true),
            ("Quota has been met for resources: Load Balancer", true),
            (
                "Maximum number of resources of type 'public_ip' for account a has been exceeded.",
                true,
            ),
            ("You have reached the limit of IP blocks.", true),
            ("Ensure this value is less than or equal to 65535.", false),
            ("Value exceeds the maximum.", false),
            ("A limit has to be a number.", false),
        ] {
            assert_eq!(speaks_of_limit(text), is_limit, "{text}");
        }
        let full = [
            "No more IP addresses available on network n.",
            "No free IP address available in subnet s.",
        ];
        assert!(full.into_iter().all(speaks_of_no_address));
        assert!(!speaks_of_no_address("The IP address is not free."));
    }
}
