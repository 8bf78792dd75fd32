//! Routes to the pod networks of Nodes.

use std::sync::Arc;

use bowline_cloud_provider::{NodeAddress, NodeName, Route, RouteChange, Routes};
use bowline_openstack::routes;
use bowline_openstack_services::Service;
use http::Method;
use serde_json::{Value, json};

use super::cluster::{addresses, client};
use super::on_both;
use crate::ground::Ground;
use crate::walk::text;

on_both! {
    routes_come_and_go_with_their_address_pairs,
    a_port_takes_so_many_address_pairs_and_no_more,
}

/// So many address pairs a port of Neutron takes, if nobody says otherwise.
const PAIRS: usize = 10;

/// Nodes whose pod networks get routes, without the controller.
struct World {
    ground: Ground,
    router: String,
    servers: Vec<String>,
    routes: Arc<dyn Routes>,
}

impl World {
    /// A cloud with so many servers `node-1`, ...
    async fn on(ground: Ground, servers: usize) -> Self {
        let routers = ground.get(Service::Network, "/v2.0/routers").await;
        let router = text_of(&routers, "/routers/0/id");
        let mut world = Self {
            routes: routes(&client(&ground), router.as_str().into()),
            ground,
            router,
            servers: Vec::new(),
        };
        for index in 1..=servers {
            let server = world.ground.server(&format!("node-{index}")).await;
            world.servers.push(server);
        }
        world
    }

    /// A process that starts anew: nothing is remembered.
    fn restart(&mut self) {
        self.routes = routes(&client(&self.ground), self.router.as_str().into());
    }

    async fn addresses(&self, node: usize) -> Vec<NodeAddress> {
        addresses(&self.ground, &self.servers[node - 1]).await
    }

    async fn creation(&self, node: usize, destination: &str) -> RouteChange {
        RouteChange::Create {
            name_hint: format!("uid-{node}").into(),
            route: Route {
                name: String::new(),
                target_node: Some(NodeName::new(format!("node-{node}"))),
                target_provider_id: Some(format!("openstack:///{}", self.servers[node - 1]).into()),
                next_hop: None,
                target_addresses: self.addresses(node).await,
                compares_addresses: false,
                destination: destination.parse().unwrap(),
                is_blackhole: false,
                is_incomplete: false,
            },
        }
    }

    /// Makes changes in one call; answers what went wrong.
    async fn change(&self, changes: &[RouteChange]) -> Vec<String> {
        let results = self.routes.change_routes("kubernetes", changes).await;
        assert_eq!(results.len(), changes.len());
        let errors = results.into_iter().filter_map(Result::err);
        errors.map(|error| error.to_string()).collect()
    }

    async fn list(&self) -> Vec<Route> {
        let mut listed = self.routes.list_routes("kubernetes").await.unwrap();
        listed.sort_by_key(|route| route.destination);
        listed
    }

    async fn delete_all(&self) {
        let deletions: Vec<_> = self.list().await.into_iter().map(RouteChange::Delete).collect();
        assert!(self.change(&deletions).await.is_empty());
    }

    /// `destination via next hop` of the router's routes.
    async fn router(&self) -> Vec<String> {
        let path = format!("/v2.0/routers/{}", self.router);
        let router = self.ground.get(Service::Network, &path).await;
        let routes = router.pointer("/router/routes").and_then(Value::as_array);
        let routes = routes.unwrap().iter();
        let mut routes: Vec<String> = routes
            .map(|route| format!("{} via {}", text(route, "/destination"), text(route, "/nexthop")))
            .collect();
        routes.sort();
        routes
    }

    async fn port(&self, node: usize) -> Value {
        let path = format!("/v2.0/ports?device_id={}", self.servers[node - 1]);
        self.ground.get(Service::Network, &path).await["ports"][0].clone()
    }

    /// The address pairs of a Node's port.
    async fn pairs(&self, node: usize) -> Vec<String> {
        let port = self.port(node).await;
        let pairs = port["allowed_address_pairs"].as_array().unwrap().iter();
        pairs.map(|pair| text(pair, "/ip_address").to_owned()).collect()
    }

    /// A person takes the address pairs off the port of a Node.
    async fn take_pairs_off(&self, node: usize) {
        let path = format!("/v2.0/ports/{}", text(&self.port(node).await, "/id"));
        let body = json!({ "port": { "allowed_address_pairs": [] } });
        let session = self.ground.session();
        let answer = session
            .call(Service::Network, Method::PUT, &path, Some(body))
            .await;
        answer.unwrap().ok().unwrap();
    }
}

fn text_of(value: &Value, pointer: &str) -> String {
    value.pointer(pointer).and_then(Value::as_str).unwrap().to_owned()
}

async fn routes_come_and_go_with_their_address_pairs(ground: Ground) {
    let mut world = World::on(ground, 2).await;
    assert!(world.list().await.is_empty());
    let both = [
        world.creation(1, "10.244.1.0/24").await,
        world.creation(2, "10.244.2.0/24").await,
    ];
    assert_eq!(world.change(&both).await, [""; 0]);
    let mut expected = Vec::new();
    for node in [1, 2] {
        let hop = world.addresses(node).await[0].address.to_string();
        expected.push(format!("10.244.{node}.0/24 via {hop}"));
        assert_eq!(world.pairs(node).await, [format!("10.244.{node}.0/24")]);
    }
    assert_eq!(world.router().await, expected);
    assert_eq!(world.change(&both).await, [""; 0], "the same once more");
    assert_eq!(world.router().await, expected);

    world.take_pairs_off(1).await;
    world.restart();
    let are_incomplete: Vec<bool> = world
        .list()
        .await
        .iter()
        .map(|route| route.is_incomplete)
        .collect();
    assert_eq!(are_incomplete, [true, false]);
    assert_eq!(world.change(&both[..1]).await, [""; 0]);
    assert_eq!(world.pairs(1).await, ["10.244.1.0/24"]);
    assert!(world.list().await.iter().all(|route| !route.is_incomplete));

    world.delete_all().await;
    assert!(world.router().await.is_empty());
    assert!(world.pairs(1).await.is_empty() && world.pairs(2).await.is_empty());
}

async fn a_port_takes_so_many_address_pairs_and_no_more(ground: Ground) {
    let world = World::on(ground, 1).await;
    let mut creations = Vec::new();
    for index in 0..=PAIRS {
        creations.push(world.creation(1, &format!("10.244.{index}.0/24")).await);
    }
    let errors = world.change(&creations).await;
    assert_eq!(errors.len(), 1, "{errors:?}");
    assert!(errors[0].contains("address pair"), "{errors:?}");
    assert_eq!(world.pairs(1).await.len(), PAIRS);
    assert_eq!(world.router().await.len(), PAIRS);
    let listed = world.list().await;
    assert!(listed.iter().all(|route| !route.is_incomplete), "{listed:?}");
    world.delete_all().await;
    assert!(world.router().await.is_empty() && world.pairs(1).await.is_empty());
}
