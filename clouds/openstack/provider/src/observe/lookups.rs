//! What has to be read before a plan can be made (pure). A plan is made only when nothing is missing any more.

use bowline_openstack_client::{LoadBalancer, LoadBalancerId, PoolId, ProvisioningStatus};

use super::{Memory, Observed, Remembered};
use crate::intent::{Identity, Intent, TlsKey, Wanted};
use crate::members::Family;
use crate::ownership::{self, Found, Role, marks};
use crate::planning::{creation, dangling, failed, floating, parts, rename};
use crate::{names, placement};

/// One thing to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Lookup {
    /// The load balancers that could be meant.
    Balancers,
    /// One that the annotation names and the list does not have.
    Balancer(LoadBalancerId),
    /// The pools of these, which tell whose they are.
    Marks(Vec<LoadBalancerId>),
    /// What Octavia can do.
    Features,
    /// Listeners and pools of a load balancer.
    Parts(LoadBalancerId),
    /// Listeners and pools of one that the Service has left.
    LeftParts(LoadBalancerId),
    /// The members of pools.
    Members(Vec<PoolId>),
    /// The health monitors.
    Monitors,
    /// The ports of the project.
    Ports,
    /// Those that Octavia made for load balancers that are not there.
    Leaked,
    /// The floating IPs of the project.
    FloatingIps,
    /// The one of this address, which the list does not have.
    FloatingIp(String),
    /// The networks.
    Networks,
    /// The subnets.
    Subnets,
    /// The security groups of this name.
    Groups(String),
    /// The security groups of these names, of Services before this one.
    FormerGroups(Vec<String>),
    /// Whether there is a certificate.
    Key(TlsKey),
}

/// What is missing.
pub(crate) fn lookups(intent: &Intent, observed: &Observed, memory: &Memory) -> Vec<Lookup> {
    let (identity, own) = (intent.identity(), &memory.own);
    let mut missing = Vec::new();
    if !observed.is_listed {
        missing.push(Lookup::Balancers);
    } else if let Some(id) = &identity.annotated
        && !observed.is_known(id)
    {
        missing.push(Lookup::Balancer(id.clone()));
    }
    missing.extend(marks(identity, observed, own));
    if own.seeks_leaks && observed.leaked.is_none() {
        missing.push(Lookup::Leaked);
    }
    match intent {
        Intent::Wanted(wanted) => {
            if observed.features.is_none() {
                missing.push(Lookup::Features);
            }
            of_wanted(wanted, observed, memory, &mut missing);
        }
        Intent::Absent(identity) => of_absent(identity, observed, &mut missing),
    }
    let left = || ownership::left(identity, &observed.balancers);
    if let Some(left) = own_beside(intent, observed).or_else(left)
        && takes_deletions(left)
        && observed.parts_of(&left.id).is_none()
    {
        missing.push(Lookup::LeftParts(left.id.clone()));
    }
    let mut once: Vec<Lookup> = Vec::new();
    for lookup in missing {
        if !once.contains(&lookup) {
            once.push(lookup);
        }
    }
    once
}

/// The load balancers that are this Service's by no more than a name or a tag. Where the parts of one are read too, this costs no
/// request: the list of pools is one for both.
fn marks(identity: &Identity, observed: &Observed, own: &Remembered) -> Option<Lookup> {
    let in_doubt = observed.balancers.iter().filter(|balancer| {
        marks::is_in_doubt(identity, balancer)
            && own.created.as_ref() != Some(&balancer.id)
            && !observed.cleared.contains(&balancer.id)
    });
    let ids: Vec<LoadBalancerId> = in_doubt.map(|balancer| balancer.id.clone()).collect();
    (!ids.is_empty()).then_some(Lookup::Marks(ids))
}

/// A load balancer of a Service that is going, beside the one that it was sent to, of which part by part is deleted.
fn own_beside<'a>(intent: &Intent, observed: &'a Observed) -> Option<&'a LoadBalancer> {
    let Intent::Absent(identity) = intent else {
        return None;
    };
    match ownership::resolve_removed(identity, observed) {
        Found::One { balancer, .. } if !identity.options.deletes_by_cascade => {
            ownership::own_beside(identity, &observed.balancers, balancer)
        }
        _ => None,
    }
}

