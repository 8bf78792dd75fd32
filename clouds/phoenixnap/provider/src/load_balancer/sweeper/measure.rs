//! Counts the blocks of a run. Pure.

use bowline_cloud_provider::Measurement;
use bowline_phoenixnap_client::IpBlock;

use crate::load_balancer::evidence;
use crate::load_balancer::sweeper::gauges::{ACTIVE, BLOCKS, MARKED, ORPHANED, STUCK, SURPLUS};
use crate::load_balancer::sweeper::observe::Observed;
use crate::load_balancer::sweeper::plan::{Fate, active_by_service, fate};

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
