//! A Service gets its load balancer. The numbers are those of the acceptance scenarios of the cloudscale provider.

use std::time::Duration;

use bowline_cloudscale_sim::CloudscaleSim;
use bowline_kube_api::KubeApi;
use serde_json::json;

use super::objects::{OnCloudscale, service, settled_web, web};
use super::world::{Cloudscale, SECOND, World};

#[tokio::test(start_paused = true)]
async fn a_service_of_two_ports_gets_a_whole_balancer() {
    let mut world = World::new();
    world.add_nodes(3);
    world.start();
    world.rest().await;
    let uid = world.apply(web())["metadata"]["uid"].as_str().unwrap().to_owned();
    let begun = world.since();
    world.settled("web").await;

    let balancers = world.sim.load_balancers();
    let [balancer] = balancers.as_slice() else {
        panic!("{balancers:?}");
    };
    assert_eq!(balancer.name, format!("k8s-service-{uid}"));
    assert_eq!(balancer.zone, "rma1");
    assert_eq!(balancer.tags["k8s-service-uid"], uid);
    let state = &world.sim.snapshot().load_balancers[0];
    let pools: Vec<_> = state.pools.iter().map(|pool| pool.name.as_str()).collect();
    assert_eq!(pools, ["tcp/admin", "tcp/web"]);
    for (pool, node_port, listener) in [
        (&state.pools[0], 31201, "tcp/9000"),
        (&state.pools[1], 31200, "tcp/8080"),
    ] {
        assert_eq!(pool.members.len(), 3);
        for member in &pool.members {
            assert_eq!(member.name, format!("{}:{node_port}", member.address));
        }
        assert_eq!(pool.listeners.len(), 1);
        assert_eq!(pool.listeners[0].name, listener);
        assert_eq!(pool.monitors.len(), 1);
        assert_eq!(pool.monitors[0].kind, "tcp");
        assert_eq!(pool.monitors[0].delay_and_timeout_s, [2, 1]);
        assert_eq!(pool.monitors[0].thresholds, [2, 3]);
    }
    let vips: Vec<String> = balancer.vips.iter().map(|vip| vip.address.to_string()).collect();
    assert!(vips[0].contains('.') && vips[1].contains(':'), "{vips:?}");
    assert_eq!(world.addresses("web"), vips);
    assert_eq!(world.annotation("web", "uuid"), Some(balancer.uuid.to_string()));
    assert_eq!(world.annotation("web", "config-version").as_deref(), Some("1"));
    assert_eq!(world.annotation("web", "zone").as_deref(), Some("rma1"));

    assert_eq!(
        world.reasons("web"),
        ["EnsuringLoadBalancer", "EnsuredLoadBalancer"]
    );
    assert_eq!(
        world.object_writes(begun),
        [
            "patch services/status web", // the finalizer, through the subresource as upstream does it
            "patch services web",        // the three annotations
            "patch services/status web", // the addresses
        ]
    );
    world.assert_sound();
}

