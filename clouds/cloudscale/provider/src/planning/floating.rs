//! Leads floating IPs to the balancer, last of all: by then it can serve what arrives.

use bowline_cloudscale_client::{FloatingIp, LoadBalancer};
use bowline_plan::Note;

use crate::events::FLOATING_IP_MOVED;
use crate::intent::Wanted;
use crate::observe::Observed;
use crate::step::{CloudStep, IpText};

/// The floating IPs that lead elsewhere. One that is no longer asked for stays: the API knows no way to take it off.
pub(super) fn assignments(
    wanted: &Wanted,
    observed: &Observed,
    balancer: &LoadBalancer,
    notes: &mut Vec<Note>,
) -> Vec<CloudStep> {
    let mut steps = Vec::new();
    for wish in &wanted.floating_ips {
        let Some(there) = observed.floating_ips.iter().find(|there| wish.is(there)) else {
            continue; // refused before
        };
        let from = there.load_balancer.as_ref().map(|stub| stub.uuid);
        if from == Some(balancer.uuid) {
            continue;
        }
        if let Some(target) = target(there) {
            notes.push(FLOATING_IP_MOVED.note(format!(
                "floating IP {wish} is moved from {target} to load balancer {}",
                balancer.uuid
            )));
        }
        steps.push(CloudStep::AssignFloatingIp {
            address: IpText(*wish),
            balancer: balancer.uuid,
            from,
        });
    }
    steps
}

/// Where a floating IP leads, in words.
fn target(there: &FloatingIp) -> Option<String> {
    let balancer = there
        .load_balancer
        .as_ref()
        .map(|stub| format!("load balancer {}", stub.uuid));
    balancer.or_else(|| there.server.as_ref().map(|stub| format!("server {}", stub.uuid)))
}
