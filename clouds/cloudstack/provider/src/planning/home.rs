//! The address at which the balancer is, or will be: the one that is asked for, the one that its rules have, or one that
//! is acquired for it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bowline_plan::Refusal;

use super::removal::Removal;
use super::{Draft, is_held, ports};
use crate::claim::{Claim, Claimed};
use crate::events::{ADDRESS_KEPT, ADDRESSES_UNCLEAR, NODES_LEFT_OUT};
use crate::intent::Wanted;
use crate::members::Members;
use crate::objects::{Address, AddressRef, AddressState, Barrier, Network, Rule, RuleState};
use crate::observe::Need;
use crate::step::{self, CloudStep};

/// Where the balancer is.
pub(super) struct Home {
    pub(super) address: AddressRef,
    pub(super) network: Arc<Network>,
    /// The Nodes' virtual machines, where that had to be known.
    pub(super) members: Option<Members>,
}

/// Finds the address, or plans what has to be done to have one.
pub(super) fn find(draft: &mut Draft<'_>, wanted: &Wanted) -> Option<Home> {
    let rules = &draft.observed.rules;
    let requested = wanted.identity.requested.as_deref();
    let settled = match requested {
        Some(ip) => rules
            .iter()
            .map(|rule| &rule.address)
            .find(|address| address.ip == ip)
            .cloned(),
        None => busiest(rules),
    };
    let members = draft
        .observed
        .machines
        .as_ref()
        .map(|machines| Members::find(&wanted.nodes, machines.iter()));
    if let Some(left_out) = members
        .as_ref()
        .map(|members| &members.left_out)
        .filter(|nodes| !nodes.is_empty())
    {
        draft.notes.push(NODES_LEFT_OUT.note(format!(
            "no virtual machine is known for nodes: {}",
            left_out.join(", ")
        )));
    }
    let network = network(draft, settled.as_ref(), members.as_ref())?;
    foresee(draft, wanted, &network, settled.as_ref());
    let address = match (settled, requested) {
        (Some(address), _) => address,
        (None, Some(ip)) => requested_address(draft, wanted, &network, ip)?,
        (None, None) => automatic_address(draft, wanted, &network)?,
    };
    Some(Home {
        address,
        network,
        members,
    })
}

/// Reads early what will be needed when the steps before it are done, so that the whole plan can be told in advance.
fn foresee(draft: &mut Draft<'_>, wanted: &Wanted, network: &Network, at: Option<&AddressRef>) {
    let observed = draft.observed;
    let barrier = network.barrier();
    if let Barrier::Acl(list) = barrier
        && !observed.acls.contains_key(&list.id)
    {
        draft.need(Need::Acl(list.id.clone()));
    }
    if at.is_none() && observed.machines.is_none() && !wanted.nodes.is_empty() {
        draft.need(Need::Machines);
    }
    if at.is_none()
        && !observed.rules.is_empty()
        && matches!(barrier, Barrier::Acl(_))
        && !observed.neighbours.contains_key(&network.id)
    {
        draft.need(Need::Neighbours(network.id.clone()));
    }
    let left = observed.rules.iter().filter(|rule| Some(&rule.address) != at);
    for rule in left {
        let id = &rule.address.id;
        let is_open = rule
            .opening(&wanted.identity.name)
            .is_some_and(|opening| !wanted.openings().contains(&opening));
        let _ = (draft.address(id), draft.strangers(id));
        if barrier == Barrier::Firewall && !observed.firewalls.contains_key(id) {
            draft.need(Need::Firewall(id.clone()));
        }
        if matches!(barrier, Barrier::Acl(_)) && is_open && !observed.neighbours.contains_key(&network.id) {
            draft.need(Need::Neighbours(network.id.clone()));
        }
    }
    let is_looked_up = |id: &str| {
        observed
            .looked_up
            .values()
            .flatten()
            .any(|address| address.address.id == id)
    };
    if !observed.rules.is_empty() {
        for id in wanted
            .identity
            .claim
            .ids()
            .filter(|id| at.is_none_or(|at| at.id != *id) && !is_looked_up(id))
        {
            if draft.address(id).is_some_and(|address| address.is_some()) {
                let _ = draft.strangers(id);
            }
        }
    }
}

