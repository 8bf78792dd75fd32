//! Changes of load balancers that are there.

use bowline_cloud_provider::IpMode;
use bowline_openstack_sim::kit::Fault;
use bowline_openstack_sim::kit::faults::Canned;
use bowline_openstack_sim::{Provisioning, SubnetSpec};
use bowline_plan::Note;
use serde_json::json;

use crate::world::{Outcome, World, in_short, service};

#[tokio::test(start_paused = true)]
async fn another_port_is_served_before_the_old_one_goes() {
    let world = World::with_nodes(2);
    world.run("web").await.settled();
    world.set_ports("web", &[("TCP", 8080, 30080)]);
    let (run, writes) = world.writes_of(world.run("web")).await;
    run.settled();
    assert_eq!(
        in_short(&writes),
        [
            "octavia.listeners.create",
            "octavia.pools.create",
            "octavia.members.replace",
            "octavia.pools.delete",
            "octavia.listeners.delete",
        ]
    );
    world.assert_settled("web").await;
}

#[tokio::test(start_paused = true)]
async fn one_changed_attribute_is_one_write_of_that_attribute() {
    let world = World::with_nodes(1);
    world.run("web").await.settled();
    for (suffix, value, field, expected) in [
        ("connection-limit", "100", "connection_limit", json!(100)),
        ("timeout-client-data", "7000", "timeout_client_data", json!(7_000)),
        ("timeout-tcp-inspect", "5", "timeout_tcp_inspect", json!(5)),
    ] {
        world.annotate("web", suffix, value);
        let (run, writes) = world.writes_of(world.run("web")).await;
        run.settled();
        assert_eq!(in_short(&writes), ["octavia.listeners.update"], "{suffix}");
        assert_eq!(writes[0].body, Some(json!({ "listener": { field: expected } })));
    }
    world.assert_settled("web").await;
}

