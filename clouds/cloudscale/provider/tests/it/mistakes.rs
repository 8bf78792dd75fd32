//! Annotations that cannot be read: what is served stays as it is, and its members follow the Nodes.

use bowline_cloudscale_sim::kit::Fault;
use bowline_cloudscale_sim::kit::faults::Canned;
use bowline_cloudscale_sim::kit::journal::Entry;
use bowline_cloudscale_sim::{FloatingSpec, Tags, Target};

use crate::change::{set_ports, settled};
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

/// The members of the whole project, as `name checked on port`.
fn members(world: &World) -> Vec<String> {
    let members = world.sim.members().into_iter();
    let mut members: Vec<String> = members
        .map(|it| format!("{} checked on {:?}", it.name, it.monitor_port))
        .collect();
    members.sort();
    members
}

#[tokio::test(start_paused = true)]
async fn what_is_served_follows_the_nodes_whatever_cannot_be_read() {
    for (suffix, value, told) in MISTAKES {
        let mut world = settled(2).await;
        let mut served = world.sim.snapshot();
        // Of what can be read, nothing is done either.
        world.annotate("web", "timeout-member-data-ms", "777");
        world.annotate("web", "pool-protocol", "proxy");
        world.annotate("web", "name", "other");
        let before = world.annotation("web", suffix);
        world.annotate("web", suffix, value);
        let ports = [
            ("web", "TCP", 8080, 31200),
            ("admin", "TCP", 9000, 31201),
            ("more", "TCP", 9001, 31202),
        ];
        set_ports(&world, &ports);
        world.remove_node("n1");
        world.add_node("n3");
        let writes = refused(&world, told).await;
        let expected = [["POST members"; 2], ["DELETE members"; 2]].concat();
        assert_eq!(in_short(&writes), expected, "{suffix}: {value}");
        let mut now = world.sim.snapshot();
        for state in [&mut served, &mut now] {
            for pool in &mut state.load_balancers[0].pools {
                assert_eq!(pool.members.len(), 2);
                pool.members.clear();
            }
        }
        assert_eq!(served, now, "{suffix}: {value}");
        assert_eq!(in_short(&refused(&world, told).await), [""; 0]);

        match before {
            Some(value) => world.annotate("web", suffix, &value),
            None => world.remove_annotation("web", suffix),
        }
        world.run("web").await.settled();
        assert_eq!((world.sim.pools().len(), world.sim.members().len()), (3, 6));
        assert_eq!(world.sim.check_invariants(), Vec::<String>::new());
        assert_eq!(in_short(&world.writes_of(world.run("web")).await.1), [""; 0]);
    }
}

