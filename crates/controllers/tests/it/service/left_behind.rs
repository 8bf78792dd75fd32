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
    world.strip_finalizer(name);
    world.delete(name);
}

/// How many are reported.
fn reported(world: &World) -> Option<String> {
    let page = world.page();
    let line = page
        .lines()
        .find_map(|line| line.strip_prefix("load_balancers_left_behind "));
    line.map(str::to_owned)
}

/// A copy of the cluster, or one restored from a backup, has the same names, UIDs and credentials, and a process that saw nothing
/// of what became of the original's Services.
#[tokio::test(start_paused = true)]
async fn a_balancer_whose_service_this_process_did_not_see_vanish_is_reported_and_stays() {
    let (mut world, uids) = stopped(&["web", "shop"]).await;
    vanish(&world, "web");
    let calls = world.calls("");
    world.start();
    world.pass(seconds(1)).await;
    assert_eq!(reported(&world).unwrap(), "1.0");
    world.pass(seconds(1300)).await;
    assert!(uids.iter().all(|uid| world.balancer(uid).is_some()));
    let calls = world.cloud.calls("").split_off(calls);
    assert!(
        calls.iter().all(|(_, call)| call.starts_with("read")),
        "{calls:?}"
    );
    // Somebody deletes it in the cloud.
    world.set(|cloud| drop(cloud.balancers.remove(&uids[0])));
    world.pass(seconds(600)).await;
    assert_eq!(reported(&world).unwrap(), "0.0");
}

#[tokio::test(start_paused = true)]
async fn a_service_that_is_made_anew_under_the_name_gets_its_own_and_the_old_one_is_reported() {
    let (mut world, uids) = stopped(&["web"]).await;
    vanish(&world, "web");
    let new = world.add_service("web");
    world.start();
    world.settled("web").await;
    assert_eq!(world.balancer(&new).unwrap(), ["a"]);
    assert!(world.balancer(&uids[0]).is_some());
    assert_eq!(reported(&world).unwrap(), "1.0");
}

#[tokio::test(start_paused = true)]
async fn one_that_no_list_shows_is_asked_for_by_its_name_and_not_reported() {
    let (mut world, uids) = stopped(&["web"]).await;
    let list = r#"{"kind":"ServiceList","apiVersion":"v1","metadata":{"resourceVersion":"2"},"items":[]}"#;
    let lie = Fault::new(Effect::Text(200, list))
        .verb("list")
        .resource("services");
    // The list and its count; what is asked by name is answered by the API server.
    world.inject(lie.times(2));
    world.start();
    world.pass(seconds(700)).await;
    assert!(world.balancer(&uids[0]).is_some());
    assert_eq!(reported(&world).unwrap(), "0.0");
}

