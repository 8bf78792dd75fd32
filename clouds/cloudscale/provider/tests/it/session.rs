//! One session of the controller, step by step.

use bowline_cloud_provider::CloudProvider;
use bowline_cloud_provider::plan::Answer;

use crate::world::World;

#[tokio::test(start_paused = true)]
async fn facts_that_ask_for_more_than_was_read_lead_to_a_full_read() {
    let mut world = World::with_nodes(1);
    world.run("web").await.settled();
    let mut session = world
        .cloud
        .load_balancer()
        .unwrap()
        .begin(world.facts("web"))
        .unwrap();
    session.observe().await.unwrap();
    assert!(matches!(session.plan().unwrap().answer, Answer::Settled(_)));
    // Its server is younger than the listing.
    world.add_node("n2");
    session.refresh(world.facts("web")).unwrap();
    let answer = session.plan().unwrap().answer;
    assert!(matches!(answer, Answer::LookAgain { .. }), "{answer:?}");
    session.observe().await.unwrap();
    let Answer::Apply(wave) = session.plan().unwrap().answer else {
        panic!("nothing to do")
    };
    assert_eq!(wave.steps().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn while_a_balancer_changes_only_that_balancer_is_read() {
    let world = World::with_nodes(1);
    world
        .sim
        .set_behaviour(|behaviour| behaviour.lb_create_time = std::time::Duration::from_secs(60));
    world.run_steps("web", 1).await;
    let mut session = world
        .cloud
        .load_balancer()
        .unwrap()
        .begin(world.facts("web"))
        .unwrap();
    session.observe().await.unwrap();
    for _ in 0..5 {
        let Answer::Wait { after, reason } = session.plan().unwrap().answer else {
            panic!("not waiting")
        };
        assert_eq!(reason, "await-lb(k8s-service-uid-web is changing)");
        tokio::time::sleep(after).await;
        let (answer, reads, _) = world.calls_of(session.observe()).await;
        assert_eq!((answer, reads), (Ok(()), 1));
    }
}
