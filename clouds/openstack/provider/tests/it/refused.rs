//! Changes of parts that Octavia refuses, or takes and does not keep: all that does not depend on them goes on.

use bowline_openstack_sim::kit::faults::Canned;
use bowline_openstack_sim::kit::{Entry, Fault};
use http::Method;
use serde_json::{Value, json};

use crate::persistence::stick;
use crate::world::{World, in_short, lb_name};

/// A Service of two ports with all parts.
async fn served() -> World {
    let mut world = World::with_nodes(2);
    world.configure(|options| {
        options.monitor.is_wanted = true;
        options.manages_security_groups = true;
    });
    world.set_ports("web", &[("TCP", 80, 30080), ("TCP", 81, 30081)]);
    world.run("web").await.settled();
    world
}

/// Ports and Nodes change beside what is refused: one node port moves, one port comes, a Node comes and another one goes.
fn change(world: &mut World) {
    world.set_ports(
        "web",
        &[("TCP", 80, 30080), ("TCP", 81, 31081), ("TCP", 82, 30082)],
    );
    world.remove_node("node-1");
    world.add_node("node-3");
}

/// Asserts that all of it is in place.
fn assert_changed(world: &World, what: &str) {
    assert_eq!(
        served_at(world),
        [(80, 30080), (81, 31081), (82, 30082)].map(|(port, node_port)| (
            port,
            vec![("node-2".to_owned(), node_port), ("node-3".to_owned(), node_port)]
        )),
        "{what}"
    );
    let groups = world.sim.security_groups();
    let group = groups
        .iter()
        .find(|group| group.name.starts_with("lb-sg-"))
        .unwrap();
    let ports = world.sim.ports();
    let with_group = ports.iter().filter(|port| port.groups.contains(&group.id));
    assert_eq!(with_group.count(), 2, "{what}");
}

/// The members, with their node ports, of each listener's port.
fn served_at(world: &World) -> Vec<(u16, Vec<(String, u16)>)> {
    let listeners = &world.sim.snapshot().load_balancers[0].listeners;
    let mut served: Vec<_> = listeners
        .iter()
        .map(|listener| {
            let members = listener.pool.iter().flat_map(|pool| &pool.members);
            let members = members.map(|member| (member.name.clone(), member.port));
            (listener.port, members.collect())
        })
        .collect();
    served.sort();
    served
}

/// The path of the first part of a kind, and the part as it is now.
fn first(world: &World, kind: &str) -> (String, Value) {
    let name = lb_name("web");
    let (id, body) = match kind {
        "listener" => {
            let it = &world.sim.listeners()[0];
            let body = json!({
                "name": it.part.name, "protocol": "TCP", "protocol_port": 80, "connection_limit": -1, "timeout_client_data": 50000,
                "timeout_member_connect": 5000, "timeout_member_data": 50000, "timeout_tcp_inspect": 0, "allowed_cidrs": ["0.0.0.0/0"],
                "tags": [name], "default_pool_id": it.default_pool,
            });
            (it.part.id, body)
        }
        "pool" => {
            let it = &world.sim.pools()[0];
            let body = json!({
                "name": it.part.name, "protocol": "TCP", "lb_algorithm": "ROUND_ROBIN", "session_persistence": null,
                "listeners": [{ "id": world.sim.listeners()[0].part.id }],
                "healthmonitor_id": world.sim.health_monitors()[0].part.id,
            });
            (it.part.id, body)
        }
        _ => {
            let it = &world.sim.health_monitors()[0];
            let body = json!({
                "name": it.part.name, "type": "TCP", "delay": 5, "timeout": 3, "max_retries": 1, "max_retries_down": 3,
            });
            (it.part.id, body)
        }
    };
    let mut body = json!({ kind: body });
    body[kind]["id"] = json!(id);
    (format!("/load-balancer/v2.0/lbaas/{kind}s/{id}"), body)
}

