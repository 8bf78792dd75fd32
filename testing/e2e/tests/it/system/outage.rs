//! A cloud that is ill: nothing is half done, nothing is lost, nothing is told that should not be, and it heals.

use std::time::Duration;

use bowline_cloudscale_sim::Access;
use bowline_cloudscale_sim::kit::Fault;

use super::objects::{service, settled_web, web};
use super::world::{SECOND, TOKEN, World};

#[tokio::test(start_paused = true)]
async fn a_token_that_may_only_read_writes_nothing_and_says_why() {
    let mut world = World::new();
    world.sim.set_token(TOKEN, Access::ReadOnly);
    world.add_nodes(2);
    world.apply(web());
    world.start();
    world.pass(SECOND * 300).await;
    let events = world.events("web");
    assert!(events.iter().any(|line| line.contains("403")), "{events:?}");
    assert!(world.sim.load_balancers().is_empty());
    world.sim.set_token(TOKEN, Access::ReadWrite);
    world.settled("web").await;
    world.assert_sound();
}

#[tokio::test(start_paused = true)]
async fn a_stated_delay_is_kept() {
    let mut world = World::new();
    world.add_nodes(1);
    world.start();
    world.rest().await;
    world
        .sim
        .faults()
        .add(Fault::any().too_many_requests(Duration::from_secs(40)));
    let begun = world.since();
    world.apply(web());
    world.pass(SECOND * 39).await;
    // Nothing follows what was under way when the answer came.
    let calls = world.calls(begun);
    assert!(calls.iter().all(|call| call.at == calls[0].at), "{calls:#?}");
    world.settled("web").await;
}

#[tokio::test(start_paused = true)]
async fn an_api_server_that_is_away_for_a_while_loses_nothing() {
    use bowline_kube_api::{Effect, Fault as KubeFault};

    let mut world = World::new();
    world.add_nodes(2);
    world.start();
    world.rest().await;
    world.apply(web());
    world.until("the first pool", |w| !w.sim.pools().is_empty()).await;
    // Shorter than the lease's deadline, so that the same process goes on.
    world.api.close_watches();
    world.api.faults().inject(KubeFault::new(Effect::DropBefore));
    world.pass(SECOND * 6).await;
    world.join("late");
    world.api.faults().clear();
    world.settled("web").await;
    world.until("the node", |w| w.is_initialized("late")).await;
    world.until("its members", |w| w.sim.members().len() == 6).await;
    world.rest().await;
    world.assert_sound();
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_comes_too_late_for_the_history_misses_nothing() {
    let world = settled_web(2).await;
    world.api.faults().inject(
        bowline_kube_api::Fault::new(bowline_kube_api::Effect::DropBefore)
            .verb("watch")
            .times(4),
    );
    world.api.close_watches();
    // All of this happens while nobody looks, and its history is forgotten.
    world.join("n3");
    world.apply(service("other", &[("", 80, 30080)]));
    assert!(world.api.delete("Node", "", "n1"));
    world.api.compact();
    world.until("the node", |w| w.is_initialized("n3")).await;
    world.settled("other").await;
    world.until("its members", |w| w.sim.members().len() == 6).await;
    let members = world.sim.members();
    assert_eq!(members.len(), 2 * 3, "two nodes, three ports: {members:?}");
    world.assert_sound();
}