/// The address that most rules have; the first by ID of several.
fn busiest(rules: &[Rule]) -> Option<AddressRef> {
    let mut counts: BTreeMap<&AddressRef, usize> = BTreeMap::new();
    for rule in rules.iter().filter(|rule| rule.state != RuleState::Revoke) {
        *counts.entry(&rule.address).or_default() += 1;
    }
    let most = counts.values().max()?;
    counts
        .iter()
        .find(|(_, count)| *count == most)
        .map(|(address, _)| (*address).clone())
}

/// The network of the members, with all that has to be right about it before anything is made.
fn network(
    draft: &mut Draft<'_>,
    at: Option<&AddressRef>,
    members: Option<&Members>,
) -> Option<Arc<Network>> {
    let rules = draft
        .observed
        .rules
        .iter()
        .filter(|rule| !rule.network.is_empty());
    let given = rules
        .clone()
        .find(|rule| Some(&rule.address) == at)
        .or_else(|| rules.clone().next())
        .map(|rule| rule.network.clone());
    let is_new = draft.observed.rules.is_empty();
    let id = match (given, members) {
        (Some(network), None) => network,
        (None, None) => {
            draft.need(Need::Machines);
            return None;
        }
        (given, Some(members)) => match members.network(given.as_deref()) {
            Err(_) => {
                draft.refuse(
                    Refusal::new("found hosts that belong to different networks")
                        .with_remedy("a load balancer rule leads to one network; exclude the other nodes from load balancers"),
                );
                return None;
            }
            Ok(Some(network)) if !is_new || !members.machines.is_empty() => network,
            Ok(_) => {
                draft.refuse(ports::no_hosts());
                return None;
            }
        },
    };
    let Some(network) = draft.observed.networks.get(&id) else {
        draft.need(Need::Network(id));
        return None;
    };
    let Some(network) = network else {
        draft.refuse(Refusal::new(format!("could not find network ID {id}")));
        return None;
    };
    if is_new && !network.offers("Lb") {
        draft.refuse(
            Refusal::new(format!(
                "network {} ({id}) offers no load balancing: the service Lb is not among those of its offering",
                network.name
            ))
            .with_remedy("use a network offering with the service Lb"),
        );
        return None;
    }
    Some(Arc::clone(network))
}

fn associate(network: &Network, address: Option<AddressRef>) -> CloudStep {
    CloudStep::Associate {
        address,
        to: step::Home {
            network: network.id.clone(),
            vpc: network.vpc.clone(),
        },
    }
}

fn claimed(id: &str) -> Claimed {
    Claimed::Address(id.to_owned())
}

/// What earlier managers held under their mark, before anything else is written.
fn inherited(draft: &Draft<'_>, claim: &Claim) -> Vec<Claimed> {
    if claim.held.is_some() || !claim.is_marked {
        return Vec::new();
    }
    draft
        .observed
        .rules
        .iter()
        .map(|rule| claimed(&rule.address.id))
        .collect()
}

/// The address in `spec.loadBalancerIP`.
fn requested_address(
    draft: &mut Draft<'_>,
    wanted: &Wanted,
    network: &Network,
    ip: &str,
) -> Option<AddressRef> {
    let Some(found) = draft.observed.looked_up.get(ip) else {
        draft.need(Need::LookedUp(ip.to_owned()));
        return None;
    };
    let [address] = found.as_slice() else {
        draft.refuse(
            Refusal::new(format!(
                "could not find IP address {ip}. Found {} addresses",
                found.len()
            ))
            .with_remedy("ask for a public IP address of the zone, or for none"),
        );
        return None;
    };
    let AddressRef { id, .. } = &address.address;
    let claim = &wanted.identity.claim;
    match address.state {
        AddressState::Allocating | AddressState::Releasing => {
            draft.wait(format!("public IP {ip} is being acquired or given back"));
            None
        }
        AddressState::Free => {
            if claim.names(id) {
                draft.cloud(associate(network, Some(address.address.clone())));
            } else {
                draft.claims.extend(inherited(draft, claim));
                draft.claims.insert(claimed(id));
            }
            None
        }
        AddressState::Allocated => allocated_address(draft, wanted, network, address),
    }
}

