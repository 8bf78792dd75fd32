//! Routes to pod networks.

use bowline_cloud_provider::{
    AddressType, CloudError, CloudProvider, ErrorKind, NodeAddress, NodeName, Route, RouteChange, Routes,
};
use bowline_paper_sim::kit::Fault;
use bowline_paper_sim::model;
use http::Method;

use crate::world::{World, provider};

fn route(node: &str, destination: &str) -> Route {
    Route {
        name: String::new(),
        target_node: Some(NodeName::new(node)),
        target_provider_id: None,
        next_hop: None,
        target_addresses: vec![
            NodeAddress::new(AddressType::Hostname, node),
            NodeAddress::new(AddressType::InternalIp, "10.60.0.2"),
            NodeAddress::new(AddressType::ExternalIp, "198.19.0.2"),
        ],
        compares_addresses: false,
        destination: destination.parse().unwrap(),
        is_blackhole: false,
        is_incomplete: false,
    }
}

/// Makes one change.
async fn change(routes: &dyn Routes, change: RouteChange) -> Result<(), CloudError> {
    let mut results = routes.change_routes("kubernetes", &[change]).await;
    assert_eq!(results.len(), 1);
    results.remove(0)
}

async fn create(routes: &dyn Routes, hint: &str, route: &Route) -> Result<(), CloudError> {
    let (name_hint, route) = (hint.into(), route.clone());
    change(routes, RouteChange::Create { name_hint, route }).await
}

async fn delete(routes: &dyn Routes, route: &Route) -> Result<(), CloudError> {
    change(routes, RouteChange::Delete(route.clone())).await
}

/// A route that somebody else made.
fn others(destination: &str, cluster: Option<&str>) -> model::Route {
    model::Route {
        id: uuid::Uuid::nil(),
        destination: destination.parse().unwrap(),
        machine: None,
        cluster: cluster.map(str::to_owned),
        description: String::new(),
        via: Vec::new(),
        blackhole: false,
    }
}

