//! Telling what happens while it happens: in the cluster, and in the cloud.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use bowline_cloud_kit::{Entry, Outcome};
use serde_json::Value;

use crate::api::{Api, Change, follow};
use crate::cloud::{Cloud, Listener, Words};
use crate::narrative::Narrator;
use crate::service::list;

const UNINITIALIZED: &str = "node.cloudprovider.kubernetes.io/uninitialized";
const SHUTDOWN: &str = "node.cloudprovider.kubernetes.io/shutdown";

/// The Service of the API server itself, which is no part of the story.
pub(crate) const API_SERVER: &str = "kubernetes";

/// How often the cloud's journal is read.
const PERIOD: Duration = Duration::from_millis(50);

/// Reports on everything. Never returns; drop it to stop.
pub(crate) async fn run(api: Api, cloud: Arc<dyn Cloud>, narrator: Narrator) {
    let tell = |lines: Vec<String>| lines.iter().for_each(|line| narrator.tell(line));
    let words = cloud.words();
    let nodes = follow(api.clone(), "/api/v1/nodes", |change: Change<'_>| {
        tell(node(&change))
    });
    let services = follow(api.clone(), "/api/v1/services", |change: Change<'_>| {
        tell(service(&change, &words));
    });
    let events = follow(api, "/api/v1/events", |change: Change<'_>| {
        let news = change
            .new
            .filter(|new| new["involvedObject"]["name"] != API_SERVER);
        tell(news.map(event).into_iter().collect());
    });
    futures::join!(nodes, services, events, changes(&*cloud, &narrator));
}

/// What a change of a Node says.
fn node(change: &Change<'_>) -> Vec<String> {
    let (Some(node), Some(old)) = (change.new, change.old) else {
        let gone = change.old.map(|old| format!("node    {} is deleted", name(old)));
        return gone.filter(|_| change.new.is_none()).into_iter().collect();
    };
    let name = name(node);
    let mut lines = Vec::new();
    if has_taint(old, UNINITIALIZED) && !has_taint(node, UNINITIALIZED) {
        lines.push(format!("node    {name} is initialised: {}", identity(node)));
    }
    match (has_taint(old, SHUTDOWN), has_taint(node, SHUTDOWN)) {
        (false, true) => lines.push(format!("node    {name} is tainted: its instance is powered off")),
        (true, false) => lines.push(format!(
            "node    {name} is free of the taint for powered-off instances"
        )),
        _ => {}
    }
    let (before, after) = (ready(old), ready(node));
    if before != after && !before.is_empty() {
        lines.push(format!("node    {name} has Ready={after}"));
    }
    lines
}

fn identity(node: &Value) -> String {
    let label = |name: &str| node["metadata"]["labels"][name].as_str();
    let addresses: Vec<_> = list(&node["status"]["addresses"])
        .filter(|address| address["type"] != "Hostname")
        .filter_map(|address| address["address"].as_str())
        .collect();
    let place = match label("topology.kubernetes.io/zone") {
        Some(zone) => format!("zone {zone}"),
        None => format!("region {}", label("topology.kubernetes.io/region").unwrap_or("?")),
    };
    format!(
        "{}, {}, {place}, {}",
        node["spec"]["providerID"].as_str().unwrap_or("?"),
        label("node.kubernetes.io/instance-type").unwrap_or("?"),
        addresses.join(" ")
    )
}

/// What a change of a Service says.
fn service(change: &Change<'_>, words: &Words) -> Vec<String> {
    let Some(subject) = change.new.or(change.old) else {
        return Vec::new();
    };
    let name = name(subject);
    if name == API_SERVER {
        return Vec::new();
    }
    let (Some(new), Some(old)) = (change.new, change.old) else {
        return vec![match change.new {
            Some(new) => format!("service {name} is there: {}", asks_for(new)),
            None => format!("service {name} is gone"),
        }];
    };
    let mut lines = Vec::new();
    if asks_for(old) != asks_for(new) {
        lines.push(format!("service {name} is changed: {}", asks_for(new)));
    }
    if old["metadata"]["deletionTimestamp"].is_null() && !new["metadata"]["deletionTimestamp"].is_null() {
        lines.push(format!(
            "service {name} is being deleted, its finalizer holds it until {}",
            words.released
        ));
    }
    let (before, after) = (addresses(old), addresses(new));
    if before != after {
        lines.push(if after.is_empty() {
            format!("service {name} has no address any more")
        } else {
            format!("service {name} has the address {}", after.join(" and "))
        });
    }
    lines
}

fn asks_for(service: &Value) -> String {
    let spec = &service["spec"];
    let ports: Vec<_> = list(&spec["ports"])
        .map(|port| format!("{} at node port {}", port["port"], port["nodePort"]))
        .collect();
    format!(
        "{}, port {}",
        spec["type"].as_str().unwrap_or("?"),
        ports.join(", ")
    )
}

/// The addresses in a Service's status.
pub(crate) fn addresses(service: &Value) -> Vec<String> {
    list(&service["status"]["loadBalancer"]["ingress"])
        .filter_map(|entry| entry["ip"].as_str().or(entry["hostname"].as_str()))
        .map(str::to_owned)
        .collect()
}

