//! The life of a Service.

use std::time::Duration;

use bowline_cloud_kit::Fault;
use serde_json::json;

use super::under_test::{CloudUnderTest, Wish};
use super::world::{SECOND, Since, World, service, web};

const ENSURING: &str = "EnsuringLoadBalancer";
const ENSURED: &str = "EnsuredLoadBalancer";
const FAILED: &str = "SyncLoadBalancerFailed";

pub(super) async fn a_service_gets_its_balancer<C: CloudUnderTest>() {
    let world = World::<C>::with_nodes(3).await;
    let begun = world.since();
    world.ask(web(), Wish::Rich);
    world.settled("web").await;
    world.assert_served();
    assert!(world.has_finalizer("web"));
    assert_eq!(world.reasons("web"), [ENSURING, ENSURED]);
    let mut writes = world.object_writes(begun);
    assert_eq!(
        writes.first().unwrap(),
        "patch services/status web",
        "the finalizer"
    );
    // Some clouds put an annotation on the Nodes.
    writes.retain(|write| !write.starts_with("patch nodes "));
    assert!(writes.len() <= 4, "{writes:?}");
}

pub(super) async fn without_nodes_people_are_told<C: CloudUnderTest>() {
    let world = World::<C>::with_nodes(0).await;
    world.ask(web(), Wish::Plain);
    world
        .until("the event", |w| {
            w.events("web").contains(
                &"UnAvailableLoadBalancer: There are no available nodes for LoadBalancer".to_owned(),
            )
        })
        .await;
    world.add_node("n1");
    world.settled("web").await;
    world.assert_served();
}

pub(super) async fn any_other_change_leads_to_a_read_and_no_needless_write<C: CloudUnderTest>() {
    let world = World::<C>::with_web(2).await;
    world.pass(SECOND * 30).await; // what was read for the creation is old
    let begun = world.since();
    world.annotate_idly("web");
    world.rest().await;
    assert!(world.counts(begun).0 > 0, "an annotation may mean anything");
    assert_eq!(world.writes(begun), Vec::<String>::new());
    assert_eq!(world.object_writes(begun), Vec::<String>::new());
}

pub(super) async fn a_balancer_follows_its_service<C: CloudUnderTest>() {
    let world = World::<C>::with_web(2).await;
    let begun = world.since();
    world.change("web");
    world.rest().await;
    assert!(!world.writes(begun).is_empty());
    world.assert_served();
}

/// The beginnings of the tries that were made to write.
fn tries<C: CloudUnderTest>(world: &World<C>, begun: Since) -> Vec<Duration> {
    let (mut tries, mut last) = (Vec::new(), None);
    for call in world.calls(begun).iter().filter(|call| call.write) {
        // Repeats within a try come quicker than the shortest step of the schedule.
        if last.is_none_or(|last| call.at.saturating_sub(last) >= SECOND * 4) {
            tries.push(call.at);
        }
        last = Some(call.at);
    }
    tries
}

pub(super) async fn a_failure_is_told_and_tried_again_by_the_schedule<C: CloudUnderTest>() {
    let world = World::<C>::with_nodes(2).await;
    let fault = world.cloud().faults().add(Fault::write().always().status(500));
    let begun = world.since();
    world.ask(web(), Wish::Plain);
    world.pass(SECOND * 70).await;
    let tries = tries(&world, begun);
    assert!(world.cloud().faults().struck(fault) > 0);
    if C::WAITS_FOR_CLAIMS {
        assert_eq!(
            tries.len(),
            1,
            "what may be on its way is not asked for again: {tries:?}"
        );
        return;
    }
    assert_eq!(tries.len(), 4, "at about 0, 5, 15 and 35 s: {tries:?}");
    for (pair, seconds) in tries.windows(2).zip([5, 10, 20]) {
        let gap = pair[1].saturating_sub(pair[0]);
        assert!(
            gap >= SECOND * seconds && gap < SECOND * (seconds + 3),
            "{tries:?}"
        );
    }
    let events = world.events("web");
    assert!(
        events
            .iter()
            .any(|line| line.starts_with(&format!("{FAILED}: Error syncing load balancer: "))),
        "{events:?}"
    );
    assert!(world.has_finalizer("web") && world.addresses("web").is_empty());
    world.cloud().faults().clear();
    world.settled("web").await;
    world.assert_served();
}

pub(super) async fn a_service_goes_and_its_balancer_with_it<C: CloudUnderTest>() {
    let world = World::<C>::with_nodes(2).await;
    // What has to be there for it, such as a reserved address, is not ours and stays.
    let mut service = web();
    world.sim.ask(&mut service, Wish::Rich);
    let before = world.sim.state();
    world.apply(service);
    world.settled("web").await;
    assert_ne!(world.sim.state(), before);
    let begun = world.since();
    world.delete_service("web");
    world.gone("web").await;
    // Each write is based on what the one before it left.
    assert_eq!(world.refused_writes(begun), Vec::<String>::new());
    assert_eq!(world.sim.state(), before, "something is left");
    let reasons = world.reasons("web");
    assert!(
        reasons.ends_with(&[
            "DeletingLoadBalancer".to_owned(),
            "DeletedLoadBalancer".to_owned()
        ]),
        "{reasons:?}"
    );
    world.assert_served();
}

