//! Nodes whose pod networks get routes, without the controller.

use std::sync::Arc;

use bowline_cloud_provider::{AddressType, CloudError, NodeAddress, NodeName, Route, RouteChange, Routes};
use bowline_openstack::routes;
use bowline_openstack_sim::kit::journal::Entry;
use bowline_openstack_sim::{Behaviour, Id, OpenstackSim, ServerSpec};

use crate::world::{builder, client};

/// The cloud and the provider's routes over it.
pub(super) struct World {
    pub(super) sim: OpenstackSim,
    pub(super) routes: Arc<dyn Routes>,
    servers: Vec<Id>,
}

/// How routers are written.
pub(super) const MODES: [&[&str]; 2] = [&["extraroute", "extraroute-atomic"], &["extraroute"]];

impl World {
    /// A cloud with so many servers `node-1`, ..., of 10.0.0.0/24 and an IPv6 network.
    pub(super) fn new(servers: usize) -> Self {
        let sim = builder()
            .private_range("10.0.0.0/22".parse().unwrap())
            .private_v6_range("2001:db8:5::/64".parse().unwrap())
            .build();
        sim.set_behaviour(|behaviour| behaviour.max_routes = 200);
        let servers = (1..=servers).map(|index| sim.add_server(ServerSpec::new(format!("node-{index}"))));
        Self {
            servers: servers.collect(),
            routes: table(&sim),
            sim,
        }
    }

    /// The same where routers are written like this.
    pub(super) fn in_mode(servers: usize, mode: &[&str]) -> Self {
        let world = Self::new(servers);
        world.set_behaviour(|behaviour| {
            behaviour
                .extensions
                .retain(|alias| !alias.starts_with("extraroute"));
            behaviour
                .extensions
                .extend(mode.iter().map(|alias| (*alias).to_owned()));
        });
        world
    }

    pub(super) fn set_behaviour(&self, change: impl FnOnce(&mut Behaviour)) {
        self.sim.set_behaviour(change);
    }

    /// A process that starts anew: nothing is remembered.
    pub(super) fn restart(&mut self) {
        self.routes = table(&self.sim);
    }

    /// The id of a Node's port.
    pub(super) fn port(&self, node: usize) -> Id {
        self.sim.ports_of(self.servers[node - 1])[0].id
    }

    /// The addresses of a Node.
    pub(super) fn addresses(&self, node: usize) -> Vec<NodeAddress> {
        let port = self.sim.port(self.port(node)).unwrap();
        let addresses = port.fixed_ips.iter().map(|fixed| fixed.address.to_string());
        addresses
            .map(|text| NodeAddress::new(AddressType::InternalIp, text))
            .collect()
    }

    /// A Node's first address that is of IPv4.
    pub(super) fn hop(&self, node: usize) -> String {
        let addresses = self.addresses(node).into_iter();
        let mut v4 = addresses.filter(|address| address.address.contains('.'));
        v4.next().unwrap().address.to_string()
    }

    /// The creation of a route to a pod network of a Node.
    pub(super) fn creation(&self, node: usize, destination: &str) -> RouteChange {
        RouteChange::Create {
            name_hint: format!("uid-{node}").into(),
            route: Route {
                name: String::new(),
                target_node: Some(NodeName::new(format!("node-{node}"))),
                target_provider_id: Some(format!("openstack:///{}", self.servers[node - 1]).into()),
                next_hop: None,
                target_addresses: self.addresses(node),
                compares_addresses: false,
                destination: destination.parse().unwrap(),
                is_blackhole: false,
                is_incomplete: false,
            },
        }
    }

    /// Creations of a route for each Node, as many as there are Nodes.
    pub(super) fn creations(&self) -> Vec<RouteChange> {
        let nodes = 1..=self.servers.len();
        nodes.map(|node| self.creation(node, &pods(node))).collect()
    }

    pub(super) async fn list(&self) -> Vec<Route> {
        self.routes.list_routes("kubernetes").await.unwrap()
    }

    /// Makes changes as the controller does: so many in a call as the provider takes.
    pub(super) async fn change(&self, changes: &[RouteChange]) -> Vec<Result<(), CloudError>> {
        let mut results = Vec::new();
        for part in changes.chunks(self.routes.changes_per_call()) {
            results.extend(self.routes.change_routes("kubernetes", part).await);
        }
        assert_eq!(results.len(), changes.len());
        results
    }

    /// Makes changes, all of which succeed.
    pub(super) async fn make(&self, changes: &[RouteChange]) {
        for result in self.change(changes).await {
            result.unwrap();
        }
    }

    /// `destination via next hop` of the router's routes.
    pub(super) fn router(&self) -> Vec<String> {
        let router = self.sim.router(self.sim.home().router).unwrap();
        let routes = router.routes.iter();
        routes
            .map(|route| format!("{} via {}", route.destination, route.nexthop))
            .collect()
    }

    /// The address pairs of a Node's port.
    pub(super) fn pairs(&self, node: usize) -> Vec<String> {
        let port = self.sim.port(self.port(node)).unwrap();
        port.address_pairs.into_iter().map(|pair| pair.address).collect()
    }

    /// The requests that arrived while `work` ran, in short, without logins and the discovery of endpoints.
    pub(super) async fn calls_of<T>(&self, work: impl Future<Output = T>) -> (T, Vec<String>) {
        let mark = self.sim.journal().mark();
        let answer = work.await;
        let entries = self.sim.journal().since(mark).into_iter();
        let calls = entries.filter(|entry| !entry.path.starts_with("/identity"));
        let operations = calls.map(|entry: Entry| entry.operation);
        (
            answer,
            operations.filter(|name| !name.contains("versions")).collect(),
        )
    }
}

/// The routes as a process has them that was just started.
pub(super) fn table(sim: &OpenstackSim) -> Arc<dyn Routes> {
    routes(&client(sim), sim.home().router.to_string().into())
}

/// The pod network of a Node.
pub(super) fn pods(node: usize) -> String {
    format!("10.244.{node}.0/24")
}

/// The destinations of listed routes.
pub(super) fn destinations(listed: &[Route]) -> Vec<String> {
    listed.iter().map(|route| route.destination.to_string()).collect()
}

/// How many of these calls have one of these names.
pub(super) fn count(calls: &[String], names: &[&str]) -> usize {
    calls.iter().filter(|call| names.contains(&call.as_str())).count()
}

/// The writes of the router.
pub(super) const ROUTER_WRITES: [&str; 3] = [
    "neutron.routers.add_extraroutes",
    "neutron.routers.remove_extraroutes",
    "neutron.routers.update",
];
