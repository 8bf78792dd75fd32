//! Changes of routes as Neutron understands them, and what came of them.

use std::net::IpAddr;

use bowline_cloud_provider::{AddressType, CloudError, Route, RouteChange};
use bowline_openstack_client::RouterRoute;
use ipnet::IpNet;

/// How often something that somebody else changed meanwhile is read again.
pub(super) const TRIES: usize = 5;

/// What stands between destination and next hop in the name of a route.
const VIA: &str = " via ";

/// A change that can be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Change {
    /// Its place among those that were asked for.
    place: usize,
    /// The route as it stands, or shall stand, at the router.
    pub(super) route: RouterRoute,
    /// Where it leads to.
    pub(super) destination: IpNet,
    /// The address that it leads through.
    pub(super) hop: IpAddr,
    /// Whether it is to be there or not.
    pub(super) is_creation: bool,
    /// Whether a Node's port may have an address pair for it: a blackhole leads to no Node.
    pub(super) may_have_port: bool,
}

impl Change {
    fn read(place: usize, change: &RouteChange, near: &[IpNet]) -> Result<Self, CloudError> {
        match change {
            RouteChange::Create { route, .. } => {
                let hop = next_hop(route, near)?;
                Ok(Self {
                    place,
                    route: RouterRoute {
                        destination: route.destination.to_string(),
                        nexthop: hop.to_string(),
                    },
                    destination: route.destination,
                    hop,
                    is_creation: true,
                    may_have_port: true,
                })
            }
            RouteChange::Delete(route) => {
                let listed = listed(route).zip(route.next_hop);
                let (listed, hop) = listed.ok_or_else(|| {
                    CloudError::invalid(format!("route {} is none of the router", route.name))
                })?;
                Ok(Self {
                    place,
                    route: listed,
                    destination: route.destination,
                    hop,
                    is_creation: false,
                    may_have_port: !route.is_blackhole,
                })
            }
        }
    }
}

/// What came of each change, in the order in which they were asked for.
pub(super) struct Results(Vec<Result<(), CloudError>>);

impl Results {
    /// Reads what is asked for, at a router with these networks. What cannot be made has failed already; all else counts as made until
    /// it fails.
    pub(super) fn of(asked: &[RouteChange], near: &[IpNet]) -> (Self, Vec<Change>) {
        let read = asked
            .iter()
            .enumerate()
            .map(|(place, change)| Change::read(place, change, near));
        let mut changes = Vec::new();
        let results = read.map(|change| change.map(|change| changes.push(change)));
        (Self(results.collect()), changes)
    }

    pub(super) fn fail<'a>(&mut self, changes: impl IntoIterator<Item = &'a Change>, error: &CloudError) {
        for change in changes {
            self.0[change.place] = Err(error.clone());
        }
    }

    pub(super) fn has_failed(&self, change: &Change) -> bool {
        self.0[change.place].is_err()
    }

    /// Those that have not failed.
    pub(super) fn open<'a>(&self, changes: &'a [Change]) -> Vec<&'a Change> {
        changes.iter().filter(|change| !self.has_failed(change)).collect()
    }

    /// Where those of these lead that have failed.
    pub(super) fn failed(&self, changes: &[&Change]) -> impl Iterator<Item = IpNet> {
        let failed = changes.iter().filter(|change| self.has_failed(change));
        failed.map(|change| change.destination)
    }

    pub(super) fn into_inner(self) -> Vec<Result<(), CloudError>> {
        self.0
    }
}

/// The name of a route: both of its texts, as the router has them.
pub(super) fn name(route: &RouterRoute) -> String {
    format!("{}{VIA}{}", route.destination, route.nexthop)
}

/// The route of the router that has this name.
fn listed(route: &Route) -> Option<RouterRoute> {
    let (destination, nexthop) = route.name.split_once(VIA)?;
    Some(RouterRoute {
        destination: destination.to_owned(),
        nexthop: nexthop.to_owned(),
    })
}

/// The range that a text means. An address is a range of one.
pub(super) fn range(text: &str) -> Option<IpNet> {
    let address = || text.parse::<IpAddr>().ok().map(IpNet::from);
    text.parse().ok().or_else(address)
}

/// Whether two routes are one, whatever they are spelt like.
pub(super) fn is_same(one: &RouterRoute, other: &RouterRoute) -> bool {
    let key = |route: &RouterRoute| Some((range(&route.destination)?, route.nexthop.parse::<IpAddr>().ok()?));
    one == other || key(one).is_some_and(|one| Some(one) == key(other))
}

