//! What the provider tells people, in one table, from which the reference page is made.

use bowline_cloud_provider::reasons;
use bowline_plan::EventSpec;

bowline_plan::events! {
    TABLE;
    NODES_LEFT_OUT = reasons::NODES_LEFT_OUT, Shared,
        "Nodes did not become members, because it is not known which instances they are.",
        "Wait until the nodes have a provider ID. Delete nodes whose instances do not exist any more.";
}

/// All of them.
#[must_use]
pub fn event_table() -> &'static [EventSpec] {
    TABLE
}