/// A requested address that somebody has: the user, or the Service itself by now.
fn allocated_address(
    draft: &mut Draft<'_>,
    wanted: &Wanted,
    network: &Network,
    address: &Address,
) -> Option<AddressRef> {
    let AddressRef { id, ip } = &address.address;
    let claim = &wanted.identity.claim;
    let unusable = if address.is_static_nat {
        Some("leads to one virtual machine by static NAT")
    } else if address.is_elsewhere(network) {
        Some("belongs to another network or VPC than the nodes")
    } else {
        None
    };
    if let Some(reason) = unusable {
        if claim.names(id) {
            // Somebody else has taken it since.
            draft.annotate(claim.keeping(|kept| *kept != claimed(id)));
            return None;
        }
        draft.refuse(Refusal::new(format!(
            "IP address {ip} cannot be used: it {reason}"
        )));
        return None;
    }
    if network.barrier() == Barrier::Firewall && !draft.observed.firewalls.contains_key(id) {
        draft.need(Need::Firewall(id.clone()));
    }
    let is_new = draft.observed.rules.is_empty();
    let is_own = claim.names(id) || (claim.held.is_none() && claim.is_marked && is_new);
    if !is_own {
        if claim.held.is_none() || claim.is_marked {
            // Nothing of it is ours, and nobody shall take it for ours later.
            let mut held = inherited(draft, claim);
            held.extend(claim.held.iter().flatten().cloned());
            draft.annotate(Claim::of_others(held));
            return None;
        }
        return Some(address.address.clone());
    }
    if !claim.names(id) {
        draft.claims.insert(claimed(id));
        return None;
    }
    if !claim.is_marked {
        draft.annotate(Claim::mark());
        return None;
    }
    Some(address.address.clone())
}

/// An address that the Service claims already, or one that is free.
fn automatic_address(draft: &mut Draft<'_>, wanted: &Wanted, network: &Network) -> Option<AddressRef> {
    let identity = &wanted.identity;
    let claim = &identity.claim;
    let is_free = |id: &str| {
        let candidates = draft.observed.candidates.iter().flatten();
        draft.observed.refused.contains(id) || candidates.into_iter().any(|address| address.id == id)
    };
    let claimed_ids: Vec<&str> = claim.ids().filter(|id| !is_free(id)).collect();
    for id in claimed_ids {
        let address = draft.address(id)?;
        // One that nobody has is among the free ones, or is gone.
        let Some(address) = address.filter(|address| address.state != AddressState::Free) else {
            continue;
        };
        if address.state == AddressState::Allocating {
            draft.wait(format!("public IP {} is being acquired", address.address.ip));
            return None;
        }
        if is_usable(address, network) && draft.strangers(id)?.is_empty() && !is_claimed_first(wanted, id) {
            return Some(address.address.clone());
        }
    }
    if let Some(known) = claim.any_but() {
        return whichever_address(draft, wanted, network, known);
    }
    let Some(candidates) = &draft.observed.candidates else {
        draft.need(Need::Candidates(network.id.clone()));
        return None;
    };
    match candidates
        .iter()
        .find(|address| !draft.observed.refused.contains(&address.id))
    {
        Some(address) if claim.ids().eq([address.id.as_str()]) => {
            draft.cloud(associate(network, Some(address.clone())));
        }
        Some(address) => {
            // In one write with taking back what turned out not to be ours.
            draft.annotate(Claim::default().with([claimed(&address.id)]));
        }
        // Free ones cannot be listed, or there are none. What is there already is not what will be chosen.
        None => match &draft.observed.recovered {
            None => draft.need(Need::Recovered(network.id.clone())),
            Some(found) => {
                let known = found.iter().map(|address| address.address.id.clone());
                draft.annotate(Claim::default().with([Claimed::AnyBut(known.collect())]));
            }
        },
    }
    None
}

