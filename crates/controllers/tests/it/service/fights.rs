//! What others change back on a Service.

use bowline_kube_api::{Effect, Fault};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::cloud::MARK;
use super::seconds;
use super::world::World;

/// A Service that has settled, with how many calls the cloud has had by then, and how many writes the Service.
async fn settled() -> (World, usize, usize) {
    let (world, _) = World::serving(&["a"]).await;
    let (calls, writes) = (world.calls(""), writes(&world));
    (world, calls, writes)
}

fn writes(world: &World) -> usize {
    world.api.journal().of("patch", "services").len()
}

fn has_mark(world: &World) -> bool {
    world.annotation("web", MARK) == "yes"
}

/// Changes it back as soon as it is written, for so long.
async fn fight(world: &World, time: u64, is_there: fn(&World) -> bool, undo: fn(&mut Value)) {
    let begun = Instant::now();
    while begun.elapsed() < seconds(time) {
        if is_there(world) {
            world.edit("web", undo);
        }
        world.pass(seconds(1) / 10).await;
    }
}

fn strip(service: &mut Value) {
    service["metadata"]["annotations"] = json!({});
}

#[tokio::test(start_paused = true)]
async fn an_annotation_that_somebody_strips_is_put_back_less_and_less_often_and_costs_one_look() {
    let (world, calls, written) = settled().await;
    fight(&world, 300, has_mark, strip).await;
    // The look, with what verifies it.
    let looks = world.cloud.calls("").split_off(calls);
    assert!(looks.iter().all(|(_, call)| call == "read web"), "{looks:?}");
    assert_eq!(looks.len(), 1);
    // At once five times, then after 5, 15, 35, 75 and 155 s.
    assert_eq!(writes(&world) - written, 10);
    world.pass(seconds(300)).await;
    assert!(has_mark(&world));
}

#[tokio::test(start_paused = true)]
async fn an_annotation_of_ours_that_somebody_sets_to_something_else_is_looked_at_each_time_it_is_another() {
    let (world, calls, _) = settled().await;
    for value in ["no", "never"] {
        world.annotate("web", MARK, value);
        world.pass(seconds(1)).await;
    }
    assert_eq!(world.calls("") - calls, 2);
}

/// The cloud of these tests takes any value for its mark, so the change is a person's wish.
#[tokio::test(start_paused = true)]
async fn an_annotation_that_a_look_leaves_to_others_is_theirs() {
    let (world, calls, written) = settled().await;
    for value in ["no", "yes", "no", "yes"] {
        world.annotate("web", MARK, value);
        world.pass(seconds(1)).await;
        assert_eq!(world.annotation("web", MARK), value);
    }
    assert_eq!(world.calls("") - calls, 4);
    assert_eq!(writes(&world), written);
}

#[tokio::test(start_paused = true)]
async fn an_annotation_of_others_that_changes_without_end_is_looked_at_less_and_less_often() {
    let (world, calls, _) = settled().await;
    for tick in 0..600 {
        world.annotate("web", "example.com/tick", &tick.to_string());
        world.pass(seconds(1) / 2).await;
    }
    // The first one may be meant for the cloud; then five times at once, and after 5, 15, 35, 75 and 155 s.
    let looks = world.calls("") - calls;
    assert!((10..=12).contains(&looks), "{looks}");
    // Another one is followed at once, and the last value of this one is not forgotten.
    world.annotate("web", "example.com/other", "1");
    world.pass(seconds(1)).await;
    assert_eq!(world.calls("") - calls, looks + 1);
}

#[tokio::test(start_paused = true)]
async fn the_same_holds_while_the_cloud_fails() {
    let (world, calls, _) = settled().await;
    world.set(|cloud| {
        let down = || bowline_cloud_provider::CloudError::transient("maintenance");
        cloud.read_errors.extend(std::iter::repeat_with(down).take(1000));
    });
    for tick in 0..600 {
        world.annotate("web", "example.com/tick", &tick.to_string());
        world.pass(seconds(1) / 2).await;
    }
    // The retries come on top: after 5, 15, 35, 75, 155 and 315 s.
    let looks = world.calls("") - calls;
    assert!(looks <= 20, "{looks}");
}

/// As a tool does that renders the annotations anew each time, with a hash of its own.
#[tokio::test(start_paused = true)]
async fn who_strips_an_annotation_and_changes_another_one_with_it_is_met_no_more_often() {
    let (world, calls, _) = settled().await;
    for tick in 0..300 {
        world.edit("web", |s| {
            s["metadata"]["annotations"] = json!({ "example.com/hash": tick.to_string() })
        });
        world.pass(seconds(1) / 10).await;
    }
    let looks = world.calls("") - calls;
    assert!(looks < 10, "{looks}");
}

