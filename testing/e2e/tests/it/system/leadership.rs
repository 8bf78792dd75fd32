//! Two managers, one lease.

use bowline_kube_api::{Effect, Fault};
use bowline_manager::End;
use serde_json::json;

use super::objects::{service, web};
use super::world::{SECOND, World};

fn holder(world: &World) -> String {
    let lease = world
        .api
        .object("Lease", "kube-system", "cloud-controller-manager");
    let holder = lease.map(|lease| lease["spec"]["holderIdentity"].clone());
    holder
        .and_then(|it| it.as_str().map(str::to_owned))
        .unwrap_or_default()
}

/// Two managers; the first one leads.
async fn two() -> World {
    let mut world = World::new();
    world.add_nodes(2);
    world.start();
    world.until("somebody leads", |w| !holder(w).is_empty()).await;
    world.start();
    world.rest().await;
    assert_eq!(holder(&world), world.holders()[0]);
    world
}

#[tokio::test(start_paused = true)]
async fn the_lease_is_the_one_of_the_framework() {
    let mut world = World::new();
    world.start();
    world.until("somebody leads", |w| !holder(w).is_empty()).await;
    world.pass(SECOND * 5).await;
    let lease = world
        .api
        .object("Lease", "kube-system", "cloud-controller-manager")
        .unwrap();
    assert_eq!(lease["spec"]["leaseDurationSeconds"], 15);
    assert_eq!(lease["spec"]["holderIdentity"], world.holders()[0]);
    let events = world.api.objects("Event");
    let told: Vec<_> = events
        .iter()
        .filter(|event| event["reason"] == "LeaderElection")
        .collect();
    assert_eq!(told.len(), 1);
    assert_eq!(
        told[0]["message"],
        format!("{} became leader", world.holders()[0])
    );
    assert_eq!(told[0]["source"]["component"], "cloud-controller-manager");
}

#[tokio::test(start_paused = true)]
async fn a_follower_asks_the_cloud_for_nothing() {
    let mut world = two().await;
    // The leader falls silent, and only the follower is left until the lease ends.
    world.kill().await;
    let begun = world.since();
    world.apply(web());
    world.pass(SECOND * 10).await;
    assert!(world.calls(begun).is_empty(), "{:?}", world.tally(begun));
    assert!(world.object_writes(begun).is_empty());
}

