//! One part that the server refuses, at each change of the Nodes. What else holds of such a part is in `one_part.scenario`.

use std::time::Duration;

use bowline_cloudstack_sim::VmSpec;
use bowline_cloudstack_sim::kit::Fault;
use bowline_cloudstack_sim::kit::faults::Canned;

use crate::world::{UID, WEB, World};

const PAUSE: Duration = Duration::from_secs(5);

#[tokio::test(start_paused = true)]
async fn a_port_that_another_rule_has_is_asked_for_by_the_schedule_and_not_at_each_change_of_the_nodes() {
    let world = World::new().await;
    world.add(WEB, UID, &[("TCP", 443, 31443), ("TCP", 80, 31080)]);
    let create = Fault::operation("createLoadBalancerRule");
    let answer = Canned::json(
        537,
        r#"{"response":{"uuidList":[],"errorcode":537,"cserrorcode":4350,"errortext":"not that one"}}"#,
    );
    world.sim.faults().add(create.nth(2).always().answer(answer));
    assert!(!world.run(WEB).await.complaint().is_empty());
    let mut pause = PAUSE;
    for round in 0..10 {
        for node in ["node-a", "node-b"] {
            match round % 2 {
                0 => {
                    let id = world.sim.add_vm(VmSpec::new(node));
                    world.add_node(node, Some(&id));
                }
                _ => world.remove_node(node),
            }
            let (run, writes) = world.writes_of(world.run(WEB)).await;
            assert!(run.complaint().contains("537"), "{}", run.complaint());
            assert_eq!(writes.len(), 1, "a member alone: {writes:?}");
            assert!(!writes[0].starts_with("create"), "{writes:?}");
        }
        // Who has the port may be gone without a word.
        tokio::time::sleep(pause).await;
        let (_, writes) = world.writes_of(world.run(WEB)).await;
        assert_eq!(writes, ["createLoadBalancerRule"], "after {pause:?}");
        pause = (2 * pause).min(Duration::from_secs(300));
    }
    world.sim.faults().clear();
    tokio::time::sleep(pause).await;
    world.run(WEB).await.settled();
}