#[tokio::test(start_paused = true)]
async fn a_second_sync_writes_nothing_and_says_nothing() {
    let world = settled_web(3).await;
    let (begun, events) = (world.since(), world.all_events());
    world.pass(Duration::from_secs(1_500)).await; // two periodic checks and more
    let (reads, writes) = world.counts(begun);
    assert!(reads > 0, "nothing was checked");
    assert_eq!(writes, 0);
    assert_eq!(world.kube_writes(begun), Vec::<String>::new());
    assert_eq!(world.all_events(), events);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_made_below_a_balancer_that_is_changing_and_others_are_served_meanwhile() {
    let mut world = World::new();
    world.add_nodes(2);
    world
        .sim
        .set_behaviour(|it| it.lb_create_time = Duration::from_secs(90));
    world.start();
    world.rest().await;
    world.apply(web());
    world
        .until("the balancer", |w| w.sim.load_balancers().len() == 1)
        .await;
    world.sim.set_behaviour(|it| it.lb_create_time = Duration::ZERO);
    world.apply(service("quick", &[("", 80, 30080)]));
    let took = world
        .until("the other one", |w| !w.addresses("quick").is_empty())
        .await;
    assert!(took < SECOND * 10, "{took:?}");
    assert!(world.addresses("web").is_empty());

    let uuid = world.sim.load_balancers()[0].uuid;
    let parts = |w: &World| {
        w.sim
            .pools()
            .iter()
            .filter(|pool| pool.load_balancer == uuid)
            .count()
    };
    let begun = world.since();
    while parts(&world) == 0 {
        if world.sim.load_balancer_status(uuid).as_deref() == Some("changing") {
            assert!(world.writes(begun).is_empty(), "{:?}", world.writes(begun));
        }
        world.pass(Duration::from_millis(100)).await;
    }
    world.settled("web").await;
    // Polls of that one balancer only, further and further apart: 90 s need no more than a few dozen.
    let polls = world
        .tally(begun)
        .get("GET load-balancers/:id")
        .copied()
        .unwrap_or_default();
    assert!(polls <= 45, "{polls} polls");
    world.assert_sound();
}

#[tokio::test(start_paused = true)]
async fn a_balancer_that_is_gone_is_made_anew_and_the_annotation_replaced() {
    let world = settled_web(2).await;
    let old = world.sim.load_balancers()[0].uuid;
    world.sim.delete_load_balancer(old);
    world.annotate("web", "timeout-member-data-ms", "60000");
    world
        .until("a new balancer", |w| w.sim.load_balancers().len() == 1)
        .await;
    world.rest().await;
    let new = &world.sim.load_balancers()[0];
    assert_ne!(new.uuid, old);
    assert_eq!(world.annotation("web", "uuid"), Some(new.uuid.to_string()));
    let vips: Vec<String> = new.vips.iter().map(|vip| vip.address.to_string()).collect();
    assert_eq!(world.addresses("web"), vips);
    world.assert_sound();
}

#[tokio::test(start_paused = true)]
async fn two_candidates_are_one_too_many_and_none_is_touched() {
    let mut world = World::new();
    world.add_nodes(1);
    let a = world.sim.add_load_balancer("a", Default::default());
    world.sim.add_load_balancer("b", Default::default());
    let mut both = web();
    both["metadata"]["annotations"] = json!({
        super::objects::key("uuid"): a.to_string(),
        super::objects::key("name"): "b",
    });
    world.apply(both);
    let begun = world.since();
    world.start();
    world
        .until("the event", |w| {
            w.reasons("web").contains(&"SyncLoadBalancerFailed".to_owned())
        })
        .await;
    world.rest().await;
    assert!(
        world
            .events("web")
            .iter()
            .any(|line| line.contains("found more than one")),
        "{:?}",
        world.events("web")
    );
    assert_eq!(world.writes(begun), Vec::<String>::new());
    assert!(world.addresses("web").is_empty());
}

#[tokio::test(start_paused = true)]
async fn the_ip_mode_is_told_to_servers_that_know_it() {
    for (minor, expected) in [(36, Some("VIP")), (31, Some("VIP")), (28, None)] {
        let sim = CloudscaleSim::builder().seed(7).build();
        let mut world = World::of(Cloudscale(sim), KubeApi::builder().version(minor), 7);
        world.add_nodes(1);
        world.apply(web());
        world.annotate("web", "ip-mode", "VIP");
        world.start();
        world.settled("web").await;
        // What was sent: what is stored has the defaults of the server's own version.
        let sent = world.api.journal().of("patch", "services");
        let mut sent = sent
            .iter()
            .filter_map(|it| it.body.as_ref()?.pointer("/status/loadBalancer/ingress"));
        let ingress = sent.next_back().unwrap().as_array().unwrap();
        for entry in ingress {
            assert_eq!(entry["ipMode"].as_str(), expected, "1.{minor}: {entry}");
        }
        assert_eq!(ingress.len(), 2);
    }
}

#[tokio::test(start_paused = true)]
async fn an_unknown_ip_mode_is_refused_before_any_call() {
    let mut world = World::new();
    world.add_nodes(1);
    world.start();
    world.rest().await;
    let begun = world.since();
    let mut wrong = web();
    wrong["metadata"]["annotations"] = json!({ super::objects::key("ip-mode"): "vip" });
    world.apply(wrong);
    world
        .until("the event", |w| {
            w.reasons("web").contains(&"SyncLoadBalancerFailed".to_owned())
        })
        .await;
    world.pass(SECOND * 3).await;
    assert!(world.calls(begun).is_empty(), "{:?}", world.tally(begun));
}

#[tokio::test(start_paused = true)]
async fn a_forced_host_name_is_all_that_is_published() {
    let mut world = World::new();
    world.add_nodes(1);
    world.apply(web());
    world.annotate("web", "force-hostname", "lb.example.net");
    world.start();
    world.settled("web").await;
    assert_eq!(world.addresses("web"), ["lb.example.net"]);
}

#[tokio::test(start_paused = true)]
async fn a_broken_annotation_stops_its_own_service_only() {
    let mut world = World::new();
    world.add_nodes(2);
    let mut broken = service("broken", &[("", 81, 30081)]);
    broken["metadata"]["annotations"] = json!({ super::objects::key("health-monitor-http"): "null" });
    world.apply(broken);
    world.apply(web());
    world.start();
    world.settled("web").await;
    assert!(world.addresses("broken").is_empty());
    let events = world.events("broken");
    assert!(
        events
            .iter()
            .any(|line| line.starts_with("SyncLoadBalancerFailed: ") && line.contains("health-monitor-http")),
        "{events:?}"
    );
    assert_eq!(world.sim.load_balancers().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn of_two_balancers_with_our_mark_the_annotated_one_stays() {
    let world = settled_web(2).await;
    let ours = world.sim.load_balancers()[0].clone();
    let before = world.sim.snapshot();
    // As after an answer that came so late that the create was sent again.
    let twin = world.sim.add_load_balancer(ours.name.as_str(), ours.tags.clone());
    let begun = world.since();
    world.annotate("web", "unrelated", "x");
    world
        .until("one is gone", |w| w.sim.load_balancer(twin).is_none())
        .await;
    world.rest().await;
    assert_eq!(world.writes(begun), ["DELETE load-balancers/:id"]);
    assert_eq!(world.sim.load_balancers()[0].uuid, ours.uuid);
    assert_eq!(world.sim.snapshot(), before);
    assert!(
        world
            .reasons("web")
            .contains(&"DuplicateLoadBalancerRemoved".to_owned()),
        "{:?}",
        world.events("web")
    );
}