/// Whether Octavia is at rest with a load balancer, so that it or parts of it may be deleted.
fn takes_deletions(balancer: &LoadBalancer) -> bool {
    matches!(
        balancer.provisioning_status,
        ProvisioningStatus::Active | ProvisioningStatus::Error
    )
}

fn of_wanted(wanted: &Wanted, observed: &Observed, memory: &Memory, missing: &mut Vec<Lookup>) {
    let (identity, own) = (&wanted.identity, &memory.own);
    let options = &identity.options;
    if let Some(key) = wanted.listener.tls.as_ref().and_then(|tls| tls.key.as_ref())
        && observed.key.as_ref().is_none_or(|(asked, _)| asked != key)
    {
        missing.push(Lookup::Key(key.clone()));
    }
    if dangling::is_doubtful(identity, observed) && observed.floating_ips.is_none() {
        missing.push(Lookup::FloatingIps);
    }
    let mut needs_ports = options.manages_security_groups;
    let found = ownership::resolve(identity, observed);
    let balancer = match &found {
        Found::One { balancer, role, .. } => Some((*balancer, *role)),
        _ => None,
    };
    needs_ports |= match balancer {
        Some(_) => placement::is_detected(wanted) && wanted.member_subnet.is_none(),
        None => {
            placement::is_detected(wanted)
                || wanted.vip.port.is_some()
                || wanted.second_family().is_some()
                // Should the creation be refused, it is seen whether its port is left behind with the address.
                || wanted.own_address().is_some()
                || creation::has_former_address(wanted, own)
        }
    };
    if let Some((balancer, role)) = balancer
        && balancer.provisioning_status == ProvisioningStatus::Active
    {
        of_active(wanted, observed, memory, (balancer, role), missing);
        // Switching the option off cleans up; what this reconcile created has nothing to clean up.
        let is_new = own.created.as_ref() == Some(&balancer.id);
        if options.manages_security_groups || !is_new {
            group_of(identity, observed, missing);
        }
        needs_ports |= observed
            .groups
            .iter()
            .chain(&observed.former_groups)
            .any(|groups| !groups.is_empty());
    }
    // What would be refused when the load balancer is there is found out before it is made.
    let is_to_be_made = observed.is_listed && matches!(found, Found::None) && own.failed.is_none();
    // Whether the credentials see anything of the cluster.
    if is_to_be_made && dangling::is_gone(identity, observed) {
        needs_ports = true;
        if observed.floating_ips.is_none() {
            missing.push(Lookup::FloatingIps);
        }
    }
    if is_to_be_made && floating::is_expected(wanted) {
        of_address(wanted, observed, None, missing);
    }
    // One that failed may be made anew, and what leads to it is to lead to the other one.
    if let Some((balancer, _)) = balancer
        && balancer.provisioning_status == ProvisioningStatus::Error
    {
        if observed.floating_ips.is_none() {
            missing.push(Lookup::FloatingIps);
        }
        if failed::needs_parts(identity, own, balancer) && observed.parts_of(&balancer.id).is_none() {
            missing.push(Lookup::Parts(balancer.id.clone()));
        }
    }
    let needs_subnets = match balancer {
        Some(_) => options.manages_security_groups,
        None => {
            placement::is_left_to_octavia(wanted)
                || wanted.member_subnet.is_some()
                || wanted.own_address().is_some()
                || creation::has_former_address(wanted, own)
                || wanted.family() == Some(Family::V6)
        }
    };
    // A named subnet may be one in which not all nodes have an address.
    let is_compared = wanted.has_choices() || wanted.named_member_subnet().is_some();
    if (needs_subnets || is_compared) && observed.subnets.is_none() {
        missing.push(Lookup::Subnets);
    }
    if needs_ports && observed.ports.is_none() {
        missing.push(Lookup::Ports);
    }
}

