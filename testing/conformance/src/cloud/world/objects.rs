//! What users, kubelets and owners of instances do.

use serde_json::{Value, json};

use super::{SECOND, Start, World};
use crate::cloud::under_test::{CloudUnderTest, Instance, Wish};

/// The taint that a kubelet registers its Node with.
pub const UNINITIALIZED: &str = "node.cloudprovider.kubernetes.io/uninitialized";
/// The taint of a Node whose instance is switched off.
pub const SHUTDOWN: &str = "node.cloudprovider.kubernetes.io/shutdown";
/// What holds a Service until its balancer is gone.
pub const FINALIZER: &str = "service.kubernetes.io/load-balancer-cleanup";
/// The label that keeps a Node out of balancers.
pub const EXCLUDED: &str = "node.kubernetes.io/exclude-from-external-load-balancers";
/// The taint by which the cluster autoscaler announces that a Node goes.
pub const AUTOSCALER: &str = "ToBeDeletedByClusterAutoscaler";

/// A Node as its kubelet registers it.
#[must_use]
pub fn tainted_node(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Node", "metadata": { "name": name },
        "spec": { "taints": [{ "key": UNINITIALIZED, "value": "true", "effect": "NoSchedule" }] },
        "status": { "conditions": [{ "type": "Ready", "status": "True" }] },
    })
}

