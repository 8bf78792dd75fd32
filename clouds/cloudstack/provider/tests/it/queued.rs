//! Deletions that wait for other jobs of their network: until they begin, what they delete is listed as if it stayed.

use std::time::Duration;

use bowline_cloudstack_sim::JobFault;
use serde_json::{Value, json};

use crate::site::Site;
use crate::world::{UID, WEB, World};

const OTHER: &str = "shop/other";
const OTHER_UID: &str = "8c9e6679-7425-40de-944b-e07fc1f90ae7";

/// A Service with one port that is served; a job takes 20 seconds from now on, and one of another Service has begun.
async fn busy(is_vpc: bool, ranges: &Value) -> World {
    let world = World::of(Site::new(), is_vpc).await;
    world.add(WEB, UID, &[("TCP", 443, 31443)]);
    world.spec(WEB, |spec| spec["loadBalancerSourceRanges"] = ranges.clone());
    let ip = world.run(WEB).await.published().remove(0);
    world.publish_at(WEB, &ip);
    world.add(OTHER, OTHER_UID, &[("TCP", 80, 31080)]);
    world
        .sim
        .set_behaviour(|behaviour| behaviour.job_time = Duration::from_secs(20));
    world.run_killed(OTHER, 2).await;
    world
}

/// The Service settles, and serves a minute later as it does then.
async fn serves(world: &World, what: &str) {
    let run = world.run(WEB).await.settled();
    tokio::time::sleep(Duration::from_secs(60)).await;
    let rule = world.rule("tcp-443");
    assert_eq!((rule.private_port, rule.members.len()), (31443, 3), "{what}");
    let addresses = world.sim.addresses();
    let at = addresses.iter().find(|address| address.id == rule.address);
    assert_eq!(run.published(), [at.unwrap().address.to_string()], "{what}");
    assert!(world.run(WEB).await.settled().waves.is_empty(), "{what}");
}

#[tokio::test(start_paused = true)]
async fn a_rule_that_is_wanted_again_before_it_goes_is_made_anew() {
    for is_vpc in [false, true] {
        let what = format!("VPC {is_vpc}");
        let world = busy(is_vpc, &Value::Null).await;
        let before = world.rule("tcp-443").id;
        world.spec(WEB, |spec| spec["ports"][0]["nodePort"] = json!(32000));
        let (_, writes) = world.writes_of(world.run_killed(WEB, 2)).await;
        assert_eq!(writes, ["deleteLoadBalancerRule"], "{what}");
        world.spec(WEB, |spec| spec["ports"][0]["nodePort"] = json!(31443));
        serves(&world, &what).await;
        assert_ne!(world.rule("tcp-443").id, before, "{what}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_balancer_that_is_wanted_again_before_its_address_goes_is_made_anew() {
    for restarts in [false, true] {
        let mut world = busy(false, &Value::Null).await;
        world.spec(WEB, |spec| spec["type"] = json!("ClusterIP"));
        let (_, writes) = world.writes_of(world.run_killed(WEB, 2)).await;
        assert_eq!(writes, ["disassociateIpAddress"]);
        world.spec(WEB, |spec| spec["type"] = json!("LoadBalancer"));
        if restarts {
            world.restart().await;
        }
        serves(&world, "released").await;
        assert_eq!(world.openings(), ["tcp 443 0.0.0.0/0"]);
    }
}

#[tokio::test(start_paused = true)]
async fn an_address_that_is_taken_back_serves_nobody_until_it_is_gone() {
    for restarts in [false, true] {
        let mut world = World::of(Site::new(), false).await;
        world.add(WEB, UID, &[("TCP", 443, 31443)]);
        world.add(OTHER, OTHER_UID, &[("TCP", 80, 31080)]);
        world
            .sim
            .set_behaviour(|behaviour| behaviour.job_time = Duration::from_secs(20));
        world
            .sim
            .fail_jobs(JobFault::of("createLoadBalancerRule").saying(530, "not now"));
        // The other Service's job comes before the release.
        let other = async {
            tokio::time::sleep(Duration::from_secs(35)).await;
            world.run_killed(OTHER, 2).await;
        };
        let ((_, calls), ()) = tokio::join!(world.calls_of(world.run_killed(WEB, 6)), other);
        let released = calls.iter().filter(|call| *call == "disassociateIpAddress");
        assert_eq!(released.count(), 1, "{calls:?}");
        let note = world.annotation(WEB, "ip-ids").unwrap();
        assert!(note.starts_with("going "), "{note}");
        if restarts {
            world.restart().await;
        }
        serves(&world, &format!("restarts {restarts}")).await;
        assert_eq!(
            world.annotation(WEB, "ip-ids"),
            Some(world.rule("tcp-443").address)
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_source_that_is_wanted_again_before_its_opening_goes_is_let_in() {
    for is_vpc in [false, true] {
        let what = format!("VPC {is_vpc}");
        let (first, second) = (json!(["192.0.2.0/24"]), json!(["198.51.100.0/24"]));
        let world = busy(is_vpc, &first).await;
        world.spec(WEB, |spec| spec["loadBalancerSourceRanges"] = second);
        let (_, writes) = world
            .writes_of(world.run_killed(WEB, 2 + usize::from(is_vpc)))
            .await;
        let last = writes.last().map(String::as_str);
        let expected = if is_vpc {
            "deleteNetworkACL"
        } else {
            "deleteFirewallRule"
        };
        assert_eq!(last, Some(expected), "{what}: {writes:?}");
        world.spec(WEB, |spec| spec["loadBalancerSourceRanges"] = first);
        serves(&world, &what).await;
        let open: Vec<String> = world.openings().into_iter().chain(world.acl_items()).collect();
        assert_eq!(open.len(), 1, "{what}: {open:?}");
        assert!(open[0].ends_with("tcp 443 192.0.2.0/24"), "{what}: {open:?}");
    }
}
