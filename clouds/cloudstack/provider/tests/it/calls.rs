//! How many calls it takes.

use bowline_cloudstack_sim::{AddressSpec, RuleSpec};

use crate::world::World;

#[tokio::test(start_paused = true)]
async fn where_there_are_too_many_rules_services_ask_for_their_own() {
    let world = World::new().await;
    let theirs = world.sim.take_address(AddressSpec::default());
    for port in 1..=1_100 {
        world
            .sim
            .add_rule(RuleSpec::new(format!("theirs-{port}"), &theirs, port, port));
    }
    let keys = ["shop/one", "shop/two"];
    for (number, key) in keys.iter().enumerate() {
        let uid = format!("0000000{number}-0000-4000-8000-000000000000");
        world.add(key, &uid, &[("TCP", 443, 31443)]);
        world.run(key).await.settled();
    }
    let mut counts = Vec::new();
    for _ in 0..2 {
        let (runs, calls) = world
            .calls_of(futures::future::join_all(keys.iter().map(|key| world.run(key))))
            .await;
        for run in runs {
            assert!(run.settled().waves.is_empty());
        }
        counts.push(
            calls
                .iter()
                .filter(|call| *call == "listLoadBalancerRules")
                .count(),
        );
    }
    assert_eq!(counts, [3, 2]);
}
