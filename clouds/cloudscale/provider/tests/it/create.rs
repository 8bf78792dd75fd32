use std::sync::Arc;
use std::time::Duration;

use bowline_cloud_provider::Node;
use bowline_cloudscale_sim::{InterfaceSpec, ServerSpec};

use crate::world::{Outcome, World, in_short, service};

#[tokio::test(start_paused = true)]
async fn a_service_of_two_ports_gets_a_whole_balancer_and_a_second_sync_writes_nothing() {
    let world = World::with_nodes(3);
    let run = world.run("web").await.settled();
    let balancers = world.sim.load_balancers();
    assert_eq!(balancers.len(), 1);
    assert_eq!(
        (balancers[0].name.as_str(), balancers[0].zone.as_str()),
        ("k8s-service-uid-web", "rma1")
    );
    let state = &world.sim.snapshot().load_balancers[0];
    let pools: Vec<&str> = state.pools.iter().map(|pool| pool.name.as_str()).collect();
    assert_eq!(pools, ["tcp/admin", "tcp/web"]);
    for (pool, port, listener) in [
        (&state.pools[1], 31200, "tcp/8080"),
        (&state.pools[0], 31201, "tcp/9000"),
    ] {
        assert_eq!(pool.members.len(), 3);
        assert!(
            pool.members
                .iter()
                .all(|member| member.name == format!("{}:{port}", member.address))
        );
        assert_eq!(pool.listeners[0].name, listener);
        assert_eq!(pool.monitors[0].kind, "tcp");
        assert_eq!(
            (pool.monitors[0].delay_and_timeout_s, pool.monitors[0].thresholds),
            ([2, 1], [2, 3])
        );
    }
    let vips: Vec<String> = balancers[0]
        .vips
        .iter()
        .map(|vip| vip.address.to_string())
        .collect();
    assert_eq!(run.published(), vips);
    assert!(vips[0].contains('.') && vips[1].contains(':'));
    assert_eq!(
        world.annotation("web", "uuid"),
        Some(balancers[0].uuid.to_string())
    );
    assert_eq!(world.annotation("web", "config-version").as_deref(), Some("1"));
    assert_eq!(world.annotation("web", "zone").as_deref(), Some("rma1"));
    assert_eq!(world.sim.check_invariants(), Vec::<String>::new());

    let (again, writes) = world.writes_of(world.run("web")).await;
    assert_eq!(again.settled().published(), vips);
    assert!(writes.is_empty(), "{:?}", in_short(&writes));
}

#[tokio::test(start_paused = true)]
async fn two_nodes_that_name_one_server_are_one_member() {
    let mut world = World::with_nodes(1);
    let twin = Node {
        provider_id: world.nodes[0].provider_id.clone(),
        ..Node::named("twin")
    };
    world.nodes.push(Arc::new(twin));
    let run = world.run("web").await.settled();
    assert_eq!(run.reasons(), ["NodesShareAddress"]);
    assert!(run.notes[0].text.contains("n1 and twin have 10.20.0."), "{run:?}");
    let balancers = world.sim.snapshot().load_balancers;
    assert!(balancers[0].pools.iter().all(|pool| pool.members.len() == 1));
}

#[tokio::test(start_paused = true)]
async fn waves_come_in_the_order_that_hurts_least() {
    let world = World::with_nodes(2);
    let (run, writes) = world.writes_of(world.run("web")).await;
    let kinds: Vec<usize> = run.settled().waves.iter().map(Vec::len).collect();
    assert_eq!(kinds, [1, 2, 4, 2, 2, 1]); // balancer, pools, members, listeners, monitors, annotations
    let expected = [
        vec!["POST load-balancers"],
        vec!["POST pools"; 2],
        vec!["POST members"; 4],
        vec!["POST listeners"; 2],
        vec!["POST health-monitors"; 2],
    ];
    assert_eq!(in_short(&writes), expected.concat());
}

#[tokio::test(start_paused = true)]
async fn what_is_created_bears_the_marks_and_nothing_else_is_marked() {
    let mut world = World::with_nodes(1);
    world.cluster_name = "prod".into();
    let mut api_server = service("kubernetes", &[("https", "TCP", 443, 0)]);
    api_server.metadata.uid = Some("uid-cluster".into());
    world.put(api_server);
    let (_, writes) = world.writes_of(world.run("web")).await;
    for write in &writes {
        let tags = &write.body.as_ref().unwrap()["tags"];
        assert_eq!(
            (
                tags["k8s-service-uid"].as_str(),
                tags["k8s-cluster-name"].as_str()
            ),
            (Some("uid-web"), Some("prod"))
        );
        // What proves the origin of a balancer need not stand on all its parts.
        let is_balancer = write.path.ends_with("load-balancers");
        let origin = (
            tags["k8s-service-name"].as_str(),
            tags["k8s-cluster-uid"].as_str(),
        );
        let expected = (Some("default/web"), Some("uid-cluster"));
        assert_eq!(origin, if is_balancer { expected } else { (None, None) });
    }
}

