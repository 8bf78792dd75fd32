//! New load balancers.

use std::sync::Arc;
use std::time::Duration;

use bowline_cloud_provider::keys;
use bowline_openstack_sim::Provisioning;
use serde_json::json;

use crate::world::{World, in_short, lb_name, service};

#[tokio::test(start_paused = true)]
async fn one_call_creates_the_load_balancer_with_all_its_parts() {
    let mut world = World::with_nodes(3);
    world.configure(|options| options.monitor.is_wanted = true);
    world.put(service("web", &[("TCP", 80, 30080), ("UDP", 53, 30053)]));
    let (run, writes) = world.writes_of(world.run("web")).await;
    let run = run.settled();
    assert_eq!(
        in_short(&writes),
        ["octavia.loadbalancers.create", "neutron.floatingips.create"]
    );
    let state = world.sim.snapshot();
    let balancer = &state.load_balancers[0];
    assert_eq!(balancer.name, lb_name("web"));
    assert_eq!(
        balancer.description,
        "Kubernetes external service default/web from cluster lab"
    );
    assert_eq!(balancer.tags, [lb_name("web")]);
    assert_eq!(balancer.listeners.len(), 2);
    for listener in &balancer.listeners {
        let index = usize::from(listener.protocol == "UDP");
        assert_eq!(listener.name, format!("listener_{index}_{}", lb_name("web")));
        assert_eq!(listener.tags, [lb_name("web")]);
        assert_eq!(listener.allowed_cidrs, ["0.0.0.0/0"]);
        let pool = listener.pool.as_ref().unwrap();
        assert_eq!(pool.name, format!("pool_{index}_{}", lb_name("web")));
        let members: Vec<_> = pool
            .members
            .iter()
            .map(|member| (&*member.name, &*member.address))
            .collect();
        assert_eq!(
            members,
            [
                ("node-1", "10.0.0.11"),
                ("node-2", "10.0.0.12"),
                ("node-3", "10.0.0.13")
            ]
        );
        assert!(pool.members.iter().all(|member| member.subnet.is_some()));
        let monitor = pool.monitor.as_ref().unwrap();
        assert_eq!(monitor.kind, ["TCP", "UDP-CONNECT"][index]);
    }
    let floating = &world.sim.floating_ips()[0];
    assert_eq!(run.published(), [floating.address.address.to_string()]);
    assert_eq!(
        world.annotation("web", "load-balancer-address"),
        Some(run.published().remove(0))
    );
    let id = world.sim.load_balancers()[0].part.id.to_string();
    assert_eq!(world.annotation("web", "load-balancer-id"), Some(id));
    assert!(run.notes.is_empty(), "{:?}", run.notes);
    world.assert_settled("web").await;
}

#[tokio::test(start_paused = true)]
async fn the_id_is_written_on_the_service_before_the_load_balancer_is_waited_for() {
    let world = World::with_nodes(1);
    world
        .sim
        .set_behaviour(|behaviour| behaviour.lb_create_time = std::time::Duration::from_secs(3600));
    let run = world.run("web").await;
    let id = world.sim.load_balancers()[0].part.id.to_string();
    let told = run.complaint();
    assert!(
        told.starts_with(&format!("timeout waiting for the loadbalancer {id} ACTIVE")),
        "{told}"
    );
    assert!(
        told.contains("PENDING_CREATE; ") && told.contains("ask the operator"),
        "{told}"
    );
    assert_eq!(world.annotation("web", "load-balancer-id"), Some(id));
    // 22 pauses, each longer by a fifth.
    assert_eq!(run.waited.as_secs(), 271);
}

#[tokio::test(start_paused = true)]
async fn a_pending_load_balancer_is_looked_at_as_often_as_configured() {
    let mut world = World::with_nodes(1);
    world.configure(|options| options.wait_steps = 3);
    world
        .sim
        .set_behaviour(|behaviour| behaviour.lb_create_time = std::time::Duration::from_secs(3600));
    let (run, calls) = world.calls_of(world.run("web")).await;
    assert!(run.complaint().starts_with("timeout waiting for"));
    let created = calls.iter().position(|call| call.write).unwrap();
    let looks: Vec<_> = calls[created + 1..]
        .iter()
        .map(|call| call.at.as_millis())
        .collect();
    assert_eq!(looks.len(), 3, "{:?}", in_short(&calls));
    // Lists are gathered for 25 ms.
    assert_eq!([looks[1] - looks[0], looks[2] - looks[1]], [1_025, 1_225]);
    // The next reconcile finds it so, and its own list is the first look.
    let (run, calls) = world.calls_of(world.run("web")).await;
    assert!(run.complaint().starts_with("timeout waiting for"));
    let looks = calls.iter().filter(|call| call.path.ends_with("/loadbalancers"));
    assert_eq!(looks.count(), 3, "{:?}", in_short(&calls));
    assert_eq!(run.waited.as_millis(), 2_200);
}