fn event(event: &Value) -> String {
    let text = |field: &str| event[field].as_str().unwrap_or_default();
    let object = &event["involvedObject"];
    let times = match event["count"].as_u64() {
        Some(count) if count > 1 => format!(" ({count} times)"),
        _ => String::new(),
    };
    format!(
        "event   {} {} of {} {}: {}{times}",
        text("type"),
        text("reason"),
        object["kind"].as_str().unwrap_or_default(),
        object["name"].as_str().unwrap_or_default(),
        text("message").trim_end(),
    )
}

/// Tells each change in the cloud when it is made.
async fn changes(cloud: &dyn Cloud, narrator: &Narrator) {
    let mut mark = cloud.journal().mark();
    let mut waiting: Vec<u64> = Vec::new();
    let mut listeners = BTreeSet::new();
    let mut bill = cloud.bill();
    loop {
        let next = cloud.journal().mark();
        let fresh = cloud.journal().since(mark).into_iter();
        waiting.extend(fresh.filter(|entry| entry.write).map(|entry| entry.seq));
        mark = next;
        if !waiting.is_empty() {
            for entry in cloud.journal().filter(|entry| waiting.contains(&entry.seq)) {
                if let Some(outcome) = entry.outcome {
                    let failed = failed(&entry, outcome);
                    narrator.tell(format!("cloud   {}{failed}", cloud.describe(&entry)));
                    waiting.retain(|seq| *seq != entry.seq);
                }
            }
        }
        let found: BTreeSet<Listener> = cloud.listeners().into_iter().collect();
        for Listener { wanted, actual, .. } in found.difference(&listeners) {
            if wanted != actual {
                narrator.tell(format!(
                    "cloud   {wanted} cannot be bound here, it is at {actual}"
                ));
            }
        }
        listeners = found;
        let now = cloud.bill();
        if let Some(text) = now.as_ref().filter(|_| now != bill) {
            narrator.tell(format!("bill    {text}"));
        }
        bill = now;
        tokio::time::sleep(PERIOD).await;
    }
}

fn failed(entry: &Entry, outcome: Outcome) -> String {
    match (entry.status(), outcome) {
        (Some(200..300), _) => String::new(),
        (Some(status), _) => format!(": refused with {status}"),
        (None, outcome) => format!(": {outcome:?}").to_lowercase(),
    }
}

fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or("?")
}

/// Whether a Node has a taint with this key.
pub(crate) fn has_taint(node: &Value, key: &str) -> bool {
    list(&node["spec"]["taints"]).any(|taint| taint["key"] == key)
}

/// Whether a Node still waits for its cloud.
pub(crate) fn is_uninitialized(node: &Value) -> bool {
    has_taint(node, UNINITIALIZED)
}

/// Whether a Node is marked as powered off.
pub(crate) fn is_shut_down(node: &Value) -> bool {
    has_taint(node, SHUTDOWN)
}

/// The status of a Node's condition `Ready`; empty without it.
pub(crate) fn ready(node: &Value) -> &str {
    list(&node["status"]["conditions"])
        .find(|one| one["type"] == "Ready")
        .and_then(|one| one["status"].as_str())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn updated<'a>(old: &'a Value, new: &'a Value) -> Change<'a> {
        Change {
            old: Some(old),
            new: Some(new),
        }
    }

    #[test]
    fn a_node_without_its_first_taint_is_introduced() {
        let old = json!({
            "metadata": { "name": "a" },
            "spec": { "taints": [{ "key": UNINITIALIZED }] },
        });
        let new = json!({
            "metadata": { "name": "a", "labels": {
                "node.kubernetes.io/instance-type": "flex-16-4",
                "topology.kubernetes.io/zone": "rma1",
            }},
            "spec": { "providerID": "cloudscale://1" },
            "status": { "addresses": [
                { "type": "Hostname", "address": "a" },
                { "type": "InternalIP", "address": "127.10.0.2" },
            ]},
        });
        assert_eq!(
            node(&updated(&old, &new)),
            ["node    a is initialised: cloudscale://1, flex-16-4, zone rma1, 127.10.0.2"]
        );
        assert!(node(&updated(&new, &new)).is_empty());
    }

    #[test]
    fn a_service_tells_its_address_once() {
        let told = |old: &Value, new: &Value| service(&updated(old, new), &Words::BALANCER);
        let old = json!({ "metadata": { "name": "web" }, "spec": { "type": "LoadBalancer" } });
        let mut new = old.clone();
        new["status"]["loadBalancer"]["ingress"] = json!([{ "ip": "127.20.0.2" }, { "hostname": "b" }]);
        assert_eq!(told(&old, &new), ["service web has the address 127.20.0.2 and b"]);
        assert!(told(&new, &new).is_empty());
        assert_eq!(told(&new, &old), ["service web has no address any more"]);
    }

    #[test]
    fn repeated_events_are_counted() {
        let repeated = json!({
            "type": "Warning", "reason": "SyncLoadBalancerFailed", "message": "no", "count": 2,
            "involvedObject": { "kind": "Service", "name": "web" },
        });
        assert_eq!(
            event(&repeated),
            "event   Warning SyncLoadBalancerFailed of Service web: no (2 times)"
        );
    }
}
