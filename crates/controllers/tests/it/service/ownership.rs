//! Which Services are ours, and which balancer is whose.

use bowline_cloud_provider::{CloudError, ServiceClasses};
use serde_json::json;

use super::seconds;
use super::world::World;

#[tokio::test(start_paused = true)]
async fn a_service_of_a_class_is_not_touched() {
    let world = World::running(&["a"]).await;
    world.add("web", json!({ "loadBalancerClass": "example.com/other" }));
    world.pass(seconds(60)).await;
    assert!(world.calls("") == 0 && world.events("web").is_empty() && !world.has_finalizer("web"));
    // Nor when it carries the shared finalizer and is deleted.
    world.edit("web", |s| {
        s["metadata"]["finalizers"] = json!(["service.kubernetes.io/load-balancer-cleanup"])
    });
    world.delete("web");
    world.pass(seconds(60)).await;
    assert!(world.has_finalizer("web") && world.calls("") == 0);
}

#[tokio::test(start_paused = true)]
async fn a_service_recreated_while_its_balancer_is_being_made_gets_one_of_its_own_too() {
    let world = World::running(&["a"]).await;
    world.slow("web", seconds(5));
    let old = world.add_service("web");
    world.called("create").await;
    world.strip_finalizer("web");
    world.delete("web");
    let new = world.add_service("web");
    world.settled("web").await;
    assert_eq!(world.balancer(&old), None);
    assert_eq!(world.balancer(&new).unwrap(), ["a"]);
}

#[tokio::test(start_paused = true)]
async fn a_service_recreated_while_nobody_ran_is_another_one() {
    let (mut world, old) = World::serving(&["a"]).await;
    world.stop().await;
    world.strip_finalizer("web");
    world.delete("web");
    let new = world.add_service("web");
    assert_eq!(world.address("web"), None);
    world.start();
    world.settled("web").await;
    assert_eq!(world.balancer(&new).unwrap(), ["a"]);
    assert!(world.has_finalizer("web"));
    assert!(
        world.balancer(&old).is_some(),
        "nothing that is known tells whose it was, so it is left alone"
    );
}

#[tokio::test(start_paused = true)]
async fn a_balancer_of_ours_goes_though_its_service_has_a_class_by_then() {
    let (world, uid) = World::serving(&["a"]).await;
    let busy = CloudError::other("busy");
    world.fail(1, busy);
    world.edit("web", |s| s["spec"]["type"] = json!("ClusterIP"));
    world.pass(seconds(1)).await;
    assert!(world.balancer(&uid).is_some(), "its deletion failed");
    world.edit("web", |s| {
        s["spec"]["type"] = json!("LoadBalancer");
        s["spec"]["loadBalancerClass"] = json!("example.com/other");
    });
    world.edit("web", |s| {
        s["status"]["loadBalancer"] = json!({ "ingress": [{ "ip": "203.0.113.9" }] })
    });
    world.removed(&uid).await;
    world.pass(seconds(1)).await;
    assert!(!world.has_finalizer("web"));
    assert_eq!(world.address("web").as_deref(), Some("203.0.113.9"));
    // From now on it is the other controller's, and so is the finalizer.
    let calls = world.calls("");
    world.edit("web", |s| {
        s["metadata"]["finalizers"] = json!(["service.kubernetes.io/load-balancer-cleanup"])
    });
    world.delete("web");
    world.pass(seconds(60)).await;
    assert!(world.has_finalizer("web"));
    assert_eq!(world.calls(""), calls);
}

#[tokio::test(start_paused = true)]
async fn a_service_that_gave_up_its_class_is_ours_to_its_end() {
    let world = World::running(&["a"]).await;
    world.add("web", json!({ "loadBalancerClass": "example.com/other" }));
    world.pass(seconds(1)).await;
    world.edit("web", |s| {
        s["spec"]["type"] = json!("ClusterIP");
        s["spec"].as_object_mut().unwrap().remove("loadBalancerClass");
    });
    world.pass(seconds(1)).await;
    world.edit("web", |s| s["spec"]["type"] = json!("LoadBalancer"));
    world.settled("web").await;
    world.delete("web");
    world.gone("web").await;
}

#[tokio::test(start_paused = true)]
async fn a_service_of_a_class_that_is_served_is_ours_and_one_without_may_be_another_managers() {
    let mut world = World::new(&["a"]);
    world.classes = ServiceClasses::new(["example.com/ours".to_owned()], false).unwrap();
    world.start();
    let of_ours = world.add("web", json!({ "loadBalancerClass": "example.com/ours" }));
    world.add("other", json!({ "loadBalancerClass": "example.com/other" }));
    world.add_service("plain");
    world.settled("web").await;
    world.pass(seconds(60)).await;
    assert_eq!(world.balancer(&of_ours).unwrap(), ["a"]);
    for name in ["other", "plain"] {
        assert!(
            !world.has_finalizer(name) && world.events(name).is_empty(),
            "{name}"
        );
    }
    // Nor is the finalizer of whoever serves those without a class.
    let calls = world.calls("");
    world.edit("plain", |s| {
        s["metadata"]["finalizers"] = json!(["service.kubernetes.io/load-balancer-cleanup"])
    });
    world.edit("plain", |s| s["spec"]["type"] = json!("ClusterIP"));
    world.delete("plain");
    world.pass(seconds(60)).await;
    assert!(world.has_finalizer("plain"));
    assert_eq!(world.calls(""), calls);
    world.delete("web");
    world.gone("web").await;
    assert_eq!(world.balancer(&of_ours), None);
}

