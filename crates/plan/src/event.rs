//! What people are told in events: the reasons, in tables.

use crate::answer::visible;
use crate::{Note, NoteKind};

/// One reason of an event. The reference page is made from these.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventSpec {
    /// The event's reason: one word.
    pub reason: &'static str,
    /// How loud it is.
    pub kind: NoteKind,
    /// The kind of object that it is recorded on.
    pub object: &'static str,
    /// The message, with what varies in angle brackets; empty where all of it varies.
    pub message: &'static str,
    /// What it means.
    pub meaning: &'static str,
    /// What the operator can do.
    pub remedy: &'static str,
}

impl EventSpec {
    /// An event on a Service with a text of its own each time, as a provider's notes are.
    #[must_use]
    pub const fn on_service(
        (reason, kind): (&'static str, NoteKind),
        meaning: &'static str,
        remedy: &'static str,
    ) -> Self {
        Self {
            reason,
            kind,
            object: "Service",
            message: "",
            meaning,
            remedy,
        }
    }

    /// The note of this reason.
    #[must_use]
    pub fn note(&self, text: impl Into<String>) -> Note {
        Note {
            kind: self.kind,
            reason: self.reason,
            text: visible(text.into()),
            is_said_at_start: false,
            occasion: 0,
            about: None,
        }
    }

    /// The note of this reason in the words of its message, where nothing in them varies.
    #[must_use]
    pub fn verbatim(&self) -> Note {
        self.note(self.message)
    }
}

/// Declares events: a constant for each, and the table of them all under the given name.
///
/// An event is on a Service and has a text of its own each time, unless the object and the message are given. Reason and kind of
/// what several tables tell stand in one place, and the kind is then `Shared`.
///
/// ```
/// const NEWS: (&str, bowline_plan::NoteKind) = ("News", bowline_plan::NoteKind::Normal);
/// bowline_plan::events! {
///     pub TABLE;
///     NO_NODES = "NoNodes", Warning, "There is no node.", "Add one.";
///     DRAINED = "Drained", Normal, on "Node", "Node drained", "The node runs nothing any more.", "Nothing to do.";
///     NO_NEWS = NEWS, Shared, "There are none.", "Nothing to do.";
/// }
/// assert_eq!(TABLE[0].note("none at all").reason, NO_NODES.reason);
/// assert_eq!((TABLE[1].object, DRAINED.verbatim().text.as_str()), ("Node", "Node drained"));
/// ```
#[macro_export]
macro_rules! events {
    (@ $shared:expr, Shared) => { $shared };
    (@ $reason:expr, $kind:ident) => { ($reason, $crate::NoteKind::$kind) };
    ($vis:vis $table:ident; $(
        $name:ident = $reason:expr, $kind:ident, $(on $object:literal, $message:literal,)?
        $meaning:literal, $remedy:literal;
    )*) => {
        $(
            #[doc = $meaning]
            pub(crate) const $name: $crate::EventSpec = $crate::EventSpec {
                $(object: $object, message: $message,)?
                ..$crate::EventSpec::on_service($crate::events!(@ $reason, $kind), $meaning, $remedy)
            };
        )*

        /// All of these events.
        $vis static $table: &[$crate::EventSpec] = &[$($name),*];
    };
}
