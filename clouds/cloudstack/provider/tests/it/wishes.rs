//! What people asked for beyond the Go manager: the address by annotation, an address that is kept, `ipMode`.

use serde_json::json;

use crate::world::{Run, WEB, World};

/// Somebody gives each rule the algorithm that is not asked for, whenever it is asked for.
async fn run_undone(world: &World, algorithm: &str) -> Run {
    let sim = world.sim.clone();
    let undo = async {
        for _ in 0..10_000 {
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
            for rule in &sim.rules() {
                sim.edit_rule(&rule.id, |known| algorithm.clone_into(&mut known.algorithm));
            }
        }
    };
    tokio::join!(world.run(WEB), undo).0
}

#[tokio::test(start_paused = true)]
async fn a_change_that_the_server_ignores_is_told_and_not_made_for_ever() {
    let world = World::with_service().await;
    world.run(WEB).await.settled();
    world.spec(WEB, |spec| spec["sessionAffinity"] = json!("ClientIP"));
    let run = run_undone(&world, "roundrobin").await;
    let complaint = run.complaint();
    assert!(complaint.contains("is not as it was written"), "{complaint}");
    world.run(WEB).await.settled();
    assert_eq!(world.rule("tcp-443").algorithm, "source");
}

#[tokio::test(start_paused = true)]
async fn a_rule_that_somebody_changes_at_once_hides_no_address() {
    let world = World::with_service().await;
    let run = run_undone(&world, "leastconn").await;
    let complaint = run.complaint();
    assert!(complaint.contains("is not as it was written"), "{complaint}");
    assert!(run.published_although_refused.is_some(), "{run:#?}");
    let updates = world.sim.journal().count_operation("updateLoadBalancerRule");
    assert_eq!(updates, world.rules().len(), "one try for each rule");
    world.run(WEB).await.settled();
    assert_eq!(world.rule("tcp-443").algorithm, "roundrobin");
}
