//! The address at which the load balancer is reached from outside.

use bowline_cloud_provider::spelling;
use bowline_openstack_client::{FloatingIp, LoadBalancer, PortId};
use bowline_plan::{Note, Refusal, RefusedBy, refusal};

use crate::load_balancer::annotations as keys;
use crate::load_balancer::evidence::{self, Role};
use crate::load_balancer::features::is_of_ovn;
use crate::load_balancer::intent::{Identity, Wanted};
use crate::load_balancer::members::Family;
use crate::load_balancer::observe::view::{Need, View};
use crate::load_balancer::remedies;
use crate::load_balancer::step::FloatingIpChange;
use crate::messages::{
    EXTERNAL_NETWORK_SEARCH_FAILED, FLOATING_IP_GONE, FLOATING_IP_SKIPPED, FORCED_INTERNAL,
};

mod creation;
mod strays;

use creation::{creation, fault, fixed_address};
pub(super) use strays::{goes_with, goes_with_balancer};
use strays::{is_described_so, is_ours, is_recorded, leads_nowhere};

/// How the address comes to be as it shall be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Addressing {
    /// This write comes next.
    Write(FloatingIpChange),
    /// It is as it shall be: this is what is published.
    Done(String),
    /// A person has to change something.
    Refused(Refusal),
}

/// What is to be done about the floating IP, before it is known where a new one would come from.
enum Wish<'a> {
    /// The load balancer's own address counts.
    None,
    /// This one counts.
    Present(&'a FloatingIp),
    /// This one goes, or goes elsewhere.
    Surplus(&'a FloatingIp),
    /// This one is to lead here.
    Attach(&'a FloatingIp),
    /// A new one is to be created.
    Create,
    /// It cannot be had.
    Refused(Refusal),
}

/// The floating IP that leads to a load balancer's address: of several on its port, the one of that very address.
pub(super) fn current<'a>(observed: &View<'a>, balancer: &LoadBalancer) -> Option<&'a FloatingIp> {
    let port = balancer.vip_port_id.as_ref()?;
    let on_port = || leading_to(observed, port);
    let vip = spelling::of_address(&balancer.vip_address);
    let leads_to_vip = |floating_ip: &&FloatingIp| {
        let fixed = floating_ip.fixed_ip_address.as_deref();
        fixed.is_some_and(|fixed| spelling::of_address(fixed) == vip)
    };
    let unsaid = |floating_ip: &&FloatingIp| floating_ip.fixed_ip_address.is_none();
    on_port().find(leads_to_vip).or_else(|| on_port().find(unsaid))
}

/// The floating IPs of a port. One that somebody made for a load balancer may have its floating IP before it is used.
fn leading_to<'a>(observed: &View<'a>, port: &PortId) -> impl Iterator<Item = &'a FloatingIp> {
    let all = observed.floating_ips().iter();
    all.filter(move |floating_ip| floating_ip.port_id.as_ref() == Some(port))
}

/// The addresses at which a load balancer is reached: those of floating IPs, and its own.
pub(super) fn reached_at<'a>(
    observed: &View<'a>,
    balancer: &'a LoadBalancer,
) -> impl Iterator<Item = &'a str> {
    let port = balancer.vip_port_id.as_ref();
    let floating_ips = port.into_iter().flat_map(|port| leading_to(observed, port));
    let addresses = floating_ips.map(|there| there.floating_ip_address.as_str());
    addresses.chain([balancer.vip_address.as_str()])
}

/// Whether people were told, by the Service's status, an address at which a load balancer is reached.
pub(super) fn is_told(identity: &Identity, observed: &View<'_>, balancer: &LoadBalancer) -> bool {
    let recorded = identity.recorded_address.as_deref().map(spelling::of_address);
    let mut addresses = reached_at(observed, balancer);
    identity.is_told_recorded && addresses.any(|address| Some(spelling::of_address(address)) == recorded)
}

/// The load balancer that the address leads to, if it is there, and whose it is.
type Target<'a> = Option<(&'a LoadBalancer, Role)>;

/// `None` where something has to be read first.
fn wish<'a>(wanted: &Wanted, observed: &View<'a>, there: Target<'_>) -> Option<Wish<'a>> {
    let before = observed.misses();
    let wish = known_wish(wanted, observed, there);
    if observed.misses() == before
        && matches!(wish, Wish::Create | Wish::Attach(_))
        && let Some(address) = unproven(wanted, observed, there)
    {
        observed.lack(Need::FloatingIp(address.to_owned()));
    }
    (observed.misses() == before).then_some(wish)
}

