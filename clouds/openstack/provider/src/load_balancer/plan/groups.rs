//! The Service's security group: it lets the load balancer reach the node ports of its members.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use bowline_openstack_client::{NewSecurityGroup, Port, SecurityGroup, SecurityGroupId, SubnetId};
use bowline_plan::{Note, Refusal, refusal};
use ipnet::IpNet;

use crate::load_balancer::intent::{Identity, Port as Served, Protocol, Wanted};
use crate::load_balancer::members::{self, Family};
use crate::load_balancer::names;
use crate::load_balancer::observe::view::View;
use crate::load_balancer::plan::desired::MemberSubnets;
use crate::load_balancer::security_groups::Changes;
use crate::load_balancer::security_groups::ports::{Seat, has_seat, leave, memberships};
use crate::load_balancer::security_groups::rules::{self, wanted_rules};
use crate::load_balancer::step::{CloudStep, GroupChange};
use crate::messages::{NODES_ELSEWHERE, NODES_LEFT_OUT, NODES_SHARE_ADDRESS};

mod twins;

/// What decides about the security group of a wanted load balancer.
pub(super) struct Groups<'a> {
    pub(super) wanted: &'a Wanted,
    pub(super) seen: &'a View<'a>,
    pub(super) subnets: MemberSubnets,
    pub(super) seats: Seats,
    /// The ports of the Service whose node ports are opened.
    pub(super) served: Vec<&'a Served>,
    pub(super) is_ovn: bool,
    /// The addresses of the members that the pools have.
    pub(super) reached: BTreeSet<IpAddr>,
}

