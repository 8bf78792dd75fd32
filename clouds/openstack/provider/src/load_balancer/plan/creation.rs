//! A load balancer that is not there yet: one call makes it with all its parts.

use std::net::IpAddr;

use bowline_openstack_client::{NewAdditionalVip, NewLoadBalancer, Port, ServerId, Subnet, SubnetId};
use bowline_plan::{Answer, Note, Refusal, RefusedBy, refusal};
use ipnet::IpNet;

use super::next::{Next, annotate, apply};
use super::{dangling, floating, guards, waiting};
use crate::load_balancer::annotations as keys;
use crate::load_balancer::features::Features;
use crate::load_balancer::intent::settings::Bars;
use crate::load_balancer::intent::{Identity, Wanted};
use crate::load_balancer::members::{self, Family};
use crate::load_balancer::memory::Refusals;
use crate::load_balancer::names;
use crate::load_balancer::observe::view::{Need, View};
use crate::load_balancer::plan::desired;
use crate::load_balancer::plan::placement;
use crate::load_balancer::remedies::About;
use crate::load_balancer::step::{CloudStep, delete_port};
use crate::load_balancer::tags;
use crate::load_balancer::vip_ports::{self, Place};
use crate::messages::{CHANGE_IGNORED, ZONES_IGNORED};

/// What comes next where no load balancer is there.
pub(super) fn next(wanted: &Wanted, features: Features, seen: &View<'_>, notes: &mut Vec<Note>) -> Next {
    let (identity, own) = (&wanted.identity, &seen.memory.own);
    if let Some(refusal) = dangling::unseen(wanted, seen) {
        return Answer::Refused(refusal);
    }
    if let Some(id) = &own.failed {
        let refusal = Refusal::new(format!(
            "load balancer {id} has gone into ERROR state: it was deleted and will be created again"
        ));
        return Answer::Refused(refusal.by(RefusedBy::Failure));
    }
    if let Some(refusal) = barred(wanted, features, seen, notes) {
        return Answer::Refused(refusal);
    }
    if own.is_creation_late {
        return Answer::Refused(late(identity, "asked for anew"));
    }
    if let Some(wait) = waiting::for_nodes(wanted, seen) {
        return wait;
    }
    notes.extend(guards::gone_note(identity, seen));
    notes.extend(guards::left_alone_note(identity, seen));
    // It leads nowhere. Beside another load balancer it would be taken for a person's mistake.
    if identity.annotated.is_some() {
        return annotate(keys::ID.key, None);
    }
    let new = match new(wanted, features, seen, notes) {
        Ok(new) => new,
        Err(refusal) => return Answer::Refused(refusal),
    };
    // A list may be behind: only Octavia's word of the very one proves that it is not there.
    let left = left_before(seen, &new.new);
    let left_by = left.iter().filter_map(|port| vip_ports::made_for(port));
    left_by
        .filter(|id| !seen.gone.contains(id))
        .for_each(|id| seen.lack(Need::Unlisted(id)));
    let doubtful = seen.leaked().into_iter().flat_map(|leaked| &leaked.doubtful);
    notes.extend(guards::left_port_note(identity, doubtful.chain(left)));
    match untried(&seen.memory.refusals, new) {
        Err(refusal) => Answer::Refused(refusal),
        Ok(creation) => {
            note_ports(seen);
            let tags = tags::of_creation(&creation.new);
            if let Some(record) = wanted.tags.to_record(&identity.added_tags, &[], &tags) {
                return annotate(keys::ADDED_TAGS.key, Some(&record));
            }
            // Nobody gets the address as long as what is left of a refused creation has it.
            let leaked = seen.leaked().into_iter().flat_map(|leaked| &leaked.in_the_way);
            let leaked = leaked.filter(|_| creation.new.vip_address.is_some());
            let removal: Vec<CloudStep> = leaked.map(delete_port).collect();
            apply(match removal.is_empty() {
                true => vec![creation.step()],
                false => removal,
            })
        }
    }
}

/// Notes what the creation of a load balancer takes, whatever there is: it is read beside the list.
pub(super) fn foresee(wanted: &Wanted, features: Features, seen: &View<'_>) {
    let _ = (guards::certificate(wanted, seen), fault_of_members(wanted, seen));
    let _ = new(wanted, features, seen, &mut Vec::new());
    note_ports(seen);
}

/// Sees to it that the ports are known that there are before a creation: should it be refused, one may be left behind.
fn note_ports(seen: &View<'_>) {
    if seen.memory.own.ports_before.is_none() {
        seen.ports();
    }
}

