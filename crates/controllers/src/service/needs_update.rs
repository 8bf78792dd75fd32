//! Which change of a Service leads to a sync.
//!
//! Upstream's rule (`needsUpdate` of the service controller), condition by condition. What is not compared leads to no
//! sync: labels, selector, finalizers, cluster IPs, internal traffic policy, status and the rest.

use std::collections::BTreeMap;

use bowline_cloud_provider::{Service, facts};
use k8s_openapi::api::core::v1::{ServicePort, ServiceSpec};

/// Whether the Service must be looked at again after this change.
///
/// `old` is the Service as it was last handed to a sync, with the annotations that this program has written since then:
/// so a change that is only our own writing is none.
pub(super) fn needs_update(old: &Service, new: &Service) -> bool {
    let shown = [old, new].map(|service| service.metadata.annotations.iter().flatten());
    let [old_annotations, new_annotations] = shown;
    let are_wanted = facts::wants_load_balancer(old) && facts::wants_load_balancer(new);
    is_more_than_annotations(old, new) || are_wanted && !old_annotations.eq(new_annotations)
}

/// The annotations that are others now, each with what it is now; `None`: something else needs an update.
pub(super) fn changed_annotations(old: &Service, new: &Service) -> Option<BTreeMap<String, Option<String>>> {
    if is_more_than_annotations(old, new) {
        return None;
    }
    let none = BTreeMap::new();
    let [old, new] = [old, new].map(|service| service.metadata.annotations.as_ref().unwrap_or(&none));
    let is_other = |key: &&String| old.get(*key) != new.get(*key);
    let keys = old.keys().chain(new.keys()).filter(is_other);
    Some(keys.map(|key| (key.clone(), new.get(key).cloned())).collect())
}

fn is_more_than_annotations(old: &Service, new: &Service) -> bool {
    match (facts::wants_load_balancer(old), facts::wants_load_balancer(new)) {
        (false, false) => return false,
        (true, true) => {}
        _ => return true,
    }
    let none = ServiceSpec::default();
    let (a, b) = (
        old.spec.as_ref().unwrap_or(&none),
        new.spec.as_ref().unwrap_or(&none),
    );
    entries(&a.load_balancer_source_ranges) != entries(&b.load_balancer_source_ranges)
        || ports_differ(entries(&a.ports), entries(&b.ports))
        || a.session_affinity != b.session_affinity
        || a.session_affinity_config != b.session_affinity_config
        || text(&a.load_balancer_ip) != text(&b.load_balancer_ip)
        || entries(&a.external_ips) != entries(&b.external_ips)
        || old.metadata.uid != new.metadata.uid
        || text(&a.external_traffic_policy) != text(&b.external_traffic_policy)
        || a.health_check_node_port.unwrap_or(0) != b.health_check_node_port.unwrap_or(0)
        || entries(&a.ip_families).len() != entries(&b.ip_families).len()
}

fn entries<T>(list: &Option<Vec<T>>) -> &[T] {
    list.as_deref().unwrap_or_default()
}

fn text(field: &Option<String>) -> &str {
    field.as_deref().unwrap_or_default()
}

fn ports_differ(old: &[ServicePort], new: &[ServicePort]) -> bool {
    old.len() != new.len()
        || old.iter().zip(new).any(|(a, b)| {
            text(&a.name) != text(&b.name)
                || a.protocol != b.protocol
                || a.port != b.port
                || a.node_port.unwrap_or(0) != b.node_port.unwrap_or(0)
                || a.target_port != b.target_port
                || a.app_protocol != b.app_protocol
        })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn service(patch: Value) -> Service {
        let mut object = json!({
            "metadata": { "name": "web", "namespace": "default", "uid": "u-1", "annotations": { "a": "1" } },
            "spec": {
                "type": "LoadBalancer",
                "ports": [{ "name": "http", "protocol": "TCP", "port": 80, "nodePort": 30080, "targetPort": 8080 }],
                "ipFamilies": ["IPv4"],
            },
        });
        merge(&mut object, &patch);
        serde_json::from_value(object).unwrap()
    }

    fn merge(into: &mut Value, patch: &Value) {
        match (into, patch) {
            (Value::Object(into), Value::Object(patch)) => {
                for (key, value) in patch {
                    merge(into.entry(key.clone()).or_insert(Value::Null), value);
                }
            }
            (into, patch) => *into = patch.clone(),
        }
    }

    fn port(field: &str, value: Value) -> Value {
        let mut port =
            json!({ "name": "http", "protocol": "TCP", "port": 80, "nodePort": 30080, "targetPort": 8080 });
        port[field] = value;
        json!({ "spec": { "ports": [port] } })
    }

    #[test]
    fn every_listed_change_leads_to_a_sync() {
        for change in [
            json!({ "spec": { "type": "ClusterIP" } }),
            json!({ "spec": { "loadBalancerSourceRanges": ["192.0.2.0/24"] } }),
            port("port", json!(81)),
            port("nodePort", json!(30081)),
            port("targetPort", json!("web")),
            port("name", json!("web")),
            port("protocol", json!("UDP")),
            port("appProtocol", json!("h2c")),
            json!({ "spec": { "ports": [] } }),
            json!({ "spec": { "sessionAffinity": "ClientIP" } }),
            json!({ "spec": { "sessionAffinityConfig": { "clientIP": { "timeoutSeconds": 5 } } } }),
            json!({ "spec": { "loadBalancerIP": "192.0.2.7" } }),
            json!({ "spec": { "externalIPs": ["192.0.2.7"] } }),
            json!({ "metadata": { "annotations": { "a": "2" } } }),
            json!({ "metadata": { "annotations": { "b": "" } } }),
            json!({ "metadata": { "uid": "u-2" } }),
            json!({ "spec": { "externalTrafficPolicy": "Local" } }),
            json!({ "spec": { "healthCheckNodePort": 32000 } }),
            json!({ "spec": { "ipFamilies": ["IPv4", "IPv6"] } }),
        ] {
            assert!(
                needs_update(&service(json!({})), &service(change.clone())),
                "{change}"
            );
        }
    }

    #[test]
    fn other_changes_do_not() {
        for change in [
            json!({ "metadata": { "labels": { "a": "b" } } }),
            json!({ "metadata": { "finalizers": ["x"] } }),
            json!({ "metadata": { "deletionTimestamp": "2026-01-01T00:00:00Z" } }),
            json!({ "spec": { "selector": { "a": "b" } } }),
            json!({ "spec": { "clusterIP": "10.96.0.9" } }),
            json!({ "spec": { "ipFamilies": ["IPv6"] } }),
            json!({ "spec": { "internalTrafficPolicy": "Local" } }),
            json!({ "spec": { "publishNotReadyAddresses": true } }),
            json!({ "spec": { "loadBalancerSourceRanges": [] } }),
            json!({ "status": { "loadBalancer": { "ingress": [{ "ip": "192.0.2.7" }] } } }),
        ] {
            assert!(
                !needs_update(&service(json!({})), &service(change.clone())),
                "{change}"
            );
        }
    }

    #[test]
    fn a_service_of_a_class_is_not_ours_before_or_after() {
        let class = json!({ "spec": { "loadBalancerClass": "other" } });
        assert!(!needs_update(
            &service(class.clone()),
            &service(json!({ "spec": { "loadBalancerClass": "other", "externalIPs": ["192.0.2.1"] } }))
        ));
        assert!(needs_update(&service(class), &service(json!({}))));
    }
}