impl Groups<'_> {
    /// The writes of the next wave; none if all is as it shall be.
    ///
    /// A group whose rules are refused is on the ports all the same: what it opens works.
    pub(super) fn next(&self) -> Result<Vec<GroupChange>, Refusal> {
        let (identity, seen) = (&self.wanted.identity, self.seen);
        if !identity.options.manages_security_groups {
            return held_back(seen, removal(identity, seen));
        }
        let twins::Own { kept, surplus } = twins::of(identity, seen)?;
        let Some(there) = kept else {
            let create = GroupChange::Create {
                new: NewSecurityGroup {
                    name: names::security_group(&identity.uid, &identity.service),
                    description: names::security_group_description(&identity.cluster, &identity.service),
                },
            };
            return held_back(seen, vec![create]);
        };
        let (changes, refused) = self.changes(there)?;
        match refused {
            _ if !changes.opening.is_empty() => Ok(changes.opening),
            _ if !changes.closing.is_empty() => Ok(changes.closing),
            Some(refused) => Err(refused),
            // What the others open is open by now.
            None => held_back(seen, without(&surplus, seen)),
        }
    }

    /// Missing rules of a group that is there: node ports are opened before the load balancer's parts change, and closed after
    /// that. Ports get the group only then: all Services write those of a new node, one after the other, and members come first.
    pub(super) fn missing_rules(&self) -> Vec<GroupChange> {
        let identity = &self.wanted.identity;
        if !identity.options.manages_security_groups {
            return Vec::new();
        }
        let kept = twins::of(identity, self.seen).ok().and_then(|own| own.kept);
        let rules = kept.and_then(|there| self.rules(there).ok());
        let mut missing = rules.unwrap_or_default().opening;
        without_refused(self.seen, &mut missing);
        missing
    }

    /// What is to be written to a group that is there, and why something of it is left out.
    fn changes(&self, there: &SecurityGroup) -> Result<(Changes, Option<Refusal>), Refusal> {
        let mut changes = self.rules(there)?;
        if self.wanted.is_unclear() {
            changes.closing.clear(); // a source that cannot be read may be what they let in
        }
        let mut refused = without_refused(self.seen, &mut changes.opening);
        // What is open stays so as long as not all is that shall be, unless a rule that nobody needs makes room.
        if refused.as_ref().is_some_and(|why| !why.is_limit) {
            changes.closing.clear();
        }
        let unclosed = without_refused(self.seen, &mut changes.closing);
        refused = refused.or(unclosed);
        let ports = self.ports(&there.id);
        for (all, mut more) in [
            (&mut changes.opening, ports.opening),
            (&mut changes.closing, ports.closing),
        ] {
            let why = without_refused(self.seen, &mut more);
            all.extend(more);
            refused = refused.or(why);
        }
        Ok((changes, refused))
    }

    /// Missing rules, and those that are too many.
    fn rules(&self, there: &SecurityGroup) -> Result<Changes, Refusal> {
        let Self { wanted, seen, .. } = self;
        let listed = seen.subnets();
        let network_of = |id: &SubnetId| -> Result<IpNet, Refusal> {
            let subnet = listed.iter().find(|subnet| subnet.id == *id);
            let cidr = subnet.map(|subnet| subnet.cidr.as_str()).unwrap_or_default();
            cidr.parse().map_err(
                |_| refusal!("failed to find subnet {id} of the load balancer's members"; "{MEMBER_SUBNET}"),
            )
        };
        let networks: Vec<IpNet> = self
            .subnets
            .ids()
            .iter()
            .map(network_of)
            .collect::<Result<_, _>>()?;
        if networks.is_empty() {
            return Err(refusal!(
                "the subnet of the members of Service {} is not known, so nothing can be opened for them",
                wanted.identity.service;
                "{MEMBER_SUBNET}"
            ));
        }
        let node_ports = self.served.iter().filter_map(|port| {
            let protocol = match port.protocol {
                Protocol::Tcp => "tcp",
                Protocol::Udp => "udp",
                Protocol::Sctp => "sctp",
            };
            Some((protocol, port.node_port?))
        });
        // `ovn` keeps the addresses of clients. Else connections come from the members' networks, and so do health checks.
        let sources = match self.is_ovn {
            true => &wanted.listener.sources.ranges,
            false => &networks,
        };
        let health_check = wanted.health_check_port.map(|port| ("tcp", port));
        let opened = wanted_rules(node_ports, sources).chain(wanted_rules(health_check, &networks));
        let mut changes = rules::changes(opened, there);
        let known = &seen.memory.own.rules_there;
        let is_there = |change: &_| matches!(change, GroupChange::CreateRule { new } if known.contains(new));
        changes.opening.retain(|change| !is_there(change));
        Ok(changes)
    }

    /// The ports of members get the group, those of nodes that left lose it when they are no members any more. While it is not known which
    /// port is whose, none does.
    fn ports(&self, group: &SecurityGroupId) -> Changes {
        let mut changes = memberships(self.seen.ports(), group, &self.seats.known, &self.subnets.ids());
        let is_reached = |port: &Port| {
            let addresses = port.fixed_ips.iter().map(|fixed| fixed.ip_address.parse());
            addresses.flatten().any(|address| self.reached.contains(&address))
        };
        let is_used = |change: &_| matches!(change, GroupChange::Leave { port, .. } if is_reached(port));
        changes.closing.retain(|change| !is_used(change));
        if !self.seats.without_server.is_empty() {
            changes.closing.clear();
        }
        changes
    }

    /// What is told of nodes that have no address in the subnet that the members are in: where a port of their server shows their address in
    /// another one, or, without security groups, where the members' subnet is named and does not hold it.
    pub(super) fn elsewhere_note(&self) -> Option<Note> {
        let Self {
            wanted,
            seen,
            subnets,
            seats,
            ..
        } = self;
        let has_groups = wanted.identity.options.manages_security_groups;
        let first = subnets.first.as_ref()?;
        let second = subnets.second.as_ref().map(|(_, subnet)| subnet);
        let known = subnets.ids();
        // The load balancer has no address of the second family, so nobody is reached there.
        let is_of_second = |seat: &Seat| Some(Family::of(seat.address)) == wanted.second_family();
        let is_reached =
            |seat: &Seat| second.is_some() || wanted.second_family().is_none() || !is_of_second(seat);
        let has_seat =
            |seat: &Seat, subnets: &[SubnetId]| seen.ports().iter().any(|port| has_seat(port, seat, subnets));
        let named = wanted.named_member_subnet();
        let is_outside = |seat: &Seat| {
            let subnet = if is_of_second(seat) { second } else { Some(first) };
            let range = subnet.and_then(|subnet| subnet.range);
            named.is_some() && range.is_some_and(|range| !range.contains(&seat.address))
        };
        let is_elsewhere = |seat: &Seat| match has_groups {
            true => has_seat(seat, &[]) && !has_seat(seat, &known),
            false => is_outside(seat),
        };
        let all = seats.nodes.iter().zip(&seats.known);
        let elsewhere: BTreeSet<&str> = all
            .filter(|(_, seat)| is_reached(seat) && is_elsewhere(seat))
            .map(|(node, _)| node.as_str())
            .collect();
        if elsewhere.is_empty() {
            return None;
        }
        let service = &wanted.identity.service;
        let nodes = elsewhere.into_iter().collect::<Vec<_>>().join(", ");
        let without_group = match has_groups {
            true => "so they do not get the security group",
            false => "so the load balancer may not reach them",
        };
        Some(NODES_ELSEWHERE.note(match named {
            None => format!(
                "the members of Service {service} are taken to be in subnet {}, and these nodes have their address in another one, {without_group}: {nodes}; set member-subnet-id to their subnet, in cloud.conf or on the Service",
                first.id
            ),
            Some(origin) => format!(
                "the members of Service {service} are in subnet {}, and these nodes have no address there, {without_group}: {nodes}; give their servers a port in it, leave the nodes out with node-selector, or correct {origin}",
                first.id
            ),
        }))
    }

    /// What is told of nodes whose ports cannot get the group.
    pub(super) fn left_out_note(&self) -> Option<Note> {
        let names: Vec<&str> = self.seats.without_server.iter().map(String::as_str).collect();
        let is_told = self.wanted.identity.options.manages_security_groups && !names.is_empty();
        is_told.then(|| {
            NODES_LEFT_OUT.note(format!(
                "nodes have no provider ID of a server yet, so their ports do not get the security group: {}",
                names.join(", ")
            ))
        })
    }

    /// What is told of nodes that share an address: Octavia takes one member for an address and a port.
    pub(super) fn shared_address_note(&self) -> Option<Note> {
        let Self { wanted, subnets, .. } = self;
        let mut nodes: BTreeMap<IpAddr, Vec<&str>> = BTreeMap::new();
        for node in &wanted.nodes {
            let second = subnets
                .second
                .as_ref()
                .and_then(|_| subnets.second_address(wanted, node));
            for address in subnets.first_address(wanted, node).into_iter().chain(second) {
                let at_address = nodes.entry(address).or_default();
                if !at_address.contains(&node.name.as_str()) {
                    at_address.push(node.name.as_str());
                }
            }
        }
        nodes.retain(|_, nodes| nodes.len() > 1);
        let told = nodes
            .iter()
            .map(|(address, nodes)| format!("{} have {address}", nodes.join(" and ")));
        let told = told.collect::<Vec<_>>().join("; ");
        (!told.is_empty()).then(|| {
            NODES_SHARE_ADDRESS.note(format!(
                "the load balancer of Service {} has one member for nodes that share an address: {told}; compare the addresses of their servers, and delete the Node whose server is gone",
                wanted.identity.service
            ))
        })
    }
}

