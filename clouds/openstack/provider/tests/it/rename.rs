//! A cluster that got another name.

use bowline_cloud_provider::k8s::{LoadBalancerIngress, LoadBalancerStatus, ServiceStatus};
use serde_json::{Value, json};

use crate::world::join;
use crate::world::{World, in_short, lb_name};

/// A load balancer made under the name `old`, in a cluster that is `lab` by now.
async fn old() -> World {
    let mut world = World::with_nodes(1);
    world.configure(|options| options.monitor.is_wanted = true);
    world.cluster_name = "old".into();
    world.run("web").await.settled();
    world.cluster_name = "lab".into();
    world.restart();
    world
}

fn end_state(mut state: Value) -> Value {
    // Descriptions stay as they were.
    for balancer in state["load_balancers"].as_array_mut().into_iter().flatten() {
        balancer["description"] = json!("");
    }
    state["floating_ips"] = json!([]);
    state
}

/// The same, with the guest `b` that joined under the former name.
async fn old_with_guest() -> World {
    let mut world = old().await;
    world.cluster_name = "old".into();
    join(&world, "b", 81);
    let run = world.run("b").await.settled();
    publish(&world, "b", &run.published());
    world.cluster_name = "lab".into();
    world
}

/// Writes addresses into a Service's status, as the service controller does.
fn publish(world: &World, name: &str, addresses: &[String]) {
    let ingress = addresses.iter().map(|ip| LoadBalancerIngress {
        ip: Some(ip.clone()),
        ..LoadBalancerIngress::default()
    });
    let status = ServiceStatus {
        load_balancer: Some(LoadBalancerStatus {
            ingress: Some(ingress.collect()),
        }),
        ..ServiceStatus::default()
    };
    world.edit(name, |service| service.status = Some(status));
}

/// Asserts that nothing bears the former name, and that each part is its Service's.
fn assert_renamed(world: &World) {
    let state = world.sim.snapshot();
    let balancer = &state["load_balancers"][0];
    assert_eq!(balancer["name"], lb_name("web"));
    assert_eq!(balancer["tags"], json!([lb_name("web"), lb_name("b")]));
    let listeners = balancer["listeners"].as_array().unwrap().iter();
    for (listener, service) in listeners.zip(["web", "b"]) {
        assert_eq!(listener["name"], format!("listener_0_{}", lb_name(service)));
        assert_eq!(listener["tags"], json!([lb_name(service)]));
        assert_eq!(listener["pool"]["name"], format!("pool_0_{}", lb_name(service)));
    }
}

#[tokio::test(start_paused = true)]
async fn all_parts_are_renamed_and_the_load_balancer_last() {
    let world = old().await;
    let (run, writes) = world.writes_of(world.run("web")).await;
    let run = run.settled();
    assert_eq!(run.reasons(), ["LoadBalancerRename"]);
    assert_eq!(run.notes.len(), 1, "told once, whatever the number of writes");
    assert_eq!(
        in_short(&writes),
        [
            "octavia.healthmonitors.update",
            "octavia.pools.update",
            "octavia.listeners.update",
            "octavia.loadbalancers.update",
        ]
    );
    let fresh = World::with_nodes(1);
    let mut fresh = fresh;
    fresh.configure(|options| options.monitor.is_wanted = true);
    fresh.run("web").await.settled();
    assert_eq!(end_state(world.sim.snapshot()), end_state(fresh.sim.snapshot()));
    world.assert_settled("web").await;
}

#[tokio::test(start_paused = true)]
async fn an_owner_and_a_guest_rename_what_is_their_own_and_nothing_twice() {
    for is_configured in [true, false] {
        let mut world = old_with_guest().await;
        if is_configured {
            world.configure(|options| options.former_clusters = vec!["old".into()]);
        } else {
            world.restart();
        }
        let both = async { tokio::join!(world.run("web"), world.run("b")) };
        let ((web, b), writes) = world.writes_of(both).await;
        assert_eq!(web.settled().reasons(), ["LoadBalancerRename"]);
        assert!(b.settled().notes.is_empty());
        let done = writes
            .iter()
            .filter(|call| call.status().is_some_and(|status| status < 400));
        let mut paths: Vec<&str> = done.map(|call| call.path.as_str()).collect();
        // Each has a monitor, a pool and a listener; where nothing is configured, the guest writes its own tag.
        assert_eq!(paths.len(), if is_configured { 7 } else { 8 }, "{paths:#?}");
        paths.sort_unstable();
        paths.dedup();
        assert_eq!(paths.len(), 7, "{paths:#?}");
        assert_renamed(&world);
        world.assert_settled("web").await;
        world.assert_settled("b").await;
    }
}

/// The same, after the owner went and before the cluster got its name.
async fn guest_alone() -> World {
    let mut world = old_with_guest().await;
    world.cluster_name = "old".into();
    world.delete("web");
    world.run("web").await.settled();
    world.services.forget("web");
    world.cluster_name = "lab".into();
    world.restart();
    world
}

/// A guest of the cluster `old`, restored into the cluster `lab` with its annotations. The API server drops the status of what is
/// created; should somebody restore that too, the listeners are older than the copy.
#[tokio::test(start_paused = true)]
async fn a_copied_guest_neither_renames_nor_deletes() {
    for (has_status, is_young) in [(false, false), (false, true), (true, true)] {
        let world = guest_alone().await;
        let made = world.sim.listeners()[0].part.meta.created_at.clone();
        let made: jiff::Timestamp = made.parse().unwrap();
        let age = jiff::SignedDuration::from_secs(if is_young { 3_600 } else { -3_600 });
        world.edit("b", |service| {
            service.metadata.creation_timestamp = Some(made + age);
            if !has_status {
                service.status = None;
            }
        });
        let before = world.sim.snapshot();
        let run = world.run("b").await;
        assert!(
            run.complaint().contains("the listener port 81 already exists"),
            "{run:#?}"
        );
        assert_eq!(world.sim.snapshot(), before);
        world.delete("b");
        world.run("b").await.settled();
        assert_eq!(world.sim.snapshot(), before, "{has_status} {is_young}");
    }
}
