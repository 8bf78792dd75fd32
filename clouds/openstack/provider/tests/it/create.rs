//! New load balancers.

use std::sync::Arc;
use std::time::Duration;

use bowline_cloud_provider::keys;
use serde_json::json;

use crate::world::{World, in_short};

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

/// The first node has the taint that it is registered with.
fn uninitialized(world: &mut World) {
    let taint = json!([{ "key": keys::TAINT_UNINITIALIZED, "effect": "NoSchedule" }]);
    Arc::make_mut(&mut world.nodes[0]).taints = serde_json::from_value(taint).unwrap();
}
