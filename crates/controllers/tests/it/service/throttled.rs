//! A cloud, or an API server, that asks to be left alone.

use bowline_cloud_provider::{CloudError, ErrorKind};
use bowline_kube_api::Status;

use super::seconds;
use super::world::World;

/// Its own words may count down, and the delay may be another one each time.
#[tokio::test(start_paused = true)]
async fn a_cloud_that_limits_the_rate_of_calls_is_told_as_such_in_one_event() {
    let world = World::running(&["a"]).await;
    let throttled = |delay: u64| {
        let text = format!("429 Too Many Requests: retry after {delay}000 ms");
        CloudError::new(
            ErrorKind::Throttled {
                after: seconds(delay),
            },
            text,
        )
    };
    let errors = [7, 9, 8].map(throttled);
    world.set(|cloud| cloud.write_errors.extend(errors));
    world.add_service("web");
    world.settled("web").await;
    let events = world.api.objects("Event");
    let failed: Vec<_> = events
        .iter()
        .filter(|event| event["reason"] == "SyncLoadBalancerFailed")
        .map(|event| {
            (
                event["message"].as_str().unwrap(),
                event["count"].as_u64().unwrap(),
            )
        })
        .collect();
    let text = "Error syncing load balancer: failed to ensure load balancer: error during create(web): the cloud limits the \
                rate of calls, or is overloaded, and asked to wait up to 10 s; tried again in up to 10 s";
    assert_eq!(failed, [(text, 3)]);
}

/// The cloud would pay for it: each try begins with a look at it.
#[tokio::test(start_paused = true)]
async fn an_api_server_that_is_busy_for_minutes_does_not_have_the_cloud_looked_at_each_second() {
    let world = World::running(&["a"]).await;
    let busy = Status::too_many_requests(7);
    world.api.faults().fail_next(3, "patch", "services", busy);
    world.add_service("web");
    world.settled("web").await;
    let refused = world
        .api
        .journal()
        .matching(|exchange| exchange.is_write() && exchange.status == 429);
    assert_eq!(refused.len(), 3);
    let looks = world.calls("read");
    assert!(looks <= 5, "{looks}");
    let settled = world.cloud.calls("read").last().unwrap().0;
    assert!((7 + 10 + 20..40).contains(&settled.as_secs()), "{settled:?}");
}

#[tokio::test(start_paused = true)]
async fn a_cloud_that_asks_for_a_minute_has_it_whatever_changes_meanwhile() {
    let (world, _) = World::serving(&["a"]).await;
    let after = seconds(60);
    let throttled = CloudError::new(ErrorKind::Throttled { after }, "429 Too Many Requests");
    world.set(|cloud| cloud.read_errors.push_back(throttled));
    world.annotate("web", "cloud.example/a", "1");
    world.pass(seconds(1)).await;
    let calls = world.calls("");
    world.annotate("web", "cloud.example/a", "2");
    world.add_node("b");
    world.pass(seconds(30)).await;
    world.edit("web", |s| {
        s["spec"]["sessionAffinity"] = serde_json::json!("ClientIP")
    });
    world.pass(seconds(28)).await;
    assert_eq!(world.calls(""), calls);
    world.pass(seconds(2)).await;
    assert!(world.calls("set-nodes(web: a b)") == 1);
}
