//! Quotas and limits: each cloud says it in its own way, and an operator reads one reason.

use bowline_cloud_kit::{Fault, faults::Canned};
use bowline_conformance::cloud::{CloudUnderTest, Wish, World, web};
use bowline_conformance::clouds::{CloudStack, Cloudscale, OpenStack, Phoenixnap};

use super::world::SECOND;

/// What is said where a cloud tells no more than that a limit is reached.
const LIMIT: &str = "a quota or limit of the cloud is reached, or it has no more of this: have the limit raised, delete what nobody needs, or ask for something else";

/// A Service waits because of a quota: that is what its event and the metrics say. When there is room again, it is served.
async fn is_told<C: CloudUnderTest>(said: &str, exhaust: impl FnOnce(&C), relieve: impl FnOnce(&C)) {
    is_told_with::<C>(said, LIMIT, exhaust, relieve).await;
}

/// The same where the event says something else of what to do.
async fn is_told_with<C: CloudUnderTest>(
    said: &str,
    remedy: &str,
    exhaust: impl FnOnce(&C),
    relieve: impl FnOnce(&C),
) {
    let mut world = World::<C>::new();
    world.add_nodes(2);
    exhaust(&world.sim);
    world.start();
    world.ask(web(), Wish::Plain);
    world.pass(SECOND * 60).await;
    let page = world.metrics()[0].render().unwrap();
    let line = "load_balancers_unsettled{reason=\"quota\"} 1";
    let unsettled = page
        .lines()
        .filter(|it| it.starts_with("load_balancers_unsettled{"));
    let unsettled: Vec<&str> = unsettled.filter(|it| !it.ends_with(" 0")).collect();
    assert_eq!(
        unsettled,
        [line],
        "{}: {said}: {:?}",
        C::NAME,
        world.events("web")
    );
    let events = world.events("web");
    let is_event = |event: &&String| {
        event.contains("SyncLoadBalancerFailed") && event.contains(said) && event.contains(remedy)
    };
    assert!(
        events.iter().any(|event| is_event(&event)),
        "{}: {events:#?}",
        C::NAME
    );
    if remedy != LIMIT {
        assert!(!events.iter().any(|event| event.contains("quota")), "{events:#?}");
    }
    relieve(&world.sim);
    world.settled("web").await;
    // A load balancer that lacks a member serves, and has its address already.
    let is_over = "load_balancers_unsettled{reason=\"quota\"} 0";
    let page = |world: &World<C>| world.metrics()[0].render().unwrap();
    world
        .until("no quota is met", |world| page(world).contains(is_over))
        .await;
}

/// The cloud answers an operation like this, as long as it is exhausted.
async fn is_understood<C: CloudUnderTest>(said: &str, operation: &str, status: u16, body: &str) {
    is_understood_with::<C>((said, LIMIT), operation, status, body).await;
}

/// The same where the event says something else of what to do.
async fn is_understood_with<C: CloudUnderTest>(
    (said, remedy): (&str, &str),
    operation: &str,
    status: u16,
    body: &str,
) {
    let answer = Canned::json(status, body);
    let fault = Fault::operation(operation).always().answer(answer);
    is_told_with::<C>(
        said,
        remedy,
        |sim| {
            sim.service().faults().add(fault);
        },
        |sim| sim.service().faults().clear(),
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn cloudscale_has_no_load_balancer_left() {
    is_told::<Cloudscale>(
        "The quota for load balancers is exceeded.",
        |sim| sim.set_behaviour(|it| it.quota.load_balancers = Some(0)),
        |sim| sim.set_behaviour(|it| it.quota.load_balancers = None),
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn cloudscale_has_no_pool_or_member_left() {
    is_told::<Cloudscale>(
        "The quota for pools is exceeded.",
        |sim| sim.set_behaviour(|it| it.quota.pools_per_load_balancer = Some(0)),
        |sim| sim.set_behaviour(|it| it.quota.pools_per_load_balancer = None),
    )
    .await;
    is_told::<Cloudscale>(
        "The quota for members is exceeded.",
        |sim| sim.set_behaviour(|it| it.quota.members_per_pool = Some(1)),
        |sim| sim.set_behaviour(|it| it.quota.members_per_pool = None),
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn phoenixnap_has_no_block_left_and_says_so_in_several_ways() {
    is_told_with::<Phoenixnap>(
        "406 Not Acceptable: No IP block of size /29 is available",
        "has no free IP block of size /29: whoever owns the project asks phoenixNAP for more there, or waits",
        |sim| sim.set_behaviour(|it| it.quota.blocks = Some(0)),
        |sim| sim.set_behaviour(|it| it.quota.blocks = None),
    )
    .await;
    for status in [400, 403, 409] {
        let said = "You have reached the limit of IP blocks.";
        let body = format!(r#"{{"message":"{said}"}}"#);
        is_understood::<Phoenixnap>(said, "ip-blocks.create", status, &body).await;
    }
}

#[tokio::test(start_paused = true)]
async fn cloudstack_has_no_address_left_and_says_so_in_several_ways() {
    is_told::<CloudStack>(
        "Maximum number of resources of type 'public_ip'",
        |sim| sim.set_behaviour(|it| it.quota.addresses = Some(0)),
        |sim| sim.set_behaviour(|it| it.quota.addresses = None),
    )
    .await;
    for (code, said) in [
        (533, "Insufficient address capacity"),
        (532, "The account is over its limits"),
        (
            530,
            "Maximum number of resources of type 'public_ip' for account demo has been exceeded.",
        ),
    ] {
        let body = format!(r#"{{"associateipaddressresponse":{{"errorcode":{code},"errortext":"{said}"}}}}"#);
        is_understood::<CloudStack>(said, "associateIpAddress", code, &body).await;
    }
}

#[tokio::test(start_paused = true)]
async fn octavia_and_neutron_have_nothing_left() {
    is_told::<OpenStack>(
        "Quota has been met for resources: Load Balancer",
        |sim| sim.set_behaviour(|it| it.quota.load_balancers = Some(0)),
        |sim| sim.set_behaviour(|it| it.quota.load_balancers = None),
    )
    .await;
    is_told::<OpenStack>(
        "Quota exceeded for resources: ['floatingip'].",
        |sim| sim.set_behaviour(|it| it.quota.floating_ips = Some(0)),
        |sim| sim.set_behaviour(|it| it.quota.floating_ips = None),
    )
    .await;
    let said = "No more IP addresses available on network 3f0.";
    let body = format!(
        r#"{{"NeutronError": {{"type": "IpAddressGenerationFailure", "message": "{said}", "detail": ""}}}}"#
    );
    let remedy = "a network or subnet has no free address: whoever runs it frees some, or extends it";
    is_understood_with::<OpenStack>((said, remedy), "neutron.floatingips.create", 409, &body).await;
}
