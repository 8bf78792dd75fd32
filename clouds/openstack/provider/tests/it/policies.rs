//! L7 policies that a person put on a Service's listener: Octavia names the listener in the pools that they lead to, and deletes none of
//! these.

use crate::world::{World, service};

async fn with_policy() -> World {
    let world = World::with_nodes(1);
    world.set_ports("web", &[("TCP", 80, 30080), ("TCP", 443, 30443)]);
    world.run("web").await.settled();
    let listeners = world.sim.listeners();
    let listener = listeners.iter().find(|it| it.port == 443).unwrap();
    world.sim.add_redirect(listener.part.id).unwrap();
    world
}

#[tokio::test(start_paused = true)]
async fn a_listener_with_one_is_served_as_before() {
    let mut world = with_policy().await;
    world.assert_settled("web").await;
    world.add_node("node-2");
    world.run("web").await.settled();
    assert_eq!(world.sim.members().len(), 4);
    world.assert_settled("web").await;
}

#[tokio::test(start_paused = true)]
async fn a_listener_with_one_goes_and_the_other_pool_stays() {
    let world = with_policy().await;
    world.set_ports("web", &[("TCP", 80, 30080)]);
    world.run("web").await.settled();
    assert_eq!(world.sim.listeners().len(), 1);
    let names = world.sim.pools().into_iter().map(|pool| pool.part.name);
    let names: Vec<String> = names.collect();
    assert_eq!(names, ["pool_0_kube_service_lab_default_web", "elsewhere"]);
    let (run, writes) = world.writes_of(world.run("web")).await;
    World::assert_quiet(&run, &writes);
}

#[tokio::test(start_paused = true)]
async fn a_service_that_shares_a_load_balancer_goes_all_the_same() {
    let world = with_policy().await;
    world.put(service("b", &[("TCP", 81, 30081)]));
    let id = world.annotation("web", "load-balancer-id").unwrap();
    world.annotate("b", "load-balancer-id", &id);
    world.run("b").await.settled();
    world.delete("web");
    world.run("web").await.settled();
    assert_eq!(world.sim.listeners().len(), 1);
    let (run, writes) = world.writes_of(world.run("b")).await;
    World::assert_quiet(&run, &writes);
}
