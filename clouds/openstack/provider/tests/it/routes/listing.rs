//! What is listed, and what a list is not believed to say.

use std::time::Duration;

use bowline_cloud_provider::{Route, RouteChange};
use bowline_openstack_sim::kit::Fault;
use bowline_openstack_sim::kit::faults::Canned;
use bowline_openstack_sim::model::network::{AddressPair, Route as RouterRoute};

use super::world::{MODES, World, count, destinations, pods, table};
use crate::world::in_one_page;

/// A world of two Nodes with a route each that somebody else made, and one with a pair for it.
fn with_routes() -> World {
    let world = World::new(2);
    let route = |node: usize| RouterRoute {
        destination: pods(node),
        nexthop: world.hop(node).parse().unwrap(),
    };
    world
        .sim
        .set_routes(world.sim.home().router, vec![route(1), route(2)]);
    give_pair(&world, 1, "10.244.0.0/16");
    world
}

fn give_pair(world: &World, node: usize, range: &str) {
    world.sim.edit_port(world.port(node), |port| {
        port.address_pairs.push(AddressPair {
            address: range.to_owned(),
            mac: port.mac.clone(),
        });
    });
}

/// The destinations of what is listed, and of that what is incomplete.
async fn listed(world: &World) -> (Vec<String>, Vec<String>) {
    let listed = world.list().await;
    let incomplete: Vec<Route> = listed
        .iter()
        .filter(|route| route.is_incomplete)
        .cloned()
        .collect();
    (destinations(&listed), destinations(&incomplete))
}

#[tokio::test(start_paused = true)]
async fn a_route_without_its_pair_is_incomplete_until_it_is_completed() {
    let mut world = with_routes();
    in_one_page(&world.sim);
    let incomplete = || (vec![pods(1), pods(2)], vec![pods(2)]);
    assert_eq!(listed(&world).await, incomplete(), "a wider pair is one, too");
    let (again, calls) = world.calls_of(listed(&world)).await;
    assert_eq!(again, incomplete(), "whether somebody asks for it or waits");
    assert_eq!(calls.len(), 2, "no look at the port: {calls:?}");
    let creation = [world.creation(2, &pods(2))];
    let port = format!("/network/v2.0/ports/{}", world.port(2));
    let fault = world.sim.faults().add(Fault::path(&*port).always().status(403));
    for _ in 0..3 {
        assert!(world.change(&creation).await[0].is_err());
        assert_eq!(world.router().len(), 2, "it was there before");
        assert_eq!(listed(&world).await, incomplete());
    }
    // Another route is made, and a pass goes by without a try for this one.
    world.make(&[world.creation(1, "10.244.77.0/24")]).await;
    assert_eq!(listed(&world).await.1, [pods(2)]);
    world.sim.faults().remove(fault);
    let (_, calls) = world.calls_of(world.make(&creation)).await;
    assert_eq!(
        calls,
        ["neutron.ports.list", "neutron.ports.update"],
        "the router has the route already"
    );
    assert_eq!(world.pairs(2), [pods(2)]);
    assert_eq!(world.router().len(), 3);
    assert!(listed(&world).await.1.is_empty());
    world.restart();
    assert!(listed(&world).await.1.is_empty());
}

/// A pair that is refused and a route that cannot be taken back, while another Node's route succeeds.
#[tokio::test(start_paused = true)]
async fn a_route_that_could_not_be_taken_back_is_incomplete_for_as_long_as_it_lacks_its_pair() {
    for mode in MODES {
        let world = World::in_mode(2, mode);
        world.list().await;
        let port = format!("/network/v2.0/ports/{}", world.port(2));
        world.sim.faults().add(Fault::path(&*port).always().status(500));
        // The second write of the router takes back what the first one added.
        let faults = world.sim.faults();
        faults.add(Fault::operation("neutron.routers.remove_extraroutes").status(500));
        faults.add(Fault::operation("neutron.routers.update").nth(2).status(500));
        let results = world.change(&world.creations()).await;
        assert_eq!(
            results.iter().filter(|result| result.is_err()).count(),
            1,
            "{mode:?}"
        );
        assert_eq!(world.router().len(), 2, "{mode:?}");
        for _ in 0..3 {
            assert_eq!(listed(&world).await.1, [pods(2)], "{mode:?}");
        }
        world.sim.faults().clear();
        world.make(&[world.creation(2, &pods(2))]).await;
        assert!(listed(&world).await.1.is_empty(), "{mode:?}");
    }
}