fn known_wish<'a>(wanted: &Wanted, observed: &View<'a>, there: Target<'_>) -> Wish<'a> {
    // What is predicted has no address yet.
    let family = there.and_then(|(balancer, _)| Family::of_text(&balancer.vip_address));
    if family.or(wanted.family()) == Some(Family::V6) {
        return Wish::None;
    }
    let current = match there {
        Some((balancer, _)) => current(observed, balancer),
        None => wanted
            .vip
            .port
            .as_ref()
            .and_then(|port| leading_to(observed, port).next()),
    };
    if wanted.is_internal && there.is_none_or(|(_, role)| role == Role::Owner) {
        let is_shared = there.is_some_and(|(balancer, _)| evidence::is_shared(&wanted.identity, balancer));
        let is_to_go = |current: &&FloatingIp| {
            let is_used = there.is_some_and(|(balancer, _)| {
                strays::is_used_elsewhere(&wanted.identity, observed, balancer, current)
            });
            !is_shared && !is_used && !current.is_foreign
        };
        return current.filter(is_to_go).map_or(Wish::None, Wish::Surplus);
    }
    if let Some(current) = current {
        return Wish::Present(current);
    }
    if let Some(refusal) = there.and_then(|(balancer, role)| unattachable(wanted, observed, balancer, role)) {
        return Wish::Refused(refusal);
    }
    let identity = &wanted.identity;
    let all = || observed.floating_ips().iter();
    match &wanted.address {
        Some(address) => {
            let asked = spelling::of_address(address);
            match all().find(|there| spelling::of_address(&there.floating_ip_address) == asked) {
                Some(there) if !there.is_foreign && leads_nowhere(identity, observed, there) => {
                    Wish::Attach(there)
                }
                Some(there) => Wish::Refused(unavailable(address, there)),
                None => Wish::Create,
            }
        }
        None => {
            // One that leads nowhere, because its load balancer is gone. First the one that was told to people.
            let network = wanted.floating.network.as_ref();
            let is_free = |there: &&FloatingIp| {
                !there.is_foreign
                    && network.is_none_or(|network| there.floating_network_id == *network)
                    && leads_nowhere(identity, observed, there)
            };
            // Where the status does not show it, the annotation may be a copy, or older than what was kept.
            let told = |there: &&FloatingIp| {
                identity.is_told_recorded && is_recorded(identity, there) && !identity.shares_address
            };
            let own = |there: &&FloatingIp| is_ours(identity, observed, there);
            let there = all().filter(told).find(is_free);
            let there = there.or_else(|| all().filter(own).find(is_free));
            there.map_or(Wish::Create, Wish::Attach)
        }
    }
}

/// The floating IP that is asked for leads elsewhere, or is another project's, as only an administrator sees: whoever may not see it is
/// refused that address by Neutron.
fn unavailable(address: &str, there: &FloatingIp) -> Refusal {
    let remedy = match &there.port_id {
        _ if there.is_foreign => "it belongs to another project: choose one of this project in spec.loadBalancerIP, or have whoever runs the other one give it to this one".to_owned(),
        None => "it has port forwardings: delete these (`openstack floating ip port forwarding delete`), or choose another one in spec.loadBalancerIP".to_owned(),
        Some(port) => format!("it leads to port {port}: take it from there, or choose another one in spec.loadBalancerIP"),
    };
    refusal!("floating IP {address} is not available"; "{remedy}")
}

/// Why no floating IP can be made to lead to a load balancer that is there.
fn unattachable(
    wanted: &Wanted,
    observed: &View<'_>,
    balancer: &LoadBalancer,
    role: Role,
) -> Option<Refusal> {
    if balancer.vip_port_id.is_none() {
        return Some(Refusal::new(format!(
            "load balancer {} shows no port that a floating IP could lead to",
            balancer.id
        )));
    }
    if let Some(refusal) = unplugged(wanted, observed, balancer) {
        return Some(refusal);
    }
    if role == Role::Guest && !has_lost_its_owner(observed, balancer) {
        return Some(refusal!(
            "cannot attach a floating IP to a load balancer for a shared Service {}, only owner Service can do that",
            wanted.identity.service;
            "Bowline goes on when load balancer {} has one: make the Service that owns it external, or attach a floating IP by hand",
            balancer.id
        ));
    }
    None
}

/// Why nobody reaches a load balancer that Octavia calls `ACTIVE`: its port was deleted. It is asked for only where an address that people
/// were told leads nowhere; a port that Octavia has made just now is there.
fn unplugged(wanted: &Wanted, observed: &View<'_>, balancer: &LoadBalancer) -> Option<Refusal> {
    let port = balancer.vip_port_id.as_ref()?;
    let identity = &wanted.identity;
    let told = identity
        .recorded_address
        .as_deref()
        .filter(|_| identity.is_told_recorded);
    let vip = spelling::of_address(&balancer.vip_address);
    let recorded = told.filter(|told| spelling::of_address(told) != vip)?;
    let is_new = observed.memory.own.created.as_ref() == Some(&balancer.id);
    let is_unread = observed.floating_ips.is_none();
    if is_new || is_unread || !observed.lacks_port(port) {
        return None;
    }
    let failover = match is_of_ovn(balancer) {
        true => String::new(),
        false => format!(
            "ask the operator of the cloud {}, which makes the port anew; or ",
            remedies::failover(balancer)
        ),
    };
    let refusal = refusal!(
        "port {port} of the VIP of load balancer {} is gone: nobody reaches it, and floating IP {recorded} leads nowhere",
        balancer.id;
        "{failover}whoever owns the Service deletes it and makes it anew, with spec.loadBalancerIP: {recorded} if it is to have that address again"
    );
    Some(refusal.by(RefusedBy::Failure))
}