#[tokio::test(start_paused = true)]
async fn sources_are_compared_as_networks() {
    let world = World::with_nodes(1);
    let set = |ranges: &[&str]| {
        let ranges = ranges.iter().map(ToString::to_string).collect();
        world.edit("web", |service| {
            service.spec.as_mut().unwrap().load_balancer_source_ranges = Some(ranges);
        });
    };
    set(&["192.168.32.1/24"]);
    world.run("web").await.settled();
    assert_eq!(
        world.sim.snapshot().load_balancers[0].listeners[0].allowed_cidrs,
        ["192.168.32.0/24"]
    );
    set(&["192.168.32.0/24", "192.168.32.9/24"]);
    world.assert_settled("web").await;
    set(&["10.0.0.0/8", "192.168.32.0/24"]);
    let (run, writes) = world.writes_of(world.run("web")).await;
    run.settled();
    assert_eq!(
        writes[0].body,
        Some(json!({ "listener": { "allowed_cidrs": ["10.0.0.0/8", "192.168.32.0/24"] } }))
    );
    assert_eq!(writes.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_octavia_without_allowed_cidrs_is_told_of_only_if_sources_are_asked_for() {
    let world = World::with_nodes(1);
    world
        .sim
        .set_behaviour(|behaviour| behaviour.octavia_minor_version = 11);
    let run = world.run("web").await.settled();
    assert!(run.notes.is_empty());
    world.edit("web", |service| {
        service.spec.as_mut().unwrap().load_balancer_source_ranges = Some(vec!["10.0.0.0/8".into()]);
    });
    let (run, writes) = world.writes_of(world.run("web")).await;
    assert_eq!(run.settled().reasons(), ["LoadBalancerSourceRangesIgnored"]);
    assert!(writes.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_pool_of_another_protocol_is_made_beside_the_old_one() {
    let world = World::with_nodes(2);
    world.run("web").await.settled();
    let drained = world.sim.members()[0].part.id;
    world.sim.edit_member(drained, |member| member.weight = 0);
    world.annotate("web", "proxy-protocol", "v2");
    let (run, writes) = world.writes_of(world.run("web")).await;
    let Outcome::Settled(status) = run.settled().outcome else {
        unreachable!()
    };
    assert_eq!(status.ingress[0].ip_mode, Some(IpMode::Proxy));
    assert_eq!(
        in_short(&writes),
        [
            "octavia.pools.create",
            "octavia.members.replace",
            "octavia.listeners.update",
            "octavia.pools.delete"
        ]
    );
    let pool = &world.sim.snapshot().load_balancers[0].listeners[0];
    assert_eq!(pool.protocol, "TCP");
    assert_eq!(pool.pool.as_ref().unwrap().protocol, "PROXYV2");
    let weights: Vec<u16> = world.sim.members().iter().map(|member| member.weight).collect();
    assert_eq!(weights, [0, 1], "a drained member stays so");
    world.assert_settled("web").await;
}

#[tokio::test(start_paused = true)]
async fn a_host_name_of_the_address_is_published_where_the_proxy_protocol_is_on() {
    let mut world = World::with_nodes(1);
    world.configure(|options| options.has_ingress_hostname = true);
    world.annotate("web", "proxy-protocol", "true");
    let run = world.run("web").await.settled();
    let address = world.annotation("web", "load-balancer-address").unwrap();
    assert_eq!(run.published(), [format!("{address}.nip.io")]);
    world.annotate("web", "hostname", "a.example.org");
    assert_eq!(world.run("web").await.settled().published(), ["a.example.org"]);
    assert_eq!(world.annotation("web", "load-balancer-address"), Some(address));
}

#[tokio::test(start_paused = true)]
async fn a_port_that_gets_no_proxy_header_is_told() {
    let world = World::with_nodes(1);
    world.put(service("web", &[("TCP", 80, 30080), ("UDP", 53, 30053)]));
    world.annotate("web", "proxy-protocol", "true");
    let run = world.run("web").await.settled();
    let told = |note: &Note| note.text.contains("has no effect on port 53");
    assert!(run.notes.iter().any(told), "{:?}", run.notes);
    world.put(service("web", &[("TCP", 80, 30080)]));
    world.annotate("web", "proxy-protocol", "true");
    let run = world.run("web").await.settled();
    assert!(!run.notes.iter().any(told), "{:?}", run.notes);
}

/// The listener on the same port is in the way of one with another protocol.
#[tokio::test(start_paused = true)]
async fn a_listener_of_another_protocol_takes_the_place_of_the_old_one() {
    let world = World::with_nodes(1);
    world.run("web").await.settled();
    world.annotate("web", "x-forwarded-for", "true");
    let (run, writes) = world.writes_of(world.run("web")).await;
    run.settled();
    assert_eq!(
        in_short(&writes),
        [
            "octavia.pools.create",
            "octavia.members.replace",
            "octavia.listeners.delete",
            "octavia.listeners.create",
            "octavia.pools.delete",
        ]
    );
    let listener = &world.sim.snapshot().load_balancers[0].listeners[0];
    assert_eq!(listener.protocol, "HTTP");
    assert_eq!(listener.insert_headers["X-Forwarded-For"], "true");
    world.assert_settled("web").await;
    world.annotate("web", "x-forwarded-for", "false");
    world.run("web").await.settled();
    assert_eq!(
        world.sim.snapshot().load_balancers[0].listeners[0].protocol,
        "TCP"
    );
    world.assert_settled("web").await;
}

#[tokio::test(start_paused = true)]
async fn proxy_protocol_and_forwarded_for_exclude_each_other() {
    let world = World::with_nodes(1);
    world.annotate("web", "x-forwarded-for", "true");
    world.annotate("web", "proxy-protocol", "v1");
    let (run, calls) = world.calls_of(world.run("web")).await;
    assert!(run.complaint().contains("cannot be used together"));
    assert!(calls.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_refused_method_is_told_once_and_the_pool_keeps_its_own() {
    let world = World::with_nodes(1);
    world.run("web").await.settled();
    world.annotate("web", "lb-method", "NONSENSE");
    let run = world.run("web").await.settled();
    assert_eq!(run.reasons(), ["LoadBalancerLbMethodUnknown"]);
    assert_eq!(
        world.sim.snapshot().load_balancers[0].listeners[0]
            .pool
            .as_ref()
            .unwrap()
            .algorithm,
        "ROUND_ROBIN"
    );
    // It is not asked for again for a while.
    let (run, writes) = world.writes_of(world.run_again("web")).await;
    World::assert_quiet(&run, &writes);
    world.annotate("web", "lb-method", "LEAST_CONNECTIONS");
    let (run, writes) = world.writes_of(world.run("web")).await;
    run.settled();
    assert_eq!(in_short(&writes), ["octavia.pools.update"]);
}

#[tokio::test(start_paused = true)]
async fn session_affinity_changes_in_place() {
    let world = World::with_nodes(1);
    world.run("web").await.settled();
    for (affinity, persistence) in [("ClientIP", Some("SOURCE_IP")), ("None", None)] {
        world.edit("web", |service| {
            service.spec.as_mut().unwrap().session_affinity = Some(affinity.into());
        });
        let (run, writes) = world.writes_of(world.run("web")).await;
        run.settled();
        assert_eq!(in_short(&writes), ["octavia.pools.update"]);
        let state = world.sim.snapshot();
        let pool = state.load_balancers[0].listeners[0].pool.clone().unwrap();
        assert_eq!(pool.persistence.as_deref(), persistence);
    }
    world.assert_settled("web").await;
}

#[tokio::test(start_paused = true)]
async fn monitors_get_the_names_of_their_new_places_when_all_ports_are_served() {
    let mut world = World::with_nodes(1);
    world.configure(|options| options.monitor.is_wanted = true);
    world.set_ports(
        "web",
        &[("TCP", 80, 30080), ("TCP", 81, 30081), ("TCP", 82, 30082)],
    );
    world.run("web").await.settled();
    world.set_ports(
        "web",
        &[("TCP", 81, 30081), ("TCP", 82, 30082), ("TCP", 83, 30083)],
    );
    let (run, writes) = world.writes_of(world.run("web")).await;
    run.settled();
    let names = ["octavia.healthmonitors.update"; 2];
    let (parts, last) = writes.split_at(writes.len() - names.len());
    assert_eq!(in_short(last), names);
    assert!(!in_short(parts).contains(&names[0]), "{:?}", in_short(parts));
    world.assert_settled("web").await;
}

#[tokio::test(start_paused = true)]
async fn a_monitor_is_made_changed_made_anew_and_removed() {
    let world = World::with_nodes(1);
    world.run("web").await.settled();
    let policy = |local: bool| {
        world.edit("web", |service| {
            let spec = service.spec.as_mut().unwrap();
            spec.external_traffic_policy = Some(if local { "Local" } else { "Cluster" }.into());
            spec.health_check_node_port = local.then_some(31_000);
        });
    };
    let steps: [(&dyn Fn(), &[&str]); 5] = [
        (
            &|| world.annotate("web", "enable-health-monitor", "true"),
            &["octavia.healthmonitors.create"],
        ),
        (
            &|| world.annotate("web", "health-monitor-delay", "9"),
            &["octavia.healthmonitors.update"],
        ),
        (
            &|| policy(true),
            &[
                "octavia.members.replace",
                "octavia.healthmonitors.delete",
                "octavia.healthmonitors.create",
            ],
        ),
        (
            &|| policy(false),
            &[
                "octavia.members.replace",
                "octavia.healthmonitors.delete",
                "octavia.healthmonitors.create",
            ],
        ),
        (
            &|| world.annotate("web", "enable-health-monitor", "false"),
            &["octavia.healthmonitors.delete"],
        ),
    ];
    for (index, (change, expected)) in steps.iter().enumerate() {
        change();
        let (run, writes) = world.writes_of(world.run("web")).await;
        run.settled();
        assert_eq!(in_short(&writes), *expected, "step {index}");
        if index == 2 {
            let state = world.sim.snapshot();
            let pool = state.load_balancers[0].listeners[0].pool.clone().unwrap();
            assert_eq!(pool.members[0].monitor_port, Some(31_000));
            assert_eq!(pool.monitor.unwrap().kind, "HTTP");
        }
        world.assert_settled("web").await;
    }
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_changed_is_told_and_nothing_is_written() {
    let world = World::with_nodes(1);
    world.run("web").await.settled();
    world.annotate("web", "flavor-id", "large");
    world.annotate("web", "subnet-id", "another");
    world.annotate("web", "member-subnet-id", &world.sim.home().subnet.to_string());
    let (run, writes) = world.writes_of(world.run("web")).await;
    let run = run.settled();
    assert_eq!(run.reasons(), ["LoadBalancerChangeIgnored"]);
    assert!(
        run.notes[0].text.contains("flavor-id is large, it has none"),
        "{}",
        run.notes[0].text
    );
    assert!(run.notes[0].text.contains("subnet-id is another"));
    assert!(writes.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_load_balancer_that_somebody_else_changes_is_waited_for() {
    let world = World::with_nodes(1);
    world.run("web").await.settled();
    let id = world.sim.load_balancers()[0].part.id;
    world.sim.set_provisioning(id, Provisioning::PendingUpdate);
    let (run, writes) = world.writes_of(world.run("web")).await;
    let told = format!("load balancer {id} is not ACTIVE, current provisioning status: PENDING_UPDATE; ");
    assert!(run.complaint().starts_with(&told), "{run:#?}");
    assert!(writes.is_empty());
    world.sim.set_provisioning(id, Provisioning::Active);
    world.assert_settled("web").await;
}

/// The list was read while nobody changed anything; then somebody else was faster.
#[tokio::test(start_paused = true)]
async fn a_refusal_because_of_another_change_is_no_error() {
    let world = World::with_nodes(1);
    world.run("web").await.settled();
    let fault = Fault::operation("octavia.listeners.update").answer(Canned::json(
        409,
        r#"{"faultcode": "Client", "faultstring": "Load Balancer x is immutable and cannot be updated.", "debuginfo": null}"#,
    ));
    world.sim.faults().add(fault);
    world.annotate("web", "connection-limit", "5");
    let (run, writes) = world.writes_of(world.run("web")).await;
    run.settled();
    assert_eq!(
        in_short(&writes),
        ["octavia.listeners.update", "octavia.listeners.update"]
    );
    world.assert_settled("web").await;
}

#[tokio::test(start_paused = true)]
async fn ovn_asks_for_nothing_that_it_cannot_do() {
    let mut world = World::with_nodes(1);
    world.configure(|options| {
        options.provider = "ovn".into();
        options.method = "SOURCE_IP_PORT".into();
        options.monitor.is_wanted = true;
    });
    world.edit("web", |service| {
        let spec = service.spec.as_mut().unwrap();
        spec.external_traffic_policy = Some("Local".into());
        spec.health_check_node_port = Some(31_000);
    });
    world.run("web").await.settled();
    let pool = world.sim.snapshot().load_balancers[0].listeners[0]
        .pool
        .clone()
        .unwrap();
    assert_eq!(pool.monitor.unwrap().kind, "TCP");
    assert_eq!(pool.members[0].monitor_port, None);
    world.assert_settled("web").await;
}

/// Somebody added it by hand and tagged it, so that no controller takes it for its own.
#[tokio::test(start_paused = true)]
async fn a_listener_of_somebody_else_is_left_alone() {
    let world = World::with_nodes(1);
    world.set_ports("web", &[("TCP", 80, 30080), ("TCP", 81, 30081)]);
    world.run("web").await.settled();
    let by_hand = world
        .sim
        .listeners()
        .into_iter()
        .find(|listener| listener.port == 81)
        .unwrap();
    world.sim.edit_listener(by_hand.part.id, |listener| {
        listener.part.meta.tags = vec!["mine".into()]
    });
    world.set_ports("web", &[("TCP", 80, 30080)]);
    world.assert_settled("web").await;
    assert_eq!(world.sim.listeners().len(), 2);
    world.set_ports("web", &[("TCP", 80, 30080), ("TCP", 81, 30081)]);
    let run = world.run("web").await;
    let complaint = run.complaint();
    assert!(
        complaint.starts_with("the listener port 81 already exists; listener "),
        "{complaint}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_tag_that_somebody_put_on_a_listener_is_kept_beside_our_own() {
    let world = World::with_nodes(1);
    world.run("web").await.settled();
    let listener = world.sim.listeners()[0].part.id;
    // Untagged, as before Octavia had tags: it is the owner's.
    world
        .sim
        .edit_listener(listener, |listener| listener.part.meta.tags.clear());
    world.run("web").await.settled();
    let tags = &world.sim.snapshot().load_balancers[0].listeners[0].tags;
    assert_eq!(tags, &[crate::world::lb_name("web")]);
    world.assert_settled("web").await;
}

/// The driver for OVN says so with 501.
#[tokio::test(start_paused = true)]
async fn a_method_that_the_driver_does_not_know_is_refused_too() {
    let world = World::with_nodes(1);
    world.run("web").await.settled();
    world
        .sim
        .faults()
        .add(Fault::operation("octavia.pools.update").always().status(501));
    world.annotate("web", "lb-method", "LEAST_CONNECTIONS");
    let run = world.run("web").await.settled();
    assert_eq!(run.reasons(), ["LoadBalancerLbMethodUnknown"]);
}

/// A person deleted the listener, and Octavia kept the pool.
#[tokio::test(start_paused = true)]
async fn a_pool_that_lost_its_listener_serves_the_next_one() {
    let world = World::with_nodes(1);
    world.run("web").await.settled();
    world.sim.delete_listener(world.sim.listeners()[0].part.id);
    let lost = world.sim.pools()[0].part.id;
    let (run, writes) = world.writes_of(world.run("web")).await;
    run.settled();
    assert_eq!(in_short(&writes), ["octavia.listeners.create"]);
    assert_eq!(world.sim.pools().len(), 1);
    assert_eq!(world.sim.pools()[0].part.id, lost);
    world.assert_settled("web").await;
    // Somebody else's stays.
    let other = format!("pool_0_{}", crate::world::lb_name("other"));
    world.sim.delete_listener(world.sim.listeners()[0].part.id);
    world
        .sim
        .edit_pool(world.sim.pools()[0].part.id, |pool| pool.part.name = other);
    world.run("web").await.settled();
    assert_eq!(world.sim.pools().len(), 2);
    let (run, writes) = world.writes_of(world.run("web")).await;
    World::assert_quiet(&run, &writes);
}

/// As where a listener made way for one of another protocol, and the process ended between the two.
#[tokio::test(start_paused = true)]
async fn a_port_without_its_listener_comes_before_all_else() {
    let mut world = World::with_nodes(1);
    world.set_ports("web", &[("TCP", 80, 30080), ("TCP", 81, 30081)]);
    world.run("web").await.settled();
    let listeners = world.sim.listeners();
    let second = listeners.iter().find(|it| it.port == 81).unwrap();
    world.sim.delete_listener(second.part.id);
    world.add_node("node-2");
    world.annotate("web", "connection-limit", "7");
    world.restart();
    let (run, writes) = world.writes_of(world.run("web")).await;
    run.settled();
    assert_eq!(
        in_short(&writes)[0],
        "octavia.listeners.create",
        "{:?}",
        in_short(&writes)
    );
    world.assert_settled("web").await;
}

/// The address of a load balancer stays where it is, and so do its members.
#[tokio::test(start_paused = true)]
async fn another_subnet_of_the_service_moves_no_member() {
    let mut world = World::with_nodes(2);
    let home = world.sim.home();
    world.annotate("web", "subnet-id", &home.subnet.to_string());
    world.run("web").await.settled();
    let wide = SubnetSpec::new("wide", home.network, "10.1.0.0/16".parse().unwrap());
    let wide = world.sim.add_subnet(wide);
    world.annotate("web", "subnet-id", &wide.to_string());
    let (run, writes) = world.writes_of(world.run("web")).await;
    World::assert_quiet(&run, &writes);
    assert_eq!(run.reasons(), ["LoadBalancerChangeIgnored"]);
    world.add_node("node-3");
    world.run("web").await.settled();
    let members = world.sim.members();
    assert_eq!(members.len(), 3);
    assert!(
        members.iter().all(|member| member.subnet == Some(home.subnet)),
        "{members:?}"
    );
    world.assert_settled("web").await;
}

#[tokio::test(start_paused = true)]
async fn where_the_quota_is_met_the_old_listener_makes_room_for_the_new_one() {
    for of_pools in [false, true] {
        let world = World::with_nodes(2);
        world.run("web").await.settled();
        world.sim.set_behaviour(|behaviour| {
            let quota = &mut behaviour.quota;
            let most = if of_pools {
                &mut quota.pools
            } else {
                &mut quota.listeners
            };
            *most = Some(1);
        });
        world.set_ports("web", &[("TCP", 8443, 30080)]);
        let run = world.run("web").await.settled();
        assert_eq!(run.reasons(), ["LoadBalancerQuotaMet"]);
        // One text until the sync ends, which is one event.
        assert!(
            run.notes.iter().all(|note| *note == run.notes[0]),
            "{:?}",
            run.notes
        );
        let state = world.sim.snapshot();
        assert_eq!(state.load_balancers[0].listeners.len(), 1);
        assert_eq!(state.load_balancers[0].listeners[0].port, 8443);
        world.assert_settled("web").await;
        // Nothing is given up for a port that there is no room for.
        world.set_ports("web", &[("TCP", 8443, 30080), ("TCP", 80, 30081)]);
        let run = world.run("web").await;
        assert!(run.complaint().contains("Quota has been met"), "{run:#?}");
        assert!(run.notes.is_empty());
        assert!(
            world.sim.snapshot().load_balancers[0]
                .listeners
                .iter()
                .any(|it| it.port == 8443)
        );
    }
}
