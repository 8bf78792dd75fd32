//! Nodes, Services, and the blocks that come and go with them.

use bowline_conformance::cloud::Stage;

use super::*;
use crate::system::staged::play_all;

#[tokio::test(start_paused = true)]
async fn what_takes_a_whole_manager() {
    play_all::<Stage<Phoenixnap>>("whole", "phoenixnap").await;
}

#[tokio::test(start_paused = true)]
async fn an_unknown_type_serves_nodes_and_costs_services_no_call() {
    let mut world = world_with(&[("PNAP_LOAD_BALANCER", "metallb://abc")]);
    world.join("n1");
    world.start();
    world.until("it joins", |w| w.is_initialized("n1")).await;
    world.rest().await;
    let mark = world.cloud().journal().mark();
    world.apply(web());
    world.pass(SECOND * 120).await;
    assert_eq!(world.cloud().journal().since(mark).len(), 0);
    assert!(!world.has_finalizer("web"));
}
