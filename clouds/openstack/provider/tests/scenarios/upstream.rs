//! What the Go manager's requests make.

use bytes::Bytes;
use http::Method;
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};

use crate::world::{World, lb_name};

/// Calls the APIs as somebody else's client.
async fn call(world: &World, method: Method, path: &str, body: Value) -> Value {
    let token = token(world).await;
    let (body, _) = send(world, method, path, Some(&token), &body).await;
    body
}

pub(crate) async fn token(world: &World) -> String {
    let login = json!({ "auth": {
        "identity": { "methods": ["password"], "password": { "user": { "name": "demo", "password": "demo", "domain": { "id": "default" } } } },
        "scope": { "project": { "name": "demo", "domain": { "id": "default" } } },
    } });
    let (_, token) = send(world, Method::POST, "/identity/v3/auth/tokens", None, &login).await;
    token
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

/// What the Go manager's requests make of the Service `web` of a world with three nodes, with monitors and security groups, which the
/// options ask for from now on.
pub(crate) async fn as_upstream(world: &mut World) {
    world.configure(|options| {
        options.monitor.is_wanted = true;
        options.manages_security_groups = true;
    });
    let world = &*world;
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
