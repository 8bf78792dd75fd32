//! Which change of a Service leads to a sync.
//!
//! Upstream's rule (`needsUpdate` of the service controller), condition by condition. What is not compared leads to no
//! sync: labels, selector, finalizers, cluster IPs, internal traffic policy, status and the rest.

use std::collections::BTreeMap;

use bowline_cloud_provider::k8s::{ServicePort, ServiceSpec};
use bowline_cloud_provider::{Pairs, Service, ServiceClasses, keys};

use crate::put_back::ADDRESS;

/// Whether the Service must be looked at again after this change.
///
/// `old` is the Service as it was last handed to a sync, with the annotations that this program has written since then:
/// so a change that is only our own writing is none.
pub(super) fn needs_update(classes: &ServiceClasses, old: &Service, new: &Service) -> bool {
    changed_entries(classes, old, new).is_none_or(|changed| !changed.is_empty())
}

/// What is another now of what this program writes as well: annotations and [`ADDRESS`], each with what it is now. `None`: something
/// else needs an update.
pub(super) fn changed_entries(
    classes: &ServiceClasses,
    old: &Service,
    new: &Service,
) -> Option<BTreeMap<String, Option<String>>> {
    match (classes.wants_load_balancer(old), classes.wants_load_balancer(new)) {
        (false, false) => return Some(BTreeMap::new()),
        (true, true) => {}
        _ => return None,
    }
    if spec_differs(old, new) {
        return None;
    }
    let none = Pairs::default();
    let [had, has] = [old, new].map(|service| service.metadata.annotations.as_ref().unwrap_or(&none));
    let is_other = |key: &&str| had.get(key) != has.get(key) && *key != keys::ANNOTATION_CLASS;
    let keys = had.keys().chain(has.keys()).filter(is_other);
    let mut changed: BTreeMap<_, _> = keys.map(|key| (key.to_owned(), has.get(key).cloned())).collect();
    let address = address(new);
    if self::address(old) != address {
        changed.insert(ADDRESS.to_owned(), address.map(str::to_owned));
    }
    Some(changed)
}

/// `spec.loadBalancerIP`, if it is set.
pub(super) fn address(service: &Service) -> Option<&str> {
    let address = service.spec.as_ref()?.load_balancer_ip.as_deref()?;
    (!address.is_empty()).then_some(address)
}

fn spec_differs(old: &Service, new: &Service) -> bool {
    let none = ServiceSpec::default();
    let (a, b) = (
        old.spec.as_ref().unwrap_or(&none),
        new.spec.as_ref().unwrap_or(&none),
    );
    entries(&a.load_balancer_source_ranges) != entries(&b.load_balancer_source_ranges)
        || ports_differ(entries(&a.ports), entries(&b.ports))
        || a.session_affinity != b.session_affinity
        || a.session_affinity_config != b.session_affinity_config
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

    fn needs_update(old: &Service, new: &Service) -> bool {
        super::needs_update(ServiceClasses::upstream(), old, new)
    }

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
