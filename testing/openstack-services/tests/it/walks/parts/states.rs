//! What is refused while a change is under way or a quota is met, and which of the two comes first.

use bowline_openstack_services::Service::LoadBalancer;
use http::Method;
use serde_json::{Value, json};

use super::members::note_members;
use super::{Balancer, write};
use crate::walk::{Walk, text};

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

pub(super) async fn busy(walk: &mut Walk<'_>, lb: &Balancer) {
    let (post, put, delete) = (Method::POST, Method::PUT, Method::DELETE);
    let member = json!({ "address": "10.0.0.11", "protocol_port": 30080 });
    let made = lb
        .post(
            walk,
            "a member to change",
            &lb.members(),
            json!({ "member": member }),
        )
        .await;
    let member_path = format!("{}/{}", lb.members(), text(&made, "/member/id"));
    let monitor = json!({ "pool_id": lb.pool, "type": "TCP", "delay": 5, "timeout": 3, "max_retries": 1 });
    let made = lb
        .post(
            walk,
            "a monitor to change",
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

pub(super) async fn limits(walk: &mut Walk<'_>, lb: &Balancer) {
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
        lb.post(walk, name, path, body.clone()).await;
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
        lb.put(walk, name, &lb.members(), json!({ "members": members }))
            .await;
        note_members(walk, lb, name).await;
    }
    let both = json!({ "members": [member("10.0.0.12"), member("10.0.0.13")] });
    while_busy(walk, &lb.id, "limit and busy: members", put, &lb.members(), both).await;
    walk.ground.limit(LoadBalancer, "member", -1).await;
}
