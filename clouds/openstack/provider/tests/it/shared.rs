//! Load balancers that several Services use.

use std::time::Duration;

use bowline_kit::Interruption;

use crate::world::{Outcome, World, in_short, lb_name, service};

/// Service `web` with the port 80, and `b` with another port on its load balancer.
pub(crate) async fn two(port: i32) -> World {
    let world = World::with_nodes(1);
    world.run("web").await.settled();
    join(&world, "b", port);
    world
}

pub(crate) fn join(world: &World, name: &str, port: i32) {
    world.put(service(name, &[("TCP", port, 30_000 + port)]));
    let id = world.annotation("web", "load-balancer-id").unwrap();
    world.annotate(name, "load-balancer-id", &id);
}

#[tokio::test(start_paused = true)]
async fn a_second_service_gets_listeners_and_the_same_address() {
    let world = two(81).await;
    let run = world.run("b").await.settled();
    assert_eq!(
        run.published(),
        [world.annotation("web", "load-balancer-address").unwrap()]
    );
    let state = world.sim.snapshot();
    assert_eq!(state.load_balancers[0].tags, [lb_name("web"), lb_name("b")]);
    assert_eq!(state.load_balancers[0].listeners.len(), 2);
    assert_eq!(state.floating_ips.len(), 1);
    world.assert_settled("b").await;
    world.assert_settled("web").await;
    // One more is too many.
    join(&world, "c", 82);
    let run = world.run("c").await;
    assert!(
        run.complaint()
            .contains("already shared with 2 Services; max-shared-lb of "),
        "{}",
        run.complaint()
    );
}

/// A person deleted the listener of a guest; its pool has to go too, and nobody else's.
#[tokio::test(start_paused = true)]
async fn a_pool_without_its_listener_goes_with_its_service() {
    let world = two(81).await;
    world.run("b").await.settled();
    let own = format!("listener_0_{}", lb_name("b"));
    let listeners = world.sim.listeners();
    let listener = listeners.iter().find(|it| it.part.name == own).unwrap();
    world.sim.delete_listener(listener.part.id);
    world.delete("b");
    let (run, writes) = world.writes_of(world.run("b")).await;
    run.settled();
    assert_eq!(
        in_short(&writes),
        ["octavia.pools.delete", "octavia.loadbalancers.update"]
    );
    let pools: Vec<String> = world.sim.pools().into_iter().map(|it| it.part.name).collect();
    assert_eq!(pools, [format!("pool_0_{}", lb_name("web"))]);
    world.assert_settled("web").await;
}

/// From its first write on, a guest counts as a user: the owner's deletion leaves it what it made so far.
#[tokio::test(start_paused = true)]
async fn a_guest_says_that_it_is_there_before_it_makes_anything() {
    let world = two(81).await;
    world.run_with("b", Interruption::AfterStep(1)).await;
    assert_eq!(
        world.sim.snapshot().load_balancers[0].tags,
        [lb_name("web"), lb_name("b")]
    );
    world.delete("web");
    world.run("web").await.settled();
    assert_eq!(world.sim.snapshot().load_balancers.len(), 1);
    world.run("b").await.settled();
    world.assert_settled("b").await;
}

#[tokio::test(start_paused = true)]
async fn of_two_guests_that_join_at_once_only_as_many_as_may_do() {
    let world = two(81).await;
    join(&world, "c", 82);
    let (b, c) = tokio::join!(world.run("b"), world.run("c"));
    let refused: Vec<String> = [b, c]
        .into_iter()
        .filter(|run| !matches!(run.outcome, Outcome::Settled(_)))
        .map(|run| run.complaint().to_owned())
        .collect();
    assert_eq!(refused.len(), 1, "{refused:?}");
    assert!(
        refused[0].contains("already shared with 2 Services"),
        "{refused:?}"
    );
    assert_eq!(world.sim.snapshot().load_balancers[0].tags.len(), 2);
    assert_eq!(world.sim.snapshot().load_balancers[0].listeners.len(), 2);
}

/// Both joined before either had a listener: the place of the one that came too late is free for others.
#[tokio::test(start_paused = true)]
async fn a_guest_that_joined_in_vain_takes_its_tag_back() {
    let mut world = two(81).await;
    world.configure(|options| options.max_shared = 3);
    join(&world, "c", 81);
    world.run_with("c", Interruption::AfterStep(1)).await;
    world.run("b").await.settled();
    assert_eq!(world.sim.snapshot().load_balancers[0].tags.len(), 3);
    for writes in [1, 0] {
        let (run, made) = world.writes_of(world.run("c")).await;
        assert!(
            run.complaint()
                .starts_with("the listener port 81 already exists; "),
            "{run:#?}"
        );
        assert_eq!(made.len(), writes);
    }
    assert_eq!(
        world.sim.snapshot().load_balancers[0].tags,
        [lb_name("web"), lb_name("b")]
    );
    join(&world, "d", 82);
    world.run("d").await.settled();
    world.assert_settled("b").await;
    world.assert_settled("web").await;
}

