//! What users and kubelets put into the cluster.

use bowline_cloudscale_sim::ServerSpec;
use serde_json::{Value, json};
use uuid::Uuid;

use super::world::World;

pub(crate) const UNINITIALIZED: &str = "node.cloudprovider.kubernetes.io/uninitialized";
pub(crate) const SHUTDOWN: &str = "node.cloudprovider.kubernetes.io/shutdown";
pub(crate) const FINALIZER: &str = "service.kubernetes.io/load-balancer-cleanup";

/// The key of an annotation by its end.
pub(crate) fn key(suffix: &str) -> String {
    format!("k8s.cloudscale.ch/loadbalancer-{suffix}")
}

/// A Node as its kubelet registers it.
pub(crate) fn tainted_node(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Node", "metadata": { "name": name },
        "spec": { "taints": [{ "key": UNINITIALIZED, "value": "true", "effect": "NoSchedule" }] },
        "status": { "conditions": [{ "type": "Ready", "status": "True" }] },
    })
}

/// A Service of type LoadBalancer with ports of (name, port, node port), all TCP.
pub(crate) fn service(name: &str, ports: &[(&str, u16, u16)]) -> Value {
    let ports: Vec<Value> = ports
        .iter()
        .map(|(name, port, node_port)| json!({ "name": name, "protocol": "TCP", "port": port, "nodePort": node_port }))
        .collect();
    json!({
        "apiVersion": "v1", "kind": "Service", "metadata": { "name": name, "namespace": "default" },
        "spec": { "type": "LoadBalancer", "ports": ports },
    })
}

/// The Service of two ports that most scenarios are about.
pub(crate) fn web() -> Value {
    service("web", &[("web", 8080, 31200), ("admin", 9000, 31201)])
}

impl World {
    pub(crate) fn apply(&self, object: Value) -> Value {
        self.api.apply_json(object).expect("a valid object")
    }

    /// A machine in the cloud whose kubelet has just registered.
    pub(crate) fn join(&self, name: &str) -> Uuid {
        let server = self.sim.add_server(ServerSpec::new(name));
        self.apply(tainted_node(name));
        server
    }

    /// A machine in the cloud, and its Node, which is initialised and ready.
    pub(crate) fn add_node(&self, name: &str) -> Uuid {
        self.add_server_node(ServerSpec::new(name))
    }

    pub(crate) fn add_server_node(&self, spec: ServerSpec) -> Uuid {
        let name = spec.name.clone();
        let server = self.sim.add_server(spec);
        let mut node = tainted_node(&name);
        node["spec"] = json!({ "providerID": format!("cloudscale://{server}") });
        self.apply(node);
        server
    }

    /// Nodes `n1`, `n2`, ... as [`Self::add_node`] makes them.
    pub(crate) fn add_nodes(&self, count: usize) {
        for index in 1..=count {
            self.add_node(&format!("n{index}"));
        }
    }

    pub(crate) fn add_nodes_named(&self, names: &[&str]) {
        for name in names {
            self.add_node(name);
        }
    }

    pub(crate) fn edit_service(&self, name: &str, change: impl FnOnce(&mut Value)) {
        let mut service = self.service(name).expect("the service is there");
        change(&mut service);
        self.apply(service);
    }

    pub(crate) fn edit_node(&self, name: &str, change: impl FnOnce(&mut Value)) {
        let mut node = self.node(name).expect("the node is there");
        change(&mut node);
        self.apply(node);
    }

    /// Sets an annotation of a Service by the end of its key.
    pub(crate) fn annotate(&self, name: &str, suffix: &str, value: &str) {
        self.edit_service(name, |service| {
            service["metadata"]["annotations"][key(suffix)] = json!(value);
        });
    }

    pub(crate) fn unannotate(&self, name: &str, suffix: &str) {
        self.edit_service(name, |service| {
            let annotations = service["metadata"]["annotations"].as_object_mut();
            annotations.expect("annotations").remove(&key(suffix));
        });
    }

    pub(crate) fn delete_service(&self, name: &str) {
        assert!(self.api.delete("Service", "default", name), "no service {name}");
    }

    pub(crate) fn set_ready(&self, name: &str, status: &str) {
        self.edit_node(name, |node| {
            node["status"]["conditions"] = json!([{ "type": "Ready", "status": status }]);
        });
    }

    pub(crate) fn taints(&self, name: &str) -> Vec<String> {
        let node = self.node(name).expect("the node is there");
        let taints = node["spec"]["taints"].as_array().cloned().unwrap_or_default();
        taints
            .iter()
            .map(|taint| taint["key"].as_str().unwrap_or_default().to_owned())
            .collect()
    }

    pub(crate) fn is_initialized(&self, name: &str) -> bool {
        !self.taints(name).iter().any(|key| key == UNINITIALIZED)
    }

    pub(crate) fn has_finalizer(&self, name: &str) -> bool {
        let service = self.service(name);
        service.is_some_and(|it| it["metadata"]["finalizers"].to_string().contains(FINALIZER))
    }

    /// Waits for the Service's address and for everything to come to rest.
    pub(crate) async fn settled(&self, name: &str) {
        self.until("the service has its address", |w| !w.addresses(name).is_empty())
            .await;
        self.rest().await;
    }
}

/// A world with nodes, the Service `web` and a manager, where all is done.
pub(crate) async fn settled_web(nodes: usize) -> World {
    let mut world = World::new();
    world.add_nodes(nodes);
    world.apply(web());
    world.start();
    world.settled("web").await;
    world
}
