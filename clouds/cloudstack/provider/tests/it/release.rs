//! Removing a balancer: what goes, what stays.

use std::time::Duration;

use bowline_cloudstack_sim::AddressSpec;
use serde_json::json;

use crate::world::{WEB, World};

const OTHER: &str = "shop/other";
const OTHER_UID: &str = "8c9e6679-7425-40de-944b-e07fc1f90ae7";
const IP: &str = "203.0.113.77";
const MARK: &str = "ip-associated-by-controller";

#[tokio::test(start_paused = true)]
async fn a_requested_address_that_a_person_was_faster_to_have_is_his() {
    let world = World::with_service().await;
    world.spec(WEB, |spec| spec["loadBalancerIP"] = json!(IP));
    // Claimed, and then it is his.
    world.run_steps(WEB, 1).await;
    assert_eq!(world.annotation(WEB, MARK).as_deref(), Some("true"));
    let taking = async {
        tokio::time::sleep(Duration::from_secs(10)).await;
        world.sim.take_address(AddressSpec::at(IP.parse().unwrap()))
    };
    let (run, id) = tokio::join!(world.run_paused(WEB, 0, Duration::from_secs(60)), taking);
    assert!(
        run.complaint().starts_with("error associating new IP address"),
        "{}",
        run.complaint()
    );
    assert_eq!(world.annotation(WEB, MARK), None);
    assert_eq!(world.run(WEB).await.published(), [IP]);
    world.delete(WEB);
    world.run(WEB).await.settled();
    assert_eq!(world.address().id, id);
}

#[tokio::test(start_paused = true)]
async fn an_address_that_another_service_comes_to_use_meanwhile_is_kept() {
    let world = World::new().await;
    world.add(WEB, crate::world::UID, &[("TCP", 80, 31080)]);
    world.spec(WEB, |spec| spec["loadBalancerIP"] = json!(IP));
    world.run(WEB).await.settled();
    world.add(OTHER, OTHER_UID, &[("TCP", 8080, 31880)]);
    world.spec(OTHER, |spec| spec["loadBalancerIP"] = json!(IP));
    world.delete(WEB);
    // The release is decided, then the other Service comes, then the release goes on.
    let removal = world.run_paused(WEB, 0, Duration::from_secs(60));
    let creation = async {
        tokio::time::sleep(Duration::from_secs(10)).await;
        world.run(OTHER).await.settled();
    };
    let (removed, ()) = tokio::join!(removal, creation);
    let removed = removed.settled();
    assert!(removed.waves[0][0].starts_with("release-ip("), "{removed:#?}");
    assert_eq!(world.address().address.to_string(), IP);
    assert_eq!(
        (world.rules().len(), world.openings()),
        (1, vec!["tcp 8080 0.0.0.0/0".to_owned()])
    );
}

#[tokio::test(start_paused = true)]
async fn a_port_that_another_service_comes_to_need_meanwhile_stays_open() {
    let world = World::vpc("tier-acl").await;
    world.add(WEB, crate::world::UID, &[("TCP", 443, 31443)]);
    world.run(WEB).await.settled();
    world.add(OTHER, OTHER_UID, &[("TCP", 443, 31443)]);
    world.delete(WEB);
    // The removal is decided, then the other Service finds the port open, then the removal goes on.
    let removal = world.run_paused(WEB, 0, Duration::from_secs(60));
    let creation = async {
        tokio::time::sleep(Duration::from_secs(10)).await;
        world.run(OTHER).await.settled();
    };
    let (removed, ()) = tokio::join!(removal, creation);
    assert!(removed.settled().waves[0][0].starts_with("close-acl("));
    assert_eq!(world.acl_items(), ["tier-acl tcp 443 0.0.0.0/0"]);
    world.delete(OTHER);
    world.run(OTHER).await.settled();
    world.check_nothing_left("both deleted");
}
