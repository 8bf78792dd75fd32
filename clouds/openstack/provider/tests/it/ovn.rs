//! Load balancers of the provider `ovn`, whose driver does in several steps what Octavia does in one.

use bowline_openstack_sim::Provisioning;
use bowline_openstack_sim::kit::journal::Entry;

use crate::persistence::stick;
use crate::shared::join;
use crate::world::World;

const PORTS: [(&str, i32, i32); 2] = [("TCP", 80, 30080), ("TCP", 443, 30443)];

async fn served() -> World {
    let mut world = World::with_nodes(2);
    world.configure(|options| {
        options.provider = "ovn".into();
        options.method = "SOURCE_IP_PORT".into();
    });
    world.set_ports("web", &PORTS);
    world.run("web").await.settled();
    world
}

/// Those that Octavia took: it refuses some while a new load balancer's parts are made.
fn taken(writes: &[Entry]) -> Vec<&str> {
    let taken = writes
        .iter()
        .filter(|call| call.status().is_some_and(|status| status < 300));
    taken.map(|call| call.operation.as_str()).collect()
}

fn is_sticky(world: &World) -> bool {
    !world.sim.load_balancers()[0].sticky.is_empty()
}

/// It settles, says nothing, and all pools are well.
async fn assert_well(world: &World, service: &str) {
    let run = world.run(service).await.settled();
    assert_eq!(run.reasons(), [""; 0], "{run:#?}");
    let states = world.sim.pools().into_iter().map(|pool| pool.part.status);
    assert!(states.into_iter().all(|state| state == Provisioning::Active));
    world.assert_settled(service).await;
}

#[tokio::test(start_paused = true)]
async fn session_affinity_comes_and_goes_and_no_pool_fails() {
    let world = served().await;
    stick(&world, "ClientIP");
    let (_, writes) = world.writes_of(assert_well(&world, "web")).await;
    assert_eq!(taken(&writes), ["octavia.pools.update"; 2]);
    assert!(is_sticky(&world));
    // OVN ends it with a pool only: others take their place, and their members are there before.
    stick(&world, "None");
    assert_well(&world, "web").await;
    assert!(!is_sticky(&world));
    assert_eq!((world.sim.pools().len(), world.sim.members().len()), (2, 4));
}

#[tokio::test(start_paused = true)]
async fn a_pool_that_goes_leaves_the_others_their_session_affinity() {
    for is_guest in [false, true] {
        let world = served().await;
        stick(&world, "ClientIP");
        assert_well(&world, "web").await;
        match is_guest {
            false => {
                world.set_ports("web", &PORTS[..1]);
                assert_well(&world, "web").await;
            }
            true => {
                join(&world, "b", 81);
                world.run("b").await.settled();
                world.delete("b");
                world.run("b").await.settled();
            }
        }
        assert!(is_sticky(&world), "{is_guest}");
        assert_well(&world, "web").await;
    }
}

/// Octavia says that the load balancer is `ACTIVE`, and still shows what is to go.
#[tokio::test(start_paused = true)]
async fn what_goes_a_moment_later_is_waited_for() {
    let mut world = served().await;
    world.remove_node("node-2");
    let (_, writes) = world.writes_of(assert_well(&world, "web")).await;
    assert_eq!(
        (taken(&writes).len(), world.sim.members().len()),
        (2, 2),
        "{writes:#?}"
    );
    world.set_ports("web", &PORTS[..1]);
    let (_, writes) = world.writes_of(assert_well(&world, "web")).await;
    assert_eq!(
        (taken(&writes).len(), world.sim.pools().len()),
        (2, 1),
        "{writes:#?}"
    );
    join(&world, "b", 81);
    world.run("b").await.settled();
    world.delete("b");
    let (run, writes) = world.writes_of(world.run("b")).await;
    assert_eq!(run.settled().reasons(), [""; 0]);
    assert_eq!(
        taken(&writes),
        [
            "octavia.pools.delete",
            "octavia.listeners.delete",
            "octavia.loadbalancers.update"
        ]
    );
}
