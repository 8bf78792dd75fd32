//! What is waited for: a load balancer that Octavia is at work on, and Nodes that are about to be initialised.

use std::time::Duration;

use bowline_openstack_client::{LoadBalancer, OperatingStatus, ProvisioningStatus};
use bowline_plan::Answer;

use super::next::Next;
use crate::load_balancer::intent::Wanted;
use crate::load_balancer::members;
use crate::load_balancer::memory::looks;
use crate::load_balancer::observe::view::View;
use crate::load_balancer::observed::since;
use crate::load_balancer::plan::placement;
use crate::load_balancer::step::PartChange;

/// The time before the second look at a load balancer that is pending; each further one is longer by [`GROWTH`].
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// By how much each pause is longer than the one before.
const GROWTH: f64 = 1.2;
/// More pauses than this do not get longer: three hours.
const MOST_GROWTHS: u16 = 50;

/// Whether traffic may come through what is in this state. Words that are not known count as good ones.
pub(super) fn may_carry(status: &OperatingStatus) -> bool {
    !matches!(status, OperatingStatus::Error | OperatingStatus::Offline)
}

/// How long Nodes are waited for that are not initialised yet, and how often they are looked at; that costs no call to the cloud.
const NODE_PATIENCE: Duration = Duration::from_secs(60);
const NODE_PAUSE: Duration = Duration::from_secs(2);

/// Nothing but a Node tells where a new load balancer is to be, and none can yet: a Node tells its server and its addresses when it
/// is initialised, which on the first start takes about as long as the first look at a Service.
pub(super) fn for_nodes(wanted: &Wanted, seen: &View<'_>) -> Option<Next> {
    let is_needed = placement::is_detected(wanted) && wanted.vip.port.is_none();
    // One that is initialised tells all that it ever will, and be it that it has no address of the family.
    let nodes = &wanted.all_nodes;
    let is_none_there = nodes.iter().all(|node| members::server(node).is_none());
    let may_come = nodes.iter().any(|node| node.is_uninitialized());
    let is_in_time = seen.memory.waited() < NODE_PATIENCE;
    (is_needed && is_none_there && may_come && is_in_time).then(|| Answer::Wait {
        after: NODE_PAUSE,
        reason: "no node is initialised yet, so none tells the subnet".to_owned(),
    })
}

/// Octavia is at work on a load balancer. After a write it is looked at once, or, if it is known how long changes take, after that
/// time; and then in growing pauses.
pub(super) fn wait_for(balancer: &LoadBalancer, seen: &View<'_>) -> Next {
    let own = &seen.memory.own;
    // Octavia took no change of one that it showed at rest a moment before.
    let status = match &balancer.provisioning_status {
        ProvisioningStatus::Active => &ProvisioningStatus::PendingUpdate,
        status => status,
    };
    let label = format!("await-lb({} is {status})", balancer.id);
    let is_change = balancer.provisioning_status == ProvisioningStatus::PendingUpdate;
    // Others may make one change after the other, and each would be news.
    let reason = match since(balancer).strip_suffix("; ").filter(|_| !is_change) {
        Some(since) => format!("{label}, {since}"),
        None => label,
    };
    if !own.is_unseen {
        let after = pause(looks(seen.memory));
        return Answer::Wait { after, reason };
    }
    match own.change_pause {
        after if is_change && !after.is_zero() => Answer::Wait { after, reason },
        _ => Answer::LookAgain { reason },
    }
}

/// Octavia answered a change, says that the load balancer is at rest, and shows what was there before.
pub(super) fn for_change(change: &PartChange, seen: &View<'_>) -> Next {
    Answer::Wait {
        after: pause(looks(seen.memory)),
        reason: format!("{} does not show yet", change.object()),
    }
}

/// The time before the next look after so many.
fn pause(looks: usize) -> Duration {
    let growths = u16::try_from(looks.saturating_sub(1)).unwrap_or(MOST_GROWTHS);
    FIRST_PAUSE.mul_f64(GROWTH.powi(growths.min(MOST_GROWTHS).into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_by_a_fifth() {
        let pauses: Vec<u128> = (0..5).map(|looks| pause(looks).as_millis()).collect();
        assert_eq!(pauses, [1_000, 1_000, 1_200, 1_440, 1_728]);
        assert!(pause(10_000) > Duration::from_secs(3_600));
    }
}
