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
        let (world, uid) = World::serving(&["a"]).await;
        list_again(&world, "services", answer).await;
        world.pass(seconds(120)).await;
        assert!(world.balancer(&uid).is_some(), "{answer}");
        assert!(world.calls("delete") == 0, "{answer}");
        world.delete("web");
        world.removed(&uid).await;
    }
}

#[tokio::test(start_paused = true)]
async fn no_member_goes_because_its_node_is_missing_from_a_list() {
    let (world, uid) = World::serving(&["a", "b", "c"]).await;
    let answer = r#"{"kind":"NodeList","apiVersion":"v1","metadata":{"resourceVersion":"900"},"items":[]}"#;
    list_again(&world, "nodes", answer).await;
    world.pass(seconds(120)).await;
    assert_eq!(world.balancer(&uid).unwrap(), ["a", "b", "c"]);
    assert_eq!(world.calls("set-nodes"), 1);
    world.delete_node("b");
    world.leads_to(&uid, &["a", "c"]).await;
}

#[tokio::test(start_paused = true)]
async fn a_service_that_vanished_is_asked_for_until_there_is_an_answer() {
    let (world, uid) = World::serving(&["a"]).await;
    let silent = Fault::new(Effect::Silence).verb("list").resource("services");
    world.inject(silent);
    world.strip_finalizer("web");
    world.delete("web");
    world.pass(seconds(300)).await;
    assert!(world.balancer(&uid).is_some(), "nobody has answered yet");
    world.api.faults().clear();
    world.removed(&uid).await;
}
