//! The life of a Service.

use bowline_cloud_kit::Fault;

use super::under_test::{CloudUnderTest, Wish};
use super::world::{SECOND, World, web};

const FAILED: &str = "SyncLoadBalancerFailed";

pub(super) async fn a_failure_is_told_and_tried_again_by_the_schedule<C: CloudUnderTest>() {
    let world = World::<C>::with_nodes(2).await;
    let fault = world.cloud().faults().add(Fault::write().always().status(500));
    let begun = world.since();
    world.ask(web(), Wish::Plain);
    world.pass(SECOND * 70).await;
    let tries = world.tries(begun);
    assert!(world.cloud().faults().struck(fault) > 0);
    if C::WAITS_FOR_CLAIMS {
        assert_eq!(
            tries.len(),
            1,
            "what may be on its way is not asked for again: {tries:?}"
        );
        return;
    }
    assert_eq!(tries.len(), 4, "at about 0, 5, 15 and 35 s: {tries:?}");
    for (pair, seconds) in tries.windows(2).zip([5, 10, 20]) {
        let gap = pair[1].saturating_sub(pair[0]);
        assert!(
            gap >= SECOND * seconds && gap < SECOND * (seconds + 3),
            "{tries:?}"
        );
    }
    let events = world.events("web");
    assert!(
        events
            .iter()
            .any(|line| line.starts_with(&format!("{FAILED}: Error syncing load balancer: "))),
        "{events:?}"
    );
    assert!(world.has_finalizer("web") && world.addresses("web").is_empty());
    world.cloud().faults().clear();
    world.settled("web").await;
    world.assert_served();
}