#[tokio::test(start_paused = true)]
async fn a_lone_udp_port_keeps_its_own_protocols() {
    let mut world = World::new();
    world.add_node("n1");
    world.put(service("vpn", &[("", "UDP", 1194, 30194)]));
    world.annotate("vpn", "pool-protocol", "proxyv2");
    let run = world.run("vpn").await.settled();
    let pool = &world.sim.snapshot().load_balancers[0].pools[0];
    assert_eq!(
        (
            pool.name.as_str(),
            pool.protocol.as_str(),
            pool.listeners[0].name.as_str()
        ),
        ("udp", "udp", "udp/1194")
    );
    assert!(run.reasons().contains(&"UDPHealthMonitor"));
}

#[tokio::test(start_paused = true)]
async fn udp_and_tcp_share_a_port() {
    let mut world = World::new();
    world.add_node("n1");
    world.put(service(
        "dns",
        &[("dns-udp", "UDP", 53, 30053), ("dns-tcp", "TCP", 53, 30053)],
    ));
    let run = world.run("dns").await.settled();
    let pools = &world.sim.snapshot().load_balancers[0].pools;
    let listeners: Vec<&str> = pools.iter().map(|pool| pool.listeners[0].name.as_str()).collect();
    assert_eq!(listeners, ["tcp/53", "udp/53"]);
    assert!(run.notes.is_empty(), "{:?}", run.notes);
}

#[tokio::test(start_paused = true)]
async fn a_udp_port_is_checked_over_tcp_where_its_node_port_is_no_tcp_port() {
    let mut world = World::new();
    world.add_node("n1");
    world.put(service(
        "dns",
        &[("dns-udp", "UDP", 53, 30053), ("dns-tcp", "TCP", 53, 30054)],
    ));
    let run = world.run("dns").await.settled();
    let text = &run.notes[0].text;
    let told = "UDP ports whose node port is no TCP port too are checked over TCP and may count as down: 53;";
    assert!(text.starts_with(told), "{text}");
}

#[tokio::test(start_paused = true)]
async fn only_addresses_in_allowed_subnets_become_members() {
    let mut world = World::new();
    let s2 = world.sim.add_subnet("s2", "10.30.0.0/24".parse().unwrap());
    world.add_server_node(ServerSpec {
        interfaces: vec![
            InterfaceSpec::Public { v6: true },
            InterfaceSpec::Private,
            InterfaceSpec::Subnet(s2),
        ],
        ..ServerSpec::new("n1")
    });
    world.put(service("web", &[("", "TCP", 80, 30080)]));
    world.run("web").await.settled();
    assert_eq!(world.sim.members().len(), 2);
    world.annotate("web", "listener-allowed-subnets", &format!("[\"{s2}\"]"));
    world.run("web").await.settled();
    let members = world.sim.members();
    assert_eq!((members.len(), members[0].subnet), (1, s2));
    world.annotate(
        "web",
        "listener-allowed-subnets",
        r#"["00000000-0000-4000-8000-000000000000"]"#,
    );
    let run = world.run("web").await.settled();
    assert!(world.sim.members().is_empty() && run.reasons().contains(&"NoPoolMembers"));
}

#[tokio::test(start_paused = true)]
async fn an_ipv6_member_is_named_with_brackets() {
    let mut world = World::new();
    let subnet = world.sim.add_subnet("six", "fd12::/64".parse().unwrap());
    let address = InterfaceSpec::Addresses(vec![(subnet, "fd12::9".parse().unwrap())]);
    world.add_server_node(ServerSpec {
        interfaces: vec![address],
        ..ServerSpec::new("n1")
    });
    world.put(service("web", &[("", "TCP", 80, 30999)]));
    world.run("web").await.settled();
    assert_eq!(world.sim.members()[0].name, "[fd12::9]:30999");
}

