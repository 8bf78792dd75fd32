//! The traffic policy says on which port members are probed, and what is expected there.

use bowline_cloud_provider::CloudProvider as _;
use bowline_cloud_provider::plan::{Answer, Impact};
use bowline_cloudscale_sim::kit::journal::Entry;

use crate::world::{World, in_short};

fn switch(world: &World, policy: &str, port: Option<i32>) {
    world.edit("web", |service| {
        let spec = service.spec.as_mut().unwrap();
        (spec.external_traffic_policy, spec.health_check_node_port) = (Some(policy.into()), port);
    });
}

/// The kinds of objects that were created, each once for all that came in a row.
fn created(writes: &[Entry]) -> Vec<String> {
    let mut kinds = in_short(writes);
    kinds.retain(|kind| kind.starts_with("POST"));
    kinds.dedup();
    kinds
}

/// No pool waits for the members of another one, and no call beyond those of all at once is made.
#[tokio::test(start_paused = true)]
async fn another_traffic_policy_goes_pool_by_pool() {
    let world = World::with_nodes(3);
    world.run("web").await.settled();
    for (policy, port) in [("Local", Some(32500)), ("Cluster", None)] {
        switch(&world, policy, port);
        let (run, writes) = world.writes_of(world.run("web")).await;
        run.settled();
        let pool = ["POST members", "POST health-monitors"];
        assert_eq!(created(&writes), [pool, pool].concat(), "{policy}");
        assert!(world.writes_of(world.run("web")).await.1.is_empty());
    }
}

/// The monitor is what the API may refuse.
#[tokio::test(start_paused = true)]
async fn members_of_all_pools_follow_the_nodes_before_their_check_moves() {
    let mut world = World::with_nodes(2);
    world.run("web").await.settled();
    switch(&world, "Local", Some(32500));
    world.remove_node("n1");
    world.add_node("n3");
    let (run, writes) = world.writes_of(world.run("web")).await;
    run.settled();
    assert_eq!(created(&writes), ["POST members", "POST health-monitors"]);
}

#[tokio::test(start_paused = true)]
async fn what_a_plan_says_of_another_traffic_policy_is_what_it_costs() {
    let world = World::with_nodes(2);
    world.run("web").await.settled();
    let impacts = async || {
        let balancers = world.cloud.load_balancer().unwrap();
        let mut session = balancers.begin(world.facts("web")).unwrap();
        session.observe().await.unwrap();
        let Answer::Apply(wave) = session.plan().unwrap().answer else {
            panic!("nothing to do")
        };
        let impacts = wave.steps().iter().map(|step| step.view().impact);
        impacts.collect::<Vec<_>>()
    };
    let member = world.sim.members()[0].uuid;
    world.sim.set_member_enabled(member, false);
    assert_eq!(impacts().await, [Impact::Minimal]);
    world.sim.set_member_enabled(member, true);
    switch(&world, "Local", Some(32500));
    assert_eq!(impacts().await, [Impact::Considerable; 2]);
}
