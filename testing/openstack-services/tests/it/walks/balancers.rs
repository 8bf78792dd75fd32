//! Load balancers and their parts.

use bowline_openstack_services::Service::{LoadBalancer, Network};
use http::Method;
use serde_json::{Value, json};

use crate::walk::{Walk, text};

/// An id that nothing has.
const NOBODY: &str = "00000000-0000-4000-8000-00000000dead";

const BALANCERS: &str = "/v2.0/lbaas/loadbalancers";
const LISTENERS: &str = "/v2.0/lbaas/listeners";
const POOLS: &str = "/v2.0/lbaas/pools";
const MONITORS: &str = "/v2.0/lbaas/healthmonitors";

/// The name of the load balancer, as of a Service's.
const NAME: &str = "kube_service_kubernetes_default_web";

pub(super) async fn walk(walk: &mut Walk<'_>) {
    let subnet = walk
        .look(Network, "/v2.0/subnets?ip_version=4&cidr=10.0.0.0%2F24")
        .await;
    let subnet = subnet.text("/subnets/0/id").unwrap();
    refusals(walk, &subnet).await;
    let id = tree(walk, &subnet).await;
    let (listener, pool) = parts(walk, &id).await;
    changes(walk, &id, &listener, &pool, &subnet).await;
    conflicts(walk, &id, &listener, &pool).await;
    end(walk, &id, &pool).await;
}

async fn post(walk: &mut Walk<'_>, name: &'static str, path: &str, kind: &str, fields: Value) -> Value {
    let body = json!({ kind: fields });
    walk.post(name, LoadBalancer, path, body).await
}

async fn put(walk: &mut Walk<'_>, name: &'static str, path: &str, kind: &str, fields: Value) {
    let body = json!({ kind: fields });
    walk.put(name, LoadBalancer, path, body).await;
}

async fn get(walk: &mut Walk<'_>, name: &'static str, path: &str) -> Value {
    walk.get(name, LoadBalancer, path).await
}

async fn refusals(walk: &mut Walk<'_>, subnet: &str) {
    for (name, fields) in [
        ("no VIP", json!({})),
        (
            "unknown provider",
            json!({ "vip_subnet_id": subnet, "provider": "nope" }),
        ),
        ("unknown subnet", json!({ "vip_subnet_id": NOBODY })),
        (
            "unknown flavor",
            json!({ "vip_subnet_id": subnet, "flavor_id": NOBODY }),
        ),
        (
            "unknown zone",
            json!({ "vip_subnet_id": subnet, "availability_zone": "nope" }),
        ),
        (
            "allowed_cidrs of the other family",
            json!({ "vip_subnet_id": subnet, "listeners": [
                { "protocol": "TCP", "protocol_port": 80, "allowed_cidrs": ["fd00::/8"] },
            ] }),
        ),
        (
            "protocols that do not go together",
            json!({ "vip_subnet_id": subnet, "listeners": [{
                "name": "l", "protocol": "UDP", "protocol_port": 80,
                "default_pool": { "name": "p", "protocol": "TCP", "lb_algorithm": "ROUND_ROBIN" },
            }] }),
        ),
    ] {
        post(walk, name, BALANCERS, "loadbalancer", fields).await;
    }
    get(walk, "unknown load balancer", &format!("{BALANCERS}/{NOBODY}")).await;
    get(walk, "no such load balancer", &format!("{BALANCERS}?name=nope")).await;
    get(walk, "unknown listener", &format!("{LISTENERS}/{NOBODY}")).await;
    get(walk, "unknown pool", &format!("{POOLS}/{NOBODY}")).await;
    get(walk, "unknown monitor", &format!("{MONITORS}/{NOBODY}")).await;
}

fn member(name: &str, address: &str, subnet: &str) -> Value {
    json!({ "name": name, "address": address, "protocol_port": 30080, "subnet_id": subnet })
}

/// Everything in one request, as the provider does it.
async fn tree(walk: &mut Walk<'_>, subnet: &str) -> String {
    let monitor = json!({
        "name": format!("monitor_0_{NAME}"), "type": "TCP", "delay": 5, "timeout": 3, "max_retries": 1,
        "max_retries_down": 3,
    });
    let pool = json!({
        "name": format!("pool_0_{NAME}"), "protocol": "TCP", "lb_algorithm": "ROUND_ROBIN",
        "members": [member("node-1", "10.0.0.11", subnet), member("node-2", "10.0.0.12", subnet)],
        "healthmonitor": monitor,
    });
    let listener = json!({
        "name": format!("listener_0_{NAME}"), "protocol": "TCP", "protocol_port": 80, "connection_limit": -1,
        "tags": [NAME], "allowed_cidrs": ["0.0.0.0/0"], "timeout_client_data": 50000, "default_pool": pool,
    });
    let fields = json!({
        "name": NAME, "description": "Kubernetes external service default/web from cluster kubernetes",
        "provider": "amphora", "vip_subnet_id": subnet, "tags": [NAME], "listeners": [listener],
    });
    let created = post(walk, "create the tree", BALANCERS, "loadbalancer", fields).await;
    let id = text(&created, "/loadbalancer/id").to_owned();
    let busy = json!({ "description": "too early" });
    put(
        walk,
        "change while pending",
        &format!("{BALANCERS}/{id}"),
        "loadbalancer",
        busy,
    )
    .await;
    walk.settle(&id).await;
    let made = get(walk, "load balancer", &format!("{BALANCERS}/{id}")).await;
    let port = text(&made, "/loadbalancer/vip_port_id");
    let port = format!("/v2.0/ports/{port}");
    walk.get("port of the VIP", Network, &port).await;
    id
}

