//! Parts of load balancers, one by one: what is refused, and what goes with what.

use bowline_openstack_services::Service::{LoadBalancer, Network};
use http::Method;
use serde_json::{Value, json};

use crate::walk::{Walk, text};

mod members;
mod states;

/// An id that nothing has.
const NOBODY: &str = "00000000-0000-4000-8000-00000000dead";

pub(super) async fn walk(walk: &mut Walk<'_>) {
    let subnets = walk.look(Network, "/v2.0/subnets?cidr=10.0.0.0%2F24").await.body;
    let lb = balancer(walk, text(&subnets, "/subnets/0/id")).await;
    members::members(walk, &lb).await;
    members::twins(walk, &lb).await;
    members::batches(walk, &lb).await;
    pools(walk, &lb).await;
    monitors(walk, &lb).await;
    families(walk, &lb).await;
    states::busy(walk, &lb).await;
    states::limits(walk, &lb).await;
    ends(walk, &lb).await;
    let path = format!("loadbalancers/{}?cascade=true", lb.id);
    walk.balance("delete all", Method::DELETE, &path, None).await;
    walk.settle(&lb.id).await;
    for (name, path) in [
        ("a listener of what is gone", format!("listeners/{}", lb.listener)),
        ("a pool of what is gone", format!("pools/{}", lb.pool)),
        ("members of what is gone", format!("pools/{}/members", lb.pool)),
    ] {
        walk.balance(name, Method::GET, &path, None).await;
    }
}

/// A load balancer with a listener and its pool.
struct Balancer {
    id: String,
    subnet: String,
    listener: String,
    pool: String,
}

impl Balancer {
    fn members(&self) -> String {
        format!("pools/{}/members", self.pool)
    }

    async fn put(&self, walk: &mut Walk<'_>, name: &'static str, path: &str, body: Value) -> Value {
        write(walk, &self.id, name, Method::PUT, path, body).await
    }

    async fn post(&self, walk: &mut Walk<'_>, name: &'static str, path: &str, body: Value) -> Value {
        write(walk, &self.id, name, Method::POST, path, body).await
    }

    async fn delete(&self, walk: &mut Walk<'_>, name: &'static str, path: &str) -> Value {
        write(walk, &self.id, name, Method::DELETE, path, Value::Null).await
    }
}

async fn write(
    walk: &mut Walk<'_>,
    lb: &str,
    name: &'static str,
    method: Method,
    path: &str,
    body: Value,
) -> Value {
    let body = Some(body).filter(|body| !body.is_null());
    let answer = walk.balance(name, method, path, body).await;
    walk.settle(lb).await;
    answer
}

async fn balancer(walk: &mut Walk<'_>, subnet: &str) -> Balancer {
    let post = Method::POST;
    let fields = json!({ "loadbalancer": { "name": "parts", "vip_subnet_id": subnet } });
    let made = walk
        .balance(
            "an empty load balancer",
            post.clone(),
            "loadbalancers",
            Some(fields),
        )
        .await;
    let id = text(&made, "/loadbalancer/id").to_owned();
    walk.settle(&id).await;
    let fields = json!({ "listener": { "loadbalancer_id": id, "protocol": "TCP", "protocol_port": 80 } });
    let made = write(walk, &id, "a listener", post.clone(), "listeners", fields).await;
    let listener = text(&made, "/listener/id").to_owned();
    let fields =
        json!({ "pool": { "listener_id": listener, "protocol": "TCP", "lb_algorithm": "ROUND_ROBIN" } });
    let made = write(walk, &id, "its pool", post, "pools", fields).await;
    Balancer {
        id,
        subnet: subnet.to_owned(),
        listener,
        pool: text(&made, "/pool/id").to_owned(),
    }
}

async fn pools(walk: &mut Walk<'_>, lb: &Balancer) {
    let pool = |more: Value| {
        let mut base = json!({ "loadbalancer_id": lb.id, "protocol": "TCP", "lb_algorithm": "ROUND_ROBIN" });
        for (name, value) in more.as_object().unwrap() {
            base[name] = value.clone();
        }
        json!({ "pool": base })
    };
    for (name, fields) in [
        (
            "a pool with a method that the driver has not",
            json!({ "lb_algorithm": "SOURCE_IP_PORT" }),
        ),
        ("a pool for nothing", json!({ "loadbalancer_id": null })),
        (
            "a pool of an unknown load balancer",
            json!({ "loadbalancer_id": NOBODY }),
        ),
        (
            "a pool of an unknown listener",
            json!({ "loadbalancer_id": null, "listener_id": NOBODY }),
        ),
        (
            "a pool of another protocol",
            json!({ "listener_id": lb.listener, "loadbalancer_id": null, "protocol": "UDP" }),
        ),
        (
            "a time-out of a pool for TCP",
            json!({ "session_persistence": { "type": "SOURCE_IP", "persistence_timeout": 60 } }),
        ),
        (
            "a cookie of a pool for UDP",
            json!({ "protocol": "UDP", "session_persistence": { "type": "HTTP_COOKIE" } }),
        ),
        (
            "a cookie's name where there is no cookie",
            json!({ "session_persistence": { "type": "SOURCE_IP", "cookie_name": "c" } }),
        ),
        (
            "no cookie's name",
            json!({ "session_persistence": { "type": "APP_COOKIE" } }),
        ),
        (
            "an unknown session persistence",
            json!({ "session_persistence": { "type": "NONE" } }),
        ),
    ] {
        lb.post(walk, name, "pools", pool(fields)).await;
    }
    let path = format!("pools/{}", lb.pool);
    for (name, fields) in [
        (
            "a method that the driver has not",
            json!({ "lb_algorithm": "SOURCE_IP_PORT" }),
        ),
        (
            "a session persistence",
            json!({ "session_persistence": { "type": "SOURCE_IP" } }),
        ),
        ("no session persistence", json!({ "session_persistence": null })),
        ("its protocol cannot be changed", json!({ "protocol": "HTTP" })),
    ] {
        lb.put(walk, name, &path, json!({ "pool": fields })).await;
    }
}

