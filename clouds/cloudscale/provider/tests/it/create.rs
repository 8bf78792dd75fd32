use crate::world::{World, service};

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
