//! A call that is given up, because something newer waits, and takes effect in the cloud after that.

use std::time::Duration;

use bowline_cloud_kit::Fault;

use super::under_test::{CloudUnderTest, Wish};
use super::world::{SECOND, World, web};

/// How many writes of a creation are late, one in each run.
const WRITES: u64 = 6;

/// How long a late call takes: less than any client waits.
const LATE: Duration = Duration::from_secs(28);

/// How long after it the cloud is looked at.
const AFTER: Duration = Duration::from_secs(100);

/// Asserts that what is asked for is there and nothing else. A call that was given up is at work beside what comes after it.
fn assert_as_asked<C: CloudUnderTest>(world: &World<C>, nth: u64) {
    let mut wrong = world.unserved();
    wrong.extend(world.sim.violations());
    wrong.retain(|it| !it.contains("at work at once"));
    assert!(wrong.is_empty(), "write {nth}: {wrong:?}");
}

async fn deleted_while_a_creation_is_under_way<C: CloudUnderTest>(takes: Duration, is_killed: bool) {
    for nth in 1..=WRITES {
        let mut world = World::<C>::with_nodes(2).await;
        if !world
            .meets_while_created(Fault::write().nth(nth).delay(takes))
            .await
        {
            break; // it takes fewer writes
        }
        world.pass(SECOND).await;
        world.delete_service("web");
        if is_killed {
            world.pass(SECOND).await;
            world.restart().await;
        }
        world.gone("web").await;
        world.pass(AFTER).await;
        assert_as_asked(&world, nth);
    }
}

pub(super) async fn a_creation_that_comes_late_is_left_by_no_deletion<C: CloudUnderTest>() {
    deleted_while_a_creation_is_under_way::<C>(LATE, false).await;
}

pub(super) async fn a_creation_that_comes_late_is_left_by_no_new_process<C: CloudUnderTest>() {
    deleted_while_a_creation_is_under_way::<C>(SECOND * 8, true).await;
}

pub(super) async fn a_change_that_comes_late_undoes_no_newer_one<C: CloudUnderTest>() {
    for nth in 1..=2 {
        let world = World::<C>::with_nodes(2).await;
        world.ask(web(), Wish::Plain);
        world.settled("web").await;
        let fault = world.cloud().faults().add(Fault::write().nth(nth).delay(LATE));
        world.edit_service("web", |web| web["spec"]["ports"][0]["nodePort"] = 31_333.into());
        let is_reached = |w: &World<C>| w.cloud().faults().struck(fault) > 0;
        world
            .until("a call is late", |w| is_reached(w) || w.unserved().is_empty())
            .await;
        if !is_reached(&world) {
            break;
        }
        world.pass(SECOND).await;
        world.edit_service("web", |web| web["spec"]["ports"][0]["nodePort"] = 31_444.into());
        world.until("it is served", |w| w.unserved().is_empty()).await;
        world.pass(AFTER).await;
        assert_as_asked(&world, nth);
    }
}