/// Whether the Service that a load balancer was made for is gone, and only guests use it. An owner leaves its tag on it, or, of
/// old, listeners without any.
fn has_lost_its_owner(observed: &View<'_>, balancer: &LoadBalancer) -> bool {
    let parts = observed.parts(&balancer.id);
    evidence::is_without_owner(balancer)
        && parts.is_some_and(|parts| parts.listeners.iter().all(|listener| !listener.tags.is_empty()))
}

/// Whether a floating IP may have to lead to a load balancer that is not there yet.
fn is_expected(wanted: &Wanted) -> bool {
    !wanted.is_internal && wanted.family() != Some(Family::V6)
}

/// The address that the Service records, if it may be that of a floating IP which no list has shown, and another one would take its
/// place. A list may be behind.
fn unproven<'a>(wanted: &'a Wanted, observed: &View<'_>, there: Target<'_>) -> Option<&'a str> {
    let identity = &wanted.identity;
    let recorded = identity.recorded_address.as_deref()?;
    let is_recorded = |address: &str| spelling::of_address(address) == spelling::of_address(recorded);
    let is_floating = wanted.address.is_none() && Family::of_text(recorded) == Some(Family::V4);
    let is_own = there.is_some_and(|(balancer, _)| is_recorded(&balancer.vip_address));
    let mut listed = observed.floating_ips().iter();
    let is_known = listed.any(|there| is_recorded(&there.floating_ip_address))
        || observed.absent_addresses.iter().any(|absent| is_recorded(absent));
    (is_floating && !is_own && !is_known && !identity.shares_address).then_some(recorded)
}

/// Why a load balancer that is not there yet could not be reached from outside, as far as it can be told.
pub(super) fn outlook(wanted: &Wanted, observed: &View<'_>, notes: &mut Vec<Note>) -> Option<Refusal> {
    if !is_expected(wanted) {
        return None;
    }
    let mut told = Vec::new();
    match next(wanted, observed, None, &mut told)? {
        Addressing::Refused(refusal) => {
            notes.append(&mut told);
            Some(refusal)
        }
        Addressing::Write(_) | Addressing::Done(_) => None,
    }
}

/// What is told when another floating IP, made for the Service, leads to it than the one that its status shows: names may still lead
/// to that. Neutron lets one lead to an address, so the one before does not.
pub(super) fn lost_note(wanted: &Wanted, observed: &View<'_>, balancer: &LoadBalancer) -> Option<Note> {
    let identity = &wanted.identity;
    let recorded = lost(wanted, balancer)?;
    let now = current(observed, balancer).filter(|now| is_described_so(identity, now))?;
    let note = FLOATING_IP_GONE.note(format!(
        "Floating IP {recorded} of Service {} was deleted or leads elsewhere: another one, {}, takes its place. What leads to the old address, such as DNS, has to follow",
        identity.service, now.floating_ip_address
    ));
    Some(note.even_at_start())
}

/// The address that the Service's status shows, if it can only be that of a floating IP.
fn lost<'a>(wanted: &'a Wanted, balancer: &LoadBalancer) -> Option<&'a str> {
    let identity = &wanted.identity;
    let recorded = identity.recorded_address.as_deref();
    let recorded = recorded.filter(|_| identity.is_told_recorded)?;
    // What the Service asks for may have changed, and then it is at another address because of that.
    let is_own_wish = wanted.address.is_some()
        || spelling::of_address(&balancer.vip_address) == spelling::of_address(recorded);
    let is_floating = !is_own_wish && !identity.shares_address;
    (is_floating && Family::of_text(recorded) != Some(Family::V6)).then_some(recorded)
}

/// What is told where the floating IP that the Service's status shows does not lead to it any more, and no other one can: whoever has
/// that address now gets what is sent there.
pub(super) fn unreachable_note(
    wanted: &Wanted,
    observed: &View<'_>,
    balancer: &LoadBalancer,
) -> Option<Note> {
    // Where its port is gone, the refusal says it, with another remedy: the floating IP stays the Service's.
    let is_cut_off =
        || current(observed, balancer).is_none() && unplugged(wanted, observed, balancer).is_none();
    let recorded = lost(wanted, balancer).filter(|_| is_cut_off())?;
    let note = FLOATING_IP_GONE.note(format!(
        "Floating IP {recorded} of Service {} was deleted or leads elsewhere, and no other one can take its place now: the address that its status shows does not lead to load balancer {}",
        wanted.identity.service, balancer.id
    ));
    Some(note.even_at_start())
}

