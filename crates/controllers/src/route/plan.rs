//! Which routes there should be, as data: a table of actions per Node and pod network, and what is to be deleted.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use bowline_cloud_provider::{Node, NodeAddress, NodeName, Route};
use ipnet::IpNet;

use crate::cluster_cidr;

/// What is to be done about the route to one pod network of one Node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// It is there.
    Keep,
    /// It is there with other addresses: deleted, then created.
    Update,
    /// It is there, and something that belongs to it is missing: created once more, and not deleted before.
    Complete,
    /// It is not there.
    Add,
    /// It is not there, and another Node with the same network has one or gets one.
    Taken,
}

/// A pod network of a Node and what is to be done about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodNetwork {
    /// The network; the text as it stands if it is none.
    pub destination: Result<IpNet, String>,
    /// What is to be done.
    pub action: Action,
}

/// The table of one Node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeTable {
    /// The Node.
    pub node: Arc<Node>,
    /// Its pod networks, in its order.
    pub networks: Vec<PodNetwork>,
    /// Whether the cloud has routes to it.
    pub has_routes: bool,
}

/// A Node whose pod network is that of other Nodes, too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shared {
    /// The Node.
    pub node: Arc<Node>,
    /// The network.
    pub destination: IpNet,
    /// The others.
    pub others: Vec<NodeName>,
}

/// What one pass is to do.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Plan {
    /// All Nodes with pod networks or routes, in name order.
    pub tables: Vec<NodeTable>,
    /// Nodes that have a pod network in common, one entry for each Node and network.
    pub shared: Vec<Shared>,
    /// The routes to delete, as they were listed.
    pub deletions: Vec<Route>,
    /// Whether nothing is created before all deletions have ended.
    pub deletes_first: bool,
}

impl Plan {
    /// Compares Nodes with routes.
    ///
    /// Rules of the route controller of Kubernetes' cloud-provider library. One more: a route without a live target that
    /// will be deleted does not count as being there, so that its successor is made in the same pass.
    #[must_use]
    pub fn new<'a>(nodes: &'a [Arc<Node>], listed: &'a [Route], cluster: &[IpNet]) -> Self {
        let targets = Targets::of(nodes, listed);
        let listed: Vec<(&Route, Vec<&NodeName>)> = listed
            .iter()
            .map(|route| (route, targets.of_route(route)))
            .collect();
        let mut of_nodes: BTreeMap<&NodeName, Vec<&Route>> = BTreeMap::new();
        for (route, nodes) in &listed {
            for node in nodes {
                of_nodes.entry(node).or_default().push(route);
            }
        }
        let mut tables: Vec<NodeTable> = nodes
            .iter()
            .filter_map(|node| {
                let routes = of_nodes.get(&node.name).map_or(&[] as &[&Route], Vec::as_slice);
                let table = NodeTable {
                    networks: networks(node, routes, cluster),
                    has_routes: !routes.is_empty(),
                    node: Arc::clone(node),
                };
                (table.has_routes || !table.networks.is_empty()).then_some(table)
            })
            .collect();
        let shared = share(&mut tables);
        let kept: BTreeSet<(&NodeName, IpNet)> = tables
            .iter()
            .flat_map(|table| {
                let kept = table
                    .networks
                    .iter()
                    .filter(|network| matches!(network.action, Action::Keep | Action::Complete));
                kept.filter_map(|network| Some((&table.node.name, *network.destination.as_ref().ok()?)))
            })
            .collect();
        let is_kept = |route: &Route, nodes: &[&NodeName]| {
            nodes
                .iter()
                .any(|node| kept.contains(&(*node, route.destination.trunc())))
        };
        let deletions = listed
            .iter()
            .filter(|(route, nodes)| {
                is_ours(&route.destination, cluster) && (route.is_blackhole || !is_kept(route, nodes))
            })
            .map(|(route, nodes)| Route {
                is_blackhole: route.is_blackhole || route.next_hop.is_some() && nodes.is_empty(),
                ..Route::clone(route)
            })
            .collect();
        Self {
            deletions,
            deletes_first: listed.first().is_some_and(|(route, _)| route.compares_addresses),
            tables,
            shared,
        }
    }

    /// Whether the cloud is as it should be.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        let is_kept = |network: &PodNetwork| matches!(network.action, Action::Keep | Action::Taken);
        self.deletions.is_empty() && self.tables.iter().all(|table| table.networks.iter().all(is_kept))
    }
}

/// Which Nodes the listed routes may lead to. Several Nodes can have one provider ID or one address: the kubelet of an instance
/// registers under another name, or a new instance gets the address of one whose Node is still there.
struct Targets<'a> {
    by_id: BTreeMap<&'a str, Vec<&'a Node>>,
    by_address: BTreeMap<IpAddr, Vec<&'a Node>>,
}

impl<'a> Targets<'a> {
    fn of(nodes: &'a [Arc<Node>], listed: &[Route]) -> Self {
        let mut by_id: BTreeMap<&str, Vec<&Node>> = BTreeMap::new();
        let mut by_address: BTreeMap<IpAddr, Vec<&Node>> = BTreeMap::new();
        let hops: BTreeSet<IpAddr> = listed.iter().filter_map(|route| route.next_hop).collect();
        for node in nodes {
            if let Some(id) = node.provider_id.as_deref() {
                by_id.entry(id).or_default().push(node);
            }
            if hops.is_empty() {
                continue;
            }
            let addresses: BTreeSet<IpAddr> = addresses(node).collect();
            for address in addresses.intersection(&hops) {
                by_address.entry(*address).or_default().push(node);
            }
        }
        Self { by_id, by_address }
    }

