//! What Neutron refuses, what it makes of odd values, and the order of lists.

use bowline_openstack_services::Service::{LoadBalancer, Network};
use http::Method;
use serde_json::{Value, json};

use crate::walk::{Walk, text};

/// An id that nothing has.
const NOBODY: &str = "00000000-0000-4000-8000-00000000dead";

pub(super) async fn walk(walk: &mut Walk<'_>) {
    let group = groups(walk).await;
    rules(walk, &group).await;
    ports(walk, &group).await;
    floating_ips(walk).await;
    routers(walk).await;
    limits(walk, &group).await;
    orders(walk).await;
}

async fn post(walk: &mut Walk<'_>, name: &'static str, path: &str, kind: &str, fields: Value) -> Value {
    let body = json!({ kind: fields });
    let path = format!("/v2.0/{path}");
    walk.post(name, Network, &path, body).await
}

async fn put(walk: &mut Walk<'_>, name: &'static str, path: &str, kind: &str, fields: Value) {
    let body = json!({ kind: fields });
    let path = format!("/v2.0/{path}");
    walk.put(name, Network, &path, body).await;
}

async fn groups(walk: &mut Walk<'_>) -> String {
    for (name, fields) in [
        ("a group like the default one", json!({ "name": "default" })),
        ("a group of a long name", json!({ "name": "n".repeat(256) })),
        (
            "a group with an unknown field",
            json!({ "name": "g", "colour": "red" }),
        ),
    ] {
        post(walk, name, "security-groups", "security_group", fields).await;
    }
    let all = walk
        .look(Network, "/v2.0/security-groups?name=default")
        .await
        .body;
    let default = format!("/v2.0/security-groups/{}", text(&all, "/security_groups/0/id"));
    walk.delete("delete the default group", Network, &default).await;
    let made = post(
        walk,
        "a group",
        "security-groups",
        "security_group",
        json!({ "name": "g" }),
    )
    .await;
    text(&made, "/security_group/id").to_owned()
}

async fn rules(walk: &mut Walk<'_>, group: &str) {
    let rule = |more: Value| {
        let mut base = json!({ "security_group_id": group, "direction": "ingress", "ethertype": "IPv4" });
        for (name, value) in more.as_object().unwrap() {
            base[name] = value.clone();
        }
        base
    };
    let tcp = |from: u32, to: u32| json!({ "protocol": "tcp", "port_range_min": from, "port_range_max": to });
    for (name, fields) in [
        (
            "ports without a protocol",
            json!({ "port_range_min": 80, "port_range_max": 80 }),
        ),
        ("an unknown protocol", json!({ "protocol": "quic" })),
        ("a range from behind", tcp(90, 80)),
        ("half a range", json!({ "protocol": "tcp", "port_range_min": 80 })),
        ("a port of zero", tcp(0, 0)),
        ("a port above all", tcp(65_536, 65_536)),
        (
            "a group and a prefix",
            json!({ "remote_group_id": group, "remote_ip_prefix": "10.0.0.0/24" }),
        ),
        ("an unknown remote group", json!({ "remote_group_id": NOBODY })),
        (
            "a rule of an unknown group",
            json!({ "security_group_id": NOBODY }),
        ),
        (
            "a prefix that is none",
            json!({ "remote_ip_prefix": "everybody" }),
        ),
        ("an unknown direction", json!({ "direction": "through" })),
        (
            "a prefix with bits of a host",
            json!({ "protocol": "tcp", "remote_ip_prefix": "10.0.0.5/24" }),
        ),
        (
            "its network",
            json!({ "protocol": "tcp", "remote_ip_prefix": "10.0.0.0/24" }),
        ),
        (
            "an address for a prefix",
            json!({ "protocol": "udp", "remote_ip_prefix": "10.0.0.5" }),
        ),
        (
            "the same as a prefix",
            json!({ "protocol": "udp", "remote_ip_prefix": "10.0.0.5/32" }),
        ),
        ("a protocol by its number", json!({ "protocol": "132" })),
        ("the same by its name", json!({ "protocol": "sctp" })),
        ("a protocol in capitals", json!({ "protocol": "ICMP" })),
        (
            "everybody",
            json!({ "protocol": "tcp", "remote_ip_prefix": "0.0.0.0/0" }),
        ),
        ("everybody by saying nothing", json!({ "protocol": "tcp" })),
    ] {
        post(
            walk,
            name,
            "security-group-rules",
            "security_group_rule",
            rule(fields),
        )
        .await;
    }
}

