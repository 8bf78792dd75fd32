//! Which ports have a Service's security group.
//!
//! Neutron replaces a port's groups as a whole, so a change is worked out from the port as it was read and sent with the port's
//! revision: where somebody else was faster, the port is read again and the change worked out anew.

use std::collections::BTreeSet;
use std::net::IpAddr;

use bowline_openstack_client::{Port, SecurityGroupId, ServerId, SubnetId};

use super::Changes;
use crate::load_balancer::step::GroupChange;

/// Where a member is reached: the server and the address that a load balancer uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Seat {
    /// The server of the Node.
    pub(crate) server: ServerId,
    /// The Node's address.
    pub(crate) address: IpAddr,
}

/// Compares the ports that have the group with those that should. `ports` are all of the project, or those of the members
/// and those that have the group. `subnets` are the members', if known: a port with the address elsewhere does not get the
/// group. One that has it keeps it: the members' subnet may be detected, and be another one tomorrow.
///
/// Ports without port security are left out: they take no group.
pub(crate) fn memberships(
    ports: &[Port],
    group: &SecurityGroupId,
    seats: &[Seat],
    subnets: &[SubnetId],
) -> Changes {
    let mut changes = Changes::default();
    for port in ports {
        let is_wanted = |subnets| seats.iter().any(|seat| has_seat(port, seat, subnets));
        if !port.security_groups.contains(group) {
            if port.port_security_enabled != Some(false) && is_wanted(subnets) {
                let (group, port) = (group.clone(), Box::new(port.clone()));
                changes.opening.push(GroupChange::Join { group, port });
            }
        } else if !is_wanted(&[]) {
            changes.closing.push(leave(group, port));
        }
    }
    changes
}

/// Takes a group off a port.
pub(crate) fn leave(group: &SecurityGroupId, port: &Port) -> GroupChange {
    let (group, port) = (group.clone(), Box::new(port.clone()));
    GroupChange::Leave { group, port }
}

/// The groups of a port with this one.
pub(crate) fn with_group(port: &Port, group: &SecurityGroupId) -> Vec<SecurityGroupId> {
    let mut groups = port.security_groups.clone();
    if !groups.contains(group) {
        groups.push(group.clone());
    }
    groups
}

/// The groups of a port without this one, in order and once each, as the Go manager sends them.
pub(crate) fn without_group(port: &Port, group: &SecurityGroupId) -> Vec<SecurityGroupId> {
    let others: BTreeSet<&SecurityGroupId> =
        port.security_groups.iter().filter(|has| *has != group).collect();
    others.into_iter().cloned().collect()
}

/// Whether a port is that of a member, in one of these subnets if any is known.
pub(crate) fn has_seat(port: &Port, seat: &Seat, subnets: &[SubnetId]) -> bool {
    port.device_id == seat.server.as_str()
        && port.fixed_ips.iter().any(|fixed| {
            let is_in_subnet = subnets.is_empty() || subnets.contains(&fixed.subnet_id);
            is_in_subnet && fixed.ip_address.parse() == Ok(seat.address)
        })
}

#[cfg(test)]
mod tests {
    use bowline_openstack_client::{FixedIp, PortStatus, TrunkDetails};

    use super::*;

    #[test]
    fn ports_of_members_join_and_others_leave() {
        let ports = [
            port("joins", "one", "10.0.0.11", &["default"]),
            port("has", "two", "10.0.0.12", &["default", "g"]),
            port("left", "three", "10.0.0.13", &["g", "default"]),
            port("other-address", "one", "10.0.0.99", &[]),
            port("other-server", "four", "10.0.0.11", &[]),
            Port {
                port_security_enabled: Some(false),
                ..port("open", "two", "10.0.0.12", &[])
            },
        ];
        let seats = [seat("one", "10.0.0.11"), seat("two", "10.0.0.12")];
        let found = memberships(&ports, &"g".into(), &seats, &["s".into()]);
        assert_eq!(ids(&found.opening), ["joins"]);
        assert_eq!(ids(&found.closing), ["left"]);
        // A member with its address in another subnet does not get the group, and does not lose it.
        let elsewhere = memberships(&ports, &"g".into(), &seats, &["t".into()]);
        assert_eq!(ids(&elsewhere.opening), [""; 0]);
        assert_eq!(ids(&elsewhere.closing), ["left"]);
        let anywhere = memberships(&ports, &"g".into(), &seats, &[]);
        assert_eq!(ids(&anywhere.opening), ["joins"]);
    }

    #[test]
    fn an_address_is_one_in_every_spelling() {
        let ports = [port("p", "one", "2001:db8::b", &[])];
        let found = memberships(&ports, &"g".into(), &[seat("one", "2001:DB8:0::b")], &[]);
        assert_eq!(ids(&found.opening), ["p"]);
    }

    #[test]
    fn other_groups_stay() {
        let port = port("p", "one", "10.0.0.11", &["web", "default", "web"]);
        let groups =
            |groups: Vec<SecurityGroupId>| groups.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(
            groups(with_group(&port, &"g".into())),
            ["web", "default", "web", "g"]
        );
        assert_eq!(
            groups(with_group(&port, &"web".into())),
            ["web", "default", "web"]
        );
        assert_eq!(groups(without_group(&port, &"g".into())), ["default", "web"]);
        assert_eq!(groups(without_group(&port, &"web".into())), ["default"]);
    }

    fn port(id: &str, server: &str, address: &str, groups: &[&str]) -> Port {
        Port {
            id: id.into(),
            name: String::new(),
            device_owner: String::new(),
            network_id: Some("n".into()),
            status: PortStatus::Active,
            device_id: server.to_owned(),
            fixed_ips: vec![FixedIp {
                subnet_id: "s".into(),
                ip_address: address.to_owned(),
            }],
            security_groups: groups.iter().map(|group| SecurityGroupId::from(*group)).collect(),
            allowed_address_pairs: Vec::new(),
            port_security_enabled: Some(true),
            tags: Vec::new(),
            trunk_details: TrunkDetails::default(),
            revision_number: Some(1),
        }
    }

    fn seat(server: &str, address: &str) -> Seat {
        Seat {
            server: server.into(),
            address: address.parse().unwrap(),
        }
    }

    fn ids(changes: &[GroupChange]) -> Vec<&str> {
        let changes = changes.iter();
        let ids = changes.filter_map(|change| match change {
            GroupChange::Join { port, .. } | GroupChange::Leave { port, .. } => Some(port.id.as_str()),
            _ => None,
        });
        ids.collect()
    }
}