    /// The Nodes whose route it is; none if no Node has what it leads to. The provider ID goes before the name, as an instance
    /// may have another name than its Node.
    fn of_route(&self, route: &'a Route) -> Vec<&'a NodeName> {
        let id = route.target_provider_id.as_deref();
        let nodes = match (id.and_then(|id| self.by_id.get(id)), &route.target_node) {
            (Some(nodes), _) => Some(nodes),
            (None, Some(name)) => return vec![name],
            (None, None) => route.next_hop.and_then(|hop| self.by_address.get(&hop)),
        };
        let nodes = nodes.map_or(&[] as &[&Node], Vec::as_slice);
        let of_destination: Vec<&NodeName> = nodes
            .iter()
            .filter(|node| has_network(node, &route.destination))
            .map(|node| &node.name)
            .collect();
        if of_destination.is_empty() {
            nodes.first().map(|node| &node.name).into_iter().collect()
        } else {
            of_destination
        }
    }
}

pub(super) fn has_network(node: &Node, destination: &IpNet) -> bool {
    let mut networks = node.pod_cidrs.iter();
    networks.any(|text| cluster_cidr::pod_network(text) == Some(destination.trunc()))
}

/// One destination, one route: of several Nodes with one pod network, those that have a route to it keep it, or else the oldest gets
/// one. Clouds refuse a second one, or send packets to either.
fn share(tables: &mut [NodeTable]) -> Vec<Shared> {
    let mut by_destination: BTreeMap<IpNet, Vec<(usize, usize)>> = BTreeMap::new();
    for (at, table) in tables.iter().enumerate() {
        for (of_node, network) in table.networks.iter().enumerate() {
            if let Ok(destination) = network.destination {
                by_destination.entry(destination).or_default().push((at, of_node));
            }
        }
    }
    let mut shared = Vec::new();
    for (destination, mut places) in by_destination {
        places.dedup_by_key(|(at, _)| *at); // a Node that names it twice
        if places.len() < 2 {
            continue;
        }
        let node = |at: usize| &tables[at].node;
        places.sort_by_key(|(at, of_node)| {
            let is_open = tables[*at].networks[*of_node].action == Action::Add;
            (is_open, node(*at).created, node(*at).name.clone())
        });
        for (at, _) in &places {
            let others = places.iter().filter(|(other, _)| other != at);
            shared.push(Shared {
                node: Arc::clone(node(*at)),
                destination,
                others: others.map(|(other, _)| node(*other).name.clone()).collect(),
            });
        }
        for (at, of_node) in &places[1..] {
            let action = &mut tables[*at].networks[*of_node].action;
            if *action == Action::Add {
                *action = Action::Taken;
            }
        }
    }
    shared
}

/// The addresses of a Node, of any type, that are IP addresses.
pub(super) fn addresses(node: &Node) -> impl Iterator<Item = IpAddr> + '_ {
    let addresses = node.addresses.iter();
    addresses.filter_map(|address| address.address.parse().ok())
}

/// Whether a Node that just joined has no address yet that a route to the destination could lead through. It gets them when it
/// is initialized.
pub(super) fn lacks_address(node: &Node, destination: &IpNet) -> bool {
    let is_v4 = matches!(destination, IpNet::V4(_));
    node.is_uninitialized() && !addresses(node).any(|address| address.is_ipv4() == is_v4)
}

/// Whether routes to this destination are this cluster's: its first or last address lies in a pod network of the cluster.
#[must_use]
pub fn is_ours(destination: &IpNet, cluster: &[IpNet]) -> bool {
    cluster
        .iter()
        .any(|network| network.contains(&destination.network()) || network.contains(&destination.broadcast()))
}

fn networks(node: &Node, routes: &[&Route], cluster: &[IpNet]) -> Vec<PodNetwork> {
    let action = |destination: &IpNet| {
        let mut there = routes
            .iter()
            .filter(|route| route.destination.trunc() == *destination)
            .filter(|route| !(route.is_blackhole && is_ours(destination, cluster)))
            .peekable();
        if there.peek().is_none() {
            return Action::Add;
        }
        let right: Vec<_> = there.filter(|route| leads_to(route, node)).collect();
        match &right[..] {
            [] => Action::Update,
            all if all.iter().all(|route| route.is_incomplete) => Action::Complete,
            _ => Action::Keep,
        }
    };
    node.pod_cidrs
        .iter()
        .map(|text| match cluster_cidr::pod_network(text) {
            Some(destination) => PodNetwork {
                action: action(&destination),
                destination: Ok(destination),
            },
            None => PodNetwork {
                destination: Err(text.clone()),
                action: Action::Add,
            },
        })
        .collect()
}

/// Whether the addresses are right, where the cloud says that they count. Their order does not.
fn leads_to(route: &Route, node: &Node) -> bool {
    let has_all = |a: &[NodeAddress], b: &[NodeAddress]| a.iter().all(|address| b.contains(address));
    let (there, wanted) = (&route.target_addresses, &node.addresses);
    !route.compares_addresses
        || there.len() == wanted.len() && has_all(there, wanted) && has_all(wanted, there)
}

#[cfg(test)]
mod tests;
