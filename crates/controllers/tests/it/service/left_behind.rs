//! Services that vanish while no process leads, in a cloud that shows whom its balancers were made for.

use bowline_cloud_provider::CloudError;
use bowline_kube_api::{Effect, Fault};
use serde_json::json;

use super::seconds;
use super::world::World;

/// Services with balancers, and no process.
async fn stopped(names: &[&str]) -> (World, Vec<String>) {
    let mut world = World::new_with(&["a"], |cloud| cloud.marks = Some([].into()));
    let mut uids = Vec::new();
    for name in names {
        uids.push(world.add_service(name));
        world.settled(name).await;
    }
    world.stop().await;
    (world, uids)
}

fn vanish(world: &World, name: &str) {
    world.edit(name, |s| s["metadata"]["finalizers"] = json!([]));
    world.api.delete("Service", "default", name);
}

#[tokio::test(start_paused = true)]
async fn the_balancer_of_one_that_vanished_meanwhile_goes_and_no_other() {
    let (mut world, uids) = stopped(&["web", "shop"]).await;
    vanish(&world, "web");
    let calls = world.cloud.calls("").len();
    world.start();
    world
        .until("the balancer is gone", |w| w.cloud.balancer(&uids[0]).is_none())
        .await;
    world.pass(seconds(1300)).await;
    assert!(world.cloud.balancer(&uids[1]).is_some());
    let writes: Vec<String> = world
        .cloud
        .calls("")
        .split_off(calls)
        .into_iter()
        .map(|(_, call)| call)
        .collect();
    let writes: Vec<&String> = writes.iter().filter(|call| !call.starts_with("read")).collect();
    assert_eq!(writes, ["delete(web)"]);
}

#[tokio::test(start_paused = true)]
async fn a_removal_that_ended_with_its_process_is_finished_by_the_next_one() {
    let mut world = World::new_with(&["a"], |cloud| cloud.marks = Some([].into()));
    let uid = world.add_service("web");
    world.settled("web").await;
    world.cloud.set(|cloud| {
        cloud
            .write_errors
            .extend([CloudError::other("busy"), CloudError::other("busy")])
    });
    vanish(&world, "web");
    world.pass(seconds(1)).await;
    world.stop().await;
    assert!(world.cloud.balancer(&uid).is_some(), "its deletion failed");
    world.start();
    world
        .until("the balancer is gone", |w| w.cloud.balancer(&uid).is_none())
        .await;
}

#[tokio::test(start_paused = true)]
async fn one_that_was_made_anew_under_the_name_keeps_its_own() {
    let (mut world, uids) = stopped(&["web"]).await;
    vanish(&world, "web");
    let new = world.add_service("web");
    world.start();
    world.settled("web").await;
    world
        .until("the old one is gone", |w| w.cloud.balancer(&uids[0]).is_none())
        .await;
    assert_eq!(world.cloud.balancer(&new).unwrap(), ["a"]);
}

/// The one before is found while the sync of the new one is under way.
#[tokio::test(start_paused = true)]
async fn a_failed_sync_of_the_new_one_is_no_failed_deletion_of_the_old_one() {
    let (mut world, uids) = stopped(&["web"]).await;
    vanish(&world, "web");
    world.add_service("web");
    world.cloud.set(|cloud| {
        cloud.write_time.insert("web".to_owned(), seconds(5));
        cloud.write_errors.push_back(CloudError::invalid("not like this"));
    });
    world.start();
    world
        .until("the old one is gone", |w| w.cloud.balancer(&uids[0]).is_none())
        .await;
    let events = world.events("web");
    let failed = events.iter().filter(|(_, text)| text.contains("not like this"));
    let reasons: Vec<&str> = failed.map(|(reason, _)| reason.as_str()).collect();
    assert_eq!(reasons, ["SyncLoadBalancerFailed"], "{events:?}");
}

#[tokio::test(start_paused = true)]
async fn one_that_no_list_shows_is_asked_for_by_its_name_and_keeps_its_balancer() {
    let (mut world, uids) = stopped(&["web"]).await;
    let list = r#"{"kind":"ServiceList","apiVersion":"v1","metadata":{"resourceVersion":"2"},"items":[]}"#;
    let lie = Fault::new(Effect::Text(200, list))
        .verb("list")
        .resource("services");
    // The list and its count; what is asked by name is answered by the API server.
    world.api.faults().inject(lie.times(2));
    world.start();
    world.pass(seconds(700)).await;
    assert!(world.cloud.balancer(&uids[0]).is_some());
    assert!(world.cloud.calls("delete").is_empty());
}

#[tokio::test(start_paused = true)]
async fn nothing_goes_before_the_question_is_answered_and_the_cloud_is_asked_until_it_answers() {
    let (mut world, uids) = stopped(&["web"]).await;
    vanish(&world, "web");
    world.cloud.set(|cloud| {
        let outage = || CloudError::transient("maintenance");
        cloud.read_errors.extend([outage(), outage()]);
    });
    // All but the list at the start and its count.
    let by_name = Fault::new(Effect::Silence)
        .verb("list")
        .resource("services")
        .after(2);
    world.api.faults().inject(by_name);
    world.start();
    world.pass(seconds(60)).await;
    assert!(
        world.cloud.balancer(&uids[0]).is_some(),
        "nobody has answered yet"
    );
    world.api.faults().clear();
    world
        .until("the balancer is gone", |w| w.cloud.balancer(&uids[0]).is_none())
        .await;
}

#[tokio::test(start_paused = true)]
async fn one_that_lives_and_lost_type_and_finalizer_meanwhile_loses_its_balancer() {
    let (mut world, uids) = stopped(&["web", "other"]).await;
    for name in ["web", "other"] {
        world.edit(name, |s| {
            s["metadata"]["finalizers"] = json!([]);
            s["spec"]["type"] = json!("ClusterIP");
        });
    }
    // What has a class by now is another controller's, but for the balancer that was made for it here.
    world.edit("other", |s| {
        s["spec"]["type"] = json!("LoadBalancer");
        s["spec"]["loadBalancerClass"] = json!("example.com/other");
        s["metadata"]["finalizers"] = json!(["service.kubernetes.io/load-balancer-cleanup"]);
        s["status"]["loadBalancer"] = json!({ "ingress": [{ "ip": "203.0.113.9" }] });
    });
    world.start();
    world
        .until("the balancer is gone", |w| w.cloud.balancer(&uids[0]).is_none())
        .await;
    world.pass(seconds(60)).await;
    assert!(world.service("web").is_some() && world.service("other").is_some());
    assert!(world.cloud.balancer(&uids[1]).is_none());
    assert!(world.has_finalizer("other"));
    assert_eq!(world.address("other").as_deref(), Some("203.0.113.9"));
    world.edit("web", |s| s["spec"]["type"] = json!("LoadBalancer"));
    world.settled("web").await;
    assert!(world.cloud.balancer(&uids[0]).is_some());
}

#[tokio::test(start_paused = true)]
async fn nothing_is_said_to_be_deleted_where_nothing_was_there_any_more() {
    let world = World::running(&["a"]).await;
    let uid = world.add_service("web");
    world.settled("web").await;
    world.cloud.set(|cloud| drop(cloud.balancers.remove(&uid)));
    vanish(&world, "web");
    world.pass(seconds(60)).await;
    assert!(
        !world
            .events("web")
            .iter()
            .any(|event| format!("{event:?}").contains("DeletedLoadBalancer"))
    );
}
