//! Firewall rules that cannot be made: what works meanwhile stays, or comes back.

use std::time::Duration;

use bowline_cloudstack_sim::FirewallSpec;
use serde_json::json;

use crate::world::{WEB, World};

const OLD: &str = "tcp 443 192.0.2.0/24";

/// TCP 443 alone, for 192.0.2.0/24.
async fn served() -> World {
    let world = World::with_service().await;
    world.spec(WEB, |spec| {
        spec["ports"].as_array_mut().unwrap().pop();
    });
    ranges(&world, &["192.0.2.0/24"]);
    world.run(WEB).await.settled();
    world.publish_at(WEB, &world.address().address.to_string());
    assert_eq!(world.openings(), [OLD]);
    world
}

fn ranges(world: &World, ranges: &[&str]) {
    world.spec(WEB, |spec| spec["loadBalancerSourceRanges"] = json!(ranges));
}

#[tokio::test(start_paused = true)]
async fn a_persons_rule_for_several_ports_that_is_in_the_way_closes_nothing() {
    for is_known in [true, false] {
        let world = served().await;
        let address = world.address().id;
        let range = || {
            world.sim.add_firewall_rule(FirewallSpec {
                ports: Some((400, 500)),
                ..FirewallSpec::new(&address, "tcp", 443).cidrs(["10.0.0.0/8"])
            })
        };
        let before = is_known.then(range);
        ranges(&world, &["192.0.2.0/24", "10.0.0.0/8"]);
        let (range, run) = match before {
            Some(range) => (range, world.run(WEB).await),
            // A person makes it when what stands in is open, and the firewall is read already.
            None => {
                let pause = Duration::from_secs(2);
                let person = async {
                    tokio::time::sleep(pause / 2).await;
                    range()
                };
                tokio::join!(person, world.run_paused(WEB, 1, pause))
            }
        };
        let complaint = run.complaint();
        assert!(complaint.contains(&range), "{complaint}");
        assert!(complaint.contains("tcp/400-500 from 10.0.0.0/8"), "{complaint}");
        let (run, writes) = world.writes_of(world.run(WEB)).await;
        assert!(run.complaint().contains(&range));
        assert_eq!(writes, Vec::<String>::new());
        let openings = world.openings();
        let is_open = |from: &str| {
            openings
                .iter()
                .any(|it| it.starts_with("tcp 443") && it.contains(from))
        };
        assert!(is_open("192.0.2."), "{openings:?}");
        world.sim.remove_firewall_rule(&range);
        world.run(WEB).await.settled();
        assert_eq!(world.openings(), ["tcp 443 192.0.2.0/24,10.0.0.0/8"]);
    }
}