#[tokio::test(start_paused = true)]
async fn nothing_is_reported_before_the_question_is_answered_and_the_cloud_is_asked_until_it_answers() {
    let (mut world, _) = stopped(&["web"]).await;
    vanish(&world, "web");
    world.set(|cloud| {
        let outage = || CloudError::transient("maintenance");
        cloud.read_errors.extend([outage(), outage()]);
    });
    // All but the list at the start and its count.
    let by_name = Fault::new(Effect::Silence)
        .verb("list")
        .resource("services")
        .after(2);
    world.inject(by_name);
    world.start();
    world.pass(seconds(60)).await;
    assert_eq!(reported(&world), None, "nobody has answered yet");
    world.api.faults().clear();
    world
        .until("it is reported", |w| reported(w).as_deref() == Some("1.0"))
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_cloud_that_cannot_be_read_hides_nothing_that_another_one_shows() {
    let (mut world, _) = stopped(&["web"]).await;
    vanish(&world, "web");
    let down = || Some(CloudError::transient("maintenance"));
    world.set(|cloud| cloud.other_cloud = down());
    world.start();
    world.pass(seconds(10)).await;
    assert_eq!(reported(&world).as_deref(), Some("1.0"));
    // What it showed counts on when it cannot be read itself.
    world.set(|cloud| cloud.read_errors.extend(down()));
    world.pass(seconds(700)).await;
    assert!(
        world
            .cloud
            .calls("")
            .iter()
            .all(|(_, call)| !call.starts_with("delete"))
    );
    assert_eq!(reported(&world).as_deref(), Some("1.0"));
}

/// What the API server shows of a Service may be older than the balancer: then the copy asks for none, and the original does.
#[tokio::test(start_paused = true)]
async fn the_balancer_of_a_service_that_lives_and_does_not_ask_for_it_is_reported_and_stays() {
    let (mut world, uids) = stopped(&["web", "other"]).await;
    for name in ["web", "other"] {
        world.edit(name, |s| {
            s["metadata"]["finalizers"] = json!([]);
            s["spec"]["type"] = json!("ClusterIP");
        });
    }
    // What has a class by now is another controller's.
    world.edit("other", |s| {
        s["spec"]["type"] = json!("LoadBalancer");
        s["spec"]["loadBalancerClass"] = json!("example.com/other");
        s["metadata"]["finalizers"] = json!(["service.kubernetes.io/load-balancer-cleanup"]);
        s["status"]["loadBalancer"] = json!({ "ingress": [{ "ip": "203.0.113.9" }] });
    });
    world.start();
    world.pass(seconds(60)).await;
    assert_eq!(reported(&world).unwrap(), "2.0");
    assert!(uids.iter().all(|uid| world.balancer(uid).is_some()));
    assert!(world.has_finalizer("other"));
    assert_eq!(world.address("other").as_deref(), Some("203.0.113.9"));
    world.edit("web", |s| s["spec"]["type"] = json!("LoadBalancer"));
    world.settled("web").await;
    world.pass(seconds(600)).await;
    assert_eq!(reported(&world).unwrap(), "1.0");
}

#[tokio::test(start_paused = true)]
async fn a_service_that_lives_is_looked_at_once_whatever_is_marked_as_its_own_and_not_reported() {
    for marks in [None, Some([].into())] {
        let mut world = World::new_with(&["a"], |cloud| cloud.marks = marks);
        world.add_service("web");
        world.settled("web").await;
        world.stop().await;
        let before = world.calls("");
        world.start();
        world.pass(seconds(60)).await;
        assert_eq!(reported(&world).unwrap(), "0.0");
        assert_eq!(world.calls("") - before, 1);
    }
}

/// As a process left it that died while the class changed back.
#[tokio::test(start_paused = true)]
async fn a_service_of_which_another_cloud_shows_something_is_looked_at_again() {
    let mut world = World::new_with(&["a"], |cloud| cloud.marks = Some([].into()));
    let uid = world.add_service("web");
    world.settled("web").await;
    world.stop().await;
    world.set(|cloud| cloud.elsewhere = Some(("web".to_owned(), uid)));
    let before = world.calls("");
    world.start();
    world.pass(seconds(60)).await;
    assert_eq!(world.calls("") - before, 2);
}

/// Its removal takes a while, and its mark is seen meanwhile.
#[tokio::test(start_paused = true)]
async fn one_that_is_being_removed_is_not_reported() {
    let world = World::new_with(&["a"], |cloud| cloud.marks = Some([].into()));
    let uid = world.add_service("web");
    world.settled("web").await;
    world.slow("web", seconds(700));
    vanish(&world, "web");
    for _ in 0..70 {
        world.pass(seconds(10)).await;
        assert_eq!(reported(&world).unwrap(), "0.0");
    }
    world.removed(&uid).await;
}

#[tokio::test(start_paused = true)]
async fn nothing_is_said_to_be_deleted_where_nothing_was_there_any_more() {
    let (world, uid) = World::serving(&["a"]).await;
    world.set(|cloud| drop(cloud.balancers.remove(&uid)));
    vanish(&world, "web");
    world.pass(seconds(60)).await;
    assert!(
        !world
            .events("web")
            .iter()
            .any(|event| format!("{event:?}").contains("DeletedLoadBalancer"))
    );
}