/// The internal addresses of the Node that are of the destination's family.
fn hops(route: &Route) -> impl Iterator<Item = IpAddr> {
    let is_v4 = matches!(route.destination, IpNet::V4(_));
    let addresses = route.target_addresses.iter();
    let internal = addresses.filter(|address| address.kind == AddressType::InternalIp);
    let addresses = internal.filter_map(|address| address.address.parse::<IpAddr>().ok());
    addresses.filter(move |address| address.is_ipv4() == is_v4)
}

/// Whether the networks of the router have to be known, because the Node has several addresses.
pub(super) fn has_choice(change: &RouteChange) -> bool {
    matches!(change, RouteChange::Create { route, .. } if hops(route).nth(1).is_some())
}

/// The address of the Node that the router reaches: the first one in a network of the router, else the first one. Neutron refuses a hop
/// in no subnet of the router.
fn next_hop(route: &Route, near: &[IpNet]) -> Result<IpAddr, CloudError> {
    let is_near = |address: &IpAddr| near.iter().any(|range| range.contains(address));
    hops(route)
        .find(is_near)
        .or_else(|| hops(route).next())
        .ok_or_else(|| {
            let is_v4 = matches!(route.destination, IpNet::V4(_));
            let family = if is_v4 { "IPv4" } else { "IPv6" };
            CloudError::invalid(format!(
                "no address found for host: a route to {} needs an InternalIP of {family}",
                route.destination
            ))
        })
}

#[cfg(test)]
pub(super) mod tests {
    use bowline_cloud_provider::NodeAddress;

    use super::*;

    pub(in crate::routes) fn change(is_creation: bool, destination: &str, hop: &str) -> Change {
        Change {
            place: 0,
            route: router_route(destination, hop),
            destination: destination.parse().unwrap(),
            hop: hop.parse().unwrap(),
            is_creation,
            may_have_port: true,
        }
    }

    pub(in crate::routes) fn router_route(destination: &str, hop: &str) -> RouterRoute {
        RouterRoute {
            destination: destination.to_owned(),
            nexthop: hop.to_owned(),
        }
    }

    fn wanted(destination: &str, addresses: &[(AddressType, &str)]) -> Route {
        let addresses = addresses
            .iter()
            .map(|(kind, text)| NodeAddress::new(kind.clone(), *text));
        Route {
            name: String::new(),
            target_node: None,
            target_provider_id: None,
            next_hop: None,
            target_addresses: addresses.collect(),
            compares_addresses: false,
            destination: destination.parse().unwrap(),
            is_blackhole: false,
            is_incomplete: false,
        }
    }

    #[test]
    fn a_route_leads_through_the_first_internal_address_of_its_family() {
        let addresses = [
            (AddressType::Hostname, "n1"),
            (AddressType::ExternalIp, "203.0.113.5"),
            (AddressType::InternalIp, "2001:db8::11"),
            (AddressType::InternalIp, "10.0.0.11"),
            (AddressType::InternalIp, "10.0.0.12"),
        ];
        let hop = |destination| next_hop(&wanted(destination, &addresses), &[]).map(|hop| hop.to_string());
        assert_eq!(hop("10.244.1.0/24").unwrap(), "10.0.0.11");
        assert_eq!(hop("fd00:1::/64").unwrap(), "2001:db8::11");
        let none = next_hop(&wanted("fd00:1::/64", &addresses[3..]), &[]).unwrap_err();
        assert!(none.message().starts_with("no address found for host"), "{none}");
    }

    #[test]
    fn a_deletion_names_the_route_as_the_router_spells_it() {
        let listed = router_route("FD00:1:0::/64", "2001:DB8::11");
        let route = crate::routes::route(&listed).unwrap();
        assert_eq!(route.destination, "fd00:1::/64".parse().unwrap());
        let (results, changes) = Results::of(
            &[
                RouteChange::Delete(route.clone()),
                RouteChange::Delete(Route {
                    next_hop: None,
                    ..route
                }),
            ],
            &[],
        );
        assert_eq!(changes[0].route, listed);
        let made: Vec<bool> = results.into_inner().iter().map(Result::is_ok).collect();
        assert_eq!(made, [true, false]);
    }

    #[test]
    fn spelling_makes_no_other_route() {
        let one = router_route("fd00:1::/64", "2001:db8::11");
        assert!(is_same(&one, &router_route("FD00:1:0::/64", "2001:DB8:0::11")));
        assert!(!is_same(&one, &router_route("fd00:1::/64", "2001:db8::12")));
        assert!(is_same(
            &router_route("what", "ever"),
            &router_route("what", "ever")
        ));
        assert!(!is_same(
            &router_route("what", "ever"),
            &router_route("what", "else")
        ));
    }
}
