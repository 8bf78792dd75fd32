//! Values that the API does not show as they were written.

use std::net::IpAddr;
use std::time::Duration;

use bowline_cloudscale_sim::FloatingSpec;
use bowline_cloudscale_sim::kit::Fault;

use crate::change::settled;
use bowline_kit::Outcome;

use crate::world::{World, in_short};

/// A settled world whose API keeps nothing of what a PATCH says about an attribute.
async fn stubborn(attribute: &str) -> World {
    let world = settled(1).await;
    world.annotate("web", "health-monitor-type", "http");
    world.run("web").await.settled();
    let unkept = vec![attribute.to_owned()];
    world
        .sim
        .set_behaviour(|behaviour| behaviour.unkept_attributes = unkept);
    world
}

#[tokio::test(start_paused = true)]
async fn a_network_with_the_bits_of_a_host_is_written_once_in_its_one_spelling() {
    for masks in [false, true] {
        let world = settled(1).await;
        world
            .sim
            .set_behaviour(|behaviour| behaviour.masks_host_bits = masks);
        let cidrs = r#"["10.0.0.5/8", "2001:DB8:0::1/32", "10.0.0.0/8"]"#;
        world.annotate("web", "listener-allowed-cidrs", cidrs);
        let (run, writes) = world.writes_of(world.run("web")).await;
        run.settled();
        assert_eq!(in_short(&writes), ["PATCH listeners"; 2]);
        let body = writes[0].body.as_ref().unwrap().to_string();
        assert_eq!(body, r#"{"allowed_cidrs":["10.0.0.0/8","2001:db8::/32"]}"#);
        assert!(world.writes_of(world.run("web")).await.1.is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn what_another_manager_wrote_in_another_spelling_is_left_as_it_is() {
    let world = settled(1).await;
    let http =
        r#"{"expected_codes": ["200", "201"], "host": "x.test", "method": "get", "url_path": " /up "}"#;
    world.annotate("web", "health-monitor-type", "http");
    world.annotate("web", "health-monitor-http", http);
    world.annotate(
        "web",
        "listener-allowed-cidrs",
        r#"["10.0.0.0/8", "192.0.2.0/24"]"#,
    );
    world.run("web").await.settled();
    for listener in world.sim.listeners() {
        let cidrs = ["192.0.2.0/24", "10.0.0.5/8"].map(ToOwned::to_owned);
        world
            .sim
            .edit_listener(listener.uuid, |it| it.allowed_cidrs = cidrs.to_vec());
    }
    for monitor in world.sim.health_monitors() {
        world.sim.edit_health_monitor(monitor.uuid, |it| {
            let http = it.http.as_mut().unwrap();
            http.host = Some("X.Test".to_owned());
            http.expected_codes = vec!["200-201".to_owned()];
        });
    }
    let (run, writes) = world.writes_of(world.run("web")).await;
    run.settled();
    assert!(writes.is_empty(), "{writes:?}");
}

#[tokio::test(start_paused = true)]
async fn a_write_that_is_not_kept_is_made_once_and_told_by_the_attributes_name() {
    let http = |field: &str| format!("{{{field}}}");
    for (attribute, suffix, value, shown) in [
        (
            "allowed_cidrs",
            "listener-allowed-cidrs",
            r#"["10.0.0.5/8"]"#.to_owned(),
            "[10.0.0.0/8] was written, [] is shown",
        ),
        (
            "timeout_client_data_ms",
            "timeout-client-data-ms",
            "7".to_owned(),
            "7 was written, 50000 is shown",
        ),
        (
            "timeout_member_connect_ms",
            "timeout-member-connect-ms",
            "7".to_owned(),
            "7 was written, 5000 is shown",
        ),
        (
            "timeout_member_data_ms",
            "timeout-member-data-ms",
            "7".to_owned(),
            "7 was written, 50000 is shown",
        ),
        (
            "delay_s",
            "health-monitor-delay-s",
            "7".to_owned(),
            "7 was written, 2 is shown",
        ),
        (
            "timeout_s",
            "health-monitor-timeout-s",
            "7".to_owned(),
            "7 was written, 1 is shown",
        ),
        (
            "up_threshold",
            "health-monitor-up-threshold",
            "7".to_owned(),
            "7 was written, 2 is shown",
        ),
        (
            "down_threshold",
            "health-monitor-down-threshold",
            "7".to_owned(),
            "7 was written, 3 is shown",
        ),
        (
            "http.host",
            "health-monitor-http",
            http(r#""host": "x.test""#),
            "x.test was written, nothing is shown",
        ),
        (
            "http.url_path",
            "health-monitor-http",
            http(r#""url_path": "/up""#),
            "/up was written, / is shown",
        ),
        (
            "http.method",
            "health-monitor-http",
            http(r#""method": "HEAD""#),
            "HEAD was written, GET is shown",
        ),
        (
            "http.expected_codes",
            "health-monitor-http",
            http(r#""expected_codes": ["204"]"#),
            "[204] was written, [200] is shown",
        ),
        (
            "name",
            "name",
            "edge".to_owned(),
            "edge was written, k8s-service-uid-web is shown",
        ),
    ] {
        let mut world = stubborn(attribute).await;
        world.annotate("web", suffix, &value);
        let (run, writes) = world.writes_of(world.run("web")).await;
        let text = run.complaint().to_owned();
        assert!(matches!(run.outcome, Outcome::Refused(_)), "{attribute}: {run:?}");
        assert!(
            text.contains(&format!("the API did not keep {attribute} of ")),
            "{text}"
        );
        assert!(text.contains(shown), "{text}");
        let key = format!("set k8s.cloudscale.ch/loadbalancer-{suffix} to a value that the API keeps");
        assert!(text.ends_with(&key), "{text}");
        assert_eq!(run.published_although_refused.unwrap().ingress.len(), 2);
        assert_eq!(
            writes.len(),
            if attribute == "name" { 1 } else { 2 },
            "{attribute}"
        );
        // It is known by now; all else goes on.
        world.add_node("n2");
        let (run, writes) = world.writes_of(world.run("web")).await;
        assert_eq!(run.complaint(), text);
        assert_eq!(in_short(&writes), ["POST members"; 2], "{attribute}");
        // Once the API keeps it, or shows something new, it is written again.
        world
            .sim
            .set_behaviour(|behaviour| behaviour.unkept_attributes.clear());
        world.restart();
        world.run("web").await.settled();
        assert!(world.writes_of(world.run("web")).await.1.is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn what_comes_out_otherwise_than_it_was_created_is_not_created_again_and_again() {
    let world = World::with_nodes(1);
    world
        .sim
        .set_behaviour(|behaviour| behaviour.cuts_names_to = Some(5));
    let (run, writes) = world.writes_of(world.run("web")).await;
    assert!(matches!(run.outcome, Outcome::Refused(_)), "{run:?}");
    let text = run.complaint();
    assert!(text.contains("pool tcp/web is not as Bowline wrote it"), "{text}");
    let once = [
        "POST load-balancers",
        "PATCH load-balancers",
        "POST pools",
        "POST pools",
    ];
    assert_eq!(in_short(&writes), once);
    assert_eq!(run.published_although_refused, None); // no port is open yet
}

/// They go one by one, and nobody waits for one that does not go.
#[tokio::test(start_paused = true)]
async fn a_floating_ip_that_is_not_kept_bars_no_other_one() {
    let world = stubborn("load_balancer").await;
    let [first, second] = [(); 2].map(|()| world.sim.add_floating_ip(FloatingSpec::default()));
    world.annotate("web", "floating-ips", &format!("[\"{first}\"]"));
    let text = world.run("web").await.complaint().to_owned();
    assert!(text.contains(&format!("of floating IP {first}/32")), "{text}");
    let led = |address: IpAddr| {
        let mut all = world.sim.floating_ips().into_iter();
        let found = all.find(|it| it.network.addr() == address).unwrap();
        found.target.is_some()
    };
    // The first one is not kept in the future either.
    world
        .sim
        .set_behaviour(|behaviour| behaviour.unkept_attributes.clear());
    world.annotate("web", "floating-ips", &format!("[\"{first}\", \"{second}\"]"));
    for _ in 0..2 {
        assert_eq!(world.run("web").await.complaint(), text);
        assert_eq!((led(first), led(second)), (false, true));
    }
    // What cannot be read is not forgotten.
    let lists = Fault::on(http::Method::GET, "/v1/floating-ips").always();
    world.sim.faults().add(lists.status(500));
    let run = world.run("web").await;
    assert!(run.complaint().contains("failed to load floating ips"), "{run:?}");
    world.sim.faults().clear();
    let (run, writes) = world.writes_of(world.run("web")).await;
    assert_eq!((run.complaint(), writes.len()), (&*text, 0));
}

#[tokio::test(start_paused = true)]
async fn what_is_changed_by_hand_later_is_written_again() {
    let world = stubborn("delay_s").await;
    world.annotate("web", "health-monitor-delay-s", "7");
    assert!(world.run("web").await.complaint().contains("delay_s"));
    world
        .sim
        .set_behaviour(|behaviour| behaviour.unkept_attributes.clear());
    for monitor in world.sim.health_monitors() {
        world.sim.edit_health_monitor(monitor.uuid, |it| it.delay_s = 9);
    }
    let (run, writes) = world.writes_of(world.run("web")).await;
    run.settled();
    assert_eq!(in_short(&writes), ["PATCH health-monitors"; 2]);
}

#[tokio::test(start_paused = true)]
async fn another_value_is_tried_at_once() {
    let world = stubborn("delay_s").await;
    world.annotate("web", "health-monitor-delay-s", "7");
    assert!(world.run("web").await.complaint().contains("delay_s"));
    world.annotate("web", "health-monitor-delay-s", "8");
    let (run, writes) = world.writes_of(world.run("web")).await;
    assert!(run.complaint().contains("8 was written"));
    assert_eq!(writes.len(), 2);
    assert!(run.waited >= Duration::from_secs(1), "{:?}", run.waited);
    world.annotate("web", "health-monitor-delay-s", "2");
    world.run("web").await.settled();
}

#[tokio::test(start_paused = true)]
async fn several_refusals_are_told_in_the_same_words_whichever_was_tried_last() {
    let world = settled(1).await;
    let listeners = Fault::on(http::Method::PATCH, "/v1/load-balancers/listeners/*");
    world.sim.faults().add(listeners.always().status(400));
    world.annotate("web", "timeout-client-data-ms", "7");
    world.annotate("web", "timeout-member-data-ms", "7");
    let text = world.run("web").await.complaint().to_owned();
    // Held back, tried again, and held back again.
    for seconds in [1, 30, 1] {
        assert_eq!(world.run_after(seconds, "web").await.complaint(), text);
    }
}