#[tokio::test(start_paused = true)]
async fn nodes_in_several_zones_need_an_annotated_zone() {
    let mut world = World::with_nodes(1);
    world.add_server_node(ServerSpec {
        zone: Some("lpg1".into()),
        ..ServerSpec::new("far")
    });
    let run = world.run("web").await;
    assert!(
        run.complaint()
            .starts_with("no loadbalancer zone set and nodes in multiple zones"),
        "{run:?}"
    );
    assert!(world.sim.load_balancers().is_empty());
    world.annotate("web", "zone", "lpg1");
    world.run("web").await.settled();
    assert_eq!(world.sim.load_balancers()[0].zone, "lpg1");
}

#[tokio::test(start_paused = true)]
async fn without_a_zone_nothing_is_created_and_a_node_heals_it() {
    let mut world = World::new();
    world.put(service("web", &[("", "TCP", 80, 30080)]));
    let (run, writes) = world.writes_of(world.run("web")).await;
    assert!(run.complaint().contains("no loadbalancer zone set") && writes.is_empty());
    assert!(
        run.notes[0].text.contains("no node of the cluster"),
        "{:?}",
        run.notes
    );
    world.add_node("n1");
    world.run("web").await.settled();
    // All nodes gone again: the balancer's own zone is good enough.
    world.nodes.clear();
    world.remove_annotation("web", "zone");
    world.run("web").await.settled();
    assert!(world.sim.members().is_empty());
}

#[tokio::test(start_paused = true)]
async fn all_problems_are_told_at_once_and_before_any_call() {
    let world = World::with_nodes(1);
    world.put(service(
        "web",
        &[
            ("", "SCTP", 132, 30132),
            ("a", "TCP", 80, 0),
            ("b", "TCP", 81, 30081),
        ],
    ));
    for (suffix, value) in [
        ("timeout-client-data-ms", "fast"),
        ("listener-allowed-cidrs", "192.0.2.0/24"),
        ("vip-addresses", "{"),
        ("ip-mode", "vip"),
        ("node-selector", "a==b==c"),
        ("floating-ips", "[\"x\"]"),
        ("uuid", "42"),
        ("config-version", "7"),
        ("health-monitor-http", "null"),
        ("pool-algorithm", "best"),
    ] {
        world.annotate("web", suffix, value);
    }
    let run = world.run("web").await;
    for fragment in [
        "service web: cannot use SCTP for 132, only TCP and UDP are supported",
        "service web: unknown port: 0; port ",
        " has no node port, which members listen on; set spec.allocateLoadBalancerNodePorts to true",
        "cannot convert fast to int (k8s.cloudscale.ch/loadbalancer-timeout-client-data-ms)",
        "not a valid JSON string list: 192.0.2.0/24 (k8s.cloudscale.ch/loadbalancer-listener-allowed-cidrs)",
        "failed to parse k8s.cloudscale.ch/loadbalancer-vip-addresses: ",
        "unsupported IP mode: 'vip', must be 'Proxy' or 'VIP'",
        "unable to parse selector: ",
        "could not parse k8s.cloudscale.ch/loadbalancer-floating-ips",
        "not a UUID: 42",
        "unsupported config version '7'",
        "invalid json in k8s.cloudscale.ch/loadbalancer-health-monitor-http: invalid type: null, expected a map",
        "unsupported value 'best'",
    ] {
        assert!(
            run.complaint().contains(fragment),
            "{fragment} is not in {}",
            run.complaint()
        );
    }
    assert!(world.sim.journal().is_empty());
    // What stands in a list is not taken for the fields of an object.
    world.annotate(
        "web",
        "vip-addresses",
        r#"[["00000000-0000-4000-8000-000000000000"]]"#,
    );
    world.annotate("web", "health-monitor-http", "[]");
    let run = world.run("web").await;
    for suffix in ["vip-addresses", "health-monitor-http"] {
        let fragment =
            format!("k8s.cloudscale.ch/loadbalancer-{suffix}: invalid type: sequence, expected a map");
        assert!(run.complaint().contains(&fragment), "{}", run.complaint());
    }
}

