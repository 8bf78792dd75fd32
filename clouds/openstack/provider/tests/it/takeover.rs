//! What the Go manager made is taken over without a write.

use bytes::Bytes;
use http::Method;
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};

use crate::world::{World, in_short, lb_name, service};

/// Calls the APIs as somebody else's client.
async fn call(world: &World, method: Method, path: &str, body: Value) -> Value {
    let login = json!({ "auth": {
        "identity": { "methods": ["password"], "password": { "user": { "name": "demo", "password": "demo", "domain": { "id": "default" } } } },
        "scope": { "project": { "name": "demo", "domain": { "id": "default" } } },
    } });
    let (_, token) = send(world, Method::POST, "/identity/v3/auth/tokens", None, &login).await;
    let (body, _) = send(world, method, path, Some(&token), &body).await;
    body
}

async fn send(
    world: &World,
    method: Method,
    path: &str,
    token: Option<&str>,
    body: &Value,
) -> (Value, String) {
    let request = http::Request::builder()
        .method(method)
        .uri(path)
        .header("host", "cloud.test")
        .header("content-type", "application/json")
        .header("x-auth-token", token.unwrap_or_default());
    let request = request.body(Full::new(Bytes::from(body.to_string()))).unwrap();
    let answer = world.sim.service().send(request).await.unwrap();
    assert!(answer.status().is_success(), "{path}: {}", answer.status());
    let token = answer
        .headers()
        .get("x-subject-token")
        .map(|token| token.to_str().unwrap().to_owned());
    let bytes = answer.into_body().collect().await.unwrap().to_bytes();
    (
        serde_json::from_slice(&bytes).unwrap_or(Value::Null),
        token.unwrap_or_default(),
    )
}

/// What the Go manager's requests make of the Service `web` of the world, with monitors on.
pub(crate) async fn as_upstream(world: &World) {
    let name = lb_name("web");
    let subnet = world.sim.home().subnet;
    let members: Vec<Value> = (1..=3)
        .map(|node| {
            json!({ "name": format!("node-{node}"), "address": format!("10.0.0.1{node}"), "protocol_port": 30080, "subnet_id": subnet })
        })
        .collect();
    let listener = json!({
        "name": format!("listener_0_{name}"), "protocol": "TCP", "protocol_port": 80, "connection_limit": -1,
        "tags": [name], "timeout_client_data": 50000, "timeout_member_connect": 5000, "timeout_member_data": 50000,
        "timeout_tcp_inspect": 0, "allowed_cidrs": ["0.0.0.0/0"],
        "default_pool": {
            "name": format!("pool_0_{name}"), "protocol": "TCP", "lb_algorithm": "ROUND_ROBIN", "members": members,
            "healthmonitor": {
                "name": format!("monitor_0_{name}"), "type": "TCP", "delay": 5, "timeout": 3, "max_retries": 1, "max_retries_down": 3,
            },
        },
    });
    let balancer = json!({ "loadbalancer": {
        "name": name, "description": "Kubernetes external service default/web from cluster lab", "provider": "amphora",
        "vip_subnet_id": subnet, "tags": [name], "listeners": [listener],
    } });
    let made = call(
        world,
        Method::POST,
        "/load-balancer/v2.0/lbaas/loadbalancers",
        balancer,
    )
    .await;
    tokio::time::advance(std::time::Duration::from_secs(10)).await;
    let floating = json!({ "floatingip": {
        "floating_network_id": world.sim.home().external_network, "port_id": made["loadbalancer"]["vip_port_id"],
        "description": "Floating IP for Kubernetes external service default/web from cluster lab",
    } });
    let floating = call(world, Method::POST, "/network/v2.0/floatingips", floating).await;
    let group = json!({ "security_group": {
        "name": "lb-sg-uid-web-default-web",
        "description": "Security Group for default/web Service LoadBalancer in cluster lab",
    } });
    let group = call(world, Method::POST, "/network/v2.0/security-groups", group).await;
    let group = group["security_group"]["id"].clone();
    let rule = json!({ "security_group_rule": {
        "direction": "ingress", "ethertype": "IPv4", "protocol": "tcp", "port_range_min": 30080, "port_range_max": 30080,
        "remote_ip_prefix": "10.0.0.0/24", "security_group_id": group,
    } });
    call(world, Method::POST, "/network/v2.0/security-group-rules", rule).await;
    // The Go manager removes the rules that every new group has.
    let path = format!(
        "/network/v2.0/security-group-rules?security_group_id={}&direction=egress",
        group.as_str().unwrap()
    );
    let rules = call(world, Method::GET, &path, Value::Null).await;
    for rule in rules["security_group_rules"].as_array().unwrap() {
        let path = format!(
            "/network/v2.0/security-group-rules/{}",
            rule["id"].as_str().unwrap()
        );
        call(world, Method::DELETE, &path, Value::Null).await;
    }
    for server in world.sim.servers() {
        for port in world.sim.ports_of(server.id) {
            let mut groups: Vec<Value> = port.groups.iter().map(|id| json!(id)).collect();
            groups.push(group.clone());
            let path = format!("/network/v2.0/ports/{}", port.id);
            call(
                world,
                Method::PUT,
                &path,
                json!({ "port": { "security_groups": groups } }),
            )
            .await;
        }
    }
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    world.annotate("web", "load-balancer-id", &text(&made["loadbalancer"]["id"]));
    world.annotate(
        "web",
        "load-balancer-address",
        &text(&floating["floatingip"]["floating_ip_address"]),
    );
}