async fn ports(walk: &mut Walk<'_>, group: &str) {
    let server = walk.ground.server("node-1").await;
    let ports = walk
        .look(Network, &format!("/v2.0/ports?device_id={server}"))
        .await
        .body;
    let port = format!("ports/{}", text(&ports, "/ports/0/id"));
    let pair = |address: &str| json!({ "ip_address": address });
    for (name, fields) in [
        (
            "an unknown group of a port",
            json!({ "security_groups": [NOBODY] }),
        ),
        ("a group by its name", json!({ "security_groups": ["g"] })),
        ("a group twice", json!({ "security_groups": [group, group] })),
        (
            "a pair without an address",
            json!({ "allowed_address_pairs": [{}] }),
        ),
        (
            "a pair of no address",
            json!({ "allowed_address_pairs": [pair("everybody")] }),
        ),
        (
            "a pair twice",
            json!({ "allowed_address_pairs": [pair("10.244.1.0/24"), pair("10.244.1.0/24")] }),
        ),
        (
            "a pair with bits of a host",
            json!({ "allowed_address_pairs": [pair("10.244.1.5/24")] }),
        ),
        ("an unknown field of a port", json!({ "colour": "red" })),
    ] {
        put(walk, name, &port, "port", fields).await;
    }
}

async fn floating_ips(walk: &mut Walk<'_>) {
    let networks = walk
        .look(Network, "/v2.0/networks?router%3Aexternal=True")
        .await
        .body;
    let external = text(&networks, "/networks/0/id").to_owned();
    let fields = json!({ "floating_network_id": external });
    let made = post(walk, "a floating IP", "floatingips", "floatingip", fields).await;
    let path = format!("floatingips/{}", text(&made, "/floatingip/id"));
    let ports = walk
        .look(Network, "/v2.0/ports?device_owner=compute%3Anova")
        .await
        .body;
    let port = text(&ports, "/ports/0/id").to_owned();
    for (name, fields) in [
        (
            "an address that the port has not",
            json!({ "port_id": port, "fixed_ip_address": "10.0.0.222" }),
        ),
        (
            "an address and no port",
            json!({ "fixed_ip_address": "10.0.0.222" }),
        ),
        ("an unknown field of a floating IP", json!({ "colour": "red" })),
        ("a long description", json!({ "description": "d".repeat(256) })),
    ] {
        put(walk, name, &path, "floatingip", fields).await;
    }
    let path = format!("/v2.0/{path}");
    let stale = [("if-match", "revision_number=77")];
    let stale = walk
        .session()
        .call_with_headers(Network, Method::DELETE, &path, &stale, None)
        .await;
    walk.keep("a deletion of an old revision", stale.unwrap());
    walk.delete("delete it", Network, &path).await;
}

async fn routers(walk: &mut Walk<'_>) {
    let routers = walk.look(Network, "/v2.0/routers").await.body;
    let router = format!("routers/{}", text(&routers, "/routers/0/id"));
    let route = |destination: &str, hop: &str| json!({ "destination": destination, "nexthop": hop });
    for (name, fields) in [
        (
            "a destination that is none",
            json!({ "routes": [route("everywhere", "10.0.0.11")] }),
        ),
        (
            "a next hop that is none",
            json!({ "routes": [route("10.244.1.0/24", "node-1")] }),
        ),
        (
            "a route twice",
            json!({ "routes": [route("10.244.1.0/24", "10.0.0.11"), route("10.244.1.0/24", "10.0.0.11")] }),
        ),
        (
            "the router's own address",
            json!({ "routes": [route("10.244.1.0/24", "10.0.0.1")] }),
        ),
        ("an unknown field of a router", json!({ "colour": "red" })),
    ] {
        put(walk, name, &router, "router", fields).await;
    }
}