/// The ports without a load balancer that a creation for the Service may have left behind before this process began.
fn left_before<'a>(seen: &View<'a>, new: &NewLoadBalancer) -> Vec<&'a Port> {
    let (true, Some(place)) = (seen.memory.own.is_older, Place::of(new)) else {
        return Vec::new();
    };
    let listed = seen.all_listed();
    let alone = vip_ports::without_balancer(seen.ports(), listed).map(|(_, port)| port);
    // Those that came later are of this process, or of creations under way.
    let first = seen.memory.own.first_ports.as_ref();
    let was_there = |port: &&Port| first.is_none_or(|first| first.contains(&port.id));
    alone.filter(|port| was_there(port) && place.fits(port)).collect()
}

/// A load balancer that is to be made.
struct Creation {
    new: NewLoadBalancer,
    /// Whether the address in it is only that of the one before, and another one will do.
    takes_any_address: bool,
}

impl Creation {
    fn step(&self) -> CloudStep {
        CloudStep::CreateBalancer {
            new: Box::new(self.new.clone()),
        }
    }
}

/// The first of these that Octavia did not refuse: as it is to be; without its parts, which come one by one then, because what is refused
/// of them leaves no port behind and holds up no other part; at another address, if only that of the one before was asked for. Or why
/// none is worth a try.
fn untried(refusals: &Refusals, mut creation: Creation) -> Result<Creation, Refusal> {
    let refused = |step: CloudStep| refusals.first(|known| known.asks_the_same(&step));
    while let Some(why) = refused(creation.step()) {
        match About::of(why) {
            About::Parts if !creation.new.listeners.is_empty() => creation.new.listeners.clear(),
            About::Address if creation.takes_any_address => {
                creation.takes_any_address = false;
                creation.new.vip_address = None;
            }
            _ => return Err(why.clone()),
        }
    }
    Ok(creation)
}

/// Why nothing is done while no load balancer is there: another one would be one too many, and one that shows when its Service has
/// gone would stay.
pub(super) fn late(identity: &Identity, then: &str) -> Refusal {
    refusal!(
        "load balancer {} was asked for, and Octavia did not answer in time: it may still come", identity.name;
        "it is looked for again, and {then} if it is not there after a minute"
    )
}

/// Why no load balancer is made: what would be refused later is told before the first write.
fn barred(wanted: &Wanted, features: Features, seen: &View<'_>, notes: &mut Vec<Note>) -> Option<Refusal> {
    guards::flaw(
        wanted,
        features,
        &[Bars::All, Bars::Parts, Bars::Status, Bars::Creation],
    )
    .or_else(|| guards::certificate(wanted, seen))
    .or_else(|| guards::unmakeable(wanted, features))
    .or_else(|| guards::unsure(wanted, features))
    .or_else(|| guards::port_of_another(wanted, seen, None))
    .or_else(|| fault_of_members(wanted, seen))
    .or_else(|| floating::outlook(wanted, seen, notes))
}

/// The load balancer that is to be made.
fn new(
    wanted: &Wanted,
    features: Features,
    seen: &View<'_>,
    notes: &mut Vec<Note>,
) -> Result<Creation, Refusal> {
    let identity = &wanted.identity;
    let options = &identity.options;
    let (mut network, mut subnet) = (wanted.vip.network.clone(), wanted.vip.subnet.clone());
    if placement::is_detected(wanted) {
        let first = placement::of_first_node(wanted, seen.ports(), wanted.family());
        subnet = first.map(|place| place.subnet);
    }
    if let Some(port) = &wanted.vip.port {
        let port = seen.ports().iter().find(|there| there.id == *port);
        (network, subnet) = (None, subnet_of_port(wanted.family(), port));
    }
    let fault = fault_of_address(wanted, seen, subnet.as_ref());
    let (address, takes_any_address) = address(wanted, seen, subnet.as_ref());
    if placement::is_detected(wanted) && subnet.is_none() && wanted.vip.port.is_none() {
        return Err(without_place(wanted, seen));
    }
    if let Some(refusal) = fault {
        return Err(refusal);
    }
    if wanted.family() == Some(Family::V6) && address.is_none() && placement::is_left_to_octavia(wanted) {
        subnet = placement::subnet_of_network(wanted, seen).cloned();
        if let (None, Some(refusal)) = (&subnet, no_ipv6(wanted, seen)) {
            return Err(refusal);
        }
    }
    let second = second_subnet(wanted, features, seen, notes);
    let subnets = placement::member_subnets(wanted, seen, None, second.clone());
    let tree = desired::ports(wanted, features, &subnets);
    let mut new = NewLoadBalancer {
        name: identity.name.clone(),
        description: names::balancer_description(&identity.cluster, &identity.service),
        provider: options.provider.clone(),
        tags: features
            .tags
            .then(|| desired::marked(wanted, &wanted.tags.balancer)),
        flavor_id: wanted.vip.flavor.clone().filter(|_| features.flavors),
        availability_zone: wanted.vip.zone.clone().filter(|_| features.zones),
        vip_port_id: wanted.vip.port.clone(),
        vip_subnet_id: subnet,
        vip_network_id: network,
        vip_address: address,
        additional_vips: second
            .into_iter()
            .map(|subnet_id| NewAdditionalVip {
                subnet_id,
                ip_address: None,
            })
            .collect(),
        listeners: Vec::new(),
    };
    let is_tree_doubtful = seen.memory.own.is_tree_doubtful || !left_before(seen, &new).is_empty();
    if !options.is_serial && !is_tree_doubtful {
        new.listeners = tree.into_iter().map(desired::tree).collect();
    }
    Ok(Creation {
        new,
        takes_any_address,
    })
}

