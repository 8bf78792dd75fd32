//! Leads floating IPs to the balancer, last of all: by then it can serve what arrives.

use bowline_cloudscale_client::{FloatingIp, LoadBalancer, LoadBalancerId};
use bowline_plan::{Note, Refusal};

use crate::load_balancer::annotations as keys;
use crate::load_balancer::floating_ips::FloatingAddress;
use crate::load_balancer::intent::Wanted;
use crate::load_balancer::observe::Seen;
use crate::load_balancer::refused;
use crate::load_balancer::step::CloudStep;
use crate::messages::FLOATING_IP_MOVED;

/// The floating IPs that lead elsewhere. One that is no longer asked for stays: the API knows no way to take it off.
pub(super) fn assignments(wanted: &Wanted, seen: &Seen, balancer: &LoadBalancer) -> Vec<CloudStep> {
    let wishes = wanted.floating_ips.iter();
    let steps = wishes.filter_map(|wish| {
        // One that does not exist is refused at the end.
        let there = seen.floating_ip(*wish)?;
        let from = there.load_balancer.as_ref().map(|stub| stub.uuid);
        let step = CloudStep::AssignFloatingIp {
            address: *wish,
            balancer: balancer.uuid,
            from,
        };
        let is_done = from == Some(balancer.uuid) || refused::has(&seen.memory.refusals, &step);
        (!is_done).then_some(step)
    });
    steps.collect()
}

/// What was taken from somebody else in this reconcile.
pub(super) fn moved(seen: &Seen) -> impl Iterator<Item = Note> {
    let moved = seen.memory.own.moved_ips.iter();
    moved.map(|(text, number)| FLOATING_IP_MOVED.note(text).on_occasion(*number))
}

/// Remembers what a floating IP led to until now; `number` is that of its move.
pub(crate) fn remember(seen: &mut Seen, address: &FloatingAddress, balancer: LoadBalancerId, number: u64) {
    if let Some(target) = seen.floating_ip(*address).and_then(target) {
        let text = format!("floating IP {address} is moved from {target} to load balancer {balancer}");
        seen.memory.own.moved_ips.push((text, number));
    }
}

/// What is wrong with floating IPs. It holds up nothing else: all the rest is done before it is said.
pub(super) fn refusal(wanted: &Wanted, seen: &Seen) -> Option<Refusal> {
    let failure = seen.floating_failure();
    let missing: Vec<String> = wanted
        .floating_ips
        .iter()
        .filter(|wish| failure.is_none() && seen.floating_ip(**wish).is_none())
        .map(ToString::to_string)
        .collect();
    let mut problems = Vec::from_iter(failure.cloned());
    if !missing.is_empty() {
        problems.push(format!(
            "floating IPs do not exist in this project: {}",
            missing.join(", ")
        ));
    }
    if !wanted.floating_networks.is_empty() {
        problems.push(format!(
            "floating networks cannot lead to a load balancer, which takes single addresses only: {}",
            wanted.floating_networks.join(", ")
        ));
    }
    let refused = seen.memory.refusals.iter().filter(|(step, _)| match step {
        CloudStep::AssignFloatingIp { address, .. } => wanted.floating_ips.contains(address),
        _ => false,
    });
    problems.extend(refused.map(|(_, why)| why.reason.clone()));
    let remedy = match failure.is_some() && problems.len() == 1 {
        true => "until they can be read, floating IPs stay as they are; all else is done".to_owned(),
        false => format!(
            "correct {}, or create the floating IP in the project and region of the load balancer; all else is done",
            keys::FLOATING_IPS.key
        ),
    };
    (!problems.is_empty()).then(|| Refusal::new(problems.join("; ")).with_remedy(remedy))
}

/// Where a floating IP leads, in words.
fn target(there: &FloatingIp) -> Option<String> {
    let balancer = there
        .load_balancer
        .as_ref()
        .map(|stub| format!("load balancer {}", stub.uuid));
    balancer.or_else(|| there.server.as_ref().map(|stub| format!("server {}", stub.uuid)))
}