fn of_active(
    wanted: &Wanted,
    observed: &Observed,
    memory: &Memory,
    (balancer, role): (&LoadBalancer, Role),
    missing: &mut Vec<Lookup>,
) {
    match observed.parts.as_ref().filter(|parts| parts.of == balancer.id) {
        None => missing.push(Lookup::Parts(balancer.id.clone())),
        Some(there) => {
            if observed.former_groups.is_none() {
                let identity = &wanted.identity;
                let uids = marks::former(identity, &there.pools);
                let names = uids.map(|uid| names::security_group(uid, &identity.service));
                let names: Vec<String> = names.collect();
                missing.extend((!names.is_empty()).then_some(Lookup::FormerGroups(names)));
            }
            let Some(features) = observed.features else {
                return;
            };
            let features = features.of_balancer(&wanted.identity.options, Some(balancer));
            let plan = parts::PartsPlan::new(wanted, features, observed, (balancer, role), there, memory);
            if there.is_predicted {
                // Nothing is written to ids that are made up: what was sent is read as it came to be.
                if plan.next().is_some() {
                    missing.push(Lookup::Parts(balancer.id.clone()));
                }
            } else {
                let pools = plan.pools_without_members();
                if !pools.is_empty() {
                    missing.push(Lookup::Members(pools));
                }
                let is_renaming =
                    || rename::next(&wanted.identity, observed, (balancer, role), there).is_some();
                let is_asked = there.monitors.is_some() || there.unread.monitors.is_some();
                if !is_asked && (plan.needs_monitors() || is_renaming()) {
                    missing.push(Lookup::Monitors);
                }
            }
        }
    }
    of_address(wanted, observed, Some((balancer, role)), missing);
}

/// What decides where the address leads, of a load balancer that is there or of one that is to be made.
fn of_address(
    wanted: &Wanted,
    observed: &Observed,
    there: Option<(&LoadBalancer, Role)>,
    missing: &mut Vec<Lookup>,
) {
    if observed.floating_ips.is_none() {
        missing.push(Lookup::FloatingIps);
        return;
    }
    let needs = floating::needs(wanted, observed, there);
    if needs.networks && observed.networks.is_none() && observed.network_failure.is_none() {
        missing.push(Lookup::Networks);
    }
    if needs.subnets && observed.subnets.is_none() {
        missing.push(Lookup::Subnets);
    }
    missing.extend(needs.address.map(Lookup::FloatingIp));
    of_strays(needs.stray, missing);
}

fn of_strays(needs: floating::StrayNeeds, missing: &mut Vec<Lookup>) {
    if needs.ports {
        missing.push(Lookup::Ports);
    }
    missing.extend(needs.balancers.into_iter().map(Lookup::Balancer));
}

fn group_of(identity: &Identity, observed: &Observed, missing: &mut Vec<Lookup>) {
    if observed.groups.is_none() {
        missing.push(Lookup::Groups(names::security_group(
            &identity.uid,
            &identity.service,
        )));
    }
}

fn of_absent(identity: &Identity, observed: &Observed, missing: &mut Vec<Lookup>) {
    group_of(identity, observed, missing);
    let mut needs_ports = observed.groups.as_ref().is_some_and(|groups| !groups.is_empty());
    let found = ownership::resolve_removed(identity, observed);
    // What rests on annotations alone has to be borne out by addresses and parts.
    let is_claim = matches!(&found, Found::One { balancer, .. }
        if ownership::claimed_tag(identity, balancer).is_some());
    if observed.floating_ips.is_none() && (is_claim || !identity.keeps_floating_ip) {
        missing.push(Lookup::FloatingIps);
    }
    if matches!(found, Found::None | Found::Missing(_)) && !identity.keeps_floating_ip {
        let floating::StrayNeeds { ports, balancers } = floating::stray_needs(identity, None, observed, None);
        needs_ports |= ports;
        missing.extend(balancers.into_iter().map(Lookup::Balancer));
    }
    if needs_ports && observed.ports.is_none() {
        missing.push(Lookup::Ports);
    }
    if let Found::One { balancer, role, .. } = found {
        let is_whole =
            ownership::is_to_be_deleted(identity, role, balancer) && identity.options.deletes_by_cascade;
        let is_known = observed
            .parts
            .as_ref()
            .is_some_and(|parts| parts.of == balancer.id);
        if (is_claim || !is_whole) && !is_known && takes_deletions(balancer) {
            missing.push(Lookup::Parts(balancer.id.clone()));
        }
    }
}