/// Why no subnet is found by the nodes, with what is nearest to the cause.
fn without_place(wanted: &Wanted, seen: &View<'_>) -> Refusal {
    let nodes = || wanted.all_nodes.iter();
    let mut servers = nodes().filter_map(|node| members::server(node));
    let is_seen = |server: ServerId| seen.ports().iter().any(|port| port.device_id == server.as_str());
    let is_one_known = servers.clone().next().is_some();
    let mut families = nodes().flat_map(|node| members::addresses(node, wanted.family()));
    let (more, remedy) = if is_one_known && !servers.any(is_seen) {
        (
            "; the project of these credentials has no port of any of their servers",
            "give the manager the credentials of the project with the nodes' servers; if that is right, set subnet-id or network-id in cloud.conf",
        )
    } else if wanted.family() == Some(Family::V6) && families.next().is_none() {
        (
            "; the Service asks for IPv6, and no node has an IPv6 address",
            "give the nodes IPv6 addresses, or set spec.ipFamilies to IPv4",
        )
    } else {
        (
            "",
            "set subnet-id or network-id in cloud.conf, or an annotation of that name",
        )
    };
    refusal!(
        "no subnet found for load balancer of service {}: no node has an address on a port of its server{more}",
        wanted.identity.service;
        "{remedy}"
    )
}

/// Why the load balancer cannot have the address that is asked for, in the subnet that it is to be in. Octavia refuses that with an
/// error of its provider or of a listener, which names neither.
fn fault_of_address(wanted: &Wanted, seen: &View<'_>, subnet: Option<&SubnetId>) -> Option<Refusal> {
    let is_v6 = wanted.family() == Some(Family::V6);
    if wanted.vip.port.is_some() || !is_v6 && wanted.own_address().is_none() {
        return None;
    }
    let there = visible(seen, subnet)?;
    let service = &wanted.identity.service;
    let range: IpNet = there.cidr.parse().ok()?;
    if is_v6 && there.ip_version != 6 {
        return Some(refusal!(
            "load balancer of service {service} is to have an IPv6 address, and subnet {} ({range}) has none",
            there.id;
            "name an IPv6 subnet with {}, and with {} where cloud.conf names another one for members",
            keys::SUBNET.key, keys::MEMBER_SUBNET.key
        ));
    }
    let asked = wanted.own_address()?;
    if range.contains(&asked.parse::<IpAddr>().ok()?) {
        return None;
    }
    Some(refusal!(
        "load balancer of service {service} cannot have address {asked}: it is not in subnet {} ({range})", there.id;
        "correct spec.loadBalancerIP, or name its subnet with {}", keys::SUBNET.key
    ))
}

/// Why Octavia is not left to choose: it would take an IPv4 subnet, refuse the listeners for it, and leave a port behind. The
/// subnets of somebody else's network may be hidden; then Octavia knows better.
fn no_ipv6(wanted: &Wanted, seen: &View<'_>) -> Option<Refusal> {
    let network = wanted.vip.network.as_ref()?;
    let mut all = seen.subnets().iter();
    all.find(|there| there.network_id == *network)?;
    let origin = wanted.origins(&[keys::NETWORK.key]);
    Some(refusal!(
        "no subnet found for load balancer of service {}: network {network} has no IPv6 subnet",
        wanted.identity.service;
        "make one, or correct {origin}"
    ))
}

/// A subnet, if the project sees it and its network in CIDR notation was read.
fn visible<'a>(seen: &View<'a>, subnet: Option<&SubnetId>) -> Option<&'a Subnet> {
    let mut all = seen.subnets().iter();
    all.find(|there| Some(&there.id) == subnet)
}