/// Its pair is gone and its route is not; and the Node may want the route again before the next try.
#[tokio::test(start_paused = true)]
async fn a_route_that_could_not_be_deleted_is_incomplete() {
    for mode in MODES {
        let world = World::in_mode(2, mode);
        world.list().await;
        world.make(&world.creations()).await;
        assert!(listed(&world).await.1.is_empty());
        let faults = world.sim.faults();
        let writes = ["neutron.routers.remove_extraroutes", "neutron.routers.update"];
        for write in writes {
            faults.add(Fault::operation(write).always().status(403));
        }
        let there = world.list().await.pop().unwrap();
        let results = world.change(&[RouteChange::Delete(there.clone())]).await;
        assert!(results[0].is_err(), "{mode:?}");
        let lost = destinations(&[there]);
        for _ in 0..2 {
            assert_eq!(listed(&world).await.1, lost, "{mode:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_leads_to_a_port_lives_whoever_has_it() {
    let world = with_routes();
    let listed = world.list().await;
    assert_eq!(world.routes.live(&listed).await.unwrap(), [true, true]);
    world.sim.remove_port(world.port(2));
    for asked in [&listed[..], &listed[1..]] {
        let live = world.routes.live(asked).await.unwrap();
        assert_eq!(live.last(), Some(&false), "{asked:?}");
    }
    world
        .sim
        .faults()
        .add(Fault::path("/network/v2.0/ports").always().status(500));
    assert!(world.routes.live(&listed).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn a_complete_table_is_taken_over_without_a_write() {
    let world = with_routes();
    give_pair(&world, 2, &pods(2));
    let mark = world.sim.journal().mark();
    assert_eq!(destinations(&world.list().await), [pods(1), pods(2)]);
    let entries = world.sim.journal().since(mark);
    assert!(
        entries
            .iter()
            .all(|entry| !entry.write || entry.path.starts_with("/identity"))
    );
}

#[tokio::test(start_paused = true)]
async fn nothing_is_listed_unless_everything_can_be_read() {
    let world = with_routes();
    for path in [
        "/network/v2.0/routers/**",
        "/network/v2.0/ports",
        "/network/v2.0/extensions",
    ] {
        let fault = world.sim.faults().add(Fault::path(path).always().status(403));
        let listed = table(&world.sim).list_routes("kubernetes").await;
        assert!(listed.is_err(), "{path}");
        assert!(world.sim.faults().struck(fault) > 0, "{path}");
        world.sim.faults().clear();
    }
}

#[tokio::test(start_paused = true)]
async fn without_the_extension_there_are_no_routes_until_it_is_installed() {
    let world = with_routes();
    world.set_behaviour(|behaviour| {
        behaviour
            .extensions
            .retain(|alias| !alias.starts_with("extraroute"))
    });
    let error = world.routes.list_routes("kubernetes").await.unwrap_err();
    assert!(error.message().contains("extraroute"), "{error}");
    let results = world.change(&[world.creation(1, &pods(1))]).await;
    assert!(results[0].is_err());
    world.set_behaviour(|behaviour| behaviour.extensions.push("extraroute".to_owned()));
    assert!(world.routes.list_routes("kubernetes").await.is_ok());

    // What is known is asked again after an hour.
    world.set_behaviour(|behaviour| behaviour.extensions.push("extraroute-atomic".to_owned()));
    let other = |world: &World| world.creation(1, "10.244.9.0/24");
    let (_, calls) = world.calls_of(world.make(&[other(&world)])).await;
    assert_eq!(count(&calls, &["neutron.routers.update"]), 1);
    tokio::time::sleep(Duration::from_secs(3601)).await;
    let (_, calls) = world.calls_of(world.make(&[other(&world)])).await;
    assert_eq!(count(&calls, &["neutron.routers.add_extraroutes"]), 1);
}

#[tokio::test(start_paused = true)]
async fn a_router_that_is_gone_is_told_with_its_option() {
    let world = World::new(1);
    let text = format!("Router {} could not be found", world.sim.home().router);
    let gone =
        serde_json::json!({ "NeutronError": { "type": "RouterNotFound", "message": text, "detail": "" } });
    let fault = Fault::operation("neutron.routers.get").always();
    world
        .sim
        .faults()
        .add(fault.answer(Canned::json(404, &gone.to_string())));
    let error = world.routes.list_routes("kubernetes").await.unwrap_err();
    assert!(
        error
            .message()
            .contains("correct router-id in [Route] of cloud.conf"),
        "{error}"
    );
}
