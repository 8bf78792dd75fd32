//! What the provider tells people, in one table, from which the reference page is made.

use bowline_plan::{EventSpec, NoteKind};

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