/// Those of these writes that Neutron did not refuse, or why, if there is no other.
pub(super) fn held_back(seen: &View<'_>, mut changes: Vec<GroupChange>) -> Result<Vec<GroupChange>, Refusal> {
    match without_refused(seen, &mut changes) {
        Some(why) if changes.is_empty() => Err(why),
        _ => Ok(changes),
    }
}

/// Leaves out the writes that Neutron refused, and says why it refused the first of them.
fn without_refused(seen: &View<'_>, changes: &mut Vec<GroupChange>) -> Option<Refusal> {
    let mut refused = None;
    changes.retain(|change| {
        let step = CloudStep::Group(change.clone());
        let why = seen.memory.refusals.first(|known| known.asks_the_same(&step));
        refused = refused.take().or_else(|| why.cloned());
        why.is_none()
    });
    refused
}

/// What helps where the subnet of members is not known.
const MEMBER_SUBNET: &str = "set member-subnet-id, in cloud.conf or on the Service, to a subnet that the project sees: `openstack subnet list`";

/// Where the members are reached.
#[derive(Default)]
pub(super) struct Seats {
    known: Vec<Seat>,
    /// The names of the nodes of these.
    nodes: Vec<String>,
    /// The names of nodes of which nobody knows the server. The others get the group all the same.
    without_server: BTreeSet<String>,
}

pub(super) fn seats(wanted: &Wanted, subnets: &MemberSubnets) -> Seats {
    let mut seats = Seats::default();
    for node in &wanted.nodes {
        let first = subnets.first_address(wanted, node);
        for address in first.into_iter().chain(subnets.second_address(wanted, node)) {
            match members::server(node) {
                Some(server) => {
                    seats.known.push(Seat { server, address });
                    seats.nodes.push(node.name.to_string());
                }
                None => {
                    seats.without_server.insert(node.name.to_string());
                }
            }
        }
    }
    seats
}

/// Removes all groups that were surely made for the Service.
pub(super) fn removal(identity: &Identity, seen: &View<'_>) -> Vec<GroupChange> {
    let mut all = twins::made_for(identity, seen);
    all.extend(twins::former(identity, seen));
    without(&all, seen)
}

/// Whether a group is there of a Service of this name that the cluster had before.
pub(super) fn has_former(identity: &Identity, seen: &View<'_>) -> bool {
    twins::former(identity, seen).next().is_some()
}

/// Takes groups off all ports; when none has one any more, deletes them.
fn without(groups: &[&SecurityGroup], seen: &View<'_>) -> Vec<GroupChange> {
    let mut changes = Vec::new();
    for group in groups {
        let members = seen.ports().iter().filter(|port| {
            // Very old controllers also left a tag.
            port.security_groups.contains(&group.id) || port.tags.iter().any(|tag| tag == group.id.as_str())
        });
        changes.extend(members.map(|port| leave(&group.id, port)));
    }
    if !changes.is_empty() {
        return changes;
    }
    let delete = groups.iter().map(|there| GroupChange::Delete {
        group: there.id.clone(),
        name: there.name.clone(),
    });
    delete.collect()
}