pub(super) async fn a_balancer_that_was_deleted_by_hand_is_no_obstacle<C: CloudUnderTest>() {
    let world = World::<C>::with_web(2).await;
    world.sim.lose_balancer(&world.mark("web"));
    assert!(world.sim.balancers().is_empty(), "the simulator lost nothing");
    world.delete_service("web");
    world.gone("web").await;
    world.assert_served();
}

pub(super) async fn a_deletion_that_fails_for_a_while_goes_on_by_the_schedule<C: CloudUnderTest>() {
    let world = World::<C>::with_web(2).await;
    world.cloud().faults().add(Fault::write().always().status(400));
    let begun = world.since();
    world.delete_service("web");
    world.pass(SECOND * 120).await;
    assert!(world.has_finalizer("web"), "the balancer would be leaked");
    let tries = tries(&world, begun).len();
    assert!((2..=8).contains(&tries), "{tries} tries in two minutes");
    assert!(world.reasons("web").contains(&FAILED.to_owned()));
    world.cloud().faults().clear();
    world.gone("web").await;
    world.assert_served();
}

pub(super) async fn without_an_answer_nothing_is_deleted<C: CloudUnderTest>() {
    let world = World::<C>::with_web(2).await;
    let before = world.sim.state();
    world.cloud().faults().add(Fault::any().always().status(503));
    world.delete_service("web");
    world.pass(SECOND * 600).await;
    assert!(world.has_finalizer("web"), "the balancer would be leaked");
    assert_eq!(world.sim.state(), before);
    world.cloud().faults().clear();
    world.gone("web").await;
    world.assert_served();
}

pub(super) async fn a_service_may_change_its_mind<C: CloudUnderTest>() {
    let world = World::<C>::with_web(2).await;
    let begun = world.since();
    world.edit_service("web", |web| {
        web["spec"]["type"] = json!("ClusterIP");
        for port in web["spec"]["ports"].as_array_mut().unwrap() {
            port.as_object_mut().unwrap().remove("nodePort");
        }
        web["status"] = json!({});
    });
    world
        .until("the finalizer is off", |w| !w.has_finalizer("web"))
        .await;
    world.rest().await;
    assert!(world.service("web").is_some() && world.addresses("web").is_empty());
    assert_eq!(world.refused_writes(begun), Vec::<String>::new());
    world.assert_served();
    // And back.
    world.edit_service("web", |it| it["spec"]["type"] = json!("LoadBalancer"));
    world.settled("web").await;
    assert_eq!(world.sim.balancers().len(), 1);
    world.assert_served();
}

pub(super) async fn a_service_without_node_ports_is_served_or_refused_but_never_half<C: CloudUnderTest>() {
    let world = World::<C>::with_nodes(2).await;
    let mut bare = service("bare", &[]);
    bare["spec"]["ports"] = json!([{ "port": 80 }]);
    bare["spec"]["allocateLoadBalancerNodePorts"] = json!(false);
    world.ask(bare, Wish::Plain);
    world.pass(SECOND * 60).await;
    world.rest().await;
    let (is_refused, is_shown) = (
        world.reasons("bare").contains(&FAILED.to_owned()),
        !world.addresses("bare").is_empty(),
    );
    assert!(is_refused != is_shown, "{:?}", world.events("bare"));
    world.delete_service("bare");
    world.gone("bare").await;
    world.assert_served();
}

pub(super) async fn a_service_that_was_made_anew_in_an_outage_gets_a_balancer_of_its_own<
    C: CloudUnderTest,
>() {
    let mut world = World::<C>::with_web(2).await;
    let old = world.uid("web");
    world.kill().await;
    // Somebody takes the finalizer off by hand, which leaks the balancer, and makes the Service again.
    world.edit_service("web", |web| {
        web["metadata"].as_object_mut().unwrap().remove("finalizers");
    });
    world.delete_service("web");
    world.ask(web(), Wish::Plain);
    assert_ne!(world.uid("web"), old);
    world.start();
    world.settled("web").await;
    let new = world.mark("web");
    let of_new: Vec<_> = world
        .sim
        .balancers()
        .into_iter()
        .filter(|it| it.service == new)
        .collect();
    assert_eq!(of_new.len(), 1);
    assert_eq!(world.addresses("web"), of_new[0].addresses);
}

pub(super) async fn a_write_that_hangs_holds_up_nobody_else<C: CloudUnderTest>() {
    let world = World::<C>::with_nodes(2).await; // with one worker, as by default
    world.cloud().faults().add(Fault::write().hang_before());
    let begun = world.since();
    world.ask(web(), Wish::Plain);
    world.until("it hangs", |w| w.writes(begun).len() == 1).await;
    world.ask_for("other", 30080);
    let took = world
        .until("the other one", |w| !w.addresses("other").is_empty())
        .await;
    assert!(took < SECOND * 5, "{took:?}");
    assert!(world.addresses("web").is_empty());
    world.settled("web").await;
    world.assert_served();
}

pub(super) async fn a_balancer_that_is_lost_is_made_anew<C: CloudUnderTest>() {
    let world = World::<C>::with_web(2).await;
    world.sim.lose_balancer(&world.mark("web"));
    assert!(world.sim.balancers().is_empty(), "the simulator lost nothing");
    // Nobody tells us: the periodic check finds it.
    world
        .until("it is there again", |w| w.unserved().is_empty())
        .await;
    world.rest().await;
    world.assert_served();
}
