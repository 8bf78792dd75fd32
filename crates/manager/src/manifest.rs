//! Services of a file that is not applied yet, as the API server would keep them.

use std::sync::Arc;

use bowline_cloud_provider::{Service, ServiceKey};
use serde_json::{Value, json};

/// The first port that is put where the API server would choose one.
const NODE_PORTS: u16 = 30_000;

/// Reads the Services of a file, YAML or JSON, of one document or several; other objects are left out. What the API server would fill in
/// is filled in: of a Service that is in the cluster already it stays, such as UID, status and node ports.
///
/// # Errors
///
/// It is no such file, or holds no Service.
pub(crate) fn services(
    contents: &[u8],
    namespace: &str,
    known: &[Arc<Service>],
) -> Result<Vec<Arc<Service>>, String> {
    let documents: Vec<Value> =
        bowline_transport::yaml::documents(contents, &[]).map_err(|error| error.to_string())?;
    let objects = documents
        .into_iter()
        .flat_map(|document| match document["kind"].as_str() {
            Some("List" | "ServiceList") => document["items"].as_array().cloned().unwrap_or_default(),
            _ => vec![document],
        });
    let mut services = Vec::new();
    for mut object in objects {
        // The items of a ServiceList have no kind.
        if object["kind"].as_str().is_some_and(|kind| kind != "Service") || !object["spec"].is_object() {
            continue;
        }
        let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        if name.is_empty() {
            return Err("a Service has no metadata.name".to_owned());
        }
        let namespace = object["metadata"]["namespace"]
            .as_str()
            .unwrap_or(namespace)
            .to_owned();
        object["metadata"]["namespace"] = json!(namespace);
        let key = ServiceKey::new(&*namespace, &*name);
        let live = known.iter().find(|it| ServiceKey::of(it) == key);
        let live = live.and_then(|live| serde_json::to_value(&**live).ok());
        fill_in(&mut object, live.as_ref(), services.len());
        let service = serde_json::from_value(object).map_err(|error| format!("Service {key}: {error}"))?;
        services.push(Arc::new(service));
    }
    if services.is_empty() {
        return Err("it holds no Service".to_owned());
    }
    Ok(services)
}

fn fill_in(object: &mut Value, live: Option<&Value>, index: usize) {
    let nothing = json!({});
    let live_of = |part: &str| live.map_or(&nothing, |live| &live[part]);
    for field in [
        "uid",
        "resourceVersion",
        "creationTimestamp",
        "finalizers",
        "deletionTimestamp",
    ] {
        if let Some(value) = live_of("metadata").get(field) {
            object["metadata"][field] = value.clone();
        }
    }
    if let Some(Value::Object(annotations)) = live_of("metadata").get("annotations") {
        let mut all = annotations.clone();
        if let Value::Object(own) = object["metadata"]["annotations"].take() {
            all.extend(own);
        }
        object["metadata"]["annotations"] = Value::Object(all);
    }
    if object["metadata"]["uid"].is_null() {
        object["metadata"]["uid"] = json!(format!("00000000-0000-4000-8000-{index:012}"));
    }
    object["status"] = live.map_or_else(|| json!({}), |live| live["status"].clone());
    let kind = object["spec"]["type"].as_str().unwrap_or("ClusterIP").to_owned();
    object["spec"]["type"] = json!(kind);
    for field in [
        "clusterIP",
        "clusterIPs",
        "ipFamilies",
        "ipFamilyPolicy",
        "healthCheckNodePort",
    ] {
        if object["spec"][field].is_null()
            && let Some(value) = live_of("spec").get(field)
        {
            object["spec"][field] = value.clone();
        }
    }
    if object["spec"]["ipFamilies"].is_null() {
        object["spec"]["ipFamilies"] = json!(["IPv4"]);
    }
    let is_local = object["spec"]["externalTrafficPolicy"] == "Local";
    let has_node_ports = kind == "NodePort"
        || kind == "LoadBalancer" && object["spec"]["allocateLoadBalancerNodePorts"] != false;
    if kind == "LoadBalancer" && is_local && object["spec"]["healthCheckNodePort"].is_null() {
        object["spec"]["healthCheckNodePort"] = json!(NODE_PORTS + 2_767);
    }
    let ports = object["spec"]["ports"].as_array_mut();
    for (port, number) in ports.into_iter().flatten().zip(NODE_PORTS..) {
        let default = |port: &mut Value, field: &str, value: Value| {
            if port[field].is_null() {
                port[field] = value;
            }
        };
        default(port, "protocol", json!("TCP"));
        let target = port["port"].clone();
        default(port, "targetPort", target);
        if has_node_ports && port["nodePort"].is_null() {
            let same = live_of("spec")["ports"].as_array().into_iter().flatten();
            let mut same = same.filter(|it| it["port"] == port["port"] && it["protocol"] == port["protocol"]);
            let kept = same.next().map(|it| it["nodePort"].clone());
            port["nodePort"] = kept.unwrap_or_else(|| json!(number));
        }
    }
}