/// A Service of type LoadBalancer with ports of (name, port, node port), all TCP.
#[must_use]
pub fn service(name: &str, ports: &[(&str, u16, u16)]) -> Value {
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
#[must_use]
pub fn web() -> Value {
    service("web", &[("web", 8080, 31200), ("admin", 9000, 31201)])
}

impl<C: CloudUnderTest> World<C> {
    /// Creates an object or replaces it.
    ///
    /// # Panics
    ///
    /// Where the API server refuses it.
    pub fn apply(&self, object: Value) -> Value {
        self.api.apply_json(object).unwrap()
    }

    /// An instance in the cloud whose kubelet has just registered.
    pub fn join(&self, name: &str) {
        self.sim.add_instance(&Instance::plain(name));
        self.apply(tainted_node(name));
    }

    /// An instance in the cloud, and its Node, which is initialised and ready.
    ///
    /// # Panics
    ///
    /// Where the cloud does not tell the instance's provider ID.
    pub fn add_node(&self, name: &str) {
        self.sim.add_instance(&Instance::plain(name));
        let mut node = tainted_node(name);
        node["spec"] = json!({ "providerID": self.provider_id(name) });
        let addresses = &self.sim.instances()[name].addresses;
        let addresses = addresses
            .iter()
            .map(|it| json!({ "type": it.kind, "address": it.address }));
        node["status"]["addresses"] = addresses.collect();
        self.apply(node);
    }

    /// Nodes `n1`, `n2`, ... as [`Self::add_node`] makes them.
    pub fn add_nodes(&self, count: usize) {
        for index in 1..=count {
            self.add_node(&format!("n{index}"));
        }
    }

    /// The provider ID of an instance.
    ///
    /// # Panics
    ///
    /// Where there is none.
    #[must_use]
    pub fn provider_id(&self, instance: &str) -> String {
        self.sim.instances()[instance].provider_id.clone().unwrap()
    }

    /// The instance goes, and its Node loses Ready.
    pub fn break_instance(&self, name: &str) {
        self.sim.remove_instance(name);
        self.set_ready(name, "Unknown");
    }

    /// A Service in the default namespace.
    #[must_use]
    pub fn service(&self, name: &str) -> Option<Value> {
        self.api.object("Service", "default", name)
    }

    /// The UID of a Service.
    ///
    /// # Panics
    ///
    /// Where there is no such Service.
    #[must_use]
    pub fn uid(&self, name: &str) -> String {
        self.service(name).unwrap()["metadata"]["uid"]
            .as_str()
            .unwrap()
            .to_owned()
    }

    /// How the cloud names the owner of a Service's balancer.
    ///
    /// # Panics
    ///
    /// Where there is no such Service.
    #[must_use]
    pub fn mark(&self, name: &str) -> String {
        C::mark(&self.service(name).unwrap())
    }

    /// A Node.
    #[must_use]
    pub fn node(&self, name: &str) -> Option<Value> {
        self.api.object("Node", "", name)
    }

    /// `STATUS REASON MESSAGE` of the condition of a Node's network.
    #[must_use]
    pub fn network(&self, name: &str) -> Option<String> {
        let node = self.node(name)?;
        let mut conditions = node["status"]["conditions"].as_array()?.iter();
        let found = conditions.find(|it| it["type"] == "NetworkUnavailable")?;
        let parts = ["status", "reason", "message"].map(|key| found[key].as_str().unwrap_or_default());
        Some(parts.join(" "))
    }

    /// Changes a Service.
    ///
    /// # Panics
    ///
    /// Where there is no such Service.
    pub fn edit_service(&self, name: &str, change: impl FnOnce(&mut Value)) {
        let mut service = self.service(name).unwrap();
        change(&mut service);
        self.apply(service);
    }

    /// Changes a Node.
    ///
    /// # Panics
    ///
    /// Where there is no such Node.
    pub fn edit_node(&self, name: &str, change: impl FnOnce(&mut Value)) {
        let mut node = self.node(name).unwrap();
        change(&mut node);
        self.apply(node);
    }

    /// Labels a Node, or takes the label away.
    ///
    /// # Panics
    ///
    /// Where there is no such Node.
    pub fn label_node(&self, name: &str, key: &str, value: Option<&str>) {
        self.edit_node(name, |node| {
            node["metadata"]["labels"][key] = json!(value);
            let labels = node["metadata"]["labels"].as_object_mut().unwrap();
            labels.retain(|_, value| !value.is_null());
        });
    }

    /// Asks for a Service's end.
    ///
    /// # Panics
    ///
    /// Where there is no such Service.
    pub fn delete_service(&self, name: &str) {
        assert!(self.api.delete("Service", "default", name), "no service {name}");
    }

    /// What a Node's kubelet, or its silence, makes of the condition Ready.
    pub fn set_ready(&self, name: &str, status: &str) {
        self.edit_node(name, |node| {
            node["status"]["conditions"] = json!([{ "type": "Ready", "status": status }]);
        });
    }

    /// The keys of a Node's taints.
    ///
    /// # Panics
    ///
    /// Where there is no such Node.
    #[must_use]
    pub fn taints(&self, name: &str) -> Vec<String> {
        let node = self.node(name).unwrap();
        let taints = node["spec"]["taints"].as_array().cloned().unwrap_or_default();
        taints
            .iter()
            .map(|taint| taint["key"].as_str().unwrap_or_default().to_owned())
            .collect()
    }

    /// Whether a Node has lost the taint it registered with.
    #[must_use]
    pub fn is_initialized(&self, name: &str) -> bool {
        !self.taints(name).iter().any(|key| key == UNINITIALIZED)
    }

    /// Whether a Service is held until its balancer is gone.
    #[must_use]
    pub fn has_finalizer(&self, name: &str) -> bool {
        let service = self.service(name);
        service.is_some_and(|it| it["metadata"]["finalizers"].to_string().contains(FINALIZER))
    }

    /// The addresses in a Service's status.
    #[must_use]
    pub fn addresses(&self, name: &str) -> Vec<String> {
        let ingress = self
            .service(name)
            .map(|it| it["status"]["loadBalancer"]["ingress"].clone());
        let ingress = ingress.and_then(|it| it.as_array().cloned()).unwrap_or_default();
        ingress
            .iter()
            .filter_map(|entry| entry["ip"].as_str().or(entry["hostname"].as_str()))
            .map(str::to_owned)
            .collect()
    }

    /// Creates a Service that asks for this cloud's balancer.
    pub fn ask(&self, mut service: Value, wish: Wish) {
        self.sim.ask(&mut service, wish);
        self.apply(service);
    }

    /// Creates a Service of one port.
    pub fn ask_for(&self, name: &str, node_port: u16) {
        self.ask(service(name, &[("", 80, node_port)]), Wish::Plain);
    }

    /// Changes a Service in every respect that the cloud knows.
    pub fn change(&self, name: &str) {
        self.edit_service(name, |it| {
            // One port moves, one becomes another, so that something of each kind is made, changed and removed.
            it["spec"]["ports"] =
                service("", &[("web", 8081, 31300), ("www", 9000, 31201)])["spec"]["ports"].clone();
            self.sim.ask(it, Wish::Changed);
        });
    }

    /// Annotates a Service with something that means nothing to anybody.
    pub fn annotate_idly(&self, name: &str) {
        self.edit_service(name, |it| {
            it["metadata"]["annotations"]["example.com/unrelated"] = json!("x");
        });
    }

    /// Waits for the Service's address and for everything to come to rest.
    pub async fn settled(&self, name: &str) {
        self.until("the service has its address", |w| !w.addresses(name).is_empty())
            .await;
        self.rest().await;
    }

    /// Waits for the end of a Service.
    pub async fn gone(&self, name: &str) {
        self.until("the service is gone", |w| w.service(name).is_none())
            .await;
        self.rest().await;
    }

    /// A world with nodes and a manager without a lease, at rest.
    pub async fn with_nodes(nodes: usize) -> Self {
        let mut world = Self::new();
        world.add_nodes(nodes);
        world.start_with(Start::alone());
        world.rest().await;
        world
    }

    /// A world with nodes, the Service `web` and a manager without a lease, where all is done.
    pub async fn with_web(nodes: usize) -> Self {
        let mut world = Self::new();
        world.add_nodes(nodes);
        world.ask(web(), Wish::Plain);
        world.start_with(Start::alone());
        world.settled("web").await;
        world
    }

    /// Longer than a lease that nobody gave up, and the first steps of the backoff.
    pub async fn pass_lease(&self) {
        self.pass(SECOND * 60).await;
    }
}
