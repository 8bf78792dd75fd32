//! What the sweeper counts of the blocks that it lists anyway.

use bowline_cloud_provider::GaugeSpec;

/// Blocks are billed whatever their state, so each of the cluster's is in exactly one of these.
pub(crate) static BLOCKS: GaugeSpec = GaugeSpec {
    name: "phoenixnap_ip_blocks",
    help: "IP blocks of this cluster by state: active (a Service has it), marked (to be given back) or orphaned (its Service does not exist: billed, and never given back by itself)",
    label: "state",
};

/// Some of the marked ones.
pub(crate) static STUCK: GaugeSpec = GaugeSpec {
    name: "phoenixnap_ip_blocks_stuck",
    help: "Marked IP blocks that the last sweep could not take off their network or give back, or had to leave alone",
    label: "",
};

/// A Service has it.
pub(crate) const ACTIVE: &str = "active";
/// It is to be given back.
pub(crate) const MARKED: &str = "marked";
/// It bears the tags of no Service that could have a block.
pub(crate) const ORPHANED: &str = "orphaned";

/// All gauges of the provider.
#[must_use]
pub fn gauge_table() -> [&'static GaugeSpec; 2] {
    [&BLOCKS, &STUCK]
}
