//! One session of the controller, step by step.

use bowline_cloud_provider::CloudProvider;
use bowline_cloud_provider::plan::Answer;
use bowline_cloudscale_sim::kit::Fault;

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

#[tokio::test(start_paused = true)]
async fn a_conflict_without_a_cause_is_waited_for_and_then_told() {
    let world = World::with_nodes(1);
    let pools = Fault::on(http::Method::POST, "/v1/load-balancers/pools");
    world.sim.faults().add(pools.always().status(409));
    let run = world.run("web").await;
    assert!(
        run.complaint().starts_with("error during create-pool("),
        "{run:?}"
    );
    assert!((1..3).contains(&run.waited.as_secs()), "{:?}", run.waited);
    world.sim.faults().clear();
    world.run("web").await.settled();
}

#[tokio::test(start_paused = true)]
async fn a_list_that_fails_names_what_it_was_for() {
    let world = World::with_nodes(1);
    world.run("web").await.settled();
    for (path, text) in [
        ("/v1/load-balancers", "unable to get load balancer for web: "),
        ("/v1/load-balancers/pools", "lb state: failed to load pools: "),
        (
            "/v1/load-balancers/listeners",
            "lb state: failed to load listeners: ",
        ),
        (
            "/v1/load-balancers/health-monitors",
            "lb state: failed to load monitors: ",
        ),
        (
            "/v1/load-balancers/pools/*/members",
            "lbstate: failed to load members for ",
        ),
    ] {
        let id = world
            .sim
            .faults()
            .add(Fault::on(http::Method::GET, path).always().status(500));
        let (run, writes) = world.writes_of(world.run("web")).await;
        assert!(run.complaint().starts_with(text), "{run:?}");
        assert!(writes.is_empty());
        world.sim.faults().remove(id);
    }
}