/// What comes next; `None` where something has to be read first.
pub(super) fn next(
    wanted: &Wanted,
    observed: &View<'_>,
    there: Target<'_>,
    notes: &mut Vec<Note>,
) -> Option<Addressing> {
    let identity = &wanted.identity;
    let balancer = there.map(|(balancer, _)| balancer);
    let address = balancer.map(|balancer| balancer.vip_address.as_str());
    let vip = || Addressing::Done(address.unwrap_or_default().to_owned());
    Some(match wish(wanted, observed, there)? {
        Wish::None => {
            if let Some(address) = address.filter(|_| !wanted.is_internal) {
                notes.push(FLOATING_IP_SKIPPED.note(format!(
                    "Floating IP not supported for IPv6 Service {}. Using IPv6 address instead {address}.",
                    identity.service
                )));
            }
            vip()
        }
        Wish::Present(there) => Addressing::Done(there.floating_ip_address.clone()),
        Wish::Refused(refusal) => Addressing::Refused(refusal),
        Wish::Surplus(there) => Addressing::Write(release(identity, there)),
        Wish::Attach(there) => {
            let port = balancer.and_then(|balancer| balancer.vip_port_id.clone());
            let fixed = balancer.and_then(fixed_address);
            Addressing::Write(FloatingIpChange::attach(there, port, fixed))
        }
        Wish::Create
            if wanted.floating.network.is_none()
                && let Err(why) = observed.networks() =>
        {
            let text = format!(
                "Failed to find floating-network-id for Service {}: {why}",
                identity.service
            );
            notes.push(EXTERNAL_NETWORK_SEARCH_FAILED.note(text.clone()));
            // An outage of Neutron makes no Service internal.
            Addressing::Refused(Refusal::new(text))
        }
        Wish::Create => match creation(wanted, observed, balancer) {
            Ok(Some(change)) => Addressing::Write(change),
            Ok(None) => {
                notes.push(EXTERNAL_NETWORK_SEARCH_FAILED.note(format!(
                    "Failed to find floating-network-id for Service {}: no external network with an IPv4 subnet",
                    identity.service
                )));
                notes.push(FORCED_INTERNAL.note(format!(
                    "Floating network configuration not provided for Service {}, forcing to ensure an internal load balancer service",
                    identity.service
                )));
                vip()
            }
            Err(error) => Addressing::Refused(fault(wanted, &error)),
        },
    })
}

/// Why an internal Service is still reached from outside: other Services tell people the floating IP of its load balancer, or
/// that is another project's, as only an administrator sees.
pub(super) fn exposed(wanted: &Wanted, observed: &View<'_>, balancer: &LoadBalancer) -> Option<Refusal> {
    let identity = &wanted.identity;
    let there = current(observed, balancer).filter(|_| wanted.is_internal)?;
    let others = evidence::others(identity, balancer);
    let (whose, why, remedy) = if there.is_foreign {
        let remedy = "have whoever runs that project take the floating IP away".to_owned();
        (" of another project", String::new(), remedy)
    } else if others.is_empty() {
        return None;
    } else {
        let why = format!(", because other Services use that: {}", others.join(", "));
        let remedy = format!(
            "delete these Services, or take {} off them: then the floating IP goes",
            keys::ID.key
        );
        ("", why, remedy)
    };
    Some(refusal!(
        "Service {} is internal, and floating IP {}{whose} still leads to its load balancer {}{why}",
        identity.service, there.floating_ip_address, balancer.id;
        "{remedy}"
    ))
}

/// What becomes of a floating IP that shall not lead here any more: one that a controller created for the Service is deleted.
fn release(identity: &Identity, there: &FloatingIp) -> FloatingIpChange {
    match !identity.keeps_floating_ip && strays::is_made_for(identity, there) {
        true => FloatingIpChange::delete(there),
        false => FloatingIpChange::attach(there, None, None),
    }
}

/// What becomes of the floating IP of a load balancer that goes before anybody was told of it.
pub(super) fn untold(
    identity: &Identity,
    observed: &View<'_>,
    balancer: &LoadBalancer,
) -> Option<FloatingIpChange> {
    let there = current(observed, balancer)?;
    let is_own = is_described_so(identity, there) && !is_recorded(identity, there);
    let is_own = is_own && !strays::is_used_elsewhere(identity, observed, balancer, there);
    is_own.then(|| release(identity, there))
}

#[cfg(test)]
mod tests;