#[tokio::test(start_paused = true)]
async fn the_first_sync_after_the_go_manager_writes_nothing_and_says_nothing() {
    let mut world = World::with_nodes(3);
    world.configure(|options| {
        options.monitor.is_wanted = true;
        options.manages_security_groups = true;
    });
    world.put(service("web", &[("TCP", 80, 30080)]));
    as_upstream(&world).await;
    let state = world.sim.snapshot();
    let (run, writes) = world.writes_of(world.run("web")).await;
    World::assert_quiet(&run, &writes);
    assert!(run.notes.is_empty(), "{:?}", run.notes);
    assert_eq!(world.sim.snapshot(), state);
    // The other way round: what this provider makes is what the Go manager's requests make, but for the rules that let
    // everything out.
    let mut ours = World::with_nodes(3);
    ours.configure(|options| {
        options.monitor.is_wanted = true;
        options.manages_security_groups = true;
    });
    ours.run("web").await.settled();
    let made = ours.sim.snapshot();
    assert_eq!(made.load_balancers, state.load_balancers);
    assert_eq!(made.floating_ips, state.floating_ips);
}

/// Asks kube-proxy whether a node has endpoints of the Service `web`.
fn with_health_checks(world: &mut World, is_local: bool) {
    world.configure(|options| {
        options.monitor.is_wanted = true;
        options.is_serial = true;
    });
    world.edit("web", |service| {
        let spec = service.spec.as_mut().unwrap();
        spec.external_traffic_policy = Some(if is_local { "Local" } else { "Cluster" }.into());
        spec.health_check_node_port = is_local.then_some(31_000);
    });
}

fn monitor_ports(world: &World) -> Vec<Option<u16>> {
    let state = world.sim.snapshot();
    let pool = state.load_balancers[0].listeners[0].pool.as_ref().unwrap();
    pool.members.iter().map(|member| member.monitor_port).collect()
}

/// The Go manager creates members one by one with neither a subnet nor a monitor port, and tells them apart by address and port.
#[tokio::test(start_paused = true)]
async fn members_that_the_go_manager_made_one_by_one_stay() {
    let mut world = World::with_nodes(2);
    with_health_checks(&mut world, true);
    world.run("web").await.settled();
    for pool in world.sim.pools() {
        let path = format!("/load-balancer/v2.0/lbaas/pools/{}/members", pool.part.id);
        let there = call(&world, Method::GET, &path, Value::Null).await;
        for member in there["members"].as_array().unwrap() {
            let id = member["id"].as_str().unwrap();
            call(&world, Method::DELETE, &format!("{path}/{id}"), Value::Null).await;
            tokio::time::advance(std::time::Duration::from_secs(2)).await;
            let made = json!({ "member": {
                "name": member["name"], "address": member["address"], "protocol_port": member["protocol_port"],
            } });
            call(&world, Method::POST, &path, made).await;
            tokio::time::advance(std::time::Duration::from_secs(2)).await;
        }
    }
    assert_eq!(monitor_ports(&world), [None, None]);
    world.restart();
    let (run, writes) = world.writes_of(world.run("web")).await;
    World::assert_quiet(&run, &writes);
    assert!(run.notes.is_empty(), "{:?}", run.notes);
    // A new one is probed where it answers.
    world.add_node("node-3");
    world.run("web").await.settled();
    assert_eq!(monitor_ports(&world), [None, None, Some(31_000)]);
}

#[tokio::test(start_paused = true)]
async fn members_that_stand_alone_get_another_monitor_port_in_place() {
    let mut world = World::with_nodes(2);
    with_health_checks(&mut world, false);
    world.run("web").await.settled();
    for (is_local, port) in [(true, Some(31_000)), (false, None)] {
        with_health_checks(&mut world, is_local);
        let (run, writes) = world.writes_of(world.run("web")).await;
        run.settled();
        assert_eq!(
            in_short(&writes),
            [
                "octavia.members.update",
                "octavia.members.update",
                "octavia.healthmonitors.delete",
                "octavia.healthmonitors.create",
            ]
        );
        assert_eq!(monitor_ports(&world), [port, port]);
        world.assert_settled("web").await;
    }
}
