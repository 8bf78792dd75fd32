//! Members: what a write leaves out, and twins.

use bowline_openstack_services::Service::LoadBalancer;
use http::Method;
use serde_json::{Value, json};

use super::{Balancer, NOBODY};
use crate::walk::{Walk, text};

/// Keeps what a list of members says of them, numbers included.
pub(super) async fn note_members(walk: &mut Walk<'_>, lb: &Balancer, name: &'static str) {
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

pub(super) async fn members(walk: &mut Walk<'_>, lb: &Balancer) {
    let path = lb.members();
    let full = json!({ "member": {
        "address": "10.0.0.11", "protocol_port": 30080, "subnet_id": lb.subnet, "name": "node-1", "weight": 5, "backup": true,
        "admin_state_up": false, "monitor_port": 31000, "monitor_address": "10.0.0.111", "tags": ["t"],
    } });
    let made = lb.post(walk, "a member with all it may have", &path, full).await;
    let member = format!("{path}/{}", text(&made, "/member/id"));
    note_members(walk, lb, "it has all that").await;
    for (name, fields) in [
        ("a change of its name", json!({ "name": "node-one" })),
        ("no name", json!({ "name": null })),
        ("no weight", json!({ "weight": null, "backup": null })),
        ("weight and standby again", json!({ "weight": 7, "backup": true })),
    ] {
        lb.put(walk, name, &member, json!({ "member": fields })).await;
        note_members(walk, lb, name).await;
    }
    for (name, fields) in [
        ("its address cannot be changed", json!({ "address": "10.0.0.12" })),
        ("a weight above all", json!({ "weight": 257 })),
        ("a weight that is a word", json!({ "weight": "much" })),
    ] {
        lb.put(walk, name, &member, json!({ "member": fields })).await;
    }
    // An entry that says nothing but which member it is.
    let bare = json!({ "members": [{ "address": "10.0.0.11", "protocol_port": 30080 }] });
    lb.put(walk, "a batch with a bare entry", &path, bare).await;
    note_members(walk, lb, "a batch with a bare entry").await;
}

pub(super) async fn twins(walk: &mut Walk<'_>, lb: &Balancer) {
    let path = lb.members();
    let member =
        |address: &str| json!({ "address": address, "protocol_port": 30080, "subnet_id": lb.subnet });
    let one = json!({ "member": member("10.0.0.11") });
    lb.post(walk, "a member like another one", &path, one).await;
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
        lb.put(walk, name, &path, json!({ "members": members })).await;
    }
    note_members(walk, lb, "after twins").await;
}

pub(super) async fn batches(walk: &mut Walk<'_>, lb: &Balancer) {
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
        lb.put(walk, name, &path, json!({ "members": members })).await;
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
    lb.put(walk, "no list at all", &path, json!({})).await;
}