/// The other one would be dead, and nobody would have told it.
#[tokio::test(start_paused = true)]
async fn an_owner_that_is_made_internal_leaves_the_floating_ip_as_long_as_a_guest_uses_it() {
    let world = two(81).await;
    let address = world.run("b").await.settled().published();
    world.annotate("web", "internal", "true");
    for writes in [0, 0] {
        let (run, made) = world.writes_of(world.run("web")).await;
        let text = format!(
            "Service default/web is internal, and floating IP {} still leads to its load balancer ",
            address[0]
        );
        assert!(run.complaint().starts_with(&text), "{run:#?}");
        assert!(
            run.complaint()
                .contains(&format!("other Services use that: {}; delete", lb_name("b"))),
            "{run:#?}"
        );
        let vip = world.sim.load_balancers()[0].vip.fixed_ip.address.to_string();
        let told = run.published_although_refused.as_ref().unwrap();
        assert_eq!(told.ingress[0].ip.as_deref(), Some(vip.as_str()));
        assert_eq!(made.len(), writes);
    }
    world.assert_settled("b").await;
    world.delete("b");
    world.run("b").await.settled();
    world.services.forget("b");
    world.run("web").await.settled();
    assert!(world.sim.floating_ips().is_empty());
}

#[tokio::test(start_paused = true)]
async fn two_that_go_at_once_leave_nothing() {
    let world = two(81).await;
    world.run("b").await.settled();
    world.delete("web");
    world.delete("b");
    let (web, b) = tokio::join!(world.run("web"), world.run("b"));
    web.settled();
    b.settled();
    assert_eq!(world.sim.leftovers(), Vec::<String>::new());
}

/// Go's sync names it after the Service, Go's update of the nodes after the load balancer.
#[tokio::test(start_paused = true)]
async fn a_monitor_that_is_named_after_the_load_balancer_stays() {
    let mut world = two(81).await;
    world.configure(|options| options.monitor.is_wanted = true);
    world.run("b").await.settled();
    let name = format!("monitor_0_{}", lb_name("b"));
    let monitors = world.sim.health_monitors();
    let monitor = monitors.iter().find(|monitor| monitor.part.name == name);
    world
        .sim
        .edit_health_monitor(monitor.unwrap().part.id, |monitor| {
            monitor.part.name = format!("monitor_0_{}", lb_name("web"));
        });
    world.assert_settled("b").await;
}

#[tokio::test(start_paused = true)]
async fn a_port_that_somebody_else_has_is_refused_whatever_its_protocol() {
    let world = two(80).await;
    let there = world.sim.listeners().remove(0);
    let balancer = world.sim.load_balancers().remove(0);
    let refused = format!(
        "the listener port 80 already exists; listener {} ({}) of load balancer {} has it: choose another port or load balancer",
        there.part.id, there.part.name, balancer.part.id
    );
    let (run, writes) = world.writes_of(world.run("b")).await;
    assert_eq!(run.complaint(), refused);
    world.annotate("b", "x-forwarded-for", "true");
    assert_eq!(world.run("b").await.complaint(), refused);
    assert!(writes.is_empty());
}

