//! Two managers, one lease: each write is made by one of them.

use bowline_kube_api::{Effect, Fault as KubeFault};
use bowline_manager::End;

use super::under_test::{Ability, CloudUnderTest};
use super::world::{SECOND, World};

fn holder<C: CloudUnderTest>(world: &World<C>) -> String {
    let lease = world
        .api
        .object("Lease", "kube-system", "cloud-controller-manager");
    let holder = lease.map(|lease| lease["spec"]["holderIdentity"].clone());
    holder
        .and_then(|it| it.as_str().map(str::to_owned))
        .unwrap_or_default()
}

/// Two managers; the first one leads and is in the middle of its work.
async fn two_at_work<C: CloudUnderTest>() -> World<C> {
    let mut world = World::<C>::new();
    world.add_nodes(2);
    world.start();
    world.until("somebody leads", |w| !holder(w).is_empty()).await;
    world.start();
    world.rest().await;
    assert_eq!(holder(&world), world.holders()[0]);
    world.cloud().set_latency(SECOND / 10);
    let begun = world.since();
    world.join("late");
    if world.can(Ability::LoadBalancers) {
        for index in 0..3 {
            world.ask_for(&format!("s{index}"), 30080 + index);
        }
        world
            .until("the first write", |w| !w.writes(begun).is_empty())
            .await;
    }
    world
}

/// All that was begun is done, by one manager after the other.
async fn done<C: CloudUnderTest>(world: &World<C>) {
    world
        .until("all is done", |w| {
            w.unserved().is_empty() && w.unlike_node("late").is_empty()
        })
        .await;
    world.rest().await;
    world.assert_served();
    world.assert_one_writer();
}

pub(super) async fn a_follower_asks_the_cloud_for_nothing<C: CloudUnderTest>() {
    let mut world = two_at_work::<C>().await;
    world.pass(SECOND * 30).await;
    // The leader falls silent, and only the follower is left until the lease ends.
    world.kill().await;
    world.pass(SECOND).await;
    let begun = world.since();
    world.join("later");
    world.pass(SECOND * 9).await;
    assert!(world.calls(begun).is_empty(), "{:?}", world.tally(begun));
    assert_eq!(world.object_writes(begun), Vec::<String>::new());
    world.until("its turn", |w| w.is_initialized("later")).await;
    done(&world).await;
}

pub(super) async fn after_a_power_cut_the_follower_finishes_the_work<C: CloudUnderTest>() {
    let mut world = two_at_work::<C>().await;
    world.kill().await;
    let next = world.holders()[0].to_owned();
    let took = world.until("the other one leads", |w| holder(w) == next).await;
    // The lease lasts 15 s from its last renewal; then the follower is there at once, or one retry later.
    assert!(took <= SECOND * 20, "{took:?}");
    done(&world).await;
    let lease = world
        .api
        .object("Lease", "kube-system", "cloud-controller-manager")
        .unwrap();
    assert_eq!(lease["spec"]["leaseTransitions"], 1);
}

pub(super) async fn a_leader_that_is_asked_to_stop_hands_over_in_the_middle<C: CloudUnderTest>() {
    let mut world = two_at_work::<C>().await;
    let (end, took) = world.stop().await;
    assert_eq!(end, End::Stopped);
    assert!(took < SECOND * 10, "{took:?}");
    let next = world.holders()[0].to_owned();
    let took = world.until("the other one leads", |w| holder(w) == next).await;
    assert!(took < SECOND / 5, "the lease was given up: {took:?}");
    done(&world).await;
}

pub(super) async fn a_leader_that_cannot_renew_writes_nothing_after_its_lease<C: CloudUnderTest>() {
    let mut world = two_at_work::<C>().await;
    // Only the first one's renewals fail; an update is what a holder sends.
    let fault = KubeFault::new(Effect::DropBefore)
        .verb("update")
        .resource("leases");
    world.api.faults().inject(fault.times(6));
    let end = world.ended().await;
    assert_eq!(end, End::LeadershipLost);
    let next = world.holders()[0].to_owned();
    world.until("the other one leads", |w| holder(w) == next).await;
    done(&world).await;
}
