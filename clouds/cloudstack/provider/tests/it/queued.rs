//! Deletions that wait for other jobs of their network: until they begin, what they delete is listed as if it stayed.

use std::time::Duration;

use bowline_cloudstack_sim::JobFault;

use crate::site::Site;
use crate::world::{UID, WEB, World};

const OTHER: &str = "shop/other";
const OTHER_UID: &str = "8c9e6679-7425-40de-944b-e07fc1f90ae7";

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
