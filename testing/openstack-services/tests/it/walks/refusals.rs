//! Load balancers that are refused, in the order in which Octavia finds out, and what each refusal leaves behind.

use std::collections::BTreeSet;

use bowline_openstack_services::Service::{LoadBalancer, Network};
use http::Method;
use serde_json::{Value, json};

use crate::walk::{Walk, text};

pub(super) async fn walk(walk: &mut Walk<'_>) {
    let subnets = walk.look(Network, "/v2.0/subnets?cidr=10.0.0.0%2F24").await.body;
    let (subnet, network) = (
        text(&subnets, "/subnets/0/id"),
        text(&subnets, "/subnets/0/network_id"),
    );
    addresses(walk, subnet, network).await;
    trees(walk, subnet).await;
    limits(walk, subnet).await;
}

async fn ports(walk: &Walk<'_>) -> BTreeSet<String> {
    let ports = walk.look(Network, "/v2.0/ports").await.body;
    let ports = ports["ports"].as_array().unwrap();
    ports.iter().map(|port| text(port, "/id").to_owned()).collect()
}

/// Asks for a load balancer that is refused, and takes away the port that stays.
async fn refused(walk: &mut Walk<'_>, name: &'static str, fields: Value) {
    let before = ports(walk).await;
    let body = json!({ "loadbalancer": fields });
    walk.balance(name, Method::POST, "loadbalancers", Some(body))
        .await;
    let after = ports(walk).await;
    let left: Vec<&String> = after.difference(&before).collect();
    walk.note(name, json!({ "a port stays": !left.is_empty() }));
    for port in left {
        let path = format!("/v2.0/ports/{port}");
        let shown = walk.look(Network, &path).await.body;
        walk.note(name, json!({ "its owner": shown["port"]["device_owner"] }));
        walk.delete("its port is deleted", Network, &path).await;
    }
}

/// A load balancer that is made, until it is settled; answers its id.
async fn made(walk: &mut Walk<'_>, name: &'static str, fields: Value) -> String {
    let body = json!({ "loadbalancer": fields });
    let made = walk
        .balance(name, Method::POST, "loadbalancers", Some(body))
        .await;
    let id = text(&made, "/loadbalancer/id").to_owned();
    walk.settle(&id).await;
    id
}

async fn deleted(walk: &mut Walk<'_>, id: &str) {
    let path = format!("loadbalancers/{id}?cascade=true");
    walk.balance("delete", Method::DELETE, &path, None).await;
    walk.settle(id).await;
}

async fn addresses(walk: &mut Walk<'_>, subnet: &str, network: &str) {
    let first = made(
        walk,
        "of an address",
        json!({ "name": "a", "vip_subnet_id": subnet, "vip_address": "10.0.0.50" }),
    )
    .await;
    let made_first = walk
        .look(LoadBalancer, &format!("/v2.0/lbaas/loadbalancers/{first}"))
        .await;
    let port = made_first.text("/loadbalancer/vip_port_id").unwrap();
    for (name, fields) in [
        (
            "an address that is taken",
            json!({ "vip_subnet_id": subnet, "vip_address": "10.0.0.50" }),
        ),
        (
            "an address of no subnet",
            json!({ "vip_subnet_id": subnet, "vip_address": "192.0.2.9" }),
        ),
        (
            "no address at all",
            json!({ "vip_subnet_id": subnet, "vip_address": "nonsense" }),
        ),
        (
            "an address of no subnet of the network",
            json!({ "vip_network_id": network, "vip_address": "192.0.2.9" }),
        ),
        ("a port that is in use", json!({ "vip_port_id": port })),
        (
            "a port and an address that is not its",
            json!({ "vip_port_id": port, "vip_address": "10.0.0.51" }),
        ),
    ] {
        refused(walk, name, fields).await;
    }
    let small = walk.ground.small_subnet().await;
    let own = walk.ground.last_port(&small).await;
    let asked = json!({ "vip_subnet_id": small });
    refused(walk, "a subnet without a free address", asked).await;
    for (name, fields) in [
        (
            "a port of another subnet",
            json!({ "vip_port_id": own, "vip_subnet_id": subnet }),
        ),
        (
            "a port without that address",
            json!({ "vip_port_id": own, "vip_address": "10.9.0.1" }),
        ),
    ] {
        refused(walk, name, fields).await;
    }
    // Neutron takes no limit below what there is.
    let most = i32::try_from(ports(walk).await.len()).unwrap();
    walk.ground.limit(Network, "port", most).await;
    let asked = json!({ "vip_subnet_id": subnet });
    refused(walk, "no more ports", asked).await;
    walk.ground.limit(Network, "port", -1).await;
    deleted(walk, &first).await;
}

fn member(address: &str) -> Value {
    json!({ "address": address, "protocol_port": 30080 })
}

/// A pool, with more fields.
fn pool(name: &str, more: Value) -> Value {
    with(
        json!({ "name": name, "protocol": "TCP", "lb_algorithm": "ROUND_ROBIN" }),
        more,
    )
}

fn with(mut base: Value, more: Value) -> Value {
    for (name, value) in more.as_object().unwrap() {
        base[name] = value.clone();
    }
    base
}