#[tokio::test(start_paused = true)]
async fn what_is_not_kept_is_told_and_holds_up_nothing_else() {
    for (kind, ask) in [
        ("listener", |world: &World| {
            world.annotate("web", "connection-limit", "7")
        }),
        ("pool", |world: &World| {
            world.annotate("web", "lb-method", "LEAST_CONNECTIONS")
        }),
        ("pool", |world: &World| stick(world, "ClientIP")),
        ("healthmonitor", |world: &World| {
            world.annotate("web", "health-monitor-delay", "20")
        }),
    ] as [(&str, fn(&World)); 4]
    {
        let mut world = served().await;
        let (path, body) = first(&world, kind);
        let answer = Canned::json(200, &body.to_string());
        let fault = Fault::on(Method::PUT, path.as_str()).always().answer(answer);
        let fault = world.sim.faults().add(fault);
        ask(&world);
        change(&mut world);
        let (run, writes) = world.writes_of(world.run("web")).await;
        assert!(
            run.complaint().contains("is not as Bowline wrote it"),
            "{kind}: {run:#?}"
        );
        assert!(run.published_although_refused.is_some(), "{kind}: {run:#?}");
        let to_it = |entry: &&Entry| entry.method == Method::PUT && entry.path == path;
        assert_eq!(writes.iter().filter(to_it).count(), 1, "{kind}: {run:#?}");
        assert_changed(&world, kind);
        let (run, writes) = world.writes_of(world.run("web")).await;
        assert!(
            run.complaint().contains("is not as Bowline wrote it"),
            "{kind}: {run:#?}"
        );
        assert_eq!(writes.len(), 1, "{kind}: {:?}", in_short(&writes));
        world.sim.faults().remove(fault);
        world.run("web").await.settled();
        world.assert_settled("web").await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_refused_change_holds_up_nothing_else() {
    for (status, said) in [
        (400, "Validation failure: no such CIDR"),
        (403, "Policy does not allow this request to be performed."),
        (501, "Provider 'f5' does not support a requested option"),
        (500, "Provider 'f5' reports error: no such thing"),
    ] {
        let mut world = served().await;
        let (path, _) = first(&world, "listener");
        let body = json!({ "faultcode": "Client", "faultstring": said, "debuginfo": null });
        let answer = Canned::json(status, &body.to_string());
        let fault = Fault::on(Method::PUT, path.as_str()).always().answer(answer);
        let fault = world.sim.faults().add(fault);
        world.annotate("web", "connection-limit", "7");
        change(&mut world);
        let run = world.run("web").await;
        assert!(run.complaint().contains(said), "{run:#?}");
        assert!(run.published_although_refused.is_some(), "{run:#?}");
        assert_changed(&world, said);
        let limits: Vec<i64> = world
            .sim
            .listeners()
            .iter()
            .map(|it| it.settings.connection_limit)
            .collect();
        assert_eq!(limits, [-1, 7, 7]);
        world.sim.faults().remove(fault);
        world.run("web").await.settled();
        world.assert_settled("web").await;
    }
}

/// What was to take its place is not there.
#[tokio::test(start_paused = true)]
async fn no_port_goes_while_another_one_cannot_be_made() {
    let mut world = served().await;
    let body = json!({ "faultcode": "Client", "faultstring": "Validation failure: no such port", "debuginfo": null });
    let fault = Fault::operation("octavia.listeners.create").always();
    let fault = fault.answer(Canned::json(400, &body.to_string()));
    let fault = world.sim.faults().add(fault);
    world.set_ports("web", &[("TCP", 80, 31080), ("TCP", 82, 30082)]);
    world.remove_node("node-1");
    let run = world.run("web").await;
    assert!(run.complaint().contains("no such port"), "{run:#?}");
    let at = |node_port| vec![("node-2".to_owned(), node_port)];
    let served = served_at(&world);
    assert_eq!(served[0], (80, at(31080)));
    assert_eq!(served[1].0, 81, "{served:?}");
    world.sim.faults().remove(fault);
    world.run("web").await.settled();
    assert_eq!(served_at(&world), [(80, at(31080)), (82, at(30082))]);
    world.assert_settled("web").await;
}

#[tokio::test(start_paused = true)]
async fn no_address_is_told_where_nothing_can_be_made() {
    for is_serial in [false, true] {
        let mut world = World::with_nodes(1);
        world.configure(|options| options.is_serial = is_serial);
        let body = json!({ "faultcode": "Client", "faultstring": "no such port", "debuginfo": null });
        for operation in ["octavia.listeners.create", "octavia.loadbalancers.create"] {
            if is_serial == operation.contains("listeners") {
                let fault = Fault::operation(operation).always();
                let answer = Canned::json(400, &body.to_string());
                world.sim.faults().add(fault.answer(answer));
            }
        }
        let run = world.run("web").await;
        assert!(run.complaint().contains("no such port"), "{run:#?}");
        assert!(run.published_although_refused.is_none());
        assert!(world.sim.floating_ips().is_empty());
    }
}

/// The Nodes that are members.
fn members(world: &World) -> Vec<String> {
    let names = world.sim.members().into_iter().map(|it| it.part.name);
    // Where they are made one by one, their address is part of the name.
    let nodes = names.map(|name| match name.split('_').nth(1) {
        Some(node) => node.to_owned(),
        None => name,
    });
    let mut nodes: Vec<String> = nodes.collect();
    nodes.sort();
    nodes
}

/// A list of members is refused as a whole where one of them is.
#[tokio::test(start_paused = true)]
async fn who_left_goes_and_makes_room_where_the_quota_for_members_is_met() {
    for is_serial in [false, true] {
        for (come, names) in [
            (1, vec!["node-2", "node-3", "node-4"]),
            (2, vec!["node-2", "node-3"]),
        ] {
            let mut world = World::with_nodes(3);
            world.configure(|options| options.is_serial = is_serial);
            world.run("web").await.settled();
            world
                .sim
                .set_behaviour(|behaviour| behaviour.quota.members = Some(3));
            world.remove_node("node-1");
            for index in 0..come {
                world.add_node(&format!("node-{}", 4 + index));
            }
            let run = world.run("web").await;
            match come {
                1 => drop(run.settled()),
                _ => assert!(run.complaint().contains("Quota has been met"), "{run:#?}"),
            }
            match is_serial && come == 2 {
                true => assert_eq!(members(&world), ["node-2", "node-3", "node-4"]),
                false => assert_eq!(members(&world), names, "{is_serial}"),
            }
            world
                .sim
                .set_behaviour(|behaviour| behaviour.quota.members = None);
            world.run("web").await.settled();
            assert_eq!(world.sim.members().len(), world.nodes.len());
            world.assert_settled("web").await;
        }
    }
}

/// Nobody would be left. A list of as many members needs no room: Octavia counts how many more there are.
#[tokio::test(start_paused = true)]
async fn the_last_members_stay_until_others_serve() {
    for is_serial in [false, true] {
        let mut world = World::with_nodes(1);
        world.configure(|options| options.is_serial = is_serial);
        world.run("web").await.settled();
        world
            .sim
            .set_behaviour(|behaviour| behaviour.quota.members = Some(1));
        world.remove_node("node-1");
        world.add_node("node-2");
        let run = world.run("web").await;
        if is_serial {
            assert!(run.complaint().contains("Quota has been met"), "{run:#?}");
            assert_eq!(members(&world), ["node-1"]);
            continue;
        }
        run.settled();
        assert_eq!(members(&world), ["node-2"]);
        world.add_node("node-3");
        let run = world.run("web").await;
        assert!(run.complaint().contains("Quota has been met"), "{run:#?}");
        assert_eq!(members(&world), ["node-2"]);
    }
}

fn refuse(world: &World, operation: &str, status: u16) {
    let said = r#"{"faultcode": "Client", "faultstring": "no such thing", "debuginfo": null}"#;
    let fault = Fault::operation(operation).always();
    world.sim.faults().add(fault.answer(Canned::json(status, said)));
}

/// Within the same hour: what was refused is worth no second try yet. After that, and if something else is asked for, it is.
#[tokio::test(start_paused = true)]
async fn what_was_refused_is_not_asked_for_at_each_try() {
    for operation in [
        "octavia.loadbalancers.create",
        "neutron.floatingips.create",
        "neutron.security-groups.create",
        "octavia.listeners.update",
    ] {
        let mut world = World::with_nodes(1);
        world.configure(|options| options.manages_security_groups = true);
        if operation.contains("listeners") {
            world.run("web").await.settled();
            world.annotate("web", "connection-limit", "7");
        }
        refuse(&world, operation, 400);
        let run = world.run("web").await;
        assert!(run.complaint().contains("no such thing"), "{run:#?}");
        let (again, writes) = world.writes_of(world.run_again("web")).await;
        assert_eq!(again.complaint(), run.complaint());
        assert_eq!(in_short(&writes), [""; 0], "{operation}");
        world.sim.faults().clear();
        world.annotate("web", "connection-limit", "8");
        world.run_again("web").await.settled();
        world.assert_settled("web").await;
    }
}

/// Nothing says that it would fail again.
#[tokio::test(start_paused = true)]
async fn what_failed_otherwise_is_tried_again_at_once() {
    for operation in ["neutron.security-groups.create", "octavia.listeners.update"] {
        let mut world = World::with_nodes(1);
        world.configure(|options| options.manages_security_groups = true);
        if operation.contains("listeners") {
            world.run("web").await.settled();
            world.annotate("web", "connection-limit", "7");
        }
        refuse(&world, operation, 500);
        let run = world.run("web").await;
        assert!(run.complaint().contains("no such thing"), "{run:#?}");
        world.sim.faults().clear();
        world.run_again("web").await.settled();
        world.assert_settled("web").await;
    }
}

/// They may bear the traffic of what is there.
#[tokio::test(start_paused = true)]
async fn a_rule_that_is_refused_holds_up_no_other_rule_and_closes_nothing() {
    let mut world = served().await;
    let said = r#"{"NeutronError": {"type": "HTTPBadRequest", "message": "no such rule", "detail": ""}}"#;
    let fault = Fault::operation("neutron.security-group-rules.create");
    world.sim.faults().add(fault.answer(Canned::json(400, said)));
    world.set_ports("web", &[("TCP", 80, 31080), ("TCP", 81, 31081)]);
    let run = world.run("web").await;
    assert!(run.complaint().contains("no such rule"), "{run:#?}");
    assert!(run.published_although_refused.is_some(), "{run:#?}");
    let groups = world.sim.security_groups();
    let group = groups
        .iter()
        .find(|group| group.name.starts_with("lb-sg-"))
        .unwrap();
    let rules = world.sim.rules_of(group.id);
    let mut ports: Vec<u16> = rules.iter().filter_map(|rule| rule.content.port_min).collect();
    ports.sort_unstable();
    assert_eq!(ports, [30080, 30081, 31081]);
    world.add_node("node-3");
    world.run("web").await.settled();
    world.assert_settled("web").await;
}

/// The protocols of listener and pool, and how many members, of each port.
fn protocols(world: &World) -> Vec<(u16, String, String, usize)> {
    let snapshot = world.sim.snapshot();
    let mut all: Vec<_> = snapshot.load_balancers[0]
        .listeners
        .iter()
        .map(|it| {
            let pool = it.pool.as_ref().unwrap();
            (
                it.port,
                it.protocol.clone(),
                pool.protocol.clone(),
                pool.members.len(),
            )
        })
        .collect();
    all.sort();
    all
}

fn both(listener: &str, pool: &str, members: usize) -> Vec<(u16, String, String, usize)> {
    let of = |port| (port, listener.to_owned(), pool.to_owned(), members);
    [80, 81].map(of).to_vec()
}

/// A port has one listener: the old one goes first. What is refused in its place costs no other port.
#[tokio::test(start_paused = true)]
async fn a_listener_that_is_refused_in_the_place_of_another_one_brings_that_back_and_costs_no_other_port() {
    for (status, said) in [
        (
            501,
            "Provider 'amphora' does not support a requested option: HTTP",
        ),
        (403, "Quota has been met for resources: Listener"),
    ] {
        let mut world = served().await;
        let before = world.sim.listeners();
        let body = json!({ "faultcode": "Client", "faultstring": said, "debuginfo": null });
        let fault = Fault::operation("octavia.listeners.create");
        world
            .sim
            .faults()
            .add(fault.answer(Canned::json(status, &body.to_string())));
        world.annotate("web", "x-forwarded-for", "true");
        let (run, writes) = world.writes_of(world.run("web")).await;
        assert!(run.complaint().contains(said), "{run:#?}");
        assert!(run.published_although_refused.is_some(), "{run:#?}");
        let gone: Vec<&Entry> = writes
            .iter()
            .filter(|entry| entry.operation == "octavia.listeners.delete")
            .collect();
        assert_eq!(gone.len(), 1, "{:?}", in_short(&writes));
        assert!(gone[0].path.ends_with(&before[0].part.id.to_string()));
        assert_eq!(protocols(&world), both("TCP", "TCP", 2));
        assert_eq!(world.sim.pools().len(), 2);
        // Nodes are followed, and nothing goes again for the same soon.
        world.add_node("node-3");
        let (run, writes) = world.writes_of(world.run("web")).await;
        assert!(run.complaint().contains(said), "{run:#?}");
        assert!(
            writes.iter().all(|entry| entry.method != Method::DELETE),
            "{:?}",
            in_short(&writes)
        );
        assert_eq!(protocols(&world), both("TCP", "TCP", 3));
        tokio::time::advance(std::time::Duration::from_secs(1_800)).await;
        world.run("web").await.settled();
        assert_eq!(protocols(&world), both("HTTP", "HTTP", 3));
        world.assert_settled("web").await;
    }
}

/// Octavia takes a pool beside the one that serves.
#[tokio::test(start_paused = true)]
async fn a_pool_that_is_refused_in_the_place_of_another_one_costs_nothing() {
    let world = served().await;
    world
        .sim
        .set_behaviour(|behaviour| behaviour.quota.pools = Some(2));
    world.annotate("web", "proxy-protocol", "true");
    let (run, writes) = world.writes_of(world.run("web")).await;
    assert!(run.complaint().contains("Quota has been met"), "{run:#?}");
    assert_eq!(in_short(&writes), ["octavia.pools.create"]);
    assert_eq!(protocols(&world), both("TCP", "TCP", 2));
    world
        .sim
        .set_behaviour(|behaviour| behaviour.quota.pools = Some(3));
    let (run, writes) = world.writes_of(world.run("web")).await;
    run.settled();
    let of = |operation: &str| {
        let mut all = writes.iter();
        all.position(|entry| entry.operation == operation).unwrap()
    };
    assert!(of("octavia.listeners.update") < of("octavia.pools.delete"));
    assert_eq!(protocols(&world), both("TCP", "PROXY", 2));
    world.assert_settled("web").await;
}

/// A pool has one monitor.
#[tokio::test(start_paused = true)]
async fn a_monitor_that_is_refused_in_the_place_of_another_one_brings_that_back() {
    let world = served().await;
    let body = json!({ "faultcode": "Client", "faultstring": "no such monitor", "debuginfo": null });
    let fault = Fault::operation("octavia.healthmonitors.create");
    world
        .sim
        .faults()
        .add(fault.answer(Canned::json(501, &body.to_string())));
    world.edit("web", |service| {
        let spec = service.spec.as_mut().unwrap();
        spec.external_traffic_policy = Some("Local".into());
        spec.health_check_node_port = Some(32_000);
    });
    let run = world.run("web").await;
    assert!(run.complaint().contains("no such monitor"), "{run:#?}");
    let kinds = || {
        let monitors = world.sim.snapshot().load_balancers[0].listeners.clone();
        let monitors = monitors.into_iter().filter_map(|it| it.pool?.monitor);
        monitors.map(|it| it.kind).collect::<Vec<_>>()
    };
    assert_eq!(kinds(), ["TCP", "TCP"]);
    tokio::time::advance(std::time::Duration::from_secs(1_800)).await;
    world.run("web").await.settled();
    assert_eq!(kinds(), ["HTTP", "HTTP"]);
    world.assert_settled("web").await;
}

/// One refusal hides no other one.
#[tokio::test(start_paused = true)]
async fn all_that_is_refused_is_told() {
    let mut world = World::with_nodes(1);
    world.configure(|options| options.manages_security_groups = true);
    world.run("web").await.settled();
    world
        .sim
        .set_behaviour(|behaviour| behaviour.quota.health_monitors = Some(0));
    world.annotate("web", "enable-health-monitor", "true");
    let fault = Fault::operation("neutron.ports.update").always();
    let said = r#"{"NeutronError": {"type": "PolicyNotAuthorized", "message": "disallowed by policy", "detail": ""}}"#;
    world.sim.faults().add(fault.answer(Canned::json(403, said)));
    world.add_node("node-2");
    let run = world.run("web").await;
    for told in [
        "disallowed by policy",
        "Quota has been met for resources: Health Monitor",
    ] {
        assert!(run.complaint().contains(told), "{run:#?}");
    }
}
