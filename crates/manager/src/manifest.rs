//! Services of a file that is not applied yet, as the API server would keep them.

use std::sync::Arc;

use bowline_cloud_provider::effects::read_as;
use bowline_cloud_provider::k8s::{IntOrString, ObjectMeta};
use bowline_cloud_provider::{Service, ServiceKey};
use serde_json::{Value, json};

/// The first port that is put where the API server would choose one.
const NODE_PORTS: i32 = 30_000;

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
        let takes_node_ports = object["spec"]["allocateLoadBalancerNodePorts"] != false;
        object["status"] = Value::Null; // it says what was, perhaps elsewhere
        let mut service = read_as(&object).map_err(|error| format!("Service {key}: {error}"))?;
        fill_in(
            &mut service,
            live.map(|live| &**live),
            takes_node_ports,
            services.len(),
        );
        services.push(Arc::new(service));
    }
    if services.is_empty() {
        return Err("it holds no Service".to_owned());
    }
    Ok(services)
}

fn fill_in(service: &mut Service, live: Option<&Service>, takes_node_ports: bool, index: usize) {
    let nothing = Service::default();
    let live = live.unwrap_or(&nothing);
    let own = std::mem::take(&mut service.metadata);
    let mut annotations = live.metadata.annotations.clone();
    if let Some(own) = own.annotations {
        annotations.get_or_insert_default().extend(own);
    }
    let known = live.metadata.clone();
    let made_up = || Some(format!("00000000-0000-4000-8000-{index:012}"));
    service.metadata = ObjectMeta {
        annotations,
        name: own.name,
        namespace: own.namespace,
        uid: known.uid.or(own.uid).or_else(made_up),
        resource_version: known.resource_version.or(own.resource_version),
        creation_timestamp: known.creation_timestamp.or(own.creation_timestamp),
        deletion_timestamp: known.deletion_timestamp.or(own.deletion_timestamp),
        finalizers: known.finalizers.or(own.finalizers),
    };
    service.status = Some(live.status.clone().unwrap_or_default());
    let known = live.spec.clone().unwrap_or_default();
    let spec = service.spec.get_or_insert_default();
    let kind = spec.type_.get_or_insert_with(|| "ClusterIP".to_owned());
    let (is_balancer, is_node_port) = (kind == "LoadBalancer", kind == "NodePort");
    spec.cluster_ip = spec.cluster_ip.take().or(known.cluster_ip);
    spec.ip_families = spec.ip_families.take().or(known.ip_families);
    spec.ip_families.get_or_insert_with(|| vec!["IPv4".to_owned()]);
    spec.session_affinity.get_or_insert_with(|| "None".to_owned());
    if is_balancer || is_node_port {
        let policy = &mut spec.external_traffic_policy;
        policy.get_or_insert_with(|| "Cluster".to_owned());
    }
    spec.health_check_node_port = spec.health_check_node_port.or(known.health_check_node_port);
    if is_balancer && spec.external_traffic_policy.as_deref() == Some("Local") {
        spec.health_check_node_port.get_or_insert(NODE_PORTS + 2_767);
    }
    for (port, number) in spec.ports.iter_mut().flatten().zip(NODE_PORTS..) {
        port.protocol.get_or_insert_with(|| "TCP".to_owned());
        port.target_port.get_or_insert(IntOrString::Int(port.port));
        if port.node_port.is_none() && (is_node_port || is_balancer && takes_node_ports) {
            let mut same = known.ports.iter().flatten();
            let same = same.find(|it| it.port == port.port && it.protocol == port.protocol);
            port.node_port = same.map_or(Some(number), |it| it.node_port);
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
        let spec = service.spec.as_ref().unwrap();
        assert_eq!(spec.session_affinity.as_deref(), Some("None"));
        assert_eq!(spec.external_traffic_policy.as_deref(), Some("Cluster"));
        let ports = spec.ports.as_ref().unwrap();
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