#[tokio::test(start_paused = true)]
async fn a_private_address_is_asked_for_and_published() {
    let world = World::with_nodes(1);
    let subnet = world.sim.private_subnet();
    world.annotate(
        "web",
        "vip-addresses",
        &format!(r#"[{{"Subnet":"{subnet}","address":"10.20.0.77"}}]"#),
    );
    let (run, writes) = world.writes_of(world.run("web")).await;
    assert_eq!(run.settled().published(), ["10.20.0.77"]);
    let vips = &writes[0].body.as_ref().unwrap()["vip_addresses"];
    assert_eq!(
        vips.to_string(),
        format!(r#"[{{"address":"10.20.0.77","subnet":"{subnet}"}}]"#)
    );
}

#[tokio::test(start_paused = true)]
async fn nothing_is_created_below_a_balancer_that_is_changing() {
    let world = World::with_nodes(1);
    world
        .sim
        .set_behaviour(|behaviour| behaviour.lb_create_time = Duration::from_secs(200));
    let run = world.run("web").await.settled();
    let writes = world.sim.journal().writes();
    assert!(writes[1].at - writes[0].at >= Duration::from_secs(200));
    assert!(run.waited < Duration::from_secs(206), "{:?}", run.waited);
    assert!(run.reasons().contains(&"LoadBalancerStillChanging"));
    let polls = world
        .sim
        .journal()
        .count(http::Method::GET, "/v1/load-balancers/*");
    assert!((40..50).contains(&polls), "{polls}");
}

#[tokio::test(start_paused = true)]
async fn the_local_policy_checks_the_health_port_of_the_nodes() {
    let world = World::with_nodes(2);
    world.edit("web", |service| {
        let spec = service.spec.as_mut().unwrap();
        spec.external_traffic_policy = Some("Local".into());
        spec.health_check_node_port = Some(32500);
    });
    world.run("web").await.settled();
    assert!(
        world
            .sim
            .members()
            .iter()
            .all(|member| member.monitor_port == Some(32500))
    );
    let http = |world: &World| {
        world.sim.snapshot().load_balancers[0].pools[0].monitors[0]
            .http
            .clone()
            .unwrap()
    };
    assert_eq!(http(&world), "GET /livez HTTP/1.0 host - expects 200");

    world.annotate(
        "web",
        "health-monitor-http",
        r#"{"url_path":"/ready","host":"x.test"}"#,
    );
    let run = world.run("web").await.settled();
    assert_eq!(http(&world), "GET /ready HTTP/1.1 host x.test expects 200");
    assert!(run.reasons().contains(&"CustomHealthMonitor"));
}

#[tokio::test(start_paused = true)]
async fn gaps_of_an_https_check_are_filled() {
    let world = World::with_nodes(1);
    world.annotate("web", "health-monitor-type", "https");
    world.annotate("web", "health-monitor-http", r#"{"Expected_Codes":["200-204"]}"#);
    world.run("web").await.settled();
    let monitor = &world.sim.snapshot().load_balancers[0].pools[0].monitors[0];
    assert_eq!(
        (monitor.kind.as_str(), monitor.http.as_deref()),
        ("https", Some("GET / HTTP/1.1 host - expects 200-204"))
    );
}

#[tokio::test(start_paused = true)]
async fn the_status_follows_the_api_servers_version_and_the_forced_name() {
    let mut world = World::with_nodes(1);
    world.annotate("web", "ip-mode", "VIP");
    let modes = |run: &crate::world::Run| {
        let Outcome::Settled(status) = &run.outcome else {
            panic!("{run:?}")
        };
        status
            .ingress
            .iter()
            .map(|entry| entry.ip_mode.map(|mode| mode.as_str()))
            .collect::<Vec<_>>()
    };
    assert_eq!(modes(&world.run("web").await), [Some("VIP"), Some("VIP")]);
    world.minor = 28;
    assert_eq!(modes(&world.run("web").await), [None, None]);
    world.minor = 31;
    world.annotate("web", "force-hostname", "lb.example.net");
    world.annotate("web", "ip-mode", "nonsense");
    let run = world.run("web").await.settled();
    assert_eq!(
        (run.published(), modes(&run)),
        (vec!["lb.example.net".to_owned()], vec![None])
    );
}

#[tokio::test(start_paused = true)]
async fn a_host_name_that_no_status_takes_holds_up_nothing_else() {
    let mut world = World::with_nodes(1);
    let names = ["https://lb.example.net", "LB.example.net", "192.0.2.7"];
    for (known, name) in names.into_iter().enumerate() {
        world.annotate("web", "force-hostname", name);
        let run = world.run("web").await;
        let complaint =
            format!("loadbalancer-force-hostname is `{name}`, which the API server takes in no status");
        assert!(run.complaint().contains(&complaint), "{run:#?}");
        world.add_node(&format!("late-{known}"));
        world.run("web").await;
        let nodes = known + 2;
        assert_eq!(world.sim.members().len(), nodes * world.sim.pools().len());
    }
}
