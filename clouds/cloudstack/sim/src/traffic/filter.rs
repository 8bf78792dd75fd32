//! Who may reach a port: sets of addresses as lists of ranges that do not overlap.

use std::net::IpAddr;

use bowline_cloud_kit::addresses::v4_range;
use ipnet::{IpNet, Ipv6Net};

use crate::model::{AclItem, DEFAULT_ALLOW, RuleState};
use crate::state::State;

/// Every client.
pub(super) fn everybody() -> Vec<IpNet> {
    vec![v4_range([0, 0, 0, 0], 0), IpNet::V6(Ipv6Net::default())]
}

/// A range, or an address as a range.
pub(super) fn range(text: &str) -> Option<IpNet> {
    let address = || text.parse::<IpAddr>().ok().map(IpNet::from);
    text.parse().ok().or_else(address)
}

/// What is in both sets.
pub(super) fn both(one: &[IpNet], other: &[IpNet]) -> Vec<IpNet> {
    let narrower = |a: &IpNet, b: &IpNet| {
        if a.contains(b) {
            Some(*b)
        } else if b.contains(a) {
            Some(*a)
        } else {
            None
        }
    };
    let pairs = one
        .iter()
        .flat_map(|a| other.iter().filter_map(move |b| narrower(a, b)));
    IpNet::aggregate(&pairs.collect())
}

/// What is in the first set and not in the second.
fn without(set: &[IpNet], taken: &[IpNet]) -> Vec<IpNet> {
    let mut rest = set.to_vec();
    for taken in taken {
        rest = rest.iter().flat_map(|range| cut(*range, taken)).collect();
    }
    rest
}

/// A range without the part that another one takes of it.
fn cut(range: IpNet, taken: &IpNet) -> Vec<IpNet> {
    if taken.contains(&range) {
        return Vec::new();
    }
    if !range.contains(taken) {
        return vec![range];
    }
    let halves = range.subnets(range.prefix_len() + 1).into_iter().flatten();
    halves.flat_map(|half| cut(half, taken)).collect()
}

/// The sources of the firewall rules for a port of a public address.
pub(super) fn firewall(state: &State, address: &str, protocol: &str, port: u16) -> Vec<IpNet> {
    let rules = state.firewall.values().filter(|it| {
        it.address == address
            && it.protocol == protocol
            && it.state == RuleState::Active
            && it
                .ports
                .is_none_or(|(first, last)| (first..=last).contains(&port))
    });
    let sources = rules.flat_map(|it| &it.cidrs).filter_map(|text| range(text));
    IpNet::aggregate(&sources.collect())
}

/// The sources that an ACL list lets come in to a port: the first item that is about a source decides.
pub(super) fn acl(state: &State, list: Option<&str>, protocol: &str, port: u16) -> Vec<IpNet> {
    let Some(list) = list.and_then(|id| state.acl_lists.get(id)) else {
        return Vec::new();
    };
    if list.vpc.is_none() {
        return match list.name.as_str() {
            DEFAULT_ALLOW => everybody(),
            _ => Vec::new(),
        };
    }
    let is_about = |it: &&AclItem| {
        it.list == list.id
            && it.is_ingress
            && it.state == RuleState::Active
            && is_protocol(&it.protocol, protocol)
            && it
                .ports
                .is_none_or(|(first, last)| (first..=last).contains(&port))
    };
    let mut items: Vec<&AclItem> = state.acl_items.values().filter(is_about).collect();
    items.sort_by_key(|it| it.number);
    let (mut admitted, mut undecided) = (Vec::new(), everybody());
    for item in items {
        let sources: Vec<IpNet> = item.cidrs.iter().filter_map(|text| range(text)).collect();
        if item.is_allow {
            admitted.extend(both(&undecided, &sources));
        }
        undecided = without(&undecided, &sources);
    }
    IpNet::aggregate(&admitted)
}

fn is_protocol(item: &str, protocol: &str) -> bool {
    item == protocol || item == "all" || matches!((item, protocol), ("6", "tcp") | ("17", "udp"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(texts: &[&str]) -> Vec<IpNet> {
        texts.iter().map(|text| range(text).unwrap()).collect()
    }

    #[test]
    fn both_is_the_narrower_of_each_pair() {
        assert_eq!(both(&everybody(), &set(&["10.0.0.0/8"])), set(&["10.0.0.0/8"]));
        assert_eq!(
            both(
                &set(&["10.1.0.0/16", "192.0.2.1"]),
                &set(&["10.0.0.0/8", "192.0.2.0/24"])
            ),
            set(&["10.1.0.0/16", "192.0.2.1"])
        );
        assert!(both(&set(&["10.0.0.0/8"]), &set(&["192.0.2.0/24"])).is_empty());
    }

    #[test]
    fn taken_part_is_cut_out() {
        assert_eq!(
            without(&set(&["10.0.0.0/30"]), &set(&["10.0.0.1"])),
            set(&["10.0.0.0", "10.0.0.2/31"])
        );
        assert!(without(&set(&["10.0.0.1"]), &set(&["10.0.0.0/8"])).is_empty());
        assert_eq!(
            without(&set(&["10.0.0.1"]), &set(&["192.0.2.0/24"])),
            set(&["10.0.0.1"])
        );
    }
}