#[tokio::test(start_paused = true)]
async fn a_route_is_created_listed_and_deleted() {
    let world = World::new(1);
    let routes = world.cloud.routes().unwrap();
    create(&*routes, "uid-n1", &route("n1", "10.200.1.0/24"))
        .await
        .unwrap();
    create(&*routes, "uid-n1", &route("n1", "fd00:1::/64"))
        .await
        .unwrap();
    let listed = routes.list_routes("kubernetes").await.unwrap();
    assert_eq!(listed.len(), 2);
    assert_eq!(listed[0].target_node, Some(NodeName::new("n1")));
    assert_eq!(listed[0].destination.to_string(), "10.200.1.0/24");
    assert!(!listed[0].is_blackhole && !listed[0].compares_addresses);
    assert_eq!(world.sim.routes()[0].description, "uid-n1");
    delete(&*routes, &listed[0]).await.unwrap();
    delete(&*routes, &listed[0]).await.unwrap(); // gone is gone
    assert_eq!(world.sim.routes().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_machine_of_another_name_is_found_by_its_provider_id() {
    let world = World::new(2);
    let routes = world.cloud.routes().unwrap();
    let id = world.nodes[1].provider_id.clone();
    let wanted = Route {
        target_provider_id: id.clone(),
        ..route("renamed", "10.200.1.0/24")
    };
    create(&*routes, "uid", &wanted).await.unwrap();
    assert_eq!(world.sim.routes()[0].machine, Some(world.sim.machines()[1].id));
    let listed = routes.list_routes("kubernetes").await.unwrap();
    assert_eq!(listed[0].target_provider_id, id);
    // An ID that is no machine's is never made up for by a name.
    let foreign = Route {
        target_provider_id: Some("aws:///eu/i-1".into()),
        ..route("n1", "10.200.2.0/24")
    };
    assert!(create(&*routes, "uid", &foreign).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn of_several_changes_each_has_an_answer_of_its_own() {
    let world = World::new(2);
    let routes = world.cloud.routes().unwrap();
    create(&*routes, "uid", &route("n1", "10.200.1.0/24"))
        .await
        .unwrap();
    let listed = routes.list_routes("kubernetes").await.unwrap();
    let new = |node, destination| RouteChange::Create {
        name_hint: "uid".into(),
        route: route(node, destination),
    };
    let changes = [
        new("n1", "10.200.2.0/24"),
        new("nobody", "10.200.3.0/24"),
        RouteChange::Delete(listed[0].clone()),
        new("n2", "10.200.4.0/24"),
    ];
    let results = routes.change_routes("kubernetes", &changes).await;
    let made: Vec<bool> = results.iter().map(Result::is_ok).collect();
    assert_eq!(made, [true, false, true, true]);
    let there = world.sim.routes();
    let there: Vec<String> = there.iter().map(|route| route.destination.to_string()).collect();
    assert_eq!(there, ["10.200.2.0/24", "10.200.4.0/24"]);
}

#[tokio::test(start_paused = true)]
async fn only_what_bears_the_clusters_name_is_listed() {
    let world = World::new(0);
    for cluster in [None, Some("other"), Some("kubernetes")] {
        let destination = format!("10.{}.0.0/16", world.sim.routes().len());
        world.sim.add_route(others(&destination, cluster));
    }
    let listed = world
        .cloud
        .routes()
        .unwrap()
        .list_routes("kubernetes")
        .await
        .unwrap();
    let shown: Vec<_> = listed
        .iter()
        .map(|route| (route.destination.to_string(), &route.target_node))
        .collect();
    assert_eq!(shown, [("10.2.0.0/16".to_owned(), &None)]);
}

#[tokio::test(start_paused = true)]
async fn the_route_of_a_removed_machine_is_a_blackhole_without_a_target() {
    let world = World::new(1);
    let routes = world.cloud.routes().unwrap();
    create(&*routes, "uid", &route("n1", "10.200.1.0/24"))
        .await
        .unwrap();
    world.sim.remove_machine(world.sim.machines()[0].id);
    let listed = routes.list_routes("kubernetes").await.unwrap();
    assert!(listed[0].is_blackhole && listed[0].target_node.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_creation_whose_answer_was_lost_is_a_success_when_it_is_tried_again() {
    let world = World::new(2);
    let routes = world.cloud.routes().unwrap();
    world
        .sim
        .faults()
        .add(Fault::on(Method::POST, "/v1/routes").lose_answer());
    let wanted = route("n1", "10.200.1.0/24");
    assert!(create(&*routes, "uid", &wanted).await.is_err());
    create(&*routes, "uid", &wanted).await.unwrap();
    assert_eq!(world.sim.routes().len(), 1);
    // The same destination to another machine is somebody's mistake, not a success.
    let error = create(&*routes, "uid", &route("n2", "10.200.1.0/24"))
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
}

#[tokio::test(start_paused = true)]
async fn with_the_switch_a_route_tells_which_addresses_it_was_made_for() {
    let mut world = World::new(1);
    world.cloud = provider(&world.sim, "routesByAddress: true");
    let routes = world.cloud.routes().unwrap();
    let wanted = route("n1", "10.200.1.0/24");
    create(&*routes, "uid", &wanted).await.unwrap();
    let listed = routes.list_routes("kubernetes").await.unwrap().remove(0);
    assert!(listed.compares_addresses);
    assert_eq!(listed.target_addresses, wanted.target_addresses);
    // The machine moves, the route stays: the comparison with the Node's new addresses fails, as it should.
    let moved = |machine: &mut model::Machine| machine.private = vec!["10.60.9.9".parse().unwrap()];
    world.sim.change_machine(world.sim.machines()[0].id, moved);
    let listed = routes.list_routes("kubernetes").await.unwrap().remove(0);
    assert_eq!(listed.target_addresses, wanted.target_addresses);
}

#[tokio::test(start_paused = true)]
async fn a_listing_that_fails_lists_nothing() {
    let world = World::new(1);
    let routes = world.cloud.routes().unwrap();
    create(&*routes, "uid", &route("n1", "10.200.1.0/24"))
        .await
        .unwrap();
    for path in ["/v1/routes", "/v1/machines"] {
        let id = world
            .sim
            .faults()
            .add(Fault::on(Method::GET, path).always().status(503));
        assert!(routes.list_routes("kubernetes").await.is_err());
        world.sim.faults().remove(id);
    }
    // A machine that the other listing lacks: one of the two is not whole.
    let empty = bowline_paper_sim::kit::faults::Canned::json(200, r#"{"items": [], "next": null}"#);
    world
        .sim
        .faults()
        .add(Fault::on(Method::GET, "/v1/machines").answer(empty));
    assert!(routes.list_routes("kubernetes").await.is_err());
}
