//! What a provider tells people: the reasons of its notes, in one table.

use crate::{Note, NoteKind};

/// One reason of an event. The reference page is made from these.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventSpec {
    /// The event's reason.
    pub reason: &'static str,
    /// How loud it is.
    pub kind: NoteKind,
    /// What it says.
    pub meaning: &'static str,
    /// What the operator can do.
    pub remedy: &'static str,
}

impl EventSpec {
    /// The note of this reason.
    #[must_use]
    pub fn note(&self, text: impl Into<String>) -> Note {
        Note {
            kind: self.kind,
            reason: self.reason,
            text: text.into(),
            is_said_at_start: false,
        }
    }
}

/// Declares a provider's events: a constant for each, and the table of them all under the given name.
///
/// ```
/// bowline_plan::events! {
///     TABLE;
///     NO_NODES = "NoNodes", Warning, "There is no node.", "Add one.";
/// }
/// assert_eq!(TABLE[0].note("none at all").reason, NO_NODES.reason);
/// ```
#[macro_export]
macro_rules! events {
    ($table:ident; $($name:ident = $reason:literal, $kind:ident, $meaning:literal, $remedy:literal;)*) => {
        $(
            #[doc = $meaning]
            pub(crate) const $name: $crate::EventSpec = $crate::EventSpec {
                reason: $reason,
                kind: $crate::NoteKind::$kind,
                meaning: $meaning,
                remedy: $remedy,
            };
        )*

        static $table: &[$crate::EventSpec] = &[$($name),*];
    };
}
