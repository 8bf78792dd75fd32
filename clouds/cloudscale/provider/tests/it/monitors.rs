//! How members are checked: what the API would refuse, and what becomes of a monitor whose successor it refuses. With listeners it
//! is the same.

use bowline_cloudscale_sim::RefusalKeys;
use bowline_cloudscale_sim::kit::Fault;
use bowline_cloudscale_sim::kit::faults::Canned;
use uuid::Uuid;

use crate::change::settled;
use crate::world::{World, in_short};

fn monitor_ids(world: &World) -> Vec<Uuid> {
    let monitors = world.sim.health_monitors().into_iter();
    monitors.map(|it| it.uuid).collect()
}

const KEYS: [RefusalKeys; 4] = [
    RefusalKeys::Attribute,
    RefusalKeys::Field,
    RefusalKeys::Detail,
    RefusalKeys::NonField,
];

/// Those that name what is wrong.
const NAMED: [RefusalKeys; 2] = [RefusalKeys::Attribute, RefusalKeys::Field];

/// What may be said of a second monitor: with and without words for what is there.
const SECOND: [&str; 4] = [
    "The pool already has a health monitor.",
    "This pool can have one health monitor.",
    "Der Pool hat einen Monitor.",
    "Invalid request.",
];

/// Details of a check that the API refuses, and what is told of each.
const BAD_DETAILS: [(&str, &str); 9] = [
    (r#"{"version":"2"}"#, "unsupported `version` '2'"),
    (
        r#"{"version":"1.0","host":"x.test"}"#,
        "`host` cannot be used with `version` 1.0",
    ),
    (r#"{"method":"FETCH"}"#, "unsupported `method` 'FETCH'"),
    (
        r#"{"url_path":"livez"}"#,
        "`url_path` must begin with `/`, and is 'livez'",
    ),
    (r#"{"expected_codes":["2xx"]}"#, "`expected_codes` must be"),
    (r#"{"expected_codes":[""]}"#, "`expected_codes` must be"),
    (
        r#"{"expected_codes":["200-204","301"]}"#,
        "`expected_codes` must be",
    ),
    (r#"{"expected_codes":["204-200"]}"#, "`expected_codes` must be"),
    (r#"{"expected_codes":["20"]}"#, "`expected_codes` must be"),
];

#[tokio::test(start_paused = true)]
async fn details_of_a_check_that_the_api_refuses_are_told_before_anything_is_written() {
    for (details, told) in BAD_DETAILS {
        for kind in ["http", "https", "local"] {
            for is_served in [false, true] {
                let world = match is_served {
                    true => settled(1).await,
                    false => World::with_nodes(1),
                };
                match kind {
                    "local" => world.edit("web", |service| {
                        let spec = service.spec.as_mut().unwrap();
                        spec.external_traffic_policy = Some("Local".into());
                    }),
                    kind => world.annotate("web", "health-monitor-type", kind),
                }
                world.annotate("web", "health-monitor-http", details);
                let (run, writes) = world.writes_of(world.run("web")).await;
                assert!(run.complaint().contains(told), "{run:#?}");
                assert!(
                    run.complaint()
                        .contains("k8s.cloudscale.ch/loadbalancer-health-monitor-http"),
                    "{run:#?}"
                );
                assert!(writes.is_empty(), "{details} {kind}");
            }
        }
        // A check that speaks no HTTP has no use for them.
        let world = World::with_nodes(1);
        world.annotate("web", "health-monitor-http", details);
        world.run("web").await.settled();
    }
}

#[tokio::test(start_paused = true)]
async fn details_of_a_check_that_the_api_takes_are_taken() {
    for details in [
        r#"{"version":"1.0"}"#,
        r#"{"version":"1.0","host":" "}"#,
        r#"{"version":"1.1","host":"x.test","method":"head"}"#,
        r#"{"url_path":"/a b","expected_codes":["200-204"]}"#,
        r#"{"expected_codes":["200"," 204"]}"#,
        r#"{"method":"","url_path":null,"expected_codes":[]}"#,
    ] {
        let world = World::with_nodes(1);
        world.annotate("web", "health-monitor-type", "http");
        world.annotate("web", "health-monitor-http", details);
        world.run("web").await.settled();
        let (run, writes) = world.writes_of(world.run("web")).await;
        run.settled();
        assert!(writes.is_empty(), "{details}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_monitor_stays_whose_successor_is_refused_for_its_values() {
    for keys in KEYS {
        let world = settled(1).await;
        let before = monitor_ids(&world);
        world.sim.set_behaviour(|behaviour| {
            behaviour.monitor_refusals = keys;
            behaviour.min_udp_connect_delay_s = Some(3);
        });
        world.annotate("web", "health-monitor-type", "udp-connect");
        for _ in 0..2 {
            let (run, writes) = world.writes_of(world.run("web")).await;
            assert!(
                run.complaint().contains("must be at least 3"),
                "{keys:?}: {run:?}"
            );
            // Where no attribute is named, it is asked once more what the refusal is about.
            let tries = if NAMED.contains(&keys) { 1 } else { 2 };
            assert_eq!(in_short(&writes), vec!["POST health-monitors"; tries], "{keys:?}");
            assert_eq!(monitor_ids(&world), before, "{keys:?}");
        }
        world.annotate("web", "health-monitor-delay-s", "3");
        world.run("web").await.settled();
        assert_eq!(world.sim.check_invariants(), Vec::<String>::new());
    }
}

#[tokio::test(start_paused = true)]
async fn a_monitor_makes_room_for_another_one_whatever_the_keys_of_the_refusal() {
    for (keys, text) in KEYS.into_iter().flat_map(|keys| SECOND.map(|text| (keys, text))) {
        let world = settled(1).await;
        world.speaks_plainly();
        world.sim.set_behaviour(|behaviour| {
            behaviour.monitor_refusals = keys;
            behaviour.second_monitor_text = text.to_owned();
        });
        world.annotate("web", "health-monitor-type", "ping");
        let (run, writes) = world.writes_of(world.run("web")).await;
        run.settled();
        let monitors = world.sim.health_monitors().into_iter();
        let kinds: Vec<String> = monitors.map(|it| format!("{:?}", it.kind)).collect();
        assert_eq!(kinds, ["Ping"; 2], "{keys:?} {text}");
        let is_clear = NAMED.contains(&keys) || text == SECOND[0];
        let tries = vec!["POST health-monitors"; if is_clear { 1 } else { 3 }];
        let halves = ["DELETE health-monitors", "POST health-monitors"];
        let pool = [tries.as_slice(), &halves].concat();
        assert_eq!(in_short(&writes), pool.repeat(2), "{keys:?} {text}");
    }
}

/// The values matter and the pool, but not what the pool has; or nothing is taken at all; or it is not known any more.
#[tokio::test(start_paused = true)]
async fn a_monitor_is_not_deleted_because_of_a_guess() {
    let path = "/v1/load-balancers/health-monitors";
    let type_ = r#"{"detail":"The type is not for this pool."}"#;
    let none = r#"{"detail":"No monitors are made at present."}"#;
    for is_only in [true, false] {
        for (faults, writes) in [
            (vec![(1, 1, 400, type_)], if is_only { 3 } else { 4 }),
            (vec![(1, u64::MAX, 400, none)], 2),
            (vec![(1, 1, 400, none), (2, 1, 503, none)], 2),
            (vec![(1, 1, 400, none), (3, 1, 503, none)], 3),
        ] {
            let case = format!("{is_only} {faults:?}");
            let world = settled(1).await;
            let before = monitor_ids(&world);
            world.sim.set_behaviour(|behaviour| {
                behaviour.one_monitor_per_pool = is_only;
                behaviour.monitor_refusals = RefusalKeys::Detail;
                behaviour.second_monitor_text = SECOND[1].to_owned();
            });
            for (nth, times, status, body) in faults {
                let fault = Fault::on(http::Method::POST, path).nth(nth).times(times);
                world.sim.faults().add(fault.answer(Canned::json(status, body)));
            }
            world.annotate("web", "health-monitor-type", "ping");
            let (run, made) = world.writes_of(world.run("web")).await;
            assert!(
                run.complaint().starts_with("error during replace-monitor("),
                "{case}: {run:?}"
            );
            assert_eq!(made.len(), writes, "{case}: {:?}", in_short(&made));
            assert_eq!(monitor_ids(&world), before, "{case}");
        }
    }
}

/// The API may refuse a timeout above the delay.
#[tokio::test(start_paused = true)]
async fn between_two_writes_no_timeout_is_above_the_delay() {
    let world = settled(1).await;
    for (delay, timeout, first) in [(10, 9, "delay_s"), (2, 1, "timeout_s"), (9, 2, "delay_s")] {
        world.annotate("web", "health-monitor-delay-s", &delay.to_string());
        world.annotate("web", "health-monitor-timeout-s", &timeout.to_string());
        let (run, writes) = world.writes_of(world.run("web")).await;
        run.settled();
        assert_eq!(in_short(&writes), ["PATCH health-monitors"; 4]);
        let body = writes[0].body.as_ref().unwrap();
        assert!(body[first].is_number(), "{body}");
        assert!(world.writes_of(world.run("web")).await.1.is_empty());
    }
    // What the first one may not be, the second one does not make worse.
    let refuse = Fault::on(http::Method::PATCH, "/v1/load-balancers/health-monitors/*");
    world.sim.faults().add(refuse.always().status(400));
    world.annotate("web", "health-monitor-delay-s", "1");
    world.annotate("web", "health-monitor-timeout-s", "1");
    let (run, writes) = world.writes_of(world.run("web")).await;
    assert!(run.complaint().contains("update-monitor-timeout-s("), "{run:?}");
    assert_eq!(in_short(&writes), ["PATCH health-monitors"; 2]);
}
