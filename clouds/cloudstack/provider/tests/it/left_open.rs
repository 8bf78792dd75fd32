//! Ports that cannot be closed while a balancer is removed: tried again, and then left, so that the rest goes.

use std::time::Duration;

use bowline_cloudstack_sim::AddressSpec;
use bowline_cloudstack_sim::kit::Fault;
use serde_json::json;

use crate::site::Site;
use crate::world::{WEB, World};

const IP: &str = "203.0.113.77";

/// A served Service on an address of the user's, so that its firewall rules or ACL items go one by one.
async fn served(is_vpc: bool) -> World {
    let world = World::of(Site::new(), is_vpc).await;
    world.add_web();
    if !is_vpc {
        world.sim.take_address(AddressSpec::at(IP.parse().unwrap()));
        world.spec(WEB, |spec| spec["loadBalancerIP"] = json!(IP));
    }
    world.run(WEB).await.settled();
    world
}

fn open(world: &World) -> usize {
    world.openings().len() + world.acl_items().len()
}

#[tokio::test(start_paused = true)]
async fn a_port_that_cannot_be_looked_at_does_not_keep_the_rule() {
    for is_vpc in [false, true] {
        for (status, times) in [(530, 2), (530, u64::MAX), (432, u64::MAX)] {
            let what = format!("VPC {is_vpc}, {status}, {times} times");
            let mut world = served(is_vpc).await;
            world.restart().await;
            let list = if is_vpc {
                "listNetworkACLs"
            } else {
                "listFirewallRules"
            };
            let fault = Fault::operation(list).times(times).status(status);
            let fault = world.sim.faults().add(fault);
            world.delete(WEB);
            let (mut run, calls) = world.calls_of(world.run(WEB)).await;
            assert_eq!(world.rules().len(), 0, "{what}");
            let looks = calls.iter().filter(|call| *call == list).count();
            let (most, waits) = if status == 432 { (1, false) } else { (3, true) };
            assert_eq!(
                (looks, run.waited > Duration::from_secs(3)),
                (most, waits),
                "{what}"
            );
            // What may pass is waited for, by whatever process: the rules are gone, and only the note of them is left.
            if (status, times) == (530, u64::MAX) {
                for restarts in [false, true] {
                    assert!(run.complaint().contains("may be open"), "{what}: {run:#?}");
                    assert_eq!(open(&world), 2, "{what}");
                    if restarts {
                        world.restart().await;
                    }
                    run = world.run(WEB).await;
                }
                world.sim.faults().remove(fault);
                run = world.run(WEB).await;
            }
            let run = run.settled();
            let left = if status == 432 { 2 } else { 0 };
            assert_eq!(
                (run.has_note("PortLeftOpen"), open(&world)),
                (left > 0, left),
                "{what}: {run:#?}"
            );
        }
    }
}
