//! Ports of an ACL list that several Services share, and openings that are there twice.

use std::time::Duration;

use bowline_cloudstack_sim::AclItemSpec;
use serde_json::{Value, json};

use crate::world::{UID, WEB, World};

const OTHER: &str = "shop/other";
const OTHER_UID: &str = "8c9e6679-7425-40de-944b-e07fc1f90ae7";

const RANGED: &str = "tier-acl tcp 443 192.0.2.0/24";
const EVERYBODY: &str = "tier-acl tcp 443 0.0.0.0/0";

fn restrict(world: &World, key: &str, ranges: &Value) {
    world.spec(key, |spec| spec["loadBalancerSourceRanges"] = ranges.clone());
}

fn items(world: &World) -> Vec<String> {
    let mut items = world.acl_items();
    items.sort();
    items
}

/// Two Services with the same port in one tier: one for everybody, and one for a range that is not in force yet.
async fn two() -> World {
    let world = World::vpc("tier-acl").await;
    for (key, uid) in [(WEB, UID), (OTHER, OTHER_UID)] {
        world.add(key, uid, &[("TCP", 443, 31443)]);
        world.run(key).await.settled();
    }
    restrict(&world, OTHER, &json!(["192.0.2.0/24"]));
    world
}

/// The same, in force.
async fn two_in_force() -> World {
    let world = two().await;
    world.run(OTHER).await.settled();
    assert_eq!(items(&world), [EVERYBODY, RANGED]);
    world
}

#[tokio::test(start_paused = true)]
async fn a_service_that_comes_to_be_open_for_everybody_meanwhile_is_never_cut_off() {
    let world = two_in_force().await;
    world.delete(WEB);
    // The removal is decided, then the other Service finds the port open, then the removal goes on.
    let removal = world.run_paused(WEB, 0, Duration::from_secs(60));
    let change = async {
        tokio::time::sleep(Duration::from_secs(10)).await;
        restrict(&world, OTHER, &Value::Null);
        world.run(OTHER).await.settled();
    };
    let (removed, ()) = tokio::join!(removal, change);
    let removed = removed.settled();
    assert!(removed.waves[0][0].starts_with("close-acl("), "{removed:#?}");
    assert_eq!(items(&world), [EVERYBODY]);
}

#[tokio::test(start_paused = true)]
async fn of_two_that_take_away_the_same_surplus_at_once_neither_takes_the_last() {
    let world = World::vpc("tier-acl").await;
    for (key, uid) in [(WEB, UID), (OTHER, OTHER_UID)] {
        world.add(key, uid, &[("TCP", 443, 31443)]);
        world.run(key).await.settled();
    }
    let list = world.sim.acl_list("tier-acl").unwrap();
    world.sim.add_acl_item(AclItemSpec::new(&list, "tcp", 443));
    let kept = world.sim.acl_items()[0].id.clone();
    let late = world.run_paused(WEB, 0, Duration::from_secs(60));
    let first = async {
        tokio::time::sleep(Duration::from_secs(10)).await;
        world.sim.remove_acl_item(&kept); // by hand
        world.run(OTHER).await.settled();
    };
    let both = async { tokio::join!(late, first) };
    let ((late, ()), writes) = world.writes_of(Box::pin(both)).await;
    assert!(late.settled().waves[0][0].starts_with("close-acl("));
    assert_eq!(items(&world), [EVERYBODY]);
    assert_eq!(writes, Vec::<String>::new(), "and it was there all the time");
}