#[tokio::test(start_paused = true)]
async fn after_a_power_cut_the_follower_leads_within_the_lease_and_goes_on_with_the_work() {
    let mut world = two().await;
    world.apply(web());
    world.until("the first pool", |w| !w.sim.pools().is_empty()).await;
    world.kill().await;
    let next = world.holders()[0].to_owned();
    let took = world.until("the other one leads", |w| holder(w) == next).await;
    // The lease lasts 15 s from its last renewal; then the follower is there at once, or one retry later.
    assert!(took <= SECOND * 20, "{took:?}");
    let served = world
        .until("the address", |w| !w.addresses("web").is_empty())
        .await;
    assert!(served < SECOND * 2, "{served:?}");
    world.rest().await;
    let lease = world
        .api
        .object("Lease", "kube-system", "cloud-controller-manager")
        .unwrap();
    assert_eq!(lease["spec"]["leaseTransitions"], 1);
    assert_eq!(world.sim.load_balancers().len(), 1);
    world.assert_one_writer();
    world.assert_sound();
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_is_asked_to_stop_hands_over_at_once() {
    let mut world = two().await;
    for index in 0..3_u16 {
        world.apply(service(&format!("s{index}"), &[("", 80, 30080 + index)]));
    }
    world.until("the first pool", |w| !w.sim.pools().is_empty()).await;
    let (end, took) = world.stop().await;
    assert_eq!(end, End::Stopped);
    assert!(took < SECOND * 10, "{took:?}");
    let next = world.holders()[0].to_owned();
    let took = world.until("the other one leads", |w| holder(w) == next).await;
    assert!(took < SECOND / 5, "the lease was given up: {took:?}");
    for index in 0..3 {
        world.settled(&format!("s{index}")).await;
    }
    assert_eq!(world.sim.load_balancers().len(), 3);
    world.assert_one_writer();
    world.assert_sound();
}

#[tokio::test(start_paused = true)]
async fn a_stolen_lease_ends_the_process() {
    let mut world = World::new();
    world.add_nodes(1);
    world.start();
    world.rest().await;
    let mut lease = world
        .api
        .object("Lease", "kube-system", "cloud-controller-manager")
        .unwrap();
    lease["spec"]["holderIdentity"] = json!("somebody-else");
    lease["spec"]["renewTime"] = json!("2026-01-01T06:00:00.000000Z");
    world.apply(lease);
    let begun = tokio::time::Instant::now();
    let end = world.ended().await;
    assert_eq!(end, End::LeadershipLost);
    assert!(begun.elapsed() < SECOND * 15, "{:?}", begun.elapsed());
    let since = world.since();
    world.apply(web());
    world.pass(SECOND * 60).await;
    assert!(world.calls(since).is_empty(), "a dead leader works on");
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_cannot_renew_writes_nothing_after_its_lease_and_ends() {
    let mut world = two().await;
    world.sim.set_behaviour(|it| it.lb_write_time = SECOND);
    world.apply(web());
    world.until("the first pool", |w| !w.sim.pools().is_empty()).await;
    let first = world.holders()[0].to_owned();
    // Only the first one's renewals fail; an update is what a holder sends.
    world.api.faults().inject(
        Fault::new(Effect::DropBefore)
            .verb("update")
            .resource("leases")
            .times(6),
    );
    let end = world.ended().await;
    assert_eq!(end, End::LeadershipLost);
    let next = world.holders()[0].to_owned();
    assert_ne!(next, first);
    world.until("the other one leads", |w| holder(w) == next).await;
    world.settled("web").await;
    assert_eq!(world.sim.load_balancers().len(), 1);
    world.assert_one_writer();
    world.assert_sound();
}

#[tokio::test(start_paused = true)]
async fn a_write_that_hangs_does_not_hold_up_the_end() {
    use bowline_cloudscale_sim::kit::Fault as CloudFault;

    let mut world = two().await;
    world.sim.faults().add(CloudFault::write().nth(3).hang_after());
    world.apply(web());
    world
        .until("it hangs", |w| w.sim.journal().writes().len() >= 3)
        .await;
    let (end, took) = world.stop().await;
    assert_eq!(end, End::Stopped);
    assert!(took < SECOND * 10, "{took:?}");
    let next = world.holders()[0].to_owned();
    world.until("the other one leads", |w| holder(w) == next).await;
    world.settled("web").await;
    assert_eq!(
        (world.sim.load_balancers().len(), world.sim.pools().len()),
        (1, 2)
    );
    world.assert_one_writer();
    world.assert_sound();
}

#[tokio::test(start_paused = true)]
async fn a_leader_whose_watches_had_died_does_not_make_a_deleted_balancer_again() {
    for resource in ["services", "nodes"] {
        let mut world = World::new();
        world.add_nodes(2);
        world.apply(web());
        world.start();
        world.settled("web").await;
        world.rest().await;
        // The watch that the next process opens is one of a server that dies at once, without a word.
        let dies = Fault::new(Effect::Silence)
            .verb("watch")
            .resource(resource)
            .times(1);
        world.api.faults().inject(dies);
        world.start();
        world.pass(SECOND * 5).await;
        assert_eq!(holder(&world), world.holders()[0]);

        assert!(world.api.delete("Service", "default", "web"));
        world.join("n3");
        world
            .until("the service is gone", |w| {
                w.api.object("Service", "default", "web").is_none()
            })
            .await;
        assert!(world.sim.load_balancers().is_empty());
        world.until("the node", |w| w.is_initialized("n3")).await;
        let (end, _) = world.stop().await;
        assert_eq!(end, End::Stopped);
        let next = world.holders()[0].to_owned();
        let begun = world.since();
        world.until("the other one leads", |w| holder(w) == next).await;
        world.pass(SECOND * 120).await;
        assert!(world.sim.load_balancers().is_empty(), "an orphan");
        let calls = world.calls(begun);
        let writes: Vec<_> = calls
            .iter()
            .filter(|call| call.method != http::Method::GET)
            .collect();
        assert!(writes.is_empty(), "{writes:#?}");
        assert!(
            world.object_writes(begun).is_empty(),
            "{:?}",
            world.object_writes(begun)
        );
    }
}
