//! Parts of load balancers, one by one: what a write leaves out, twins, what goes with what, and what is refused while something
//! is under way.

use bowline_openstack_services::Service::{LoadBalancer, Network};
use http::Method;
use serde_json::{Value, json};

use crate::walk::{Walk, text};

/// An id that nothing has.
const NOBODY: &str = "00000000-0000-4000-8000-00000000dead";

pub(super) async fn walk(walk: &mut Walk<'_>) {
    let subnets = walk.look(Network, "/v2.0/subnets?cidr=10.0.0.0%2F24").await.body;
    let lb = balancer(walk, text(&subnets, "/subnets/0/id")).await;
    members(walk, &lb).await;
    twins(walk, &lb).await;
    batches(walk, &lb).await;
    pools(walk, &lb).await;
    monitors(walk, &lb).await;
    families(walk, &lb).await;
    busy(walk, &lb).await;
    limits(walk, &lb).await;
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

/// Keeps what a list of members says of them, numbers included.
async fn note_members(walk: &mut Walk<'_>, lb: &Balancer, name: &'static str) {
    let path = format!("/v2.0/lbaas/{}", lb.members());
    let shown = walk.look(LoadBalancer, &path).await.body;
    let mut said: Vec<String> = Vec::new();
    for member in shown["members"].as_array().unwrap() {
        let word = |field: &str| match &member[field] {
            Value::String(text) => text.replace('.', "_"),
            other => other.to_string().replace('"', ""),
        };
        let fields = [
            "address",
            "name",
            "weight",
            "backup",
            "admin_state_up",
            "monitor_port",
            "monitor_address",
            "tags",
        ];
        let fields = fields.map(|field| format!("{field}-is-{}", word(field)));
        said.push(format!(
            "{} subnet-{}",
            fields.join(" "),
            member["subnet_id"].is_string()
        ));
    }
    said.sort();
    walk.note(name, json!(said));
}

async fn members(walk: &mut Walk<'_>, lb: &Balancer) {
    let path = lb.members();
    let full = json!({ "member": {
        "address": "10.0.0.11", "protocol_port": 30080, "subnet_id": lb.subnet, "name": "node-1", "weight": 5, "backup": true,
        "admin_state_up": false, "monitor_port": 31000, "monitor_address": "10.0.0.111", "tags": ["t"],
    } });
    let made = write(
        walk,
        &lb.id,
        "a member with all it may have",
        Method::POST,
        &path,
        full,
    )
    .await;
    let member = format!("{path}/{}", text(&made, "/member/id"));
    note_members(walk, lb, "it has all that").await;
    for (name, fields) in [
        ("a change of its name", json!({ "name": "node-one" })),
        ("no name", json!({ "name": null })),
        ("no weight", json!({ "weight": null, "backup": null })),
        ("weight and standby again", json!({ "weight": 7, "backup": true })),
    ] {
        write(
            walk,
            &lb.id,
            name,
            Method::PUT,
            &member,
            json!({ "member": fields }),
        )
        .await;
        note_members(walk, lb, name).await;
    }
    for (name, fields) in [
        ("its address cannot be changed", json!({ "address": "10.0.0.12" })),
        ("a weight above all", json!({ "weight": 257 })),
        ("a weight that is a word", json!({ "weight": "much" })),
    ] {
        write(
            walk,
            &lb.id,
            name,
            Method::PUT,
            &member,
            json!({ "member": fields }),
        )
        .await;
    }
    // An entry that says nothing but which member it is.
    let bare = json!({ "members": [{ "address": "10.0.0.11", "protocol_port": 30080 }] });
    write(
        walk,
        &lb.id,
        "a batch with a bare entry",
        Method::PUT,
        &path,
        bare,
    )
    .await;
    note_members(walk, lb, "a batch with a bare entry").await;
}

async fn twins(walk: &mut Walk<'_>, lb: &Balancer) {
    let path = lb.members();
    let member =
        |address: &str| json!({ "address": address, "protocol_port": 30080, "subnet_id": lb.subnet });
    let one = json!({ "member": member("10.0.0.11") });
    write(
        walk,
        &lb.id,
        "a member like another one",
        Method::POST,
        &path,
        one,
    )
    .await;
    for (name, members) in [
        (
            "a batch with one that is there twice",
            json!([member("10.0.0.11"), member("10.0.0.11")]),
        ),
        (
            "a batch with a new one twice",
            json!([member("10.0.0.11"), member("10.0.0.12"), member("10.0.0.12")]),
        ),
    ] {
        write(
            walk,
            &lb.id,
            name,
            Method::PUT,
            &path,
            json!({ "members": members }),
        )
        .await;
    }
    note_members(walk, lb, "after twins").await;
}

async fn batches(walk: &mut Walk<'_>, lb: &Balancer) {
    let path = lb.members();
    let member = |address: &str, more: Value| {
        let mut base = json!({ "address": address, "protocol_port": 30080 });
        for (name, value) in more.as_object().unwrap() {
            base[name] = value.clone();
        }
        base
    };
    for (name, query, members) in [
        (
            "a batch that only adds",
            "?additive_only=true",
            json!([member("10.0.0.12", json!({ "weight": 3 }))]),
        ),
        (
            "a member of an unknown subnet",
            "",
            json!([member("10.0.0.13", json!({ "subnet_id": NOBODY }))]),
        ),
        (
            "an unknown subnet of one that is there",
            "",
            json!([member("10.0.0.12", json!({ "subnet_id": NOBODY }))]),
        ),
        (
            "a reserved address",
            "",
            json!([member("169.254.169.254", json!({}))]),
        ),
        (
            "an address that is none",
            "",
            json!([member("node-1", json!({}))]),
        ),
        (
            "an unknown field of an entry",
            "",
            json!([member("10.0.0.12", json!({ "colour": "red" }))]),
        ),
        ("a member without a port", "", json!([{ "address": "10.0.0.12" }])),
        ("no members", "", json!([])),
    ] {
        let path = format!("{path}{query}");
        write(
            walk,
            &lb.id,
            name,
            Method::PUT,
            &path,
            json!({ "members": members }),
        )
        .await;
        note_members(walk, lb, name).await;
    }
    // Nothing is under way after it, so nothing is waited for.
    walk.balance(
        "no members of an empty pool",
        Method::PUT,
        &path,
        Some(json!({ "members": [] })),
    )
    .await;
    walk.balance(
        "it changes nothing",
        Method::GET,
        &format!("loadbalancers/{}", lb.id),
        None,
    )
    .await;
    write(walk, &lb.id, "no list at all", Method::PUT, &path, json!({})).await;
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
        write(walk, &lb.id, name, Method::POST, "pools", pool(fields)).await;
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
        write(walk, &lb.id, name, Method::PUT, &path, json!({ "pool": fields })).await;
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
        write(
            walk,
            &lb.id,
            name,
            Method::POST,
            "healthmonitors",
            monitor(fields),
        )
        .await;
    }
    let made = write(
        walk,
        &lb.id,
        "a monitor",
        Method::POST,
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
        write(
            walk,
            &lb.id,
            name,
            Method::PUT,
            &path,
            json!({ "healthmonitor": fields }),
        )
        .await;
    }
    write(
        walk,
        &lb.id,
        "delete the monitor",
        Method::DELETE,
        &path,
        Value::Null,
    )
    .await;
    write(
        walk,
        &lb.id,
        "delete the monitor again",
        Method::DELETE,
        &path,
        Value::Null,
    )
    .await;
}