async fn monitors(walk: &mut Walk<'_>, lb: &Balancer) {
    let monitor = |more: Value| {
        let mut base =
            json!({ "pool_id": lb.pool, "type": "TCP", "delay": 5, "timeout": 3, "max_retries": 1 });
        for (name, value) in more.as_object().unwrap() {
            base[name] = value.clone();
        }
        json!({ "healthmonitor": base })
    };
    for (name, fields) in [
        (
            "a monitor for UDP of a pool for TCP",
            json!({ "type": "UDP-CONNECT" }),
        ),
        ("a monitor for SCTP of a pool for TCP", json!({ "type": "SCTP" })),
        ("a monitor without retries", json!({ "max_retries": 0 })),
        (
            "a monitor of a path that is none",
            json!({ "type": "HTTP", "url_path": "healthz" }),
        ),
        (
            "a monitor of codes that are none",
            json!({ "type": "HTTP", "expected_codes": "all" }),
        ),
        (
            "a monitor with a host and no version",
            json!({ "type": "HTTP", "domain_name": "a.test" }),
        ),
        (
            "a monitor with a host and an old version",
            json!({ "type": "HTTP", "domain_name": "a.test", "http_version": 1.0 }),
        ),
        ("a method of a monitor for TCP", json!({ "http_method": "GET" })),
    ] {
        lb.post(walk, name, "healthmonitors", monitor(fields)).await;
    }
    let made = lb
        .post(
            walk,
            "a monitor",
            "healthmonitors",
            monitor(json!({ "type": "HTTP" })),
        )
        .await;
    let path = format!("healthmonitors/{}", text(&made, "/healthmonitor/id"));
    for (name, fields) in [
        ("no path", json!({ "url_path": null })),
        ("no delay", json!({ "delay": null })),
        ("its type cannot be changed", json!({ "type": "TCP" })),
    ] {
        lb.put(walk, name, &path, json!({ "healthmonitor": fields }))
            .await;
    }
    lb.delete(walk, "delete the monitor", &path).await;
    lb.delete(walk, "delete the monitor again", &path).await;
}

/// What carries datagrams does not translate between the families.
async fn families(walk: &mut Walk<'_>, lb: &Balancer) {
    let fields = json!({ "listener": { "loadbalancer_id": lb.id, "protocol": "UDP", "protocol_port": 53 } });
    let made = lb.post(walk, "a listener for UDP", "listeners", fields).await;
    let listener = text(&made, "/listener/id").to_owned();
    let fields =
        json!({ "pool": { "listener_id": listener, "protocol": "UDP", "lb_algorithm": "ROUND_ROBIN" } });
    let made = lb.post(walk, "a pool for UDP", "pools", fields).await;
    let pool = text(&made, "/pool/id").to_owned();
    let members = format!("pools/{pool}/members");
    let member = json!({ "address": "fd00:10::11", "protocol_port": 30053 });
    let one = json!({ "member": member });
    lb.post(
        walk,
        "a member of the other family for UDP",
        &members,
        one.clone(),
    )
    .await;
    lb.put(
        walk,
        "a batch of the other family for UDP",
        &members,
        json!({ "members": [member] }),
    )
    .await;
    lb.post(walk, "a member of the other family", &lb.members(), one)
        .await;
    for (name, kind, delay) in [
        ("a monitor of echoes of a pool for UDP", "PING", 5),
        ("a quick monitor for UDP", "UDP-CONNECT", 1),
        ("a monitor for SCTP of a pool for UDP", "SCTP", 5),
    ] {
        let monitor = json!({ "healthmonitor": { "pool_id": pool, "type": kind, "delay": delay, "timeout": 3, "max_retries": 1 } });
        lb.post(walk, name, "healthmonitors", monitor).await;
    }
    lb.delete(
        walk,
        "delete the listener for UDP",
        &format!("listeners/{listener}"),
    )
    .await;
    walk.balance("its pool stays", Method::GET, &format!("pools/{pool}"), None)
        .await;
    lb.delete(walk, "delete the pool for UDP", &format!("pools/{pool}"))
        .await;
}

/// What goes with what.
async fn ends(walk: &mut Walk<'_>, lb: &Balancer) {
    let monitors = walk
        .look(
            LoadBalancer,
            &format!("/v2.0/lbaas/healthmonitors?pool_id={}", lb.pool),
        )
        .await
        .body;
    let monitor = format!("healthmonitors/{}", text(&monitors, "/healthmonitors/0/id"));
    let (listener, pool) = (format!("listeners/{}", lb.listener), format!("pools/{}", lb.pool));
    lb.delete(walk, "the pool goes", &pool).await;
    for (name, path) in [
        ("its listener stays without it", &listener),
        ("its monitor is gone", &monitor),
        ("its members are gone", &lb.members()),
    ] {
        walk.balance(name, Method::GET, path, None).await;
    }
    let fields = json!({ "listener": { "default_pool_id": NOBODY } });
    lb.put(walk, "an unknown pool of a listener", &listener, fields)
        .await;
    let pool = json!({ "name": "p", "protocol": "TCP", "lb_algorithm": "ROUND_ROBIN" });
    let nested = json!({ "listener": { "loadbalancer_id": lb.id, "protocol": "TCP", "protocol_port": 82, "default_pool": pool } });
    lb.post(walk, "a listener with a pool within", "listeners", nested)
        .await;
}