async fn parts(walk: &mut Walk<'_>, id: &str) -> (String, String) {
    get(
        walk,
        "load balancers by name",
        &format!("{BALANCERS}?name={NAME}"),
    )
    .await;
    let listeners = format!("{LISTENERS}?loadbalancer_id={id}");
    let listeners = get(walk, "listeners", &listeners).await;
    let pools = get(walk, "pools", &format!("{POOLS}?loadbalancer_id={id}")).await;
    let pool = text(&pools, "/pools/0/id").to_owned();
    let listener = text(&listeners, "/listeners/0/id").to_owned();
    get(walk, "listener", &format!("{LISTENERS}/{listener}")).await;
    get(walk, "pool", &format!("{POOLS}/{pool}")).await;
    get(walk, "members", &format!("{POOLS}/{pool}/members")).await;
    let monitor = text(&pools, "/pools/0/healthmonitor_id").to_owned();
    get(walk, "monitor", &format!("{MONITORS}/{monitor}")).await;
    get(walk, "monitors", MONITORS).await;
    let monitor = format!("{MONITORS}/{monitor}");
    put(
        walk,
        "change the monitor",
        &monitor,
        "healthmonitor",
        json!({ "delay": 7 }),
    )
    .await;
    walk.settle(id).await;
    (listener, pool)
}

async fn changes(walk: &mut Walk<'_>, id: &str, listener: &str, pool: &str, subnet: &str) {
    let balancer = format!("{BALANCERS}/{id}");
    let tags = json!({ "tags": [NAME, "kube_service_kubernetes_default_other"] });
    put(walk, "more tags", &balancer, "loadbalancer", tags).await;
    walk.settle(id).await;
    put(walk, "no tags", &balancer, "loadbalancer", json!({ "tags": [] })).await;
    walk.settle(id).await;
    let listener = format!("{LISTENERS}/{listener}");
    let fields = json!({ "allowed_cidrs": ["10.1.0.0/16"], "connection_limit": 100 });
    put(walk, "change the listener", &listener, "listener", fields).await;
    walk.settle(id).await;
    put(
        walk,
        "no allowed_cidrs",
        &listener,
        "listener",
        json!({ "allowed_cidrs": [] }),
    )
    .await;
    walk.settle(id).await;
    let pool = format!("{POOLS}/{pool}");
    put(
        walk,
        "change the pool",
        &pool,
        "pool",
        json!({ "lb_algorithm": "SOURCE_IP" }),
    )
    .await;
    walk.settle(id).await;
    put(
        walk,
        "unknown algorithm",
        &pool,
        "pool",
        json!({ "lb_algorithm": "NONSENSE" }),
    )
    .await;
    let members = format!("{pool}/members");
    let other = json!([
        member("node-1", "10.0.0.11", subnet),
        member("node-3", "10.0.0.13", subnet)
    ]);
    put(walk, "other members", &members, "members", other.clone()).await;
    walk.settle(id).await;
    put(walk, "the same members", &members, "members", other).await;
    walk.settle(id).await;
    get(walk, "members after that", &members).await;
}

async fn conflicts(walk: &mut Walk<'_>, id: &str, listener: &str, pool: &str) {
    for (name, protocol) in [
        ("the same port", "TCP"),
        ("the same port as HTTP", "HTTP"),
        ("the same port as UDP", "UDP"),
    ] {
        let fields = json!({ "loadbalancer_id": id, "protocol": protocol, "protocol_port": 80 });
        post(walk, name, LISTENERS, "listener", fields).await;
        walk.settle(id).await;
    }
    let second = json!({ "listener_id": listener, "protocol": "TCP", "lb_algorithm": "ROUND_ROBIN" });
    post(walk, "a second default pool", POOLS, "pool", second).await;
    let monitor = json!({ "pool_id": pool, "type": "TCP", "delay": 3, "timeout": 2, "max_retries": 1 });
    post(walk, "a second monitor", MONITORS, "healthmonitor", monitor).await;
    let slow = json!({ "pool_id": NOBODY, "type": "TCP", "delay": 3, "timeout": 2, "max_retries": 1 });
    post(walk, "a monitor for no pool", MONITORS, "healthmonitor", slow).await;
}

async fn end(walk: &mut Walk<'_>, id: &str, pool: &str) {
    let delete = |path: String| (LoadBalancer, Method::DELETE, path);
    let (service, method, path) = delete(format!("{BALANCERS}/{id}"));
    walk.step("delete with parts", service, method, &path, None).await;
    let (service, method, path) = delete(format!("{POOLS}/{pool}"));
    walk.step("delete the pool", service, method, &path, None).await;
    walk.settle(id).await;
    let (service, method, path) = delete(format!("{POOLS}/{pool}"));
    walk.step("delete the pool again", service, method, &path, None)
        .await;
    let (service, method, path) = delete(format!("{BALANCERS}/{id}?cascade=true"));
    walk.step("delete all", service, method.clone(), &path, None)
        .await;
    walk.step("delete all at once again", service, method.clone(), &path, None)
        .await;
    walk.settle(id).await;
    walk.step("delete all when it is gone", service, method, &path, None)
        .await;
}
