//! Annotations that cannot be read: what is served stays as it is, and its members follow the Nodes.

use bowline_cloudscale_sim::kit::Fault;
use bowline_cloudscale_sim::kit::faults::Canned;
use bowline_cloudscale_sim::kit::journal::Entry;
use bowline_cloudscale_sim::{FloatingSpec, Tags, Target};

use crate::change::settled;
use crate::world::{Run, World, in_short};

/// Mistakes that have no part in who is a member, and what is told of each.
const MISTAKES: [(&str, &str, &str); 25] = [
    ("uuid", "42", "not a UUID: 42"),
    ("config-version", "7", "unsupported config version '7'"),
    ("name", " ", "no load balancer with empty name found"),
    ("floating-ips", "x", "could not parse "),
    ("floating-ips", r#"["x"]"#, "could not parse "),
    ("vip-addresses", "{", "failed to parse "),
    ("vip-addresses", r#"[{"address":"x"}]"#, "failed to parse "),
    ("pool-algorithm", "best", "unsupported value 'best'"),
    ("pool-protocol", "proxy-v2", "unsupported value 'proxy-v2'"),
    ("listener-protocol", "udp", "unsupported value 'udp'"),
    ("listener-allowed-cidrs", "x", "not a valid JSON string list: x"),
    ("listener-allowed-cidrs", r#"["10.0.0.0/33"]"#, "is not a network"),
    ("timeout-client-data-ms", "1s", "cannot convert 1s to int"),
    ("timeout-member-data-ms", "-1", "cannot convert -1 to int"),
    ("health-monitor-type", "udp", "unsupported value 'udp'"),
    ("health-monitor-http", "null", "invalid json in "),
    ("health-monitor-delay-s", "abc", "cannot convert abc to int"),
    ("health-monitor-timeout-s", "1.5", "cannot convert 1.5 to int"),
    ("health-monitor-up-threshold", "two", "cannot convert two to int"),
    (
        "health-monitor-down-threshold",
        "3 4",
        "cannot convert 3 4 to int",
    ),
    ("health-monitor-delay-s", "0", "cannot convert 0 to int"),
    ("health-monitor-timeout-s", "0", "cannot convert 0 to int"),
    ("health-monitor-up-threshold", "0", "cannot convert 0 to int"),
    ("health-monitor-down-threshold", "0", "cannot convert 0 to int"),
    ("ip-mode", "vip", "unsupported IP mode: 'vip'"),
];

/// Mistakes that leave open who is to be a member.
const MISTAKES_ABOUT_MEMBERS: [(&str, &str, &str); 2] = [
    ("node-selector", "a==b==c", "unable to parse selector: "),
    ("listener-allowed-subnets", "x", "not a valid JSON string list: x"),
];

async fn refused(world: &World, told: &str) -> Vec<Entry> {
    let (run, writes): (Run, _) = world.writes_of(world.run("web")).await;
    assert!(run.complaint().contains(told), "{run:#?}");
    assert_eq!(run.published_although_refused, None, "{told}");
    writes
}

fn set_policy(world: &World, policy: &str, health_port: Option<i32>) {
    world.edit("web", |service| {
        let spec = service.spec.as_mut().unwrap();
        (spec.external_traffic_policy, spec.health_check_node_port) = (Some(policy.into()), health_port);
    });
}

#[tokio::test(start_paused = true)]
async fn where_nothing_is_served_yet_a_mistake_costs_no_call() {
    for (suffix, value, told) in MISTAKES.into_iter().chain(MISTAKES_ABOUT_MEMBERS) {
        for names_one in [false, true] {
            let world = World::with_nodes(1);
            if names_one {
                let id = world.sim.add_load_balancer("there", Tags::new());
                world.annotate("web", "uuid", &id.to_string());
            }
            world.annotate("web", suffix, value);
            let (run, reads, writes) = world.calls_of(world.run("web")).await;
            assert!(run.complaint().contains(told), "{run:#?}");
            assert_eq!((reads, writes), (0, 0), "{suffix}");
            assert!(!run.complaint().contains("follow the Nodes"), "{run:#?}");
        }
    }
}

fn balancer_of(world: &World) -> uuid::Uuid {
    world.sim.load_balancers()[0].uuid
}

/// Of each pool the monitor is replaced and then its members, as without the mistake.
#[tokio::test(start_paused = true)]
async fn members_are_checked_on_no_port_that_the_nodes_have_no_more_whatever_is_wrong() {
    for (kind, suffix, value, told) in [
        ("tcp", "flavor", "lb-large", "flavor for "),
        ("tcp", "health-monitor-delay-s", "2s", "cannot convert 2s to int"),
        ("http", "health-monitor-timeout-s", "x", "cannot convert x to int"),
        ("http", "flavor", "lb-large", "flavor for "),
        ("tcp", "health-monitor-http", "null", "invalid json in "),
    ] {
        let mut world = settled(2).await;
        world.speaks_plainly();
        set_policy(&world, "Local", Some(32500));
        world.annotate("web", "health-monitor-up-threshold", "7");
        world.run("web").await.settled();
        world.annotate("web", "health-monitor-type", kind);
        world.annotate("web", suffix, value);
        set_policy(&world, "Cluster", None);
        world.add_node("n3");
        let writes = refused(&world, told).await;
        let monitor = [
            "POST health-monitors",
            "DELETE health-monitors",
            "POST health-monitors",
        ];
        let pool = [monitor.as_slice(), &["POST members", "DELETE members"].repeat(3)].concat();
        let expected = [["POST members"; 2].as_slice(), &pool.repeat(2)].concat();
        assert_eq!(in_short(&writes), expected, "{kind} {suffix}");
        let mut members = world.sim.members().into_iter();
        assert!(members.all(|it| it.monitor_port == Some(it.protocol_port)));
        for monitor in world.sim.health_monitors() {
            let found = format!("{:?}", monitor.kind).to_lowercase();
            assert_eq!((&*found, monitor.up_threshold), (kind, 7), "{suffix}");
        }
        assert_eq!(in_short(&refused(&world, told).await), [""; 0]);
        world.remove_annotation("web", suffix);
        let (run, writes) = world.writes_of(world.run("web")).await;
        run.settled();
        assert_eq!(in_short(&writes), [""; 0], "{suffix}");
    }
    // The check is the same, and only the port is another one.
    let world = settled(1).await;
    world.speaks_plainly();
    set_policy(&world, "Local", Some(32500));
    world.annotate("web", "health-monitor-type", "http");
    world.annotate("web", "health-monitor-http", r#"{"url_path": "/up"}"#);
    world.run("web").await.settled();
    world.annotate("web", "flavor", "lb-large");
    set_policy(&world, "Cluster", None);
    let writes = refused(&world, "flavor for ").await;
    let of_pools = ["POST members", "DELETE members"].repeat(2);
    assert_eq!(in_short(&writes), of_pools);
    // A monitor that is refused leaves all as it was.
    for is_readable in [true, false] {
        let world = settled(2).await;
        set_policy(&world, "Local", Some(32500));
        world.run("web").await.settled();
        let there = world.sim.snapshot();
        match is_readable {
            true => {
                world.annotate("web", "flavor", "lb-large");
                let fault = Fault::on(http::Method::POST, "/v1/load-balancers/health-monitors");
                world.sim.faults().add(fault.always().status(400));
            }
            false => world.annotate("web", "health-monitor-type", "udp"),
        }
        set_policy(&world, "Cluster", None);
        let told = match is_readable {
            true => "error during replace-monitor(",
            false => "tcp/web, tcp/admin are checked on the former health check node port",
        };
        refused(&world, told).await;
        assert_eq!(world.sim.snapshot(), there, "{is_readable}");
    }
}

/// What the API refuses of one listener or monitor is told at the end, and all else is changed.
#[tokio::test(start_paused = true)]
async fn an_attribute_that_is_refused_holds_up_no_other_one() {
    for status in [400, 403, 409] {
        let mut world = settled(1).await;
        let server = world.sim.servers()[0].uuid;
        let address = world.sim.add_floating_ip(FloatingSpec {
            target: Some(Target::Server(server)),
            ..FloatingSpec::default()
        });
        let (listener, monitor) = (world.sim.listeners()[0].uuid, world.sim.health_monitors()[0].uuid);
        for path in [
            format!("/v1/load-balancers/listeners/{listener}"),
            format!("/v1/load-balancers/health-monitors/{monitor}"),
        ] {
            let fault = Fault::on(http::Method::PATCH, path.as_str()).always();
            let body = r#"{"detail":"Not like this."}"#;
            world.sim.faults().add(fault.answer(Canned::json(status, body)));
        }
        world.annotate("web", "listener-allowed-cidrs", r#"["10.0.0.0/8"]"#);
        world.annotate("web", "timeout-client-data-ms", "7");
        world.annotate("web", "health-monitor-up-threshold", "7");
        world.annotate("web", "floating-ips", &format!("[\"{address}\"]"));
        world.add_node("n2");
        for _ in 0..2 {
            let run = world.run("web").await;
            let told = ["update-cidrs(", "timeout-client-data-ms(", "up-threshold("];
            assert!(told.iter().all(|it| run.complaint().contains(it)), "{run:?}");
            assert!(run.published_although_refused.is_some());
        }
        let listeners = world.sim.listeners().into_iter();
        let timeouts: Vec<u32> = listeners.map(|it| it.timeout_client_data_ms).collect();
        let monitors = world.sim.health_monitors().into_iter();
        let thresholds: Vec<u32> = monitors.map(|it| it.up_threshold).collect();
        assert_eq!((timeouts, thresholds), (vec![50_000, 7], vec![2, 7]), "{status}");
        let balancer = Target::LoadBalancer(balancer_of(&world));
        assert_eq!(world.sim.floating_ips()[0].target, Some(balancer));
        world.sim.faults().clear();
        world.run("web").await.settled();
    }
}

/// With and without a second mistake.
#[tokio::test(start_paused = true)]
async fn members_follow_although_the_uuid_names_somebody_elses_balancer() {
    for delay in [None, Some("abc")] {
        let mut world = settled(2).await;
        let own = balancer_of(&world);
        world.put(crate::world::service("owner", &[("", "TCP", 80, 30080)]));
        let tags = Tags::from([("k8s-service-uid".to_owned(), "uid-owner".to_owned())]);
        let foreign = world.sim.add_load_balancer("edge", tags);
        world.annotate("web", "uuid", &foreign.to_string());
        if let Some(delay) = delay {
            world.annotate("web", "health-monitor-delay-s", delay);
        }
        world.remove_node("n1");
        world.add_node("n3");
        let told = delay.map_or(
            "belongs to another service or cluster",
            |_| "cannot convert abc to int",
        );
        let writes = refused(&world, told).await;
        assert_eq!(
            in_short(&writes),
            [["POST members"; 2], ["DELETE members"; 2]].concat()
        );
        assert_eq!(in_short(&refused(&world, told).await), [""; 0]);
        let pools = world.sim.pools();
        assert!(pools.iter().all(|pool| pool.load_balancer == own));
        world.annotate("web", "uuid", &own.to_string());
        world.remove_annotation("web", "health-monitor-delay-s");
        world.run("web").await.settled();
        assert_eq!(in_short(&world.writes_of(world.run("web")).await.1), [""; 0]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_balancer_that_is_changing_is_waited_for() {
    let mut world = settled(1).await;
    world.annotate("web", "health-monitor-delay-s", "abc");
    world.add_node("n2");
    world
        .sim
        .set_load_balancer_status(balancer_of(&world), Some("changing"));
    let run = world.run_steps("web", 0).await;
    assert!(run.reasons().is_empty(), "{run:#?}");
    let writes = world.sim.journal().writes().len();
    world.sim.set_load_balancer_status(balancer_of(&world), None);
    refused(&world, "cannot convert abc to int").await;
    assert_eq!(world.sim.journal().writes().len(), writes + 2);
}
