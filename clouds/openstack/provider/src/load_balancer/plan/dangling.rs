//! A load balancer that the Service names, and that is not there.
//!
//! An address beside the id says that a controller wrote one of this kind: then the id leads to what was deleted, and is taken off the
//! Service before another load balancer is made. So an id that leads nowhere, while another load balancer serves the Service at
//! that address, was written by a person after that.

use std::collections::BTreeSet;

use bowline_cloud_provider::spelling;
use bowline_openstack_client::{LoadBalancer, LoadBalancerId, ServerId};
use bowline_plan::{Refusal, refusal};

use super::floating;
use crate::load_balancer::annotations as keys;
use crate::load_balancer::evidence;
use crate::load_balancer::intent::{Identity, Wanted};
use crate::load_balancer::members;
use crate::load_balancer::observe::view::View;
use crate::load_balancer::observed::Observed;

/// Why nothing is made where nothing says that a controller wrote the id.
pub(super) fn refusal(id: &LoadBalancerId) -> Refusal {
    without(id).with_remedy(format!(
        "correct {}, or remove it to get a load balancer of its own",
        keys::ID.key
    ))
}

/// Whether a controller wrote the id, and there is no such load balancer any more, as far as the credentials see.
fn is_gone(identity: &Identity, observed: &Observed) -> bool {
    let is_gone = |id| observed.gone.contains(id);
    identity.recorded_address.is_some() && identity.annotated.as_ref().is_some_and(is_gone)
}

/// Why nothing is made in its place: the project has neither a port of any of the cluster's servers nor the address that was
/// recorded, so it is more likely another project than that all of it was deleted.
pub(super) fn unseen(wanted: &Wanted, seen: &View<'_>) -> Option<Refusal> {
    let (identity, own) = (&wanted.identity, &seen.memory.own);
    let is_ours = own.vacated.is_some() || own.failed.is_some(); // Bowline deleted it
    if is_ours || !is_gone(identity, seen) {
        return None;
    }
    let (ports, floating_ips) = (seen.ports(), seen.floating_ips());
    let servers: BTreeSet<ServerId> = wanted
        .all_nodes
        .iter()
        .filter_map(|node| members::server(node))
        .collect();
    let has_port = ports
        .iter()
        .any(|port| servers.iter().any(|server| port.device_id == server.as_str()));
    let recorded = identity.recorded_address.as_deref().map(spelling::of_address);
    let has_address = floating_ips
        .iter()
        .any(|there| Some(spelling::of_address(&there.floating_ip_address)) == recorded);
    if servers.is_empty() || has_port || has_address {
        return None;
    }
    Some(refusal!(
        "load balancer {} is not there, and neither is a port of any of the servers of the {} nodes, or the address {}; none is made in its place",
        identity.annotated.as_ref()?, servers.len(), identity.recorded_address.as_ref()?;
        "give the credentials of the project of the cluster; if the load balancer is to be made in this one, take {} off the Service",
        keys::ID.key
    ))
}

/// Whether the floating IPs tell that the id is a person's mistake.
fn is_doubtful(identity: &Identity, observed: &Observed) -> bool {
    is_gone(identity, observed) && others(identity, observed).next().is_some()
}

/// The load balancers that may be the Service's. Those of anybody are looked at too, where a floating IP leads to one.
fn others<'a>(identity: &Identity, observed: &'a Observed) -> impl Iterator<Item = &'a LoadBalancer> {
    let there = observed.balancers.iter();
    there.filter(|there| !evidence::is_going(there) && evidence::is_candidate(identity, there))
}

/// Why the id is not forgotten: another load balancer serves the Service.
pub(super) fn mistake(identity: &Identity, observed: &View<'_>) -> Option<Refusal> {
    if !is_doubtful(identity, observed) {
        return None;
    }
    let recorded = identity.recorded_address.as_deref().map(spelling::of_address);
    let serving = others(identity, observed).find(|there| {
        let mut addresses = floating::reached_at(observed, there);
        addresses.any(|address| Some(spelling::of_address(address)) == recorded)
    })?;
    let refusal = without(identity.annotated.as_ref()?);
    Some(refusal.with_remedy(format!(
        "correct {}: load balancer {} serves the Service",
        keys::ID.key,
        serving.id
    )))
}

fn without(id: &LoadBalancerId) -> Refusal {
    Refusal::new(format!(
        "failed to get load balancer {id}: there is no such load balancer"
    ))
}
