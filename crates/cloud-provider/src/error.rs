//! What a cloud can fail with: not what happened, but what to do about it.

use std::time::Duration;

use bowline_plan::{Class, Classified, RefusedBy};

/// How long to leave a cloud alone when it says that it is too much but not for how long.
const THROTTLED: Duration = Duration::from_secs(10);

/// A failed call into a cloud.
///
/// Controllers match on [`CloudError::kind`] and never on the text. The text is for people: it says what failed, on which
/// object and, where it can, what to do. It never holds a secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct CloudError {
    kind: ErrorKind,
    message: String,
    /// Whether the delay of [`ErrorKind::Throttled`] is ours, because the cloud stated none.
    is_delay_ours: bool,
    effect: Effect,
    /// What the text says to do, where the provider knows it.
    remedy: Option<String>,
}

/// Whether a failed call may have had its effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Effect {
    /// It has none.
    None,
    /// The cloud, or something on the way to it, says that it failed.
    Doubtful,
    /// Nobody says anything: the answer was lost on its way, or cannot be read. The next look tells.
    Lost,
    /// The same, and for as long as an answer is waited for.
    Silent,
}

/// The families of errors, by what the caller does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The thing asked for was not found. This is *not* proof that an instance is gone; see
    /// [`AbsenceProof`](crate::AbsenceProof).
    NotFound,
    /// The cloud cannot do this at all.
    NotSupported,
    /// Another controller does this for the cloud: a silent no-op for the service controller (framework sentinel
    /// `ImplementedElsewhere`).
    ImplementedElsewhere,
    /// The cloud asked to be left alone: try again after exactly this time, without raising the back-off.
    Throttled {
        /// The stated delay.
        after: Duration,
    },
    /// The cloud's state moved under the call: observe again.
    Conflict,
    /// The credentials are refused. It says nothing of what was asked for: the same is taken when they are good again.
    Unauthenticated,
    /// The credentials are known, but may not do this.
    Denied,
    /// The request is wrong: a person has to change something.
    Invalid,
    /// A quota or limit is reached, or the cloud has no more of it: it works later, or when somebody makes room.
    Exhausted,
    /// It may work when tried again: time-outs, connection errors, 5xx.
    Transient,
    /// Anything else.
    Other,
}

impl CloudError {
    /// An error of this kind with a text for people: lower case, no full stop.
    #[must_use]
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            is_delay_ours: false,
            effect: Effect::None,
            remedy: None,
        }
    }

    /// [`ErrorKind::NotFound`].
    #[must_use]
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::NotFound, message)
    }

    /// [`ErrorKind::Invalid`].
    #[must_use]
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Invalid, message)
    }

    /// [`ErrorKind::Transient`].
    #[must_use]
    pub fn transient(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Transient, message)
    }

    /// [`ErrorKind::Other`].
    #[must_use]
    pub fn other(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Other, message)
    }

    /// The failure of a write: that an object is missing then means that the cloud's state moved.
    #[must_use]
    pub fn of_write(error: impl Into<Self>) -> Self {
        let mut error = error.into();
        if error.kind == ErrorKind::NotFound {
            error.kind = ErrorKind::Conflict;
        }
        error
    }

    /// What the caller should do next.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Whether a write was refused for what it asks: it changed nothing, and the same would be refused again until somebody changes
    /// something.
    #[must_use]
    pub fn is_definite(&self) -> bool {
        matches!(
            self.kind,
            ErrorKind::Denied | ErrorKind::Invalid | ErrorKind::Exhausted
        )
    }

    /// Whether a write may have had its effect all the same: the answer did not come, tells nothing, or says that the cloud or something
    /// on the way to it failed.
    #[must_use]
    pub fn may_have_happened(&self) -> bool {
        self.effect != Effect::None
    }

    /// The same, and nobody says that it failed: there was no answer, or none that can be read.
    #[must_use]
    pub fn is_unheard(&self) -> bool {
        matches!(self.effect, Effect::Lost | Effect::Silent)
    }

    /// Whether a write that nothing leans on is left for a later reconcile when it fails like this, so that it holds up nothing else: the
    /// cloud says that it failed, or is silent for as long as an answer is waited for. What is quicker to tell is looked at again at once.
    #[must_use]
    pub fn can_wait(&self) -> bool {
        matches!(self.effect, Effect::Doubtful | Effect::Silent)
    }

    /// As what such a failure is told, where it holds up nothing else.
    #[must_use]
    pub fn failed_by(&self) -> RefusedBy {
        match self.effect {
            Effect::Silent => RefusedBy::Silence,
            _ => RefusedBy::Failure,
        }
    }

    /// Whether it is about whoever asks, and not about what is there.
    #[must_use]
    pub fn is_of_credentials(&self) -> bool {
        matches!(self.kind, ErrorKind::Unauthenticated | ErrorKind::Denied)
    }

    /// The text for people.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// How long to leave the cloud alone, where that does not follow from the schedule.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        match self.kind {
            ErrorKind::Throttled { after } => Some(after),
            _ => None,
        }
    }

    /// The same, if the cloud stated it.
    #[must_use]
    pub fn stated_delay(&self) -> Option<Duration> {
        self.retry_after().filter(|_| !self.is_delay_ours)
    }

    /// What the text says to do about this in particular; `None`: nothing that the provider knows of.
    #[must_use]
    pub fn remedy(&self) -> Option<&str> {
        self.remedy.as_deref()
    }

    /// The same error, whose text says to do this.
    #[must_use]
    pub fn with_remedy(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = Some(remedy.into());
        self
    }

    /// The same error with words in front: `<context>: <message>`.
    #[must_use]
    pub fn context(mut self, context: impl std::fmt::Display) -> Self {
        self.message = format!("{context}: {}", self.message);
        self
    }
}

