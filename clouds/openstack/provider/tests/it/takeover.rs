//! What the Go manager made is taken over without a write.

use http::Method;
use serde_json::{Value, json};

use crate::upstream::{as_upstream, call};
use crate::world::{World, in_short};

#[tokio::test(start_paused = true)]
async fn the_first_sync_after_the_go_manager_writes_nothing_and_says_nothing() {
    let mut world = World::with_nodes(3);
    as_upstream(&mut world).await;
    let state = world.sim.snapshot();
    let (run, writes) = world.writes_of(world.run("web")).await;
    World::assert_quiet(&run, &writes);
    assert!(run.notes.is_empty(), "{:?}", run.notes);
    assert_eq!(world.sim.snapshot(), state);
    // The other way round: what this provider makes is what the Go manager's requests make, but for the rules that let
    // everything out.
    let mut ours = World::with_nodes(3);
    ours.configure(|options| options.clone_from(&world.options));
    ours.run("web").await.settled();
    let made = ours.sim.snapshot();
    for kind in ["load_balancers", "floating_ips"] {
        assert_eq!(made[kind], state[kind]);
    }
}

/// Asks kube-proxy whether a node has endpoints of the Service `web`.
fn with_health_checks(world: &mut World, is_local: bool) {
    world.configure(|options| {
        options.monitor.is_wanted = true;
        options.is_serial = true;
    });
    world.edit("web", |service| {
        let spec = service.spec.as_mut().unwrap();
        spec.external_traffic_policy = Some(if is_local { "Local" } else { "Cluster" }.into());
        spec.health_check_node_port = is_local.then_some(31_000);
    });
}

fn monitor_ports(world: &World) -> Vec<Option<u16>> {
    world
        .sim
        .members()
        .iter()
        .map(|member| member.monitor_port)
        .collect()
}

/// The Go manager creates members one by one with neither a subnet nor a monitor port, and tells them apart by address and port.
#[tokio::test(start_paused = true)]
async fn members_that_the_go_manager_made_one_by_one_stay() {
    let mut world = World::with_nodes(2);
    with_health_checks(&mut world, true);
    world.run("web").await.settled();
    for pool in world.sim.pools() {
        let path = format!("/load-balancer/v2.0/lbaas/pools/{}/members", pool.part.id);
        let there = call(&world, Method::GET, &path, Value::Null).await;
        for member in there["members"].as_array().unwrap() {
            let id = member["id"].as_str().unwrap();
            call(&world, Method::DELETE, &format!("{path}/{id}"), Value::Null).await;
            tokio::time::advance(std::time::Duration::from_secs(2)).await;
            let made = json!({ "member": {
                "name": member["name"], "address": member["address"], "protocol_port": member["protocol_port"],
            } });
            call(&world, Method::POST, &path, made).await;
            tokio::time::advance(std::time::Duration::from_secs(2)).await;
        }
    }
    assert_eq!(monitor_ports(&world), [None, None]);
    world.restart();
    let (run, writes) = world.writes_of(world.run("web")).await;
    World::assert_quiet(&run, &writes);
    assert!(run.notes.is_empty(), "{:?}", run.notes);
    // A new one is probed where it answers.
    world.add_node("node-3");
    world.run("web").await.settled();
    assert_eq!(monitor_ports(&world), [None, None, Some(31_000)]);
}

#[tokio::test(start_paused = true)]
async fn members_that_stand_alone_get_another_monitor_port_in_place() {
    let mut world = World::with_nodes(2);
    with_health_checks(&mut world, false);
    world.run("web").await.settled();
    for (is_local, port) in [(true, Some(31_000)), (false, None)] {
        with_health_checks(&mut world, is_local);
        let (run, writes) = world.writes_of(world.run("web")).await;
        run.settled();
        assert_eq!(
            in_short(&writes),
            [
                "octavia.members.update",
                "octavia.members.update",
                "octavia.healthmonitors.delete",
                "octavia.healthmonitors.create",
            ]
        );
        assert_eq!(monitor_ports(&world), [port, port]);
        world.assert_settled("web").await;
    }
}