#[tokio::test(start_paused = true)]
async fn a_class_that_changes_through_another_type_is_followed() {
    let mut world = World::new(&["a"]);
    world.classes = ServiceClasses::new(["ours".to_owned()], false).unwrap();
    world.start();
    let uid = world.add("web", json!({ "loadBalancerClass": "ours" }));
    world.settled("web").await;
    for class in ["other", "ours"] {
        world.edit("web", |s| {
            s["spec"]["type"] = json!("ClusterIP");
            s["spec"].as_object_mut().unwrap().remove("loadBalancerClass");
        });
        if class == "other" {
            world
                .until("it is gone", |w| {
                    w.balancer(&uid).is_none() && !w.has_finalizer("web")
                })
                .await;
        }
        world.edit("web", |s| {
            s["spec"]["type"] = json!("LoadBalancer");
            s["spec"]["loadBalancerClass"] = json!(class);
        });
        world.pass(seconds(30)).await;
        assert_eq!(world.balancer(&uid).is_some(), class == "ours", "{class}");
        assert_eq!(world.has_finalizer("web"), class == "ours", "{class}");
    }
}

/// The class is gone with the type, and the finalizer alone may be another manager's.
#[tokio::test(start_paused = true)]
async fn what_lost_its_class_while_no_process_ran_is_removed_by_the_manager_that_had_noted_the_class() {
    for new_class in [None, Some("other")] {
        let mut world = World::new(&["a"]);
        world.classes = ServiceClasses::new(["ours".to_owned()], false).unwrap();
        world.start();
        let uid = world.add("web", json!({ "loadBalancerClass": "ours" }));
        world.settled("web").await;
        let calls = world.calls("");
        world.pass(seconds(60)).await;
        assert_eq!(world.calls(""), calls, "the note is our own writing");
        world.stop().await;
        world.edit("web", |s| {
            s["spec"]["type"] = json!("ClusterIP");
            s["spec"].as_object_mut().unwrap().remove("loadBalancerClass");
        });
        if let Some(class) = new_class {
            world.edit("web", |s| {
                s["spec"]["type"] = json!("LoadBalancer");
                s["spec"]["loadBalancerClass"] = json!(class);
            });
        }
        let calls = world.calls("");
        world.start();
        world.pass(seconds(60)).await;
        // Whoever serves the new class may have taken the load balancer over.
        let stays = new_class.is_some();
        assert_eq!(world.balancer(&uid).is_some(), stays);
        assert_eq!(world.has_finalizer("web"), stays);
        let service = world.service("web").unwrap().to_string();
        assert_eq!(
            service.contains("bowline/load-balancer-class"),
            stays,
            "{service}"
        );
        assert_eq!(world.calls("") == calls, stays);
    }
}

/// Without it the manager of the Services without a class may take the finalizer off, once the class has gone with the type.
#[tokio::test(start_paused = true)]
async fn a_note_of_the_class_that_somebody_strips_is_put_back_without_a_call_to_the_cloud() {
    let mut world = World::new(&["a"]);
    world.classes = ServiceClasses::new(["ours".to_owned()], false).unwrap();
    world.start();
    world.add("web", json!({ "loadBalancerClass": "ours" }));
    world.settled("web").await;
    let calls = world.calls("");
    for round in 1..10 {
        world.edit("web", |s| {
            let annotations = s["metadata"]["annotations"].as_object_mut().unwrap();
            annotations.remove("bowline/load-balancer-class").unwrap();
        });
        world.pass(seconds(60)).await;
        let service = world.service("web").unwrap();
        assert_eq!(
            service["metadata"]["annotations"]["bowline/load-balancer-class"], "ours",
            "{round}"
        );
    }
    assert_eq!(world.calls(""), calls);
    assert!(world.count("ChangedBack") <= 1);
}

#[tokio::test(start_paused = true)]
async fn a_note_of_another_class_is_put_right_before_the_service_is_served() {
    let world = World::running(&["a"]).await;
    let annotations = json!({ "bowline/load-balancer-class": "other" });
    world.apply(json!({
        "kind": "Service", "apiVersion": "v1",
        "metadata": { "name": "web", "namespace": "default", "annotations": annotations, "finalizers": ["service.kubernetes.io/load-balancer-cleanup"] },
        "spec": { "type": "LoadBalancer", "ports": [{ "name": "http", "port": 80 }] },
    }));
    world.settled("web").await;
    let service = world.service("web").unwrap().to_string();
    assert!(!service.contains("bowline/load-balancer-class"), "{service}");
}
