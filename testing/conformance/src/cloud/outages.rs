//! A cloud that is ill: nothing is half done, nothing is lost, nothing is told that should not be, and it heals.

use std::time::Duration;

use bowline_cloud_kit::Fault;

use super::under_test::CloudUnderTest;
use super::world::{SECOND, World};

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
