//! What others do behind the provider's back, and what it says about it.

use crate::change::{member_ids, set_ports, settled};
use crate::world::in_short;

#[tokio::test(start_paused = true)]
async fn a_member_is_replaced_after_those_that_can_stand_in_for_it() {
    let mut world = settled(1).await;
    world
        .sim
        .set_behaviour(|behaviour| behaviour.duplicate_members = false);
    set_ports(&world, &[("web", "TCP", 8080, 31200)]);
    world.run("web").await.settled();
    world.sim.set_member_enabled(member_ids(&world.sim)[0], false);
    world.add_node("n0");
    world.nodes.sort_by_key(|node| node.name.as_str() == "n0");
    let (run, writes) = world.writes_of(world.run("web")).await;
    run.settled();
    let expected = ["POST members", "POST members", "DELETE members", "POST members"];
    assert_eq!(in_short(&writes), expected);
    assert_eq!(writes[0].status(), Some(201));
    assert_eq!(writes[1].status(), Some(400));
    assert_eq!(writes[2].seq + 1, writes[3].seq);
}
