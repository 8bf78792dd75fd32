//! What the provider tells people, in one table, from which the reference page is made.

use bowline_plan::{EventSpec, NoteKind};

/// Nodes without a known machine.
pub(crate) const NODES_LEFT_OUT: EventSpec = EventSpec {
    reason: "NodesLeftOut",
    kind: NoteKind::Warning,
    meaning: "Nodes did not become members, because it is not known which instances they are.",
    remedy: "Wait until the nodes have a provider ID. Delete nodes whose instances do not exist any more.",
};

/// All of them.
#[must_use]
pub fn event_table() -> &'static [EventSpec] {
    &[NODES_LEFT_OUT]
}