// guide: classes
/// The one table from what a client says of a failed call to what the controllers understand.
impl From<Class> for ErrorKind {
    fn from(class: Class) -> Self {
        match class {
            Class::NotFound => Self::NotFound,
            Class::Unauthenticated => Self::Unauthenticated,
            Class::Denied => Self::Denied,
            Class::Invalid => Self::Invalid,
            Class::Conflict => Self::Conflict,
            Class::Throttled { after } => Self::Throttled {
                after: after.unwrap_or(THROTTLED),
            },
            Class::Unavailable { after: Some(after) } => Self::Throttled { after },
            Class::Unavailable { after: None } => Self::Transient,
            Class::Exhausted => Self::Exhausted,
            Class::Unanswered | Class::Silent | Class::NotSent => Self::Transient,
            Class::Unusable => Self::Other,
        }
    }
}

impl<E: Classified> From<E> for CloudError {
    fn from(error: E) -> Self {
        let class = error.class();
        Self {
            is_delay_ours: class == Class::Throttled { after: None },
            effect: match (error.maybe_applied(), class) {
                (false, _) => Effect::None,
                (true, Class::Silent) => Effect::Silent,
                (true, Class::Unanswered | Class::Unusable) => Effect::Lost,
                (true, _) => Effect::Doubtful,
            },
            ..Self::new(class.into(), error.to_string())
        }
    }
}
// guide: end

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stated_delay_is_kept_to_also_where_the_cloud_is_in_trouble() {
        let after = Duration::from_secs(7);
        let stated = Some(after);
        for (class, kind) in [
            (Class::Throttled { after: stated }, ErrorKind::Throttled { after }),
            (
                Class::Unavailable { after: stated },
                ErrorKind::Throttled { after },
            ),
            (Class::Unavailable { after: None }, ErrorKind::Transient),
        ] {
            assert_eq!(ErrorKind::from(class), kind, "{class:?}");
        }
        let unstated = ErrorKind::from(Class::Throttled { after: None });
        assert_eq!(unstated, ErrorKind::Throttled { after: THROTTLED });
    }

    #[test]
    fn a_delay_of_ours_is_told_from_one_that_the_cloud_stated() {
        struct Failed(Class);
        impl std::fmt::Display for Failed {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("busy")
            }
        }
        impl Classified for Failed {
            fn class(&self) -> Class {
                self.0
            }
        }
        let stated = Some(Duration::from_secs(7));
        for (class, delay) in [
            (Class::Throttled { after: stated }, stated),
            (Class::Unavailable { after: stated }, stated),
            (Class::Throttled { after: None }, None),
            (Class::Unavailable { after: None }, None),
        ] {
            let error = CloudError::from(Failed(class)).context("list");
            assert_eq!(error.stated_delay(), delay, "{class:?}");
        }
    }

    #[test]
    fn what_a_write_does_not_find_has_moved() {
        for (kind, of_write) in [
            (ErrorKind::NotFound, ErrorKind::Conflict),
            (ErrorKind::Denied, ErrorKind::Denied),
        ] {
            let error = CloudError::of_write(CloudError::new(kind, "no pool p-1"));
            assert_eq!(error, CloudError::new(of_write, "no pool p-1"));
        }
    }

    #[test]
    fn context_keeps_the_kind_and_the_stated_delay() {
        let after = Duration::from_secs(7);
        let error =
            CloudError::new(ErrorKind::Throttled { after }, "too many requests").context("list servers");
        assert_eq!(error.to_string(), "list servers: too many requests");
        assert_eq!(error.retry_after(), Some(after));
    }
}
