//! A cloud that is ill: nothing is half done, nothing is lost, nothing is told that should not be, and it heals.

use std::time::Duration;

use bowline_cloudscale_sim::Access;
use bowline_cloudscale_sim::kit::Fault;
use bowline_cloudscale_sim::kit::faults::FaultBuilder;

use super::objects::{service, settled_web, web};
use super::world::{SECOND, TOKEN, World};

/// Makes the requests that are chosen ill.
type Ill = fn(FaultBuilder) -> Fault;

/// What may be wrong with an API.
const ILLNESSES: &[(&str, Ill)] = &[
    ("unreachable", FaultBuilder::drop_before),
    ("an answer that gets lost", FaultBuilder::lose_answer),
    ("never an answer", FaultBuilder::hang_before),
    ("a page of HTML", |it| it.html(200)),
    ("a proxy's page", |it| it.html(502)),
    ("JSON that is cut short", |it| it.truncate(12)),
    ("a body that breaks", |it| it.break_body(12)),
    ("401", |it| it.status(401)),
    ("403", |it| it.status(403)),
    ("404", |it| it.status(404)),
    ("429", |it| it.too_many_requests(Duration::from_secs(7))),
    ("500", |it| it.status(500)),
    ("503", |it| it.status(503)),
    ("nothing", |it| it.empty(204)),
];

#[tokio::test(start_paused = true)]
async fn a_service_waits_for_a_cloud_that_is_ill_and_is_complete_when_it_is_well() {
    for (name, ill) in ILLNESSES {
        let mut world = World::new();
        world.add_nodes(2);
        world.start();
        world.rest().await;
        let fault = world.sim.faults().add(ill(Fault::any().always()));
        world.apply(web());
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
        assert!(world.sim.faults().struck(fault) < 120, "{name}: too eager");
        world.sim.faults().clear();
        world.settled("web").await;
        assert_eq!(world.sim.load_balancers().len(), 1, "{name}");
        assert_eq!(world.sim.members().len(), 4, "{name}");
        world.assert_sound();
        world.assert_hidden(TOKEN);
    }
}

#[tokio::test(start_paused = true)]
async fn an_illness_between_two_writes_leaves_nothing_half_done() {
    for (name, ill) in ILLNESSES {
        for nth in [2, 5, 9] {
            let mut world = World::new();
            world.add_nodes(2);
            world.start();
            world.rest().await;
            world.sim.faults().add(ill(Fault::write().nth(nth).times(4)));
            world.apply(web());
            world.settled("web").await;
            world.pass(SECOND * 700).await; // the slowest retry, and a periodic check
            world.rest().await;
            assert_eq!(
                world.sim.check_invariants(),
                Vec::<String>::new(),
                "{name} at {nth}"
            );
            let state = &world.sim.snapshot().load_balancers;
            assert_eq!(state.len(), 1, "{name} at {nth}");
            assert_eq!(state[0].pools.len(), 2, "{name} at {nth}");
            for pool in &state[0].pools {
                let parts = (pool.members.len(), pool.listeners.len(), pool.monitors.len());
                assert_eq!(parts, (2, 1, 1), "{name} at {nth}: {pool:?}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_up_stays_up_while_the_cloud_is_ill() {
    for (name, ill) in ILLNESSES {
        let world = settled_web(3).await;
        let (before, service) = (world.sim.snapshot(), world.service("web").unwrap());
        world.sim.faults().add(ill(Fault::any().always()));
        world.pass(SECOND * 1_500).await;
        assert_eq!(world.sim.snapshot(), before, "{name}");
        let after = world.service("web").unwrap();
        assert_eq!(after["metadata"], service["metadata"], "{name}");
        assert_eq!(after["status"], service["status"], "{name}");
        world.sim.faults().clear();
        world.pass(SECOND * 700).await;
        assert_eq!(world.sim.snapshot(), before, "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_wrong_token_is_named_where_people_look_and_never_shown() {
    let mut world = World::new();
    world.sim.set_token("another one", Access::ReadWrite);
    world.add_nodes(2);
    world.join("fresh");
    world.apply(web());
    world.start();
    world.pass(SECOND * 300).await;
    for object in ["web", "fresh"] {
        let events = world.events(object);
        assert!(
            events.iter().any(|line| line.contains("401")),
            "{object}: {events:?}"
        );
    }
    assert!(!world.is_initialized("fresh"));
    for node in ["n1", "n2", "fresh"] {
        assert!(world.node(node).is_some());
    }
    assert!(world.sim.load_balancers().is_empty());
    world.assert_hidden(TOKEN);
    // It is replaced in the vendor's panel: the same process goes on.
    world.sim.set_token(TOKEN, Access::ReadWrite);
    world.settled("web").await;
    world.until("the node too", |w| w.is_initialized("fresh")).await;
}

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
async fn s36_a_create_that_hangs_holds_up_nobody_else() {
    let mut world = World::new();
    world.add_nodes(2);
    world.start(); // with one worker, as by default
    world.rest().await;
    world.sim.faults().add(Fault::write().hang_before());
    world.apply(web());
    world
        .until("it hangs", |w| w.sim.journal().writes().len() == 1)
        .await;
    world.apply(service("other", &[("", 80, 30080)]));
    let took = world
        .until("the other one", |w| !w.addresses("other").is_empty())
        .await;
    assert!(took < SECOND * 5, "{took:?}");
    assert!(world.addresses("web").is_empty());
    world.settled("web").await;
    assert_eq!(world.sim.load_balancers().len(), 2);
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
    let members = world.sim.members();
    assert_eq!(members.len(), 2 * 3, "two nodes, three ports: {members:?}");
    world.assert_sound();
}
