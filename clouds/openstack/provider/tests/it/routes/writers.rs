//! Several who write at the same time lose nothing.

use std::time::Duration;

use bowline_openstack_sim::OpenstackSim;
use bowline_openstack_sim::model::network::Route as RouterRoute;
use futures::future::join_all;

use super::world::{MODES, World, pods, table};

/// Makes every request take long enough for others to come between.
fn slow(sim: &OpenstackSim) {
    use bowline_openstack_sim::kit::Fault;
    let fault = Fault::any().always().delay(Duration::from_millis(50));
    sim.faults().add(fault);
}

#[tokio::test(start_paused = true)]
async fn two_managers_lose_no_route_of_each_other() {
    for mode in MODES {
        let world = World::in_mode(6, mode);
        slow(&world.sim);
        let managers = (1..=2).map(|_| table(&world.sim));
        let changes = world.creations();
        let parts: Vec<_> = managers.zip(changes.chunks(3)).collect();
        let calls = parts
            .iter()
            .map(|(routes, part)| routes.change_routes("kubernetes", part));
        for result in join_all(calls).await.into_iter().flatten() {
            result.unwrap();
        }
        assert_eq!(world.router().len(), 6, "{mode:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn two_managers_lose_no_pair_of_a_port() {
    let world = World::new(1);
    slow(&world.sim);
    let one = [world.creation(1, &pods(1))];
    let two = [world.creation(1, "fd00:1::/64")];
    let (first, second) = (table(&world.sim), table(&world.sim));
    let calls = [
        first.change_routes("kubernetes", &one),
        second.change_routes("kubernetes", &two),
    ];
    for result in join_all(calls).await.into_iter().flatten() {
        result.unwrap();
    }
    let mut pairs = world.pairs(1);
    pairs.sort();
    assert_eq!(pairs, [pods(1), "fd00:1::/64".to_owned()]);
}

#[tokio::test(start_paused = true)]
async fn a_route_that_somebody_adds_meanwhile_stays() {
    let world = World::in_mode(1, MODES[1]);
    world.list().await;
    slow(&world.sim);
    let changes = world.creations();
    let by_hand = async {
        // After the router was read, before it is written.
        tokio::time::sleep(Duration::from_millis(75)).await;
        world.sim.edit_router(world.sim.home().router, |router| {
            router.routes.push(RouterRoute {
                destination: "192.168.0.0/16".to_owned(),
                nexthop: "10.0.0.2".parse().unwrap(),
            });
        });
    };
    futures::join!(world.make(&changes), by_hand);
    assert_eq!(world.router().len(), 2);
}
