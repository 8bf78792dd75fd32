//! What the provider tells people, in one table, from which the reference page is made.

use bowline_plan::NoteKind;

/// One reason of an event.
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

/// Nodes without a known machine.
pub(crate) const NODES_LEFT_OUT: EventSpec = EventSpec {
    reason: "NodesLeftOut",
    kind: NoteKind::Warning,
    meaning: "Nodes are not balanced over because their machines cannot be told.",
    remedy: "Wait until the nodes have a provider ID, or remove nodes whose machines are gone.",
};

/// All of them.
#[must_use]
pub fn event_table() -> &'static [EventSpec] {
    &[NODES_LEFT_OUT]
}
