//! Leads floating IPs to the balancer, last of all: by then it can serve what arrives.

use bowline_cloudscale_client::{FloatingIp, LoadBalancer};
use bowline_plan::{Note, Refusal};

use crate::annotations as keys;
use crate::events::FLOATING_IP_MOVED;
use crate::intent::Wanted;
use crate::observe::Seen;
use crate::step::{CloudStep, IpText};

/// The floating IPs that lead elsewhere. One that is no longer asked for stays: the API knows no way to take it off.
pub(super) fn assignments(
    wanted: &Wanted,
    seen: &Seen,
    balancer: &LoadBalancer,
    notes: &mut Vec<Note>,
) -> Vec<CloudStep> {
    let mut steps = Vec::new();
    for wish in &wanted.floating_ips {
        let Some(there) = seen.floating_ips.iter().find(|there| wish.is(there)) else {
            continue; // refused at the end
        };
        if seen.memory.own.refused_ips.iter().any(|(ip, _)| ip == wish) {
            continue;
        }
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

/// What is wrong with floating IPs. It holds up nothing else: all the rest is done before it is said.
pub(super) fn refusal(wanted: &Wanted, seen: &Seen) -> Option<Refusal> {
    let missing: Vec<String> = wanted
        .floating_ips
        .iter()
        .filter(|wish| !seen.floating_ips.iter().any(|found| wish.is(found)))
        .map(ToString::to_string)
        .collect();
    let mut problems = Vec::new();
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
    let refused = seen.memory.own.refused_ips.iter();
    problems.extend(
        refused
            .filter(|(ip, _)| wanted.floating_ips.contains(ip))
            .map(|(_, why)| why.clone()),
    );
    let remedy = format!(
        "correct {}, or create the floating IP in the project and region of the load balancer; all else is done",
        keys::FLOATING_IPS.key
    );
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