/// What carries datagrams does not translate between the families.
async fn families(walk: &mut Walk<'_>, lb: &Balancer) {
    let post = Method::POST;
    let fields = json!({ "listener": { "loadbalancer_id": lb.id, "protocol": "UDP", "protocol_port": 53 } });
    let made = write(
        walk,
        &lb.id,
        "a listener for UDP",
        post.clone(),
        "listeners",
        fields,
    )
    .await;
    let listener = text(&made, "/listener/id").to_owned();
    let fields =
        json!({ "pool": { "listener_id": listener, "protocol": "UDP", "lb_algorithm": "ROUND_ROBIN" } });
    let made = write(walk, &lb.id, "a pool for UDP", post.clone(), "pools", fields).await;
    let pool = text(&made, "/pool/id").to_owned();
    let members = format!("pools/{pool}/members");
    let member = json!({ "address": "fd00:10::11", "protocol_port": 30053 });
    let one = json!({ "member": member });
    write(
        walk,
        &lb.id,
        "a member of the other family for UDP",
        post.clone(),
        &members,
        one.clone(),
    )
    .await;
    write(
        walk,
        &lb.id,
        "a batch of the other family for UDP",
        Method::PUT,
        &members,
        json!({ "members": [member] }),
    )
    .await;
    write(
        walk,
        &lb.id,
        "a member of the other family",
        post.clone(),
        &lb.members(),
        one,
    )
    .await;
    for (name, kind, delay) in [
        ("a monitor of echoes of a pool for UDP", "PING", 5),
        ("a quick monitor for UDP", "UDP-CONNECT", 1),
        ("a monitor for SCTP of a pool for UDP", "SCTP", 5),
    ] {
        let monitor = json!({ "healthmonitor": { "pool_id": pool, "type": kind, "delay": delay, "timeout": 3, "max_retries": 1 } });
        write(walk, &lb.id, name, post.clone(), "healthmonitors", monitor).await;
    }
    write(
        walk,
        &lb.id,
        "delete the listener for UDP",
        Method::DELETE,
        &format!("listeners/{listener}"),
        Value::Null,
    )
    .await;
    walk.balance("its pool stays", Method::GET, &format!("pools/{pool}"), None)
        .await;
    write(
        walk,
        &lb.id,
        "delete the pool for UDP",
        Method::DELETE,
        &format!("pools/{pool}"),
        Value::Null,
    )
    .await;
}