/// The address that is asked for, and whether any other one will do: that of the load balancer before this one will not be
/// missed if somebody else has it by now. One that is not in the subnet is none to ask for: it is from another network, or was a
/// floating IP's.
fn address(wanted: &Wanted, seen: &View<'_>, subnet: Option<&SubnetId>) -> (Option<String>, bool) {
    if let Some(asked) = wanted.own_address() {
        return (Some(asked.to_owned()), false);
    }
    let recorded = || {
        let recorded = wanted.identity.recorded_address.clone();
        recorded.filter(|_| wanted.publishes_own_address())
    };
    let is_in_range = |address: &String| {
        let range = visible(seen, subnet).and_then(|there| there.cidr.parse::<IpNet>().ok());
        let address = address.parse::<IpAddr>().ok();
        range.is_none_or(|range| address.is_some_and(|address| range.contains(&address)))
    };
    let former = seen.memory.own.vacated.clone().or_else(recorded);
    let former = former.filter(|address| wanted.vip.port.is_none() && is_in_range(address));
    let takes_any_other = former.is_some();
    (former, takes_any_other)
}

/// Why the members could not be made. Where they are made one by one, Octavia says so only when the load balancer is there; where
/// they are made with it, Octavia looks for no subnet.
fn fault_of_members(wanted: &Wanted, seen: &View<'_>) -> Option<Refusal> {
    let subnet = wanted.member_subnet.as_ref()?;
    if seen.subnets().iter().any(|there| there.id == *subnet) {
        return None;
    }
    let origin = wanted.origins(&[keys::MEMBER_SUBNET.key, keys::SUBNET.key]);
    Some(refusal!("failed to find subnet {subnet} of the members"; "correct {origin}"))
}

/// What is told as long as a zone is asked for that cannot be had.
pub(super) fn zone_note(wanted: &Wanted, features: Features) -> Option<Note> {
    let zone = wanted.vip.zone.as_ref().filter(|_| !features.zones)?;
    Some(ZONES_IGNORED.note(format!(
        "Availability zone {zone} is ignored for Service {} because Octavia does not support it",
        wanted.identity.service
    )))
}

/// The subnet of a given port, where Octavia cannot tell it: of several addresses, the wanted family's counts.
fn subnet_of_port(family: Option<Family>, port: Option<&Port>) -> Option<SubnetId> {
    let fixed_ips = &port?.fixed_ips;
    if fixed_ips.len() < 2 {
        return None;
    }
    let family = family.unwrap_or(Family::V4);
    let fitting = fixed_ips
        .iter()
        .find(|fixed| Family::of_text(&fixed.ip_address) == Some(family));
    fitting.map(|fixed| fixed.subnet_id.clone())
}

/// The subnet of the second address, or a note why there is none.
fn second_subnet(
    wanted: &Wanted,
    features: Features,
    seen: &View<'_>,
    notes: &mut Vec<Note>,
) -> Option<SubnetId> {
    wanted.second_family()?;
    let why = if wanted.vip.port.is_some() {
        "it stands on a given port"
    } else if !features.additional_vips {
        "that takes Octavia's API from version 2.26 on, and another provider than ovn"
    } else {
        let found = placement::second_subnet(wanted, seen.ports());
        if found.is_some() {
            return found;
        }
        "no node has an address of that family in the load balancer's network"
    };
    notes.push(CHANGE_IGNORED.note(format!(
        "load balancer of Service {} gets an address of the first IP family only: {why}",
        wanted.identity.service
    )));
    None
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn of_a_port_with_several_addresses_the_subnet_of_the_wanted_family_is_said() {
        let port = |fixed: &[(&str, &str)]| -> Port {
            let fixed: Vec<_> = fixed
                .iter()
                .map(|(subnet, address)| json!({ "subnet_id": subnet, "ip_address": address }))
                .collect();
            serde_json::from_value(json!({ "id": "p", "network_id": "n", "fixed_ips": fixed })).unwrap()
        };
        let subnet = |family, port: &Port| subnet_of_port(family, Some(port)).map(|id| id.to_string());
        let both = port(&[("six", "fd00::5"), ("four", "10.0.0.5")]);
        assert_eq!(subnet(None, &both).as_deref(), Some("four"));
        assert_eq!(subnet(Some(Family::V6), &both).as_deref(), Some("six"));
        // Octavia can tell by itself.
        assert_eq!(subnet(None, &port(&[("four", "10.0.0.5")])), None);
    }
}
