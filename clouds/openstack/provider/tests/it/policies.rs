//! L7 policies that a person put on a Service's listener: Octavia names the listener in the pools that they lead to, and deletes none of
//! these.

use bowline_openstack_sim::Id;
use bowline_openstack_sim::model::balancing::Redirect;

use crate::world::{World, in_short, service};

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

/// A policy of the listener 443 that names the pool of the port 80. It is switched off, or has no rules yet: the pool does not show it,
/// and Octavia does not delete the pool.
async fn with_idle_policy(is_up: bool) -> World {
    let world = World::with_nodes(1);
    world.set_ports("web", &[("TCP", 80, 30080), ("TCP", 443, 30443)]);
    world.run("web").await.settled();
    let listeners = world.sim.listeners();
    let of = |port| listeners.iter().find(|it| it.port == port).unwrap();
    let policy = Redirect {
        id: Id::from_u128(5),
        pool: of(80).default_pool.unwrap(),
        is_up,
        has_rules: !is_up,
    };
    world
        .sim
        .edit_listener(of(443).part.id, |it| it.redirects.push(policy));
    world
}

#[tokio::test(start_paused = true)]
async fn one_that_bars_the_removal_of_a_pool_is_told_of_and_holds_up_nothing_else() {
    for is_up in [false, true] {
        let mut world = with_idle_policy(is_up).await;
        world.set_ports("web", &[("TCP", 443, 30443), ("TCP", 81, 30081)]);
        world.add_node("node-2");
        let run = world.run("web").await;
        let policy = Id::from_u128(5).to_string();
        assert!(run.complaint().contains(&policy), "{run:#?}");
        assert!(run.complaint().contains("somebody made that policy"), "{run:#?}");
        let mut ports: Vec<u16> = world.sim.listeners().iter().map(|it| it.port).collect();
        ports.sort_unstable();
        assert_eq!(ports, [81, 443], "{is_up}");
        let (run, writes) = world.writes_of(world.run("web")).await;
        assert!(run.complaint().contains(&policy), "{run:#?}");
        assert_eq!(in_short(&writes), ["octavia.pools.delete"]);
        let listener = world.sim.listeners().into_iter().find(|it| it.port == 443);
        world
            .sim
            .edit_listener(listener.unwrap().part.id, |it| it.redirects.clear());
        world.run("web").await.settled();
        assert_eq!(world.sim.pools().len(), 2);
        world.assert_settled("web").await;
    }
}

/// Another protocol takes another pool.
#[tokio::test(start_paused = true)]
async fn one_that_bars_another_pool_for_a_port_is_told_of() {
    let world = with_idle_policy(false).await;
    world.annotate("web", "proxy-protocol", "true");
    let run = world.run("web").await;
    assert!(run.complaint().contains("in use by L7 policy"), "{run:#?}");
    let protocols = world.sim.pools().into_iter().map(|pool| pool.protocol);
    let proxied = protocols.filter(|it| *it == bowline_openstack_sim::model::balancing::PoolProtocol::Proxy);
    assert_eq!(proxied.count(), 1, "that of the other port");
}

#[tokio::test(start_paused = true)]
async fn a_guest_that_leaves_is_not_held_up_by_one() {
    let world = World::with_nodes(1);
    world.run("web").await.settled();
    world.put(service("b", &[("TCP", 81, 30081)]));
    let id = world.annotation("web", "load-balancer-id").unwrap();
    world.annotate("b", "load-balancer-id", &id);
    world.run("b").await.settled();
    let listeners = world.sim.listeners();
    let of = |port| listeners.iter().find(|it| it.port == port).unwrap();
    let policy = Redirect {
        id: Id::from_u128(5),
        pool: of(81).default_pool.unwrap(),
        is_up: false,
        has_rules: true,
    };
    world
        .sim
        .edit_listener(of(80).part.id, |it| it.redirects.push(policy));
    world.remove_annotation("b", "load-balancer-id");
    world.run("b").await;
    assert_eq!(
        world.sim.load_balancers()[0].part.meta.tags,
        ["kube_service_lab_default_web"]
    );
    let (run, writes) = world.writes_of(world.run("b")).await;
    World::assert_quiet(&run, &writes);
}

#[tokio::test(start_paused = true)]
async fn a_service_that_goes_is_not_held_up_by_one() {
    for cascades in [true, false] {
        for is_shared in [true, false] {
            let mut world = with_idle_policy(false).await;
            world.configure(|options| options.deletes_by_cascade = cascades);
            if is_shared {
                world.put(service("b", &[("TCP", 81, 30081)]));
                let id = world.annotation("web", "load-balancer-id").unwrap();
                world.annotate("b", "load-balancer-id", &id);
                world.run("b").await.settled();
            }
            world.delete("web");
            world.run("web").await.settled();
            assert_eq!(world.sim.listeners().len(), usize::from(is_shared));
            assert_eq!(world.sim.pools().len(), usize::from(is_shared));
        }
    }
}