/// Makes a request while a change of the load balancer is under way.
async fn while_busy(
    walk: &mut Walk<'_>,
    lb: &str,
    name: &'static str,
    method: Method,
    path: &str,
    body: Value,
) {
    let change = json!({ "loadbalancer": { "description": name } });
    let path_of_change = format!("/v2.0/lbaas/loadbalancers/{lb}");
    let changed = walk
        .session()
        .call(LoadBalancer, Method::PUT, &path_of_change, Some(change))
        .await;
    changed.unwrap().ok().unwrap();
    write(walk, lb, name, method, path, body).await;
}

async fn busy(walk: &mut Walk<'_>, lb: &Balancer) {
    let (post, put, delete) = (Method::POST, Method::PUT, Method::DELETE);
    let member = json!({ "address": "10.0.0.11", "protocol_port": 30080 });
    let made = write(
        walk,
        &lb.id,
        "a member to change",
        post.clone(),
        &lb.members(),
        json!({ "member": member }),
    )
    .await;
    let member_path = format!("{}/{}", lb.members(), text(&made, "/member/id"));
    let monitor = json!({ "pool_id": lb.pool, "type": "TCP", "delay": 5, "timeout": 3, "max_retries": 1 });
    let made = write(
        walk,
        &lb.id,
        "a monitor to change",
        post.clone(),
        "healthmonitors",
        json!({ "healthmonitor": monitor }),
    )
    .await;
    let monitor_path = format!("healthmonitors/{}", text(&made, "/healthmonitor/id"));
    let (listener, pool) = (format!("listeners/{}", lb.listener), format!("pools/{}", lb.pool));
    let named = |kind: &str| json!({ kind: { "name": "other" } });
    let new = json!({ "loadbalancer_id": lb.id, "protocol": "TCP", "protocol_port": 81 });
    let new_pool = json!({ "loadbalancer_id": lb.id, "protocol": "TCP", "lb_algorithm": "ROUND_ROBIN" });
    let other_family = json!({ "listener": { "allowed_cidrs": ["fd00::/8"] } });
    let steps = [
        (
            "busy: a load balancer",
            put.clone(),
            format!("loadbalancers/{}", lb.id),
            named("loadbalancer"),
        ),
        (
            "busy: a new listener",
            post.clone(),
            "listeners".to_owned(),
            json!({ "listener": new }),
        ),
        (
            "busy: a listener",
            put.clone(),
            listener.clone(),
            named("listener"),
        ),
        (
            "busy: a listener with a fault",
            put.clone(),
            listener.clone(),
            other_family,
        ),
        ("busy: a listener goes", delete.clone(), listener, Value::Null),
        (
            "busy: a new pool",
            post.clone(),
            "pools".to_owned(),
            json!({ "pool": new_pool }),
        ),
        ("busy: a pool", put.clone(), pool.clone(), named("pool")),
        ("busy: a pool goes", delete.clone(), pool, Value::Null),
        (
            "busy: a new member",
            post.clone(),
            lb.members(),
            json!({ "member": { "address": "10.0.0.12", "protocol_port": 30080 } }),
        ),
        (
            "busy: a member",
            put.clone(),
            member_path.clone(),
            named("member"),
        ),
        (
            "busy: members",
            put.clone(),
            lb.members(),
            json!({ "members": [member] }),
        ),
        ("busy: a member goes", delete.clone(), member_path, Value::Null),
        (
            "busy: a second monitor",
            post,
            "healthmonitors".to_owned(),
            json!({ "healthmonitor": monitor }),
        ),
        (
            "busy: a monitor",
            put,
            monitor_path.clone(),
            named("healthmonitor"),
        ),
        ("busy: a monitor goes", delete.clone(), monitor_path, Value::Null),
        (
            "busy: all goes",
            delete,
            format!("loadbalancers/{}?cascade=true", lb.id),
            Value::Null,
        ),
    ];
    for (name, method, path, body) in steps {
        while_busy(walk, &lb.id, name, method, &path, body).await;
    }
}

