//! A cluster that got another name.

use std::time::Duration;

use bowline_cloud_provider::k8s::{LoadBalancerIngress, LoadBalancerStatus, ServiceStatus};
use bowline_kit::Interruption;
use bowline_openstack_sim::{Provisioning, Snapshot};

use crate::shared::join;
use crate::world::{World, in_short, lb_name, service};

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

fn end_state(mut state: Snapshot) -> Snapshot {
    // Descriptions stay as they were.
    for balancer in &mut state.load_balancers {
        balancer.description.clear();
    }
    state.floating_ips.clear();
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
    let balancer = &state.load_balancers[0];
    assert_eq!(balancer.name, lb_name("web"));
    assert_eq!(balancer.tags, [lb_name("web"), lb_name("b")]);
    for (listener, service) in balancer.listeners.iter().zip(["web", "b"]) {
        assert_eq!(listener.name, format!("listener_0_{}", lb_name(service)));
        assert_eq!(listener.tags, [lb_name(service)]);
        let pool = listener.pool.as_ref().unwrap();
        assert_eq!(pool.name, format!("pool_0_{}", lb_name(service)));
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

/// Octavia takes no change of its monitor before the pool itself is written.
#[tokio::test(start_paused = true)]
async fn a_pool_that_failed_does_not_hold_up_the_renaming() {
    let world = old().await;
    let pool = world.sim.pools()[0].part.id;
    world
        .sim
        .edit_pool(pool, |pool| pool.part.status = Provisioning::Error);
    let (run, writes) = world.writes_of(world.run("web")).await;
    run.settled();
    assert_eq!(
        in_short(&writes),
        [
            "octavia.pools.update",
            "octavia.healthmonitors.update",
            "octavia.listeners.update",
            "octavia.loadbalancers.update",
        ]
    );
    world.assert_settled("web").await;
}

#[tokio::test(start_paused = true)]
async fn a_renaming_that_was_interrupted_is_finished() {
    for step in 1..4 {
        let mut world = old().await;
        world.run_with("web", Interruption::AfterStep(step)).await;
        world.restart();
        world.run("web").await.settled();
        let state = world.sim.snapshot();
        let listener = &state.load_balancers[0].listeners[0];
        assert_eq!(state.load_balancers[0].name, lb_name("web"), "{step}");
        assert_eq!(listener.name, format!("listener_0_{}", lb_name("web")), "{step}");
        assert_eq!(listener.tags, [lb_name("web")], "{step}");
        world.assert_settled("web").await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_configured_former_name_is_found_without_the_annotation() {
    let mut world = old().await;
    world.remove_annotation("web", "load-balancer-id");
    world.remove_annotation("web", "load-balancer-address");
    world.configure(|options| options.former_clusters = vec!["old".into()]);
    world.run("web").await.settled();
    let state = world.sim.snapshot();
    assert_eq!(state.load_balancers.len(), 1);
    assert_eq!(state.load_balancers[0].name, lb_name("web"));
}

/// Its tag is still the one of the former name, and counts as its own.
#[tokio::test(start_paused = true)]
async fn a_guest_of_the_same_cluster_is_no_newcomer_after_the_renaming() {
    let mut world = old_with_guest().await;
    world.configure(|options| options.former_clusters = vec!["old".into()]);
    world.run("b").await.settled();
    let old = |name: &str| format!("kube_service_old_default_{name}");
    let state = world.sim.snapshot();
    // The load balancer and its tags are the owner's to rename.
    assert_eq!(state.load_balancers[0].name, old("web"));
    assert_eq!(state.load_balancers[0].tags, [old("web"), old("b")]);
    world.assert_settled("b").await;
    world.run("web").await.settled();
    assert_renamed(&world);
    world.assert_settled("web").await;
    world.assert_settled("b").await;
}

#[tokio::test(start_paused = true)]
async fn a_guest_never_renames_the_load_balancer_of_another_cluster() {
    let world = World::with_nodes(1);
    let name = "kube_service_other_default_api";
    let id = world.sim.add_load_balancer(name, vec![name.to_owned()]);
    let port = world.sim.load_balancer(id).unwrap().vip.port;
    world.sim.add_floating_ip(bowline_openstack_sim::FloatingIpSpec {
        port: Some(port),
        ..Default::default()
    });
    world.put(service("web", &[("TCP", 81, 30081)]));
    world.annotate("web", "load-balancer-id", &id.to_string());
    world.run("web").await.settled();
    world.assert_settled("web").await;
    let state = world.sim.snapshot();
    assert_eq!(state.load_balancers[0].name, name);
    assert_eq!(state.load_balancers[0].tags, [name.to_owned(), lb_name("web")]);
}

/// It was a guest, and goes before anybody renamed the load balancer.
#[tokio::test(start_paused = true)]
async fn a_guest_that_goes_first_takes_its_parts_and_its_tag() {
    let mut world = World::with_nodes(1);
    world.cluster_name = "old".into();
    world.run("web").await.settled();
    join(&world, "b", 81);
    world.run("b").await.settled();
    world.cluster_name = "lab".into();
    world.configure(|options| options.former_clusters = vec!["old".into()]);
    world.delete("b");
    world.run("b").await.settled();
    let state = world.sim.snapshot();
    assert_eq!(state.load_balancers[0].tags, ["kube_service_old_default_web"]);
    assert_eq!(state.load_balancers[0].listeners.len(), 1);
}

/// It was never told an address, so nothing tells that this is the same cluster.
#[tokio::test(start_paused = true)]
async fn a_guest_whose_place_is_taken_under_another_cluster_name_is_told_of_the_option() {
    let mut world = old_with_guest().await;
    world.edit("b", |service| service.status = None);
    let run = world.run("b").await;
    assert!(
        run.complaint()
            .contains("set former-cluster-name = old in [LoadBalancer] of cloud.conf"),
        "{run:#?}"
    );
    world.configure(|options| options.former_clusters = vec!["old".into()]);
    world.run("b").await.settled();
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

/// Nothing but its own annotations and status says that the cluster is the same.
#[tokio::test(start_paused = true)]
async fn a_guest_whose_owner_is_not_renamed_yet_is_not_refused() {
    for order in [["b", "web"], ["web", "b"]] {
        let mut world = old_with_guest().await;
        world.restart();
        for name in order {
            world.run(name).await.settled();
        }
        assert_renamed(&world);
        world.assert_settled("web").await;
        world.assert_settled("b").await;
    }
}

/// It waits for the owner's change before it is judged.
#[tokio::test(start_paused = true)]
async fn a_guest_is_not_refused_while_its_owner_renames() {
    let mut world = old_with_guest().await;
    world.restart();
    world
        .sim
        .set_behaviour(|behaviour| behaviour.lb_change_time = Duration::from_secs(5));
    world.run_with("web", Interruption::AfterStep(1)).await;
    world.run("b").await.settled();
    world.run("web").await.settled();
    assert_renamed(&world);
    world.assert_settled("b").await;
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

#[tokio::test(start_paused = true)]
async fn a_guest_that_was_left_alone_before_the_renaming_takes_the_load_balancer_with_it() {
    for is_synced_before in [true, false] {
        let world = guest_alone().await;
        if is_synced_before {
            world.run("b").await.settled();
            let state = world.sim.snapshot();
            // Nobody else is left who could give it its name.
            assert_eq!(state.load_balancers[0].name, lb_name("web"));
            assert_eq!(state.load_balancers[0].tags, [lb_name("b")]);
            world.assert_settled("b").await;
        }
        world.delete("b");
        world.run("b").await.settled();
        assert_eq!(world.sim.leftovers(), Vec::<String>::new(), "{is_synced_before}");
    }
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

/// A person sent the Service to the load balancer of another cluster, in which a Service of its name is older.
#[tokio::test(start_paused = true)]
async fn a_service_that_is_sent_to_another_clusters_load_balancer_of_its_name_does_not_delete_it() {
    for (role, tags) in [
        ("web", "kube_service_other_default_web"),
        ("api", "kube_service_other_default_web"),
    ] {
        let world = World::with_nodes(1);
        let run = world.run("web").await.settled();
        publish(&world, "web", &run.published());
        let name = format!("kube_service_other_default_{role}");
        let id = world.sim.add_load_balancer(&name, vec![tags.to_owned()]);
        world.annotate("web", "load-balancer-id", &id.to_string());
        world.delete("web");
        world.run("web").await.settled();
        let left: Vec<String> = world
            .sim
            .snapshot()
            .load_balancers
            .into_iter()
            .map(|it| it.name)
            .collect();
        assert_eq!(left, [name]);
    }
}
