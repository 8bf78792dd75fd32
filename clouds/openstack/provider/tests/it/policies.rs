//! L7 policies that a person put on a Service's listener: Octavia names the listener in the pools that they lead to, and deletes none of
//! these.

use bowline_openstack_sim::Id;
use bowline_openstack_sim::model::balancing::{Listener, PoolProtocol, Redirect};

use crate::shared::{join, two};
use crate::world::{World, in_short, lb_name};

pub(crate) async fn two_ports() -> World {
    let world = World::with_nodes(1);
    world.set_ports("web", &[("TCP", 80, 30080), ("TCP", 443, 30443)]);
    world.run("web").await.settled();
    world
}

fn listener(world: &World, port: u16) -> Listener {
    let mut listeners = world.sim.listeners().into_iter();
    listeners.find(|it| it.port == port).unwrap()
}

async fn with_policy() -> World {
    let world = two_ports().await;
    world.sim.add_redirect(listener(&world, 443).part.id).unwrap();
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
    join(&world, "b", 81);
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
    let world = two_ports().await;
    let policy = Redirect {
        id: Id::from_u128(5),
        pool: listener(&world, 80).default_pool.unwrap(),
        is_up,
        has_rules: !is_up,
    };
    let listener = listener(&world, 443).part.id;
    world.sim.edit_listener(listener, |it| it.redirects.push(policy));
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
        let listener = listener(&world, 443).part.id;
        world.sim.edit_listener(listener, |it| it.redirects.clear());
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
    let proxied = protocols.filter(|it| *it == PoolProtocol::Proxy);
    assert_eq!(
        proxied.count(),
        2,
        "all is served, and the old one stays beside them"
    );
}

/// Nobody else would find the pool of a guest that is not there any more.
#[tokio::test(start_paused = true)]
async fn a_guest_stays_until_no_policy_of_another_listener_names_its_pool() {
    for (is_idle, is_deleted) in [(true, true), (true, false), (false, true), (false, false)] {
        let world = two(81).await;
        world.run("b").await.settled();
        let policy = |pool| Redirect {
            id: Id::from_u128(5),
            pool,
            is_up: !is_idle,
            has_rules: true,
        };
        let listener = listener(&world, 80).part.id;
        let pool = self::listener(&world, 81).default_pool.unwrap();
        world
            .sim
            .edit_listener(listener, |it| it.redirects.push(policy(pool)));
        match is_deleted {
            true => world.delete("b"),
            false => world.remove_annotation("b", "load-balancer-id"),
        }
        let held_by = match is_idle {
            true => Id::from_u128(5),
            false => listener,
        };
        for _ in 0..2 {
            let run = world.run("b").await;
            assert!(run.complaint().contains(&held_by.to_string()), "{run:#?}");
            assert_eq!(run.published_although_refused.is_some(), !is_deleted, "{run:#?}");
            // All else is gone.
            let listeners = world.sim.listeners();
            assert!(listeners.iter().all(|it| it.port != 81 || !is_deleted));
            assert_eq!(
                world.sim.pools().iter().filter(|it| it.part.id == pool).count(),
                1
            );
            let (run, writes) = world.writes_of(world.run("web")).await;
            World::assert_quiet(&run, &writes);
        }
        world.sim.edit_listener(listener, |it| it.redirects.clear());
        world.run("b").await.settled();
        assert!(world.sim.pools().iter().all(|it| it.part.id != pool));
        let shared = &world.sim.load_balancers()[0];
        assert_eq!(shared.part.meta.tags, [lb_name("web")]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_service_that_goes_is_not_held_up_by_one() {
    for cascades in [true, false] {
        for is_shared in [true, false] {
            let mut world = with_idle_policy(false).await;
            world.configure(|options| options.deletes_by_cascade = cascades);
            if is_shared {
                join(&world, "b", 81);
                world.run("b").await.settled();
            }
            world.delete("web");
            world.run("web").await.settled();
            assert_eq!(world.sim.listeners().len(), usize::from(is_shared));
            assert_eq!(world.sim.pools().len(), usize::from(is_shared));
        }
    }
}
