//! The ports of Nodes: which one has an address, and what its address pairs let through. Pure.

use std::net::IpAddr;

use bowline_openstack_client::{AddressPair, Port};
use ipnet::IpNet;

use super::change::{Change, range};

/// The port that has an address; `None` if several have it.
pub(super) fn only_port(ports: &[Port], address: IpAddr) -> Option<&Port> {
    let has_it = |port: &&Port| {
        port.fixed_ips
            .iter()
            .any(|fixed| fixed.ip_address.parse() == Ok(address))
    };
    let mut having = ports.iter().filter(has_it);
    having.next().filter(|_| having.next().is_none())
}

pub(super) fn has_security(port: &Port) -> bool {
    port.port_security_enabled != Some(false)
}

/// Whether traffic from a pod network may leave the port, by a pair for it or for a wider range.
pub(super) fn lets_through(port: &Port, destination: &IpNet) -> bool {
    let mut ranges = port
        .allowed_address_pairs
        .iter()
        .filter_map(|pair| range(&pair.ip_address));
    !has_security(port) || ranges.any(|range| range.contains(destination))
}

/// The pairs of a port after these changes; `None` if that is no change.
pub(super) fn changed(port: &Port, changes: &[&Change]) -> Option<Vec<AddressPair>> {
    let there = &port.allowed_address_pairs;
    let mut pairs = there.clone();
    let place = |pairs: &[AddressPair], change: &Change| {
        let is_it = |pair: &AddressPair| range(&pair.ip_address) == Some(change.destination);
        pairs.iter().position(is_it)
    };
    for change in changes {
        match (place(&pairs, change), change.is_creation) {
            (None, true) => pairs.push(AddressPair {
                ip_address: change.route.destination.clone(),
                mac_address: None,
            }),
            (Some(place), false) => drop(pairs.remove(place)),
            _ => {}
        }
    }
    (pairs != *there).then_some(pairs)
}

#[cfg(test)]
mod tests {
    use bowline_openstack_client::{FixedIp, PortStatus, TrunkDetails};

    use super::super::change::tests::change;
    use super::*;

    fn pair(range: &str, mac: Option<&str>) -> AddressPair {
        AddressPair {
            ip_address: range.to_owned(),
            mac_address: mac.map(str::to_owned),
        }
    }

    fn port(addresses: &[&str], pairs: &[AddressPair]) -> Port {
        let fixed = addresses.iter().map(|address| FixedIp {
            subnet_id: "s".into(),
            ip_address: (*address).to_owned(),
        });
        Port {
            id: format!("port-{}", addresses.join("-")).into(),
            name: String::new(),
            device_owner: String::new(),
            network_id: Some("n".into()),
            status: PortStatus::Active,
            device_id: String::new(),
            fixed_ips: fixed.collect(),
            security_groups: Vec::new(),
            allowed_address_pairs: pairs.to_vec(),
            port_security_enabled: Some(true),
            tags: Vec::new(),
            trunk_details: TrunkDetails::default(),
            revision_number: Some(1),
        }
    }

    #[test]
    fn other_pairs_stay_and_what_is_right_is_not_written() {
        let vip = pair("10.0.0.100", Some("fa:16:3e:00:00:01"));
        let one = pair("10.244.1.0/24", Some("fa:16:3e:00:00:02"));
        let both = port(&["10.0.0.11"], &[vip.clone(), one.clone()]);
        let change = |is_creation, range: &str| change(is_creation, range, "10.0.0.11");
        assert_eq!(changed(&both, &[&change(true, "10.244.1.0/24")]), None);
        assert_eq!(changed(&both, &[&change(false, "10.244.2.0/24")]), None);
        assert_eq!(
            changed(&both, &[&change(false, "10.244.1.0/24")]),
            Some(vec![vip.clone()])
        );
        let (gone, new) = (change(false, "10.244.1.0/24"), change(true, "10.244.3.0/24"));
        let new_pair = pair("10.244.3.0/24", None);
        assert_eq!(changed(&both, &[&gone, &new]), Some(vec![vip, new_pair]));
    }

    #[test]
    fn an_address_of_two_ports_belongs_to_neither() {
        let ports = [
            port(&["10.0.0.11", "2001:db8::11"], &[]),
            port(&["10.0.0.12"], &[]),
            port(&["10.0.0.12"], &[]),
        ];
        let found = |address: &str| only_port(&ports, address.parse().unwrap()).map(|port| port.id.as_str());
        assert_eq!(found("10.0.0.11"), Some("port-10.0.0.11-2001:db8::11"));
        assert_eq!(found("2001:DB8::11"), Some("port-10.0.0.11-2001:db8::11"));
        assert_eq!(found("10.0.0.12"), None);
        assert_eq!(found("10.0.0.13"), None);
    }

    #[test]
    fn a_wider_pair_lets_a_pod_network_through_and_so_does_a_port_without_security() {
        let pod_network = "10.244.1.0/24".parse().unwrap();
        let lets = |pairs: &[AddressPair]| lets_through(&port(&["10.0.0.11"], pairs), &pod_network);
        assert!(lets(&[pair("10.244.1.0/24", None)]) && lets(&[pair("10.244.0.0/16", None)]));
        assert!(!lets(&[]) && !lets(&[pair("10.244.1.0/25", None), pair("10.244.1.1", None)]));
        let open = Port {
            port_security_enabled: Some(false),
            ..port(&["10.0.0.11"], &[])
        };
        assert!(lets_through(&open, &pod_network));
    }
}