#[tokio::test(start_paused = true)]
async fn a_status_that_somebody_clears_or_overwrites_is_published_again_without_a_call_to_the_cloud() {
    let (world, calls, _) = settled().await;
    let address = world.address("web");
    for status in [
        json!({}),
        json!({ "loadBalancer": { "ingress": [{ "ip": "203.0.113.9" }] } }),
    ] {
        world.edit("web", |s| s["status"] = status);
        world.pass(seconds(1)).await;
        assert_eq!(world.address("web"), address);
    }
    assert_eq!(world.calls(""), calls);
    let events = world.reasons("web").len();
    fight(
        &world,
        300,
        |w| w.address("web").is_some(),
        |s| s["status"] = json!({}),
    )
    .await;
    assert_eq!(world.calls(""), calls);
    assert_eq!(world.reasons("web").len(), events + 1);
    assert_eq!(world.reasons("web").pop().unwrap(), "ChangedBack");
    // The cause stands on the Service, for its event does not last.
    let shown = |world: &World| world.service("web").unwrap()["status"]["conditions"].clone();
    world.pass(seconds(300)).await;
    assert_eq!(world.address("web"), address);
    let conditions = shown(&world);
    assert_eq!(
        (
            &conditions[0]["type"],
            &conditions[0]["status"],
            &conditions[0]["reason"]
        ),
        (
            &json!("LoadBalancerReconciled"),
            &json!("False"),
            &json!("kubernetes")
        ),
        "{conditions}"
    );
    let message = conditions[0]["message"].as_str().unwrap();
    assert!(
        message.starts_with("status.loadBalancer: changed back again and again, by"),
        "{message}"
    );
    // Nobody takes it away any more.
    world.pass(seconds(900)).await;
    assert!(
        shown(&world).as_array().is_none_or(Vec::is_empty),
        "{}",
        shown(&world)
    );
}

#[tokio::test(start_paused = true)]
async fn a_status_that_is_cleared_while_the_cloud_fails_comes_back_and_the_cloud_is_not_asked_sooner() {
    let (world, ..) = settled().await;
    world.set(|cloud| {
        let down = || bowline_cloud_provider::CloudError::transient("maintenance");
        cloud.read_errors.extend(std::iter::repeat_with(down).take(20));
    });
    world.annotate("web", "example.com/a", "1");
    world.pass(seconds(40)).await;
    let calls = world.calls("");
    world.edit("web", |s| s["status"] = json!({}));
    world.pass(seconds(2)).await;
    assert!(world.address("web").is_some());
    assert_eq!(world.calls(""), calls, "the next try is due at 75 s");
    world.pass(seconds(40)).await;
    assert_eq!(world.calls(""), calls + 1);
}

/// The next question about the Service shows these entries of its managed fields.
fn is_managed_by(world: &World, managed: &Value) {
    let uid = &world.service("web").unwrap()["metadata"]["uid"];
    let list = json!({
        "kind": "ServiceList", "apiVersion": "v1", "metadata": { "resourceVersion": "99" },
        "items": [{ "metadata": { "name": "web", "namespace": "default", "uid": uid, "managedFields": managed } }],
    });
    let text = Effect::Text(200, list.to_string().leak());
    let fault = Fault::new(text).verb("list").resource("services");
    world.inject(fault);
}

#[tokio::test(start_paused = true)]
async fn the_event_names_the_other_writer() {
    let (world, ..) = settled().await;
    let entry = |manager: &str, fields: &Value| json!({ "manager": manager, "operation": "Update", "time": "2026-01-01T00:00:00Z", "fieldsV1": fields });
    let status = json!({ "f:status": { "f:loadBalancer": { "f:ingress": {} } } });
    let managed = ["test", "argocd-controller"].map(|manager| entry(manager, &status));
    is_managed_by(&world, &json!(managed));
    fight(
        &world,
        20,
        |w| w.address("web").is_some(),
        |s| s["status"] = json!({}),
    )
    .await;
    let (reason, text) = world.events("web").pop().unwrap();
    assert_eq!(reason, "ChangedBack");
    assert_eq!(
        text,
        "status.loadBalancer: changed back again and again, by argocd-controller; put back after 5, 10, 20 ... 300 s"
    );
}

/// A removal leaves no entry in the managed fields, and whoever wrote another annotation has nothing to do with it.
#[tokio::test(start_paused = true)]
async fn the_event_names_what_was_removed_and_nobody_for_it() {
    let (world, ..) = settled().await;
    let managed = json!([{
        "manager": "kubectl", "operation": "Update", "time": "2026-01-01T00:00:00Z",
        "fieldsV1": { "f:metadata": { "f:annotations": { "f:example.com/other": {} } } },
    }]);
    is_managed_by(&world, &managed);
    fight(&world, 20, has_mark, strip).await;
    let (reason, text) = world.events("web").pop().unwrap();
    assert_eq!(reason, "ChangedBack");
    assert_eq!(
        text,
        format!(
            "annotation {MARK}: changed back again and again, by another program (a removal leaves no trace of who did it); put back after 5, 10, 20 ... 300 s"
        )
    );
}

#[tokio::test(start_paused = true)]
async fn what_may_not_be_put_back_is_tried_again_and_delays_nothing_else() {
    let (world, calls, _) = settled().await;
    let down = Effect::Answer(bowline_kube_api::Status::unavailable("busy"));
    world.inject(Fault::new(down).verb("patch").subresource("status").times(3));
    world.edit("web", |s| s["status"] = json!({}));
    world.pass(seconds(2)).await;
    world.annotate("web", "example.com/a", "1");
    world.pass(seconds(1)).await;
    assert!(world.calls("") > calls);
    world.addressed("web").await;
}

#[tokio::test(start_paused = true)]
async fn a_service_that_is_made_anew_gets_nothing_back_of_the_one_before() {
    let (world, ..) = settled().await;
    world.strip_finalizer("web");
    world.delete("web");
    // Nothing of this one is written yet, when somebody takes its finalizer off.
    world.slow("web", seconds(30));
    world.add_service("web");
    world.pass(seconds(1)).await;
    for _ in 0..3 {
        world.strip_finalizer("web");
        world.pass(seconds(3)).await;
    }
    assert!(!has_mark(&world));
    assert_eq!(world.address("web"), None);
}