/// Each waits for what the other one has.
#[tokio::test(start_paused = true)]
async fn two_services_that_swap_their_ports_get_them_whoever_comes_first() {
    for order in [["web", "b"], ["b", "web"]] {
        let mut world = two(81).await;
        world.run("b").await.settled();
        let address = world.annotation("web", "load-balancer-address");
        world.set_ports("web", &[("TCP", 443, 30443), ("TCP", 81, 30080)]);
        world.set_ports("b", &[("TCP", 80, 30081)]);
        let (run, writes) = world.writes_of(world.run(order[0])).await;
        assert!(run.complaint().contains("already exists"), "{run:#?}");
        assert_eq!(
            in_short(&writes),
            ["octavia.pools.delete", "octavia.listeners.delete"]
        );
        // Nothing else goes while the other one has not done its part, and the refusal stays.
        world.restart();
        let (run, writes) = world.writes_of(world.run(order[0])).await;
        assert!(run.complaint().contains("already exists"), "{run:#?}");
        assert!(writes.is_empty(), "{:?}", in_short(&writes));
        for name in [order[1], order[0]] {
            world.run(name).await.settled();
        }
        for name in order {
            world.assert_settled(name).await;
            assert_eq!(world.annotation(name, "load-balancer-address"), address);
        }
        let mut ports: Vec<u16> = world.sim.listeners().iter().map(|it| it.port).collect();
        ports.sort_unstable();
        assert_eq!(ports, [80, 81, 443]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_service_that_wants_a_taken_port_loses_only_what_it_does_not_want() {
    let world = two(81).await;
    world.set_ports("b", &[("TCP", 81, 30081), ("TCP", 82, 30082)]);
    world.run("b").await.settled();
    world.set_ports("b", &[("TCP", 81, 30081), ("TCP", 80, 30082)]);
    let (run, writes) = world.writes_of(world.run("b")).await;
    assert!(
        run.complaint()
            .starts_with("the listener port 80 already exists; "),
        "{run:#?}"
    );
    assert_eq!(
        in_short(&writes),
        ["octavia.pools.delete", "octavia.listeners.delete"]
    );
    let mut ports: Vec<u16> = world.sim.listeners().iter().map(|it| it.port).collect();
    ports.sort_unstable();
    assert_eq!(ports, [80, 81]);
    world.assert_settled("web").await;
}

#[tokio::test(start_paused = true)]
async fn what_is_served_follows_the_nodes_while_another_port_is_taken() {
    let mut world = World::with_nodes(2);
    world.run("web").await.settled();
    join(&world, "b", 81);
    world.run("b").await.settled();
    // Its node port changes along.
    world.set_ports("b", &[("TCP", 81, 30_181), ("TCP", 80, 30_082)]);
    world.nodes.remove(0);
    let (run, writes) = world.writes_of(world.run("b")).await;
    assert!(
        run.complaint()
            .starts_with("the listener port 80 already exists; "),
        "{run:#?}"
    );
    assert_eq!(in_short(&writes), ["octavia.members.replace"]);
    let state = world.sim.snapshot();
    let listeners = &state.load_balancers[0].listeners;
    let pool_of = |port| {
        let listener = listeners.iter().find(|it| it.port == port).unwrap();
        listener.pool.as_ref().unwrap()
    };
    let places = |port| -> Vec<(String, u16)> {
        let members = pool_of(port).members.iter();
        members.map(|it| (it.name.clone(), it.port)).collect()
    };
    assert_eq!(places(81), [("node-2".to_owned(), 30_181)]);
    assert_eq!(places(80).len(), 2, "the owner's own run does that");
    let (_, writes) = world.writes_of(world.run("b")).await;
    assert!(writes.is_empty(), "{:?}", in_short(&writes));
}

#[tokio::test(start_paused = true)]
async fn an_internal_service_cannot_join() {
    let world = two(81).await;
    world.annotate("b", "internal", "true");
    assert_eq!(
        world.run("b").await.complaint(),
        "internal Service cannot share a load balancer"
    );
    assert_eq!(world.sim.snapshot().load_balancers[0].tags, [lb_name("web")]);
}

#[tokio::test(start_paused = true)]
async fn a_guest_never_exposes_an_internal_load_balancer() {
    let world = World::with_nodes(1);
    world.annotate("web", "internal", "true");
    world.run("web").await.settled();
    join(&world, "b", 81);
    let id = world.sim.load_balancers()[0].part.id;
    assert_eq!(
        world.run("b").await.complaint(),
        format!(
            "cannot attach a floating IP to a load balancer for a shared Service default/b, only owner Service can do that; Bowline goes on when load balancer {id} has one: make the Service that owns it external, or attach a floating IP by hand"
        )
    );
    assert!(world.sim.floating_ips().is_empty());
}

#[tokio::test(start_paused = true)]
async fn the_load_balancer_goes_with_the_last_service_even_if_it_is_named_after_another() {
    let world = two(81).await;
    world.run("b").await.settled();
    world.delete("web");
    let (run, writes) = world.writes_of(world.run("web")).await;
    run.settled();
    assert_eq!(
        in_short(&writes),
        [
            "octavia.pools.delete",
            "octavia.listeners.delete",
            "octavia.loadbalancers.update"
        ]
    );
    let state = world.sim.snapshot();
    assert_eq!(state.load_balancers[0].tags, [lb_name("b")]);
    assert_eq!(state.load_balancers[0].listeners.len(), 1);
    assert_eq!(state.floating_ips.len(), 1);
    world.assert_settled("web").await;
    world.assert_settled("b").await;
    world.delete("b");
    world.run("b").await.settled();
    assert_eq!(world.sim.leftovers(), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn a_guests_listener_goes_by_its_tag_though_its_protocol_changed_meanwhile() {
    let world = two(81).await;
    world.run("b").await.settled();
    world.annotate("b", "x-forwarded-for", "true");
    world.delete("b");
    world.run("b").await.settled();
    let state = world.sim.snapshot();
    assert_eq!(state.load_balancers[0].listeners.len(), 1);
    assert_eq!(state.load_balancers[0].tags, [lb_name("web")]);
    world.assert_settled("web").await;
}

#[tokio::test(start_paused = true)]
async fn a_load_balancer_made_by_hand_is_never_deleted() {
    let world = World::with_nodes(1);
    let id = world.sim.add_load_balancer("by-hand", Vec::new());
    world.annotate("web", "load-balancer-id", &id.to_string());
    let port = world.sim.load_balancer(id).unwrap().vip.port;
    world.sim.add_floating_ip(bowline_openstack_sim::FloatingIpSpec {
        port: Some(port),
        ..Default::default()
    });
    world.run("web").await.settled();
    assert_eq!(world.sim.snapshot().load_balancers[0].tags, [lb_name("web")]);
    world.delete("web");
    let (run, writes) = world.writes_of(world.run("web")).await;
    run.settled();
    let state = world.sim.snapshot();
    assert_eq!(state.load_balancers.len(), 1);
    assert!(state.load_balancers[0].tags.is_empty() && state.load_balancers[0].listeners.is_empty());
    assert_eq!(state.floating_ips.len(), 1);
    let tags = writes.last().unwrap().body.clone().unwrap();
    assert_eq!(tags.to_string(), r#"{"loadbalancer":{"tags":[]}}"#);
}

#[tokio::test(start_paused = true)]
async fn a_service_that_only_named_a_load_balancer_takes_nothing_with_it() {
    let world = two(80).await;
    world.run("b").await;
    let before = world.sim.snapshot();
    world.delete("b");
    let (run, writes) = world.writes_of(world.run("b")).await;
    run.settled();
    assert!(writes.is_empty());
    assert_eq!(world.sim.snapshot(), before);
}

/// The floating IP bears the name of the Service that owned the load balancer.
#[tokio::test(start_paused = true)]
async fn the_last_guest_of_a_load_balancer_that_is_gone_takes_the_floating_ip_with_it() {
    let world = two(81).await;
    world.run("b").await.settled();
    world.delete("web");
    world.run("web").await.settled();
    world.services.forget("web");
    assert_eq!(world.sim.floating_ips().len(), 1);
    let id = world.sim.load_balancers()[0].part.id;
    world.sim.delete_load_balancer(id);
    world.delete("b");
    world.run("b").await.settled();
    assert_eq!(world.sim.leftovers(), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn of_a_load_balancer_that_is_gone_the_owner_keeps_the_address() {
    let world = two(81).await;
    let address = world.run("b").await.settled().published();
    let id = world.sim.load_balancers()[0].part.id;
    world.sim.delete_load_balancer(id);
    let run = world.run("b").await.settled();
    assert_ne!(run.published(), address);
    assert_eq!(run.reasons(), ["LoadBalancerGone"]);
    assert!(run.notes[0].text.contains("of its own"), "{:?}", run.notes);
    assert_eq!(world.run("web").await.settled().published(), address);
    world.assert_settled("b").await;
}

#[tokio::test(start_paused = true)]
async fn a_guest_that_goes_leaves_the_address_to_the_owner_and_an_owner_to_the_guest() {
    for (first, second) in [("web", "b"), ("b", "web")] {
        let world = two(81).await;
        let address = world.run("b").await.settled().published();
        let id = world.sim.load_balancers()[0].part.id;
        world.sim.delete_load_balancer(id);
        world.delete(first);
        world.run(first).await.settled();
        world.services.forget(first);
        assert_eq!(world.run(second).await.settled().published(), address, "{second}");
        world.delete(second);
        world.run(second).await.settled();
        assert_eq!(world.sim.leftovers(), Vec::<String>::new());
    }
}

/// The owner went while the guest joined: it had deleted the floating IP before it saw the other one.
#[tokio::test(start_paused = true)]
async fn a_guest_whose_owner_is_gone_gets_a_floating_ip() {
    let world = two(81).await;
    world.run("b").await.settled();
    world.sim.remove_floating_ip(world.sim.floating_ips()[0].id);
    let run = world.run("b").await;
    assert!(
        run.complaint().contains("only owner Service can do that"),
        "{run:#?}"
    );
    world.delete("web");
    world.run("web").await.settled();
    world.services.forget("web");
    world.run("b").await.settled();
    assert_eq!(world.sim.floating_ips().len(), 1);
    world.assert_settled("b").await;
    world.delete("b");
    world.run("b").await.settled();
    assert_eq!(world.sim.leftovers(), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn what_a_guest_asks_for_and_does_not_get_is_told() {
    let world = two(81).await;
    world.annotate("b", "network-id", "elsewhere");
    let run = world.run("b").await.settled();
    assert_eq!(run.reasons(), ["LoadBalancerChangeIgnored"]);
    let text = &run.notes[0].text;
    assert!(
        text.contains("network-id is elsewhere") && text.contains("was not made for Service default/b"),
        "{text}"
    );
}

/// Octavia takes one change at a time: neither runs into the other's.
#[tokio::test(start_paused = true)]
async fn an_owner_and_a_guest_that_change_at_once_are_not_refused() {
    let world = two(81).await;
    world.run("b").await.settled();
    world
        .sim
        .set_behaviour(|behaviour| behaviour.lb_change_time = Duration::from_secs(2));
    for name in ["web", "b"] {
        world.annotate(name, "connection-limit", "7");
        world.annotate(name, "lb-method", "LEAST_CONNECTIONS");
        world.annotate(name, "enable-health-monitor", "true");
    }
    let begun = tokio::time::Instant::now();
    let (runs, calls) = world
        .calls_of(async { tokio::join!(world.run("web"), world.run("b")) })
        .await;
    runs.0.settled();
    runs.1.settled();
    let refused = calls
        .iter()
        .filter(|call| call.status().is_some_and(|status| status >= 400))
        .count();
    assert_eq!(refused, 0, "{:?}", in_short(&calls));
    assert_eq!(calls.iter().filter(|call| call.write).count(), 6);
    // Six changes of two seconds, one after the other.
    assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", begun.elapsed());
    world.assert_settled("web").await;
    world.assert_settled("b").await;
}

/// A person's listener bears no tag and no name of a controller's.
#[tokio::test(start_paused = true)]
async fn a_persons_listener_stays_when_the_owner_goes_and_a_guest_stays() {
    let world = World::with_nodes(1);
    world.set_ports("web", &[("TCP", 80, 30080)]);
    world.run("web").await.settled();
    join(&world, "b", 81);
    world.run("b").await.settled();
    world.set_ports("b", &[("TCP", 81, 30081), ("TCP", 9000, 30900)]);
    world.run("b").await.settled();
    let listeners = world.sim.listeners();
    let listener = listeners.iter().find(|it| it.port == 9000).unwrap();
    world.sim.edit_listener(listener.part.id, |it| {
        it.part.meta.tags.clear();
        it.part.name = "mine".to_owned();
    });
    world.sim.edit_pool(listener.default_pool.unwrap(), |it| {
        it.part.name = "mine".to_owned()
    });
    world.set_ports("b", &[("TCP", 81, 30081)]);
    world.delete("web");
    world.run("web").await.settled();
    let mut ports: Vec<u16> = world.sim.listeners().iter().map(|it| it.port).collect();
    ports.sort_unstable();
    assert_eq!((ports, world.sim.pools().len()), (vec![81, 9000], 2));
}

/// Its tag on the load balancer was lost.
#[tokio::test(start_paused = true)]
async fn a_load_balancer_stays_for_a_listener_that_another_clusters_service_tagged() {
    let world = two(81).await;
    world.run("b").await.settled();
    let theirs = "kube_service_other_default_b".to_owned();
    let listeners = world.sim.listeners();
    let listener = listeners.iter().find(|it| it.port == 81).unwrap();
    world
        .sim
        .edit_listener(listener.part.id, |it| it.part.meta.tags = vec![theirs]);
    let pool = listener.default_pool.unwrap();
    world.sim.edit_pool(pool, |it| {
        it.part.name = "pool_0_kube_service_other_default_b".to_owned();
    });
    let balancer = world.sim.load_balancers()[0].part.id;
    world.sim.edit_load_balancer(balancer, |it| {
        it.part.meta.tags.retain(|tag| *tag == lb_name("web"));
    });
    world.services.forget("b");
    world.delete("web");
    world.run("web").await.settled();
    assert_eq!(world.sim.load_balancers().len(), 1);
    let ports: Vec<u16> = world.sim.listeners().iter().map(|it| it.port).collect();
    assert_eq!(ports, [81]);
}