fn listener(port: u16, more: Value) -> Value {
    with(json!({ "protocol": "TCP", "protocol_port": port }), more)
}

async fn trees(walk: &mut Walk<'_>, subnet: &str) {
    let of = |listeners: Value| json!({ "vip_subnet_id": subnet, "listeners": listeners });
    let one = |more: Value| of(json!([listener(80, json!({ "default_pool": pool("p", more) }))]));
    let monitor = |more: Value| {
        let base = json!({ "type": "TCP", "delay": 5, "timeout": 3, "max_retries": 1 });
        one(json!({ "healthmonitor": with(base, more) }))
    };
    let twins = json!([member("10.0.0.11"), member("10.0.0.11")]);
    let nameless = json!({ "protocol": "TCP", "lb_algorithm": "ROUND_ROBIN" });
    for (name, fields) in [
        ("an unknown field", one(json!({ "colour": "red" }))),
        (
            "a word for a number",
            of(json!([listener(80, json!({ "connection_limit": "many" }))])),
        ),
        ("two members alike", one(json!({ "members": twins }))),
        (
            "a member of a reserved address",
            one(json!({ "members": [member("169.254.169.254")] })),
        ),
        (
            "two listeners of a port",
            of(json!([
                listener(80, json!({})),
                listener(80, json!({ "protocol": "HTTP" }))
            ])),
        ),
        (
            "a pool without a name",
            of(json!([listener(80, json!({ "default_pool": nameless }))])),
        ),
        (
            "two pools of a name",
            of(json!([
                listener(80, json!({ "default_pool": pool("p", json!({})) })),
                listener(81, json!({ "default_pool": pool("p", json!({})) })),
            ])),
        ),
        (
            "the name of no pool",
            of(json!([listener(80, json!({ "default_pool": { "name": "p" } }))])),
        ),
        (
            "a pool without a method",
            of(json!([listener(
                80,
                json!({ "default_pool": { "name": "p", "protocol": "TCP" } })
            )])),
        ),
        (
            "a monitor for UDP of a pool for TCP",
            monitor(json!({ "type": "UDP-CONNECT" })),
        ),
        (
            "a path of a monitor for TCP",
            monitor(json!({ "url_path": "/healthz" })),
        ),
        ("a monitor without a delay", monitor(json!({ "delay": null }))),
        ("eleven retries", monitor(json!({ "max_retries": 11 }))),
        (
            "no certificate",
            of(json!([listener(443, json!({ "protocol": "TERMINATED_HTTPS" }))])),
        ),
        (
            "a certificate of a listener for TCP",
            of(json!([listener(
                80,
                json!({ "default_tls_container_ref": "https://kms/v1/secrets/x" })
            )])),
        ),
        (
            "headers of a listener for TCP",
            of(json!([listener(
                80,
                json!({ "insert_headers": { "X-Forwarded-For": "true" } })
            )])),
        ),
        (
            "an unknown header",
            of(json!([listener(
                80,
                json!({ "protocol": "HTTP", "insert_headers": { "X-Other": "true" } })
            )])),
        ),
        (
            "a range that is none",
            of(json!([listener(80, json!({ "allowed_cidrs": ["everybody"] }))])),
        ),
        (
            "a long name",
            json!({ "vip_subnet_id": subnet, "name": "n".repeat(256) }),
        ),
    ] {
        refused(walk, name, fields).await;
    }
    // What is refused of a part by itself, and not of one that comes with a load balancer.
    for (name, fields) in [
        (
            "a cookie's name where there is no cookie",
            one(json!({ "session_persistence": { "type": "SOURCE_IP", "cookie_name": "c" } })),
        ),
        (
            "no cookie's name",
            one(json!({ "session_persistence": { "type": "APP_COOKIE" } })),
        ),
        (
            "a method that the driver has not",
            one(json!({ "lb_algorithm": "SOURCE_IP_PORT" })),
        ),
        (
            "a range with bits of a host",
            of(json!([listener(80, json!({ "allowed_cidrs": ["10.1.2.3/16"] }))])),
        ),
    ] {
        let id = made(walk, name, fields).await;
        walk.balance(
            name,
            Method::GET,
            &format!("listeners?loadbalancer_id={id}"),
            None,
        )
        .await;
        deleted(walk, &id).await;
    }
}

async fn limits(walk: &mut Walk<'_>, subnet: &str) {
    let monitor = json!({ "type": "TCP", "delay": 5, "timeout": 3, "max_retries": 1 });
    let parts = json!({ "members": [member("10.0.0.11"), member("10.0.0.12")], "healthmonitor": monitor });
    let whole = json!({ "vip_subnet_id": subnet, "listeners": [listener(80, json!({ "default_pool": pool("p", parts) }))] });
    for (name, of, most) in [
        ("no more load balancers", "load_balancer", 0),
        ("no more listeners", "listener", 0),
        ("no more pools", "pool", 0),
        ("a member too many", "member", 1),
        ("no more monitors", "health_monitor", 0),
    ] {
        walk.ground.limit(LoadBalancer, of, most).await;
        refused(walk, name, whole.clone()).await;
        walk.ground.limit(LoadBalancer, of, -1).await;
    }
}
