//! The same seed gives the same history.

use std::time::Duration;

use bowline_cloudscale_sim::kit::Fault;
use serde_json::json;

use super::objects::{service, web};
use super::world::{SECOND, World};

/// Everything that ever reached the cloud and the API server, in order, with its time.
async fn history(seed: u64) -> (String, String) {
    let mut world = World::seeded(seed);
    world.sim.set_behaviour(|it| {
        it.lb_create_time = Duration::from_secs(20);
        it.lb_write_time = Duration::from_millis(30);
    });
    for index in 0..12 {
        world.join(&format!("n{index}"));
    }
    for index in 0..6_u16 {
        world.apply(service(
            &format!("s{index}"),
            &[("a", 80, 30100 + index), ("b", 81, 30200 + index)],
        ));
    }
    world.sim.faults().add(Fault::any().nth(5).times(2).status(503));
    world.sim.faults().add(Fault::write().nth(9).lose_answer());
    world.sim.faults().add(Fault::write().nth(30).status(500));
    world.start();
    world.pass(SECOND * 45).await;
    world.apply(web());
    world.edit_service("s1", |it| it["spec"]["ports"][0]["port"] = json!(8080));
    world.delete_service("s2");
    world.sim.remove_server(world.server("n3"));
    world.set_ready("n3", "Unknown");
    world.join("late");
    world.restart().await;
    world.pass(SECOND * 400).await;
    world.rest().await;
    world.assert_sound();
    (
        world
            .sim
            .journal()
            .entries()
            .iter()
            .map(|it| format!("{it:?}\n"))
            .collect(),
        world
            .api
            .journal()
            .all()
            .iter()
            .map(|it| format!("{it:?}\n"))
            .collect(),
    )
}

#[tokio::test(start_paused = true)]
async fn the_same_seed_gives_the_same_history() {
    for seed in [1, 2] {
        let (first, second) = (history(seed).await, history(seed).await);
        same(&first.0, &second.0);
        same(&first.1, &second.1);
        assert!(
            first.0.lines().count() > 300,
            "too little happened to say anything"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn another_seed_gives_another_history() {
    assert_ne!(history(1).await.1, history(2).await.1);
}

#[track_caller]
fn same(first: &str, second: &str) {
    let differs = first.lines().zip(second.lines()).find(|(a, b)| a != b);
    assert_eq!(differs, None, "the histories part here");
    assert_eq!(first.lines().count(), second.lines().count());
}