async fn limits(walk: &mut Walk<'_>, group: &str) {
    let networks = walk
        .look(Network, "/v2.0/networks?router%3Aexternal=True")
        .await
        .body;
    let external = text(&networks, "/networks/0/id").to_owned();
    for (name, quota, path, kind, fields) in [
        (
            "no more floating IPs",
            "floatingip",
            "floatingips",
            "floatingip",
            json!({ "floating_network_id": external }),
        ),
        (
            "no more groups",
            "security_group",
            "security-groups",
            "security_group",
            json!({ "name": "one-more" }),
        ),
        (
            "no more rules",
            "security_group_rule",
            "security-group-rules",
            "security_group_rule",
            json!({ "security_group_id": group, "direction": "ingress", "ethertype": "IPv6" }),
        ),
    ] {
        // Neutron takes no limit below what there is.
        let there = walk.look(Network, &format!("/v2.0/{path}")).await.body;
        let there = there[path.replace('-', "_")].as_array().unwrap().len();
        walk.ground
            .limit(Network, quota, i32::try_from(there).unwrap())
            .await;
        post(walk, name, path, kind, fields).await;
        walk.ground.limit(Network, quota, -1).await;
    }
}

/// What was made within a second comes in the order of its ids, and Neutron has no other order.
async fn orders(walk: &mut Walk<'_>) {
    for index in 0..4 {
        post(
            walk,
            "a group of many",
            "security-groups",
            "security_group",
            json!({ "name": format!("g{index}") }),
        )
        .await;
    }
    let ids = |body: &Value, list: &str, field: &str| -> Vec<String> {
        let all = body[list].as_array().unwrap();
        all.iter().map(|it| text(it, field).to_owned()).collect()
    };
    let groups = walk.look(Network, "/v2.0/security-groups").await.body;
    let by_id = ids(&groups, "security_groups", "/id").is_sorted();
    walk.note("the order of groups", json!({ "by their ids": by_id }));
    let subnets = walk.look(Network, "/v2.0/subnets?cidr=10.0.0.0%2F24").await.body;
    let subnet = text(&subnets, "/subnets/0/id").to_owned();
    for _ in 0..4 {
        let body = json!({ "loadbalancer": { "vip_subnet_id": subnet } });
        walk.balance("one of many", Method::POST, "loadbalancers", Some(body))
            .await;
    }
    let balancers = walk.look(LoadBalancer, "/v2.0/lbaas/loadbalancers").await.body;
    let times = ids(&balancers, "loadbalancers", "/created_at");
    let places: Vec<_> = times
        .iter()
        .zip(ids(&balancers, "loadbalancers", "/id"))
        .collect();
    walk.note(
        "the order of load balancers",
        json!({ "by second and id": places.is_sorted() }),
    );
    for id in ids(&balancers, "loadbalancers", "/id") {
        walk.settle(&id).await;
    }
    let get = Method::GET;
    for (name, path) in [
        (
            "groups after nobody",
            // Which group comes first is chance: ids are random.
            format!("/v2.0/security-groups?marker={NOBODY}&limit=1&fields=id"),
        ),
        (
            "fewer than no groups",
            "/v2.0/security-groups?limit=-1".to_owned(),
        ),
        (
            "a page of groups",
            "/v2.0/security-groups?limit=1&fields=id".to_owned(),
        ),
        (
            "groups by an unknown key",
            "/v2.0/security-groups?sort_key=colour&sort_dir=asc".to_owned(),
        ),
    ] {
        walk.get(name, Network, &path).await;
    }
    for (name, path) in [
        (
            "load balancers after nobody",
            format!("loadbalancers?marker={NOBODY}"),
        ),
        (
            "a page of load balancers",
            "loadbalancers?limit=1&fields=id".to_owned(),
        ),
        (
            "load balancers by an unknown filter",
            "loadbalancers?colour=red".to_owned(),
        ),
    ] {
        walk.balance(name, get.clone(), &path, None).await;
    }
}
