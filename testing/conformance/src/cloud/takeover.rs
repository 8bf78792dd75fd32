//! From one process to the next, and from one hour to the next: nothing is written where nothing changed.

use bowline_kube_api::{Effect, Fault as KubeFault};
use serde_json::{Value, json};

use super::under_test::{CloudUnderTest, Wish};
use super::world::{SECOND, World, service, web};

pub(super) async fn an_idle_cluster_costs_the_same_whatever_its_size<C: CloudUnderTest>() {
    let cost = async |nodes: usize| {
        let mut world = World::<C>::new();
        world.add_nodes(nodes);
        if world.can(super::Ability::LoadBalancers) {
            world.ask(web(), Wish::Plain);
        }
        world.start();
        world.pass(SECOND * 60).await;
        world.rest().await;
        let begun = world.since();
        world.pass(SECOND * 3_600).await;
        assert_eq!(world.writes(begun), Vec::<String>::new());
        assert_eq!(world.kube_writes(begun), Vec::<String>::new());
        world.tally(begun)
    };
    assert_eq!(cost(3).await, cost(40).await);
}

pub(super) async fn the_same_seed_gives_the_same_history<C: CloudUnderTest>() {
    let history = async |seed| {
        let mut world = World::<C>::seeded(seed);
        world.cloud().set_latency(SECOND / 50);
        for index in 0..8 {
            world.join(&format!("n{index}"));
        }
        if world.can(super::Ability::LoadBalancers) {
            for index in 0..4 {
                world.ask_for(&format!("s{index}"), 30100 + index);
            }
        }
        world
            .cloud()
            .faults()
            .add(bowline_cloud_kit::Fault::any().nth(5).times(2).status(503));
        world
            .cloud()
            .faults()
            .add(bowline_cloud_kit::Fault::write().nth(3).lose_answer());
        world.start();
        world.pass(SECOND * 45).await;
        world.break_instance("n3");
        world.join("late");
        world.restart().await;
        world.pass(SECOND * 400).await;
        world.rest().await;
        let calls = world.cloud().journal().entries();
        let requests = world.api.journal().all();
        let calls = calls.iter().map(|it| format!("{it:?}"));
        calls
            .chain(requests.iter().map(|it| format!("{it:?}")))
            .collect::<Vec<_>>()
    };
    let (first, second) = (history(1).await, history(1).await);
    let differs = first.iter().zip(&second).find(|(a, b)| a != b);
    assert_eq!(differs, None, "the histories part here");
    assert_eq!(first.len(), second.len());
    assert_ne!(history(2).await, first, "the seed has no effect");
}

/// Whether the status of the original shows an address by then or not.
pub(super) async fn a_copied_manifest_touches_nothing_of_a_service_whose_publication_is_refused<
    C: CloudUnderTest,
>() {
    for is_shown in [false, true] {
        let world = World::<C>::with_nodes(2).await;
        // The finalizer is written by the same request.
        let shows = |service: &Value| service["status"]["loadBalancer"]["ingress"].is_array();
        let refuse = || {
            let fault = KubeFault::new(Effect::Deny(shows)).resource("services");
            world
                .api
                .faults()
                .inject(fault.subresource("status").times(1_000));
        };
        if is_shown {
            world.ask(web(), Wish::Plain);
            world.settled("web").await;
            refuse();
        } else {
            refuse();
            world.ask(web(), Wish::Plain);
            world.pass(SECOND * 60).await;
        }
        let mark = world.mark("web");
        let of_original = || {
            let all = world.sim.balancers();
            let own = all.into_iter().filter(|balancer| balancer.service == mark);
            own.collect::<Vec<_>>()
        };
        let before = of_original();
        assert_eq!(before.len(), 1, "{is_shown}");
        let mut copy = world.service("web").unwrap();
        for field in ["uid", "resourceVersion", "creationTimestamp", "finalizers"] {
            copy["metadata"].as_object_mut().unwrap().remove(field);
        }
        for field in ["clusterIP", "clusterIPs"] {
            copy["spec"].as_object_mut().unwrap().remove(field);
        }
        copy["metadata"]["name"] = json!("copy");
        copy["spec"]["ports"] =
            service("", &[("web", 8080, 31400), ("admin", 9000, 31401)])["spec"]["ports"].take();
        world.apply(copy);
        world.pass(SECOND * 300).await;
        assert_eq!(of_original(), before, "{is_shown}");
        world.delete_service("copy");
        world.pass(SECOND * 300).await;
        assert_eq!(of_original(), before, "{is_shown}");
        world.api.faults().clear();
        world
            .until("the copy is gone", |w| w.service("copy").is_none())
            .await;
        world.settled("web").await;
        assert_eq!(of_original(), before, "{is_shown}");
        world.until("it is served", |w| w.unserved().is_empty()).await;
    }
}
