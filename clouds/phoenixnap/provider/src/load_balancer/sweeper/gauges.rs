//! What the sweeper counts of the blocks that it lists anyway. Pure.

use bowline_cloud_provider::{GaugeSpec, Measurement};
use bowline_phoenixnap_client::IpBlock;

use crate::load_balancer::evidence;
use crate::load_balancer::fate::{Fate, fate};
use crate::load_balancer::sweeper::observe::Observed;
use crate::load_balancer::sweeper::plan::active_by_service;

/// Blocks are billed whatever their state, so each of the cluster's is in exactly one of these.
static BLOCKS: GaugeSpec = GaugeSpec {
    name: "phoenixnap_ip_blocks",
    help: "IP blocks of this cluster by state: active (a Service has it), marked (to be given back), orphaned (its Service does not exist) or surplus (its Service has another one); the last two are billed and never given back by themselves",
    label: "state",
};

/// Some of the marked ones.
static STUCK: GaugeSpec = GaugeSpec {
    name: "phoenixnap_ip_blocks_stuck",
    help: "Marked IP blocks that the last sweep could not take off their network or give back, or had to leave alone",
    label: "",
};

/// A Service has it.
const ACTIVE: &str = "active";
/// It is to be given back.
const MARKED: &str = "marked";
/// It bears the tags of no Service that could have a block.
const ORPHANED: &str = "orphaned";
/// Its Service has another one.
const SURPLUS: &str = "surplus";

/// All gauges of the provider.
#[must_use]
pub fn gauge_table() -> [&'static GaugeSpec; 2] {
    [&BLOCKS, &STUCK]
}

/// Every state is counted, so that a number that becomes 0 is seen to become it.
pub(super) fn measure(observed: &Observed, network: &str) -> Vec<Measurement> {
    let Observed {
        blocks,
        failed,
        orphans,
        going,
        ..
    } = observed;
    let is_marked = |block: &IpBlock| evidence::is_marked(block) || going.contains_key(&block.id);
    let marked = || blocks.iter().filter(|block| is_marked(block));
    let active = blocks
        .iter()
        .filter(|block| !is_marked(block) && !orphans.contains(&block.id))
        .count();
    let by_service = active_by_service(observed);
    let surplus: usize = by_service.values().map(|blocks| blocks.len() - 1).sum();
    let stuck = marked().filter(|block| {
        let has_failed = failed.contains_key(&block.id);
        has_failed || evidence::is_marked(block) && matches!(fate(block, network), Fate::LeaveAlone(_))
    });
    vec![
        BLOCKS.measure(ACTIVE, active - surplus),
        BLOCKS.measure(MARKED, marked().count()),
        BLOCKS.measure(ORPHANED, orphans.len()),
        BLOCKS.measure(SURPLUS, surplus),
        STUCK.measure("", stuck.count()),
    ]
}
