//! Services and Nodes that are missing from a list, or said to be gone.

use bowline_kube_api::{Effect, Fault, Status};
use serde_json::json;

use super::seconds;
use super::world::World;

/// Has the watches of a kind begin again with a list, which is answered with this text.
async fn list_again(world: &World, resource: &str, answer: &'static str) {
    let faults = world.api.faults();
    faults.fail_next(1, "watch", resource, Status::unavailable("restarting"));
    let list = Fault::new(Effect::Text(200, answer))
        .verb("list")
        .resource(resource);
    faults.inject(list.times(1));
    world.api.close_watches();
    world.pass(seconds(0)).await;
    world.apply(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}}));
    world.api.compact();
    let lists = world.api.journal().of("list", resource).len();
    world
        .until("the next list", |w| {
            w.api.journal().of("list", resource).len() > lists
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn no_balancer_goes_because_its_service_is_missing_from_a_list() {
    for answer in [
        r#"{"kind":"ServiceList","apiVersion":"v1","metadata":{"resourceVersion":"900"},"items":[]}"#,
        r#"{"kind":"ServiceList","apiVersion":"v1","metadata":{},"items":[]}"#,
        r#"{"kind":"List","apiVersion":"v1","metadata":{"resourceVersion":"900"},"items":[]}"#,
        r#"{"kind":"ServiceList","apiVersion":"v1","metadata":{"resourceVersion":"900"}}"#,
        r#"{"kind":"ServiceList","apiVersion":"v1","metadata":{"resourceVersion":"900"},"items":null}"#,
        r#"{"kind":"ServiceList","apiVersion":"v1","metadata":{"resourceVersion":"900","remainingItemCount":3},"items":[]}"#,
        "{}",
        "<html>Sign in</html>",
    ] {
        let world = World::running(&["a"]).await;
        let uid = world.add_service("web");
        world.settled("web").await;
        list_again(&world, "services", answer).await;
        world.pass(seconds(120)).await;
        assert!(world.cloud.balancer(&uid).is_some(), "{answer}");
        assert!(world.cloud.calls("delete").is_empty(), "{answer}");
        world.api.delete("Service", "default", "web");
        world
            .until("the balancer is gone", |w| w.cloud.balancer(&uid).is_none())
            .await;
    }
}

#[tokio::test(start_paused = true)]
async fn no_member_goes_because_its_node_is_missing_from_a_list() {
    let world = World::running(&["a", "b", "c"]).await;
    let uid = world.add_service("web");
    world.settled("web").await;
    let answer = r#"{"kind":"NodeList","apiVersion":"v1","metadata":{"resourceVersion":"900"},"items":[]}"#;
    list_again(&world, "nodes", answer).await;
    world.pass(seconds(120)).await;
    assert_eq!(world.cloud.balancer(&uid).unwrap(), ["a", "b", "c"]);
    assert_eq!(world.cloud.calls("set-nodes").len(), 1);
    world.api.delete("Node", "", "b");
    world
        .until("its member is gone", |w| {
            w.cloud.balancer(&uid).unwrap() == ["a", "c"]
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_service_that_vanished_is_asked_for_until_there_is_an_answer() {
    let world = World::running(&["a"]).await;
    let uid = world.add_service("web");
    world.settled("web").await;
    let silent = Fault::new(Effect::Silence).verb("list").resource("services");
    world.api.faults().inject(silent);
    world.edit("web", |s| s["metadata"]["finalizers"] = json!([]));
    world.api.delete("Service", "default", "web");
    world.pass(seconds(300)).await;
    assert!(world.cloud.balancer(&uid).is_some(), "nobody has answered yet");
    world.api.faults().clear();
    world
        .until("the balancer is gone", |w| w.cloud.balancer(&uid).is_none())
        .await;
}
