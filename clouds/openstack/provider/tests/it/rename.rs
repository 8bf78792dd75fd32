//! A cluster that got another name.

use bowline_openstack_sim::Snapshot;
use bowline_provider_kit::Interruption;

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
    world.put(service("b", &[("TCP", 81, 30081)]));
    let id = world.annotation("web", "load-balancer-id").unwrap();
    world.annotate("b", "load-balancer-id", &id);
    world.run("b").await.settled();
    world.cluster_name = "lab".into();
    world
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
    let state = world.sim.snapshot();
    assert_eq!(state.load_balancers[0].name, lb_name("web"));
    assert_eq!(state.load_balancers[0].tags, [lb_name("web"), lb_name("b")]);
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
    world.put(service("b", &[("TCP", 81, 30081)]));
    let id = world.annotation("web", "load-balancer-id").unwrap();
    world.annotate("b", "load-balancer-id", &id);
    world.run("b").await.settled();
    world.cluster_name = "lab".into();
    world.configure(|options| options.former_clusters = vec!["old".into()]);
    world.delete("b");
    world.run("b").await.settled();
    let state = world.sim.snapshot();
    assert_eq!(state.load_balancers[0].tags, ["kube_service_old_default_web"]);
    assert_eq!(state.load_balancers[0].listeners.len(), 1);
}

/// Its owner went under the former name, and nothing tells that this is the same cluster.
#[tokio::test(start_paused = true)]
async fn a_guest_whose_place_is_taken_under_another_cluster_name_is_told_of_the_option() {
    let mut world = old_with_guest().await;
    let run = world.run("b").await;
    assert!(
        run.complaint()
            .contains("set former-cluster-name = old in [LoadBalancer] of cloud.conf"),
        "{run:#?}"
    );
    world.configure(|options| options.former_clusters = vec!["old".into()]);
    world.run("b").await.settled();
}