#[cfg(test)]
mod tests {
    use bowline_cloud_provider::{ServiceClasses, facts};

    use super::*;

    const FILE: &str = "
apiVersion: v1
kind: ConfigMap
metadata: {name: other}
---
apiVersion: v1
kind: Service
metadata:
  name: web
  annotations: {a: new}
spec:
  type: LoadBalancer
  ports:
    - {name: http, port: 80}
    - {name: dns, port: 53, protocol: UDP}
";

    #[test]
    fn a_service_of_a_file_gets_what_the_api_server_would_fill_in() {
        let read = services(FILE.as_bytes(), "shop", &[]).unwrap();
        let service = &read[0];
        assert_eq!(
            (read.len(), ServiceKey::of(service).to_string()),
            (1, "shop/web".to_owned())
        );
        assert!(ServiceClasses::upstream().is_wanted(service));
        let ports = service.spec.as_ref().unwrap().ports.as_ref().unwrap();
        let told: Vec<_> = ports
            .iter()
            .map(|it| (it.port, it.protocol.as_deref(), it.node_port))
            .collect();
        assert_eq!(
            told,
            [(80, Some("TCP"), Some(30_000)), (53, Some("UDP"), Some(30_001))]
        );
    }

    #[test]
    fn of_a_service_that_is_in_the_cluster_stays_what_the_file_does_not_say() {
        let live: Service = serde_json::from_value(json!({
            "metadata": { "namespace": "shop", "name": "web", "uid": "u-1", "annotations": { "a": "old", "b": "kept" } },
            "spec": { "type": "LoadBalancer", "ports": [{ "port": 80, "protocol": "TCP", "nodePort": 31_234 }] },
            "status": { "loadBalancer": { "ingress": [{ "ip": "192.0.2.1" }] } },
        }))
        .unwrap();
        let read = services(FILE.as_bytes(), "shop", &[Arc::new(live)]).unwrap();
        let service = &read[0];
        assert_eq!(service.metadata.uid.as_deref(), Some("u-1"));
        assert_eq!(facts::published_addresses(service), ["192.0.2.1"]);
        assert_eq!(
            (facts::annotation(service, "a"), facts::annotation(service, "b")),
            (Some("new"), Some("kept"))
        );
        let ports = service.spec.as_ref().unwrap().ports.as_ref().unwrap();
        assert_eq!(ports[0].node_port, Some(31_234));
    }

    #[test]
    fn a_file_without_services_and_one_that_is_none_are_refused() {
        for (text, words) in [
            ("kind: Pod\nspec: {}\n", "holds no Service"),
            ("a: [", ""),
            ("kind: Service\nspec: {}\n", "no metadata.name"),
        ] {
            let error = services(text.as_bytes(), "default", &[]).unwrap_err();
            assert!(error.contains(words), "{error}");
        }
    }
}
