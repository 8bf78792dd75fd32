//! A cloud that is ill: nothing is half done, nothing is lost, nothing is told that should not be, and it heals.

use std::time::Duration;

use bowline_cloud_kit::Fault;
use bowline_kube_api::{Effect, Fault as KubeFault};

use super::under_test::{Ability, CloudUnderTest, Wish};
use super::world::{SECOND, World, tainted_node, web};

pub(super) async fn a_stated_delay_is_kept<C: CloudUnderTest>() {
    let world = World::<C>::with_nodes(0).await;
    world.join("n1");
    world.rest().await;
    let stated = Duration::from_secs(40);
    world.cloud().faults().add(Fault::any().too_many_requests(stated));
    let begun = world.since();
    world.join("n2");
    world.pass(stated.min(C::LONGEST_DELAY) - SECOND).await;
    // Nothing follows what was under way when the answer came.
    let calls = world.calls(begun);
    assert!(
        !calls.is_empty() && calls.iter().all(|call| call.at == calls[0].at),
        "{calls:#?}"
    );
    world.until("initialised", |w| w.is_initialized("n2")).await;
}

pub(super) async fn an_api_server_that_is_away_for_a_while_loses_nothing<C: CloudUnderTest>() {
    let mut world = World::<C>::new();
    world.add_nodes(2);
    world.start();
    world.rest().await;
    let has_balancers = world.can(Ability::LoadBalancers);
    if has_balancers {
        let begun = world.since();
        world.ask(web(), Wish::Plain);
        world
            .until("the first write", |w| !w.writes(begun).is_empty())
            .await;
    }
    // Shorter than the lease's deadline, so that the same process goes on; and history is forgotten meanwhile.
    world.api.close_watches();
    world.api.faults().inject(KubeFault::new(Effect::DropBefore));
    world.join("late");
    world.apply(tainted_node("bare"));
    assert!(world.api.delete("Node", "", "n1"));
    world.sim.remove_instance("n1");
    if has_balancers {
        world.ask_for("other", 30080);
    }
    world.pass(SECOND * 6).await;
    world.api.compact();
    world.api.faults().clear();
    world
        .until("all is made good", |w| {
            w.is_initialized("late") && w.unserved().is_empty()
        })
        .await;
    world.rest().await;
    assert_eq!(world.unlike(), Vec::<String>::new());
    world.assert_served();
}
