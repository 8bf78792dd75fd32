//! What the provider tells people, in one table, from which the reference page is made.

use bowline_cloud_provider::reasons;

bowline_plan::events! {
    pub EVENTS;
    NODES_LEFT_OUT = reasons::NODES_LEFT_OUT, Shared,
        "Nodes did not become members, because it is not known which instances they are.",
        "Wait until the nodes have a provider ID. Delete nodes whose instances do not exist any more.";
}