#[tokio::test(start_paused = true)]
async fn where_it_cannot_be_read_who_is_a_member_members_stay() {
    for (suffix, value, told) in MISTAKES_ABOUT_MEMBERS {
        let mut world = settled(2).await;
        world.annotate("web", suffix, value);
        world.remove_node("n1");
        world.add_node("n3");
        let mark = world.sim.journal().mark();
        assert_eq!(in_short(&refused(&world, told).await), [""; 0]);
        assert!(world.sim.journal().since(mark).is_empty());
        let run = world.run("web").await;
        let frozen = "; until the node selector and the allowed subnets can be read, the members of the load balancer do not follow the Nodes";
        assert!(run.complaint().ends_with(frozen), "{run:#?}");
        world.remove_annotation("web", suffix);
        let (run, writes) = world.writes_of(world.run("web")).await;
        run.settled();
        assert_eq!(writes.len(), 4);
    }
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

#[tokio::test(start_paused = true)]
async fn members_follow_node_ports_and_nothing_follows_ports_that_come_and_go() {
    let world = settled(2).await;
    world.annotate("web", "health-monitor-delay-s", "abc");
    set_ports(
        &world,
        &[
            ("web", "TCP", 8081, 32200),
            ("bad", "SCTP", 132, 30132),
            ("new", "TCP", 443, 30443),
        ],
    );
    let writes = refused(&world, "cannot convert abc to int").await;
    assert_eq!(
        in_short(&writes),
        [["POST members"; 2], ["DELETE members"; 2]].concat()
    );
    let pools = world.sim.pools();
    let ports = |name: &str| {
        let pool = pools.iter().find(|pool| pool.name == name).unwrap();
        let members = world.sim.members_of(pool.uuid).into_iter();
        members.map(|it| it.protocol_port).collect::<Vec<_>>()
    };
    assert_eq!(pools.len(), 2);
    assert_eq!(
        (ports("tcp/web"), ports("tcp/admin")),
        (vec![32200; 2], vec![31201; 2])
    );
}

/// Nobody changes the monitors meanwhile, so members are checked where these monitors get their answer.
#[tokio::test(start_paused = true)]
async fn members_are_checked_as_the_monitors_that_are_there_check() {
    let mut world = World::with_nodes(1);
    set_ports(&world, &[("web", "TCP", 8080, 31200)]);
    set_policy(&world, "Local", Some(32500));
    world.run("web").await.settled();
    world.annotate("web", "health-monitor-delay-s", "abc");
    world.add_node("n2");
    let writes = refused(&world, "cannot convert abc to int").await;
    assert_eq!(in_short(&writes), ["POST members"]);
    let served = members(&world);
    assert!(served.iter().all(|it| it.ends_with("checked on Some(32500)")));
    // Kubernetes gives its health check node port to somebody else.
    set_policy(&world, "Cluster", None);
    world.remove_annotation("web", "health-monitor-delay-s");
    world.run("web").await.settled();
    let served = members(&world);
    assert!(served.iter().all(|it| it.ends_with("checked on Some(31200)")));
    // Its monitor would take a Node without an endpoint for a good one.
    world.annotate("web", "health-monitor-delay-s", "abc");
    set_policy(&world, "Local", Some(32500));
    let writes = refused(&world, "cannot convert abc to int").await;
    assert_eq!((in_short(&writes), members(&world)), (vec![], served));
    world.add_node("n3");
    assert_eq!(refused(&world, "cannot convert abc to int").await.len(), 1);
    assert!(members(&world).iter().all(|it| it.ends_with("Some(31200)")));
}

#[tokio::test(start_paused = true)]
async fn a_selector_that_can_be_read_chooses_members_and_its_emptiness_is_told() {
    let mut world = settled(2).await;
    world.label_node("n2", &[("tier", "edge")]);
    world.annotate("web", "health-monitor-delay-s", "abc");
    world.annotate("web", "node-selector", "tier=edge");
    let writes = refused(&world, "cannot convert abc to int").await;
    assert_eq!(in_short(&writes), ["DELETE members"; 2]);
    world.annotate("web", "node-selector", "tier=core");
    let run = world.run("web").await;
    assert!(run.reasons().contains(&"NoValidNodes"), "{run:#?}");
    assert!(world.sim.members().is_empty());
}

#[tokio::test(start_paused = true)]
async fn nothing_is_written_to_a_balancer_that_is_not_known_to_be_the_services() {
    let change = |world: &mut World| {
        world.annotate("web", "health-monitor-delay-s", "abc");
        world.remove_node("n1");
        world.add_node("n3");
    };
    // Deleted by hand.
    let mut world = settled(2).await;
    change(&mut world);
    world.sim.delete_load_balancer(world.sim.load_balancers()[0].uuid);
    let writes = refused(&world, "cannot convert abc to int").await;
    assert_eq!(in_short(&writes), [""; 0]);
    // Another Service's.
    let mut world = settled(2).await;
    change(&mut world);
    let balancer = world.sim.load_balancers()[0].uuid;
    let tags = Tags::from([("k8s-cluster-name".to_owned(), "other".to_owned())]);
    world.sim.tag_load_balancer(balancer, tags);
    world.cluster_name = "this".to_owned();
    let writes = refused(&world, "cannot convert abc to int").await;
    assert_eq!(in_short(&writes), [""; 0]);
    // Named by nothing but an annotation that anybody can write.
    let mut world = settled(2).await;
    change(&mut world);
    world.sim.tag_load_balancer(balancer_of(&world), Tags::new());
    world
        .sim
        .edit_load_balancer(balancer_of(&world), |it| it.name = "edge".to_owned());
    world.annotate("web", "name", "edge");
    world.annotate("web", "uuid", "42");
    let writes = refused(&world, "cannot convert abc to int").await;
    assert_eq!(in_short(&writes), [""; 0]);
    // A project without any of the servers.
    let mut world = settled(2).await;
    change(&mut world);
    for server in world.sim.servers() {
        world.sim.remove_server(server.uuid);
    }
    let writes = refused(&world, "cannot convert abc to int").await;
    assert_eq!(in_short(&writes), [""; 0]);
    let run = world.run("web").await;
    assert_eq!(run.reasons(), ["NodesLeftOut"], "{run:#?}");
}

fn balancer_of(world: &World) -> uuid::Uuid {
    world.sim.load_balancers()[0].uuid
}

#[tokio::test(start_paused = true)]
async fn a_balancer_that_bears_the_services_uid_is_known_without_its_annotation() {
    for is_marked in [true, false] {
        let mut world = settled(2).await;
        if !is_marked {
            // As another manager makes it: the name holds the UID.
            world.sim.tag_load_balancer(balancer_of(&world), Tags::new());
        }
        world.annotate("web", "health-monitor-delay-s", "abc");
        world.remove_annotation("web", "uuid");
        world.remove_node("n1");
        let writes = refused(&world, "cannot convert abc to int").await;
        assert_eq!(in_short(&writes), ["DELETE members"; 2]);
    }
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

/// Numbers that can be read, and that the API does not want.
#[tokio::test(start_paused = true)]
async fn what_the_api_refuses_is_told_with_its_annotation() {
    for suffix in ["timeout-s", "delay-s", "up-threshold", "down-threshold"] {
        for is_served in [false, true] {
            let world = match is_served {
                true => settled(1).await,
                false => World::with_nodes(1),
            };
            world.speaks_plainly();
            let suffix = format!("health-monitor-{suffix}");
            world.annotate("web", &suffix, "100000");
            let run = world.run("web").await;
            let key = format!("the value is that of k8s.cloudscale.ch/loadbalancer-{suffix}");
            assert!(run.complaint().contains(&key), "{run:#?}");
        }
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

#[tokio::test(start_paused = true)]
async fn a_mistake_does_not_stop_a_deletion() {
    let world = settled(1).await;
    for (suffix, value, _) in MISTAKES_ABOUT_MEMBERS {
        world.annotate("web", suffix, value);
    }
    world.annotate("web", "health-monitor-delay-s", "abc");
    world.delete("web");
    world.run("web").await.settled();
    assert!(world.sim.load_balancers().is_empty());
}