#[tokio::test(start_paused = true)]
async fn a_new_load_balancer_that_fails_is_deleted_and_created_again_by_the_next_run() {
    let world = World::with_nodes(1);
    world.sim.set_behaviour(|behaviour| behaviour.failing_creates = 1);
    let run = world.run("web").await;
    assert!(run.complaint().contains("will be created again"), "{run:#?}");
    assert!(world.sim.load_balancers().is_empty());
    world.run("web").await.settled();
    assert_eq!(world.sim.load_balancers()[0].part.status, Provisioning::Active);
    world.assert_settled("web").await;
}

#[tokio::test(start_paused = true)]
async fn an_internal_service_has_no_floating_ip() {
    let world = World::with_nodes(1);
    world.annotate("web", "internal", "true");
    let run = world.run("web").await.settled();
    assert!(world.sim.floating_ips().is_empty());
    let vip = world.sim.load_balancers()[0].vip.fixed_ip.address.to_string();
    assert_eq!(run.published(), [vip]);
    world.assert_settled("web").await;
}

#[tokio::test(start_paused = true)]
async fn parts_are_created_one_by_one_where_the_provider_needs_it() {
    let mut world = World::with_nodes(2);
    world.configure(|options| options.is_serial = true);
    let (run, writes) = world.writes_of(world.run("web")).await;
    run.settled();
    assert_eq!(
        in_short(&writes),
        [
            "octavia.loadbalancers.create",
            "octavia.listeners.create",
            "octavia.pools.create",
            "octavia.members.create",
            "octavia.members.create",
            "neutron.floatingips.create",
        ]
    );
    let body = writes[0].body.as_ref().unwrap();
    assert_eq!(body["loadbalancer"].get("listeners"), None);
    assert_eq!(
        writes[3].body.as_ref().unwrap()["member"]["name"],
        json!("member_node-1_10.0.0.11_30080")
    );
    world.assert_settled("web").await;
}

#[tokio::test(start_paused = true)]
async fn a_node_that_is_about_to_be_initialised_is_waited_for_and_costs_no_call() {
    let mut world = World::with_nodes(1);
    let node = Arc::make_mut(&mut world.nodes[0]);
    let (id, addresses) = (node.provider_id.take(), std::mem::take(&mut node.addresses));
    // Nobody is going to initialise it: a person has to do something at once.
    let refused = world.run("web").await;
    assert!(
        refused.complaint().contains("no node has an address on a port"),
        "{refused:#?}"
    );
    assert!(refused.waited.is_zero());

    uninitialized(&mut world);
    let (run, calls) = world.calls_of(world.run("web")).await;
    assert!(
        run.complaint().contains("no node has an address on a port"),
        "{run:#?}"
    );
    assert_eq!(run.waited, Duration::from_secs(60));
    let last = calls.last().unwrap().at - calls[0].at;
    assert!(last < Duration::from_secs(1), "{:?}", in_short(&calls));

    // One Node that tells is enough, also while others wait.
    world.add_node("node-2");
    let run = world.run("web").await.settled();
    assert!(run.waited < Duration::from_secs(30), "{:?}", run.waited);
    let node = Arc::make_mut(&mut world.nodes[0]);
    (node.provider_id, node.addresses, node.taints) = (id, addresses, Vec::new());
    world.run("web").await.settled();
    world.assert_settled("web").await;
}

#[tokio::test(start_paused = true)]
async fn where_the_subnet_is_named_no_node_is_waited_for() {
    let mut world = World::with_nodes(1);
    let subnet = world.sim.home().subnet.to_string();
    world.annotate("web", "subnet-id", &subnet);
    let node = Arc::make_mut(&mut world.nodes[0]);
    (node.provider_id, node.addresses) = (None, Vec::new());
    uninitialized(&mut world);
    let run = world.run("web").await.settled();
    assert!(run.waited < Duration::from_secs(30), "{:?}", run.waited);
}

/// The first node has the taint that it is registered with.
fn uninitialized(world: &mut World) {
    let taint = json!([{ "key": keys::TAINT_UNINITIALIZED, "effect": "NoSchedule" }]);
    Arc::make_mut(&mut world.nodes[0]).taints = serde_json::from_value(taint).unwrap();
}
