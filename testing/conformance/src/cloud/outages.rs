//! A cloud that is ill: nothing is half done, nothing is lost, nothing is told that should not be, and it heals.

use std::time::Duration;

use bowline_cloud_kit::Fault;
use bowline_cloud_kit::faults::FaultBuilder;
use bowline_kube_api::{Effect, Fault as KubeFault};

use super::under_test::{Ability, CloudUnderTest, Denial, Wish};
use super::world::{SECOND, Start, World, tainted_node, web};

/// Makes the requests that are chosen ill.
pub(super) type Ill = fn(FaultBuilder) -> Fault;

/// What may be wrong with an API.
pub(super) const ILLNESSES: &[(&str, Ill)] = &[
    ("unreachable", FaultBuilder::drop_before),
    ("an answer that gets lost", FaultBuilder::lose_answer),
    ("never an answer", FaultBuilder::hang_before),
    ("a page of HTML", |it| it.html(200)),
    ("a page of HTML that is not there", |it| it.html(404)),
    ("a proxy's page", |it| it.html(502)),
    ("JSON that is cut short", |it| it.truncate(12)),
    ("a body that breaks", |it| it.break_body(12)),
    ("401", |it| it.status(401)),
    ("403", |it| it.status(403)),
    ("429", |it| it.too_many_requests(Duration::from_secs(7))),
    ("500", |it| it.status(500)),
    ("503", |it| it.status(503)),
    ("nothing", |it| it.empty(204)),
];

pub(super) async fn a_service_waits_for_a_cloud_that_is_ill<C: CloudUnderTest>() {
    for (name, ill) in ILLNESSES {
        let world = World::<C>::with_nodes(2).await;
        let fault = world.cloud().faults().add(ill(Fault::any().always()));
        world.ask(web(), Wish::Plain);
        world.pass(SECOND * 400).await;
        assert!(world.addresses("web").is_empty(), "{name}");
        let events = world.events("web");
        assert!(
            events
                .iter()
                .any(|line| line.starts_with("SyncLoadBalancerFailed: ")),
            "{name}: {events:?}"
        );
        assert!(events.len() <= 6, "{name} floods: {events:?}");
        assert!(world.cloud().faults().struck(fault) < 120, "{name}: too eager");
        world.cloud().faults().clear();
        world.settled("web").await;
        world.assert_served();
        world.assert_hidden();
    }
}

pub(super) async fn an_illness_between_two_writes_leaves_nothing_half_done<C: CloudUnderTest>() {
    for (name, ill) in ILLNESSES {
        let world = World::<C>::with_nodes(2).await;
        world.cloud().faults().add(ill(Fault::write().nth(2).times(4)));
        world.ask(web(), Wish::Rich);
        world.settled("web").await;
        world.pass(SECOND * 700).await; // the slowest retry, and a periodic check
        world.rest().await;
        assert_eq!(world.unserved(), Vec::<String>::new(), "{name}");
        assert_eq!(world.sim.violations(), Vec::<String>::new(), "{name}");
    }
}

/// It says nothing of what was asked for, so the pauses of a refusal, which grow longer than those of a failure, are not its.
pub(super) async fn a_write_that_met_refused_credentials_is_made_by_the_next_try<C: CloudUnderTest>() {
    let world = World::<C>::with_nodes(2).await;
    let fault = Fault::write().nth(2).times(1_000).status(401);
    world.cloud().faults().add(fault);
    world.ask(web(), Wish::Rich);
    world.pass(SECOND * 1_000).await;
    assert!(!world.unserved().is_empty());
    world.cloud().faults().clear();
    let late = world.until("served", |w| w.unserved().is_empty()).await;
    assert!(late <= SECOND * 330, "{late:?}");
}

pub(super) async fn what_is_up_stays_up_while_the_cloud_is_ill<C: CloudUnderTest>() {
    for (name, ill) in ILLNESSES {
        let mut world = World::<C>::new();
        world.add_nodes(2);
        world.ask(web(), Wish::Plain);
        world.start_with(Start::alone());
        world.settled("web").await;
        let (before, service) = (world.sim.state(), world.service("web").unwrap());
        world.cloud().faults().add(ill(Fault::any().always()));
        world.pass(SECOND * 1_500).await;
        assert_eq!(world.sim.state(), before, "{name}");
        let after = world.service("web").unwrap();
        for asked in ["annotations", "finalizers", "labels"] {
            assert_eq!(after["metadata"][asked], service["metadata"][asked], "{name}");
        }
        assert_eq!(
            after["status"]["loadBalancer"], service["status"]["loadBalancer"],
            "{name}"
        );
        assert_eq!(
            after["status"]["conditions"][0]["type"], "LoadBalancerReconciled",
            "{name}"
        );
        world.cloud().faults().clear();
        world.pass(SECOND * 700).await;
        assert_eq!(world.sim.state(), before, "{name}");
        let healed = world.service("web").unwrap();
        assert_eq!(healed["status"], service["status"], "{name}");
    }
}

pub(super) async fn unknown_credentials_are_named_on_services_and_never_shown<C: CloudUnderTest>() {
    let mut world = World::<C>::new();
    world.sim.deny(Some(Denial::Unknown));
    world.add_nodes(2);
    world.ask(web(), Wish::Plain);
    world.start();
    world.pass(SECOND * 300).await;
    let events = world.events("web");
    assert!(
        events
            .iter()
            .any(|line| line.contains("401") || line.contains("403")),
        "{events:?}"
    );
    assert!(world.sim.balancers().is_empty());
    world.assert_hidden();
    // They are put right in the vendor's panel: the same process goes on.
    world.sim.deny(None);
    world.settled("web").await;
    world.assert_served();
}

pub(super) async fn unknown_credentials_are_named_on_nodes_and_never_shown<C: CloudUnderTest>() {
    let mut world = World::<C>::new();
    world.sim.deny(Some(Denial::Unknown));
    world.join("fresh");
    world.start();
    world.pass(SECOND * 300).await;
    let events = world.events("fresh");
    assert!(
        events
            .iter()
            .any(|line| line.contains("401") || line.contains("403")),
        "{events:?}"
    );
    assert!(!world.is_initialized("fresh"));
    world.assert_hidden();
    world.sim.deny(None);
    world.until("initialised", |w| w.is_initialized("fresh")).await;
}

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