/// The address that the cloud chose, if it did so already; `known` were there before.
fn whichever_address(
    draft: &mut Draft<'_>,
    wanted: &Wanted,
    network: &Network,
    known: &BTreeSet<String>,
) -> Option<AddressRef> {
    let Some(found) = &draft.observed.recovered else {
        draft.need(Need::Recovered(network.id.clone()));
        return None;
    };
    let is_new = |address: &&Address| {
        let id = &address.address.id;
        !known.contains(id) && is_usable(address, network) && !wanted.identity.is_claimed_by_others(id)
    };
    let mut is_read = true;
    let mut candidates: Vec<&AddressRef> = Vec::new();
    for Address { address, .. } in found.iter().filter(is_new) {
        match draft.strangers(&address.id) {
            None => is_read = false,
            Some([]) => candidates.push(address),
            Some(_) => {}
        }
    }
    if !is_read {
        return None;
    }
    match candidates.as_slice() {
        [] => draft.cloud(associate(network, None)),
        [only] => {
            draft.claims.insert(claimed(&only.id));
        }
        several => {
            let list: Vec<&str> = several.iter().map(|address| address.ip.as_str()).collect();
            draft.notes.push(ADDRESSES_UNCLEAR.note(format!(
                "one of these public IPs was acquired for the service, and nobody can tell which: {}",
                list.join(", ")
            )));
            let mut known = known.clone();
            known.extend(several.iter().map(|address| address.id.clone()));
            draft.claims.insert(Claimed::AnyBut(known));
        }
    }
    None
}

/// Whether an address can be the balancer's own.
fn is_usable(address: &Address, network: &Network) -> bool {
    address.state == AddressState::Allocated
        && address.is_of(network)
        && !address.is_source_nat
        && !address.is_static_nat
}

/// Whether another Service that claims the same address goes first. Two choose one only if they cannot see each other's
/// claim yet; then the cloud gives it to one of them, and if neither knows to whom, the smaller UID counts.
fn is_claimed_first(wanted: &Wanted, id: &str) -> bool {
    let others = wanted.identity.claims_of_others();
    others
        .iter()
        .any(|(uid, claim)| claim.names(id) && *uid < wanted.identity.uid)
}

/// Removes what the balancer has at other addresses: it has moved.
pub(super) fn leave_others(draft: &mut Draft<'_>, wanted: &Wanted, home: &Home) {
    let mut others: BTreeMap<&AddressRef, Vec<&Rule>> = BTreeMap::new();
    for rule in draft
        .observed
        .rules
        .iter()
        .filter(|rule| rule.address.id != home.address.id)
    {
        others.entry(&rule.address).or_default().push(rule);
    }
    let removal = Removal {
        identity: &wanted.identity,
        sources: &wanted.sources,
        wanted: wanted.openings(),
        home: Some(&home.address),
    };
    for (address, rules) in others {
        let is_held = is_held(&wanted.identity, &address.id, &address.ip, false);
        if !is_held && !wanted.identity.keeps_ip {
            draft.notes.push(ADDRESS_KEPT.note(format!(
                "public IP {} is not released: nothing proves that it was acquired for this service",
                address.ip
            )));
        }
        removal.address(draft, address, &rules, is_held);
    }
}

/// Gives back what the Service claims and does not use, and takes it off the claim.
pub(super) fn tidy_claim(draft: &mut Draft<'_>, wanted: &Wanted, home: &Home) {
    let claim = &wanted.identity.claim;
    let mut is_dropped = claim.any_but().is_some();
    for id in claim.ids().filter(|id| *id != home.address.id) {
        let Some(address) = draft.address(id) else {
            return;
        };
        let Some(address) = address else {
            is_dropped = true;
            continue;
        };
        match address.state {
            AddressState::Free => is_dropped = true,
            AddressState::Allocating | AddressState::Releasing => {
                draft.wait(format!(
                    "public IP {} is being acquired or given back",
                    address.address.ip
                ));
                return;
            }
            AddressState::Allocated => {
                let Some(strangers) = draft.strangers(id) else {
                    return;
                };
                let is_ours = is_usable(address, &home.network) && !wanted.identity.is_claimed_by_others(id);
                if is_ours && strangers.is_empty() && !wanted.identity.keeps_ip {
                    draft.cloud(CloudStep::Release {
                        address: address.address.clone(),
                        is_live: false,
                    });
                    return;
                }
                is_dropped = true;
            }
        }
    }
    if is_dropped {
        draft.annotate(claim.keeping(|kept| *kept == claimed(&home.address.id)));
    }
}