async fn limits(walk: &mut Walk<'_>, lb: &Balancer) {
    let (post, put) = (Method::POST, Method::PUT);
    let listener =
        json!({ "listener": { "loadbalancer_id": lb.id, "protocol": "TCP", "protocol_port": 81 } });
    let pool =
        json!({ "pool": { "loadbalancer_id": lb.id, "protocol": "TCP", "lb_algorithm": "ROUND_ROBIN" } });
    let monitor = json!({ "healthmonitor": { "pool_id": lb.pool, "type": "TCP", "delay": 5, "timeout": 3, "max_retries": 1 } });
    let member = |address: &str| json!({ "address": address, "protocol_port": 30080 });
    for (name, busy, of, path, body) in [
        (
            "limit: a listener",
            "limit and busy: a listener",
            "listener",
            "listeners",
            listener,
        ),
        ("limit: a pool", "limit and busy: a pool", "pool", "pools", pool),
        (
            "limit: a monitor",
            "limit and busy: a monitor",
            "health_monitor",
            "healthmonitors",
            monitor,
        ),
        (
            "limit: a member",
            "limit and busy: a member",
            "member",
            &*lb.members(),
            json!({ "member": member("10.0.0.12") }),
        ),
    ] {
        walk.ground.limit(LoadBalancer, of, 1).await;
        write(walk, &lb.id, name, post.clone(), path, body.clone()).await;
        while_busy(walk, &lb.id, busy, post.clone(), path, body).await;
        walk.ground.limit(LoadBalancer, of, -1).await;
    }
    walk.ground.limit(LoadBalancer, "member", 1).await;
    for (name, members) in [
        ("limit: one member for another", json!([member("10.0.0.12")])),
        (
            "limit: one member more",
            json!([member("10.0.0.12"), member("10.0.0.13")]),
        ),
    ] {
        write(
            walk,
            &lb.id,
            name,
            put.clone(),
            &lb.members(),
            json!({ "members": members }),
        )
        .await;
        note_members(walk, lb, name).await;
    }
    let both = json!({ "members": [member("10.0.0.12"), member("10.0.0.13")] });
    while_busy(walk, &lb.id, "limit and busy: members", put, &lb.members(), both).await;
    walk.ground.limit(LoadBalancer, "member", -1).await;
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
    write(walk, &lb.id, "the pool goes", Method::DELETE, &pool, Value::Null).await;
    for (name, path) in [
        ("its listener stays without it", &listener),
        ("its monitor is gone", &monitor),
        ("its members are gone", &lb.members()),
    ] {
        walk.balance(name, Method::GET, path, None).await;
    }
    let fields = json!({ "listener": { "default_pool_id": NOBODY } });
    write(
        walk,
        &lb.id,
        "an unknown pool of a listener",
        Method::PUT,
        &listener,
        fields,
    )
    .await;
    let pool = json!({ "name": "p", "protocol": "TCP", "lb_algorithm": "ROUND_ROBIN" });
    let nested = json!({ "listener": { "loadbalancer_id": lb.id, "protocol": "TCP", "protocol_port": 82, "default_pool": pool } });
    write(
        walk,
        &lb.id,
        "a listener with a pool within",
        Method::POST,
        "listeners",
        nested,
    )
    .await;
}
