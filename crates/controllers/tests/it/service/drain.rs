//! Members go before their machines do.

use serde_json::{Value, json};

use super::seconds;
use super::world::World;

fn set_condition(world: &World, node: &str, kind: &str, status: &str) {
    edit_node(world, node, |node| {
        node["status"]["conditions"] = json!([{ "type": kind, "status": status }])
    });
}

fn edit_node(world: &World, name: &str, change: impl FnOnce(&mut Value)) {
    let mut node = world.node(name);
    change(&mut node);
    world.apply(node);
}

#[tokio::test(start_paused = true)]
async fn a_node_that_is_drained_leaves_at_once_and_comes_back_when_that_ends() {
    for kind in [
        "DrainInProgress",
        "MaintenanceInProgress",
        "GracefulNodeShutdownInProgress",
    ] {
        let (world, uid) = World::serving(&["a", "b"]).await;
        set_condition(&world, "a", kind, "Unknown");
        world.pass(seconds(10)).await;
        assert_eq!(world.balancer(&uid).unwrap(), ["a", "b"], "{kind}");
        set_condition(&world, "a", kind, "True");
        world.leads_to(&uid, &["b"]).await;
        set_condition(&world, "a", kind, "False");
        world.leads_to(&uid, &["a", "b"]).await;
    }
}

/// Each change of members may cut connections, and costs writes on every load balancer.
#[tokio::test(start_paused = true)]
async fn a_condition_that_flaps_brings_no_member_back_until_it_rests() {
    let (world, uid) = World::serving(&["a", "b"]).await;
    let status = |status| set_condition(&world, "a", "DrainInProgress", status);
    let members = || world.balancer(&uid).unwrap();
    status("True");
    world.until("it has left", |_| members() == ["b"]).await;
    status("False");
    world.pass(seconds(3)).await;
    assert_eq!(members(), ["a", "b"], "the first time at once");
    status("True");
    world.until("it has left again", |_| members() == ["b"]).await;
    for _ in 0..20 {
        status("False");
        world.pass(seconds(5)).await;
        assert_eq!(members(), ["b"]);
        status("True");
        world.pass(seconds(1)).await;
        assert_eq!(members(), ["b"]);
    }
    status("False");
    world.pass(seconds(29)).await;
    assert_eq!(members(), ["b"]);
    world.pass(seconds(5)).await;
    assert_eq!(members(), ["a", "b"]);
    // At once, every time.
    status("True");
    world.pass(seconds(3)).await;
    assert_eq!(members(), ["b"]);
}

#[tokio::test(start_paused = true)]
async fn a_node_that_the_autoscaler_is_about_to_delete_leaves_at_once_and_a_candidate_stays() {
    let world = World::running(&["a", "b"]).await;
    let uid = world.add_service("web");
    // Nobody keeps a member with this taint: upstream's service controller leaves its Node out of every load balancer.
    world.annotate("web", "bowline/drain-members", "false");
    world.settled("web").await;
    let taint = |key: &str| json!([{ "key": key, "effect": "NoSchedule" }]);
    edit_node(&world, "a", |node| {
        node["spec"]["taints"] = taint("DeletionCandidateOfClusterAutoscaler")
    });
    world.pass(seconds(10)).await;
    assert_eq!(world.balancer(&uid).unwrap(), ["a", "b"]);
    edit_node(&world, "a", |node| {
        node["spec"]["taints"] = taint("ToBeDeletedByClusterAutoscaler")
    });
    world.leads_to(&uid, &["b"]).await;
}

#[tokio::test(start_paused = true)]
async fn where_all_nodes_are_drained_together_all_stay_members() {
    let (world, uid) = World::serving(&["a", "b"]).await;
    for node in ["a", "b"] {
        set_condition(&world, node, "MaintenanceInProgress", "True");
    }
    world.pass(seconds(10)).await;
    assert_eq!(world.balancer(&uid).unwrap(), ["a", "b"]);
}

#[tokio::test(start_paused = true)]
async fn a_service_or_its_cloud_may_keep_members_until_they_are_gone() {
    for (does_cloud, annotation, drains) in [
        (true, Some("false"), false),
        (true, Some("no"), true),
        (false, None, false),
        (false, Some("true"), true),
    ] {
        let mut world = World::new(&["a", "b"]);
        world.set(|cloud| cloud.keeps_members = !does_cloud);
        world.start();
        let uid = world.add_service("web");
        if let Some(value) = annotation {
            world.annotate("web", "bowline/drain-members", value);
        }
        world.settled("web").await;
        set_condition(&world, "a", "DrainInProgress", "True");
        world.pass(seconds(10)).await;
        let members = world.balancer(&uid).unwrap();
        assert_eq!(members == ["b"], drains, "{does_cloud} {annotation:?}");
        // What the Service says may change meanwhile.
        world.annotate(
            "web",
            "bowline/drain-members",
            if drains { "false" } else { "true" },
        );
        world
            .until("it is followed", |w| {
                (w.balancer(&uid).unwrap() == ["b"]) != drains
            })
            .await;
    }
}
