//! A cloud that asks to be left alone.

use bowline_cloud_provider::{CloudError, ErrorKind};

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
    world.cloud.set(|cloud| cloud.write_errors.extend(errors));
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
