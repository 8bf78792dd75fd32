//! What a Service tells of an address that it showed before.

#![expect(clippy::expect_used, reason = "a test ends on a surprise")]

use bowline_cloud_provider::plan::Note;
use bowline_cloud_provider::reasons;
use serde_json::{Value, json};

use super::seconds;
use super::world::World;

/// The condition of `web`, if it is there: reason and message.
fn told(world: &World) -> Option<(String, String)> {
    let conditions = world.service("web")?["status"]["conditions"].clone();
    let all = conditions.as_array()?;
    let it = all
        .iter()
        .find(|it| it["type"] == "LoadBalancerAddressChanged" && it["status"] == "True")?;
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    Some((text(&it["reason"]), text(&it["message"])))
}

/// A Service with an address, and how many writes of Services there were.
async fn settled() -> (World, usize) {
    let world = World::running(&["a"]).await;
    world.add_service("web");
    world.settled("web").await;
    world.pass(seconds(60)).await;
    let writes = writes(&world);
    (world, writes)
}

fn writes(world: &World) -> usize {
    let writes = world.api.journal().writes();
    writes.iter().filter(|it| it.resource == "services").count()
}

#[tokio::test(start_paused = true)]
async fn an_address_that_is_lost_is_told_in_the_write_that_shows_the_next_one() {
    let (world, before) = settled().await;
    assert_eq!(told(&world), None);
    world.cloud.set(|cloud| {
        cloud.address = Some("198.51.100.8");
        cloud.note = Some(Note::warning(reasons::GONE.0, "it is gone"));
    });
    world.add_node("b");
    world
        .until("it has another", |w| {
            w.address("web").as_deref() == Some("198.51.100.8")
        })
        .await;
    world.pass(seconds(120)).await;
    let (reason, message) = told(&world).expect("it is told");
    assert_eq!(reason, "LoadBalancerGone");
    assert!(
        message.starts_with("was 198.51.100.7 until 2026-01-01T00:01:"),
        "{message}"
    );
    assert!(message.contains(": the load balancer was gone. DNS"), "{message}");
    assert_eq!(writes(&world), before + 1);

    // Whoever clears the whole status takes the condition away with it.
    world.edit("web", |s| s["status"] = json!({}));
    world.pass(seconds(1)).await;
    assert_eq!(world.address("web").as_deref(), Some("198.51.100.8"));
    assert_eq!(told(&world), Some((reason, message)));
    assert_eq!(writes(&world), before + 2);

    // It is shown again.
    world
        .cloud
        .set(|cloud| (cloud.address, cloud.note) = (None, None));
    world.api.delete("Node", "", "b");
    world
        .until("it has the first", |w| {
            w.address("web").as_deref() == Some("198.51.100.7")
        })
        .await;
    assert_eq!(told(&world), None);
    assert_eq!(writes(&world), before + 3);
}

#[tokio::test(start_paused = true)]
async fn an_address_that_is_lost_by_a_change_of_the_service_is_told_as_that() {
    let (world, _) = settled().await;
    world.cloud.set(|cloud| cloud.address = Some("198.51.100.8"));
    world.annotate("web", "example.com/a", "1");
    world.pass(seconds(1)).await;
    assert_eq!(told(&world).expect("it is told").0, "ServiceChanged");

    // A Service without a load balancer has no address to tell of. The API server clears the status by itself.
    world.edit("web", |s| s["spec"]["type"] = json!("ClusterIP"));
    world.pass(seconds(60)).await;
    assert_eq!(told(&world), None);
}

#[tokio::test(start_paused = true)]
async fn a_change_that_nobody_saw_is_told_by_the_next_process() {
    let (mut world, before) = settled().await;
    world.stop().await;
    world.cloud.set(|cloud| cloud.address = Some("198.51.100.8"));
    world.start();
    world.pass(seconds(60)).await;
    assert_eq!(told(&world).expect("it is told").0, "Unknown");
    assert_eq!(writes(&world), before + 1);
    world.stop().await;
    world.start();
    world.pass(seconds(60)).await;
    assert_eq!(writes(&world), before + 1, "a take-over is silent");
}

/// The API server clears the status with the type, so the Service itself shows nothing of it any more.
#[tokio::test(start_paused = true)]
async fn what_clients_used_before_another_type_is_told_when_the_service_is_a_load_balancer_again() {
    for class in [None, Some("other")] {
        let (world, _) = settled().await;
        world.cloud.set(|cloud| cloud.address = Some("198.51.100.8"));
        world.annotate("web", "example.com/a", "1");
        world.pass(seconds(1)).await;
        let ends = |s: &mut Value| {
            s["spec"]["type"] = json!("ClusterIP");
            s["spec"]
                .as_object_mut()
                .expect("a spec")
                .remove("loadBalancerClass");
        };
        world.edit("web", ends);
        if let Some(class) = class {
            world.edit("web", |s| {
                s["spec"]["type"] = json!("LoadBalancer");
                s["spec"]["loadBalancerClass"] = json!(class);
            });
        }
        world.pass(seconds(60)).await;
        assert_eq!(told(&world), None, "{class:?}");
        world.cloud.set(|cloud| cloud.address = Some("198.51.100.9"));
        world.edit("web", ends);
        world.edit("web", |s| s["spec"]["type"] = json!("LoadBalancer"));
        world.settled("web").await;
        world.pass(seconds(5)).await;
        let (_, message) = told(&world).expect("it is told");
        let was = "was 198.51.100.7, 198.51.100.8 until";
        assert!(message.starts_with(was), "{class:?}: {message}");
    }
}
