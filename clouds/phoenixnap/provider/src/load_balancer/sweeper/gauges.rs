//! What the sweeper counts of the blocks that it lists anyway.

use bowline_cloud_provider::GaugeSpec;

/// Blocks are billed whatever their state, so each of the cluster's is in exactly one of these.
pub(crate) static BLOCKS: GaugeSpec = GaugeSpec {
    name: "phoenixnap_ip_blocks",
    help: "IP blocks of this cluster by state: active (a Service has it), marked (to be given back), orphaned (its Service does not exist) or surplus (its Service has another one); the last two are billed and never given back by themselves",
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
/// Its Service has another one.
pub(crate) const SURPLUS: &str = "surplus";

/// All gauges of the provider.
#[must_use]
pub fn gauge_table() -> [&'static GaugeSpec; 2] {
    [&BLOCKS, &STUCK]
}
