//! An API server in memory with the node controllers running against it.

#![expect(clippy::unwrap_used, reason = "a test ends on a surprise")]

use std::sync::Arc;
use std::time::Duration;

use bowline_cloud_provider::{CloudError, ClusterFacts, Purpose};
use bowline_controllers::metrics::ControllerMetrics;
use bowline_controllers::node::{self, NodeController, NodeSettings};
use bowline_controllers::node_ipam::ranges::Ranges;
use bowline_controllers::node_ipam::{self, NodeIpamController};
use bowline_controllers::node_lifecycle::{self, NodeLifecycleController, NodeLifecycleSettings};
use bowline_controllers::queue::Heartbeat;
use bowline_controllers::route::{self, RouteController, RouteSettings};
use bowline_controllers::{Context, Controller};
use bowline_kube_api::{Effect, Exchange, Fault, KubeApi};
use bowline_kube_io::{EventSink, Kube, KubeOptions, NodeCache, TokioClock, watch_nodes};
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::instances::{TestInstances, metadata};
use crate::route_table::RouteTable;

pub(crate) const SECOND: Duration = Duration::from_secs(1);
pub(crate) const UNINITIALIZED: &str = "node.cloudprovider.kubernetes.io/uninitialized";
pub(crate) const SHUTDOWN: &str = "node.cloudprovider.kubernetes.io/shutdown";

/// A cluster. Everything in it stops when it is dropped.
pub(crate) struct Cluster {
    pub(crate) api: KubeApi,
    pub(crate) instances: TestInstances,
    pub(crate) metrics: ControllerMetrics,
    pub(crate) nodes: Arc<NodeCache>,
    pub(crate) kube: Kube,
    pub(crate) events: EventSink,
    heartbeats: Vec<Arc<Heartbeat>>,
    tasks: JoinSet<()>,
}

impl Cluster {
    /// A cluster without controllers.
    pub(crate) fn new() -> Self {
        let start: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        Self::of(
            KubeApi::builder().start_time(start).build(),
            TestInstances::default(),
        )
    }

    /// The same cluster and cloud after the manager was killed: without controllers, caches and memory.
    pub(crate) fn after_a_crash(self) -> Self {
        Self::of(self.api.clone(), self.instances.clone())
    }

    fn of(api: KubeApi, instances: TestInstances) -> Self {
        let options = KubeOptions {
            clock: Arc::new(TokioClock::starting_at(api.now())),
            max_in_flight: 10, // as over sockets
            ..KubeOptions::new("test")
        };
        let kube = Kube::with_service(api.service(), options);
        let (events, writer) = EventSink::channel(kube.clone(), "");
        let nodes = Arc::new(NodeCache::new());
        let mut tasks = JoinSet::new();
        tasks.spawn(watch_nodes(kube.clone(), Arc::clone(&nodes)));
        tasks.spawn(writer.run());
        Self {
            api,
            instances,
            metrics: ControllerMetrics::default(),
            nodes,
            kube,
            events,
            heartbeats: Vec::new(),
            tasks,
        }
    }

    fn context(&self, name: &'static str, component: &'static str) -> Context {
        let cluster = ClusterFacts {
            name: "nimbus".into(),
            uid: None,
            server_version: None,
            holder: "test".into(),
        };
        Context::new(
            name,
            self.kube.clone(),
            Arc::clone(&self.nodes),
            Arc::new(cluster),
            self.events.recorder(component),
            self.metrics.clone(),
            1,
        )
    }

    fn start<T: Controller>(&mut self, controller: Arc<T>) -> Arc<T> {
        self.heartbeats.push(Arc::clone(controller.heartbeat()));
        self.tasks.spawn(Arc::clone(&controller).run());
        controller
    }

    /// Starts the cloud-node controller.
    pub(crate) fn with_node_loop(mut self, settings: NodeSettings) -> Self {
        let ctx = self.context(node::NAME, node::NAME);
        let instances = Arc::new(self.instances.clone());
        self.start(NodeController::new(ctx, instances, settings));
        self
    }

    /// Starts the cloud-node-lifecycle controller.
    pub(crate) fn with_lifecycle_loop(mut self, settings: NodeLifecycleSettings) -> Self {
        let ctx = self.context(node_lifecycle::NAME, node_lifecycle::NAME);
        let instances = Arc::new(self.instances.clone());
        self.start(NodeLifecycleController::new(ctx, instances, &settings));
        self
    }

    /// Starts the route controller; gives what stops it.
    pub(crate) fn start_route_loop(
        &mut self,
        routes: &RouteTable,
        settings: &RouteSettings,
    ) -> Arc<RouteController> {
        let ctx = self.context(route::NAME, route::COMPONENT);
        self.start(RouteController::new(ctx, Arc::new(routes.clone()), settings))
    }

    /// Starts node IPAM; gives what stops it.
    pub(crate) fn start_node_ipam(&mut self, ranges: &Ranges) -> Arc<NodeIpamController> {
        let ctx = self.context(node_ipam::NAME, node_ipam::COMPONENT);
        self.start(NodeIpamController::new(ctx, ranges))
    }

    /// Waits for one of the controllers to end.
    pub(crate) async fn end_of_a_loop(&mut self) {
        self.tasks.join_next().await.unwrap().unwrap();
    }

    /// Has a Node register for which the cloud has an instance.
    pub(crate) fn begin(&self, name: &str) {
        self.instances.run(name, metadata(&["10.1.0.1"]));
        self.put(new_node(name));
    }

    /// The same, and waits until it is initialised.
    pub(crate) async fn join(&self, name: &str) {
        self.begin(name);
        self.initialized(name).await;
    }

    /// Waits until a Node is initialised.
    pub(crate) async fn initialized(&self, name: &str) {
        self.initialized_within(SECOND * 3, name).await;
    }

    pub(crate) async fn initialized_within(&self, limit: Duration, name: &str) {
        self.within(limit, "initialized", |c| c.is_initialized(name))
            .await;
    }

    /// Waits until a Node is deleted because its instance is gone. Gives the time it took.
    pub(crate) async fn gone(&self, name: &str) -> Duration {
        self.within(SECOND * 6, "gone", |c| !c.exists(name)).await
    }

    /// Every question to the cloud fails, or none does.
    pub(crate) fn outage(&self, error: Option<CloudError>) {
        self.instances.outage(error);
    }

    pub(crate) fn inject(&self, fault: Fault) {
        self.api.faults().inject(fault);
    }

    /// How many questions the cloud was asked.
    pub(crate) fn questions(&self) -> usize {
        self.instances.calls().len()
    }

    /// How often the cloud was asked what the instance of a Node is.
    pub(crate) fn asked(&self, name: &str) -> usize {
        self.instances.asked(name, Purpose::Metadata).len()
    }

    pub(crate) fn delete(&self, name: &str) {
        assert!(self.api.delete("Node", "", name));
    }

    /// Creates a Node, or replaces it.
    pub(crate) fn put(&self, node: Value) {
        self.api.apply_json(node).unwrap();
    }

    /// Changes a Node as somebody else would.
    pub(crate) fn edit(&self, name: &str, change: impl FnOnce(&mut Value)) {
        let mut node = self.node(name);
        change(&mut node);
        self.put(node);
    }

    /// A Node as it is now.
    pub(crate) fn node(&self, name: &str) -> Value {
        self.api
            .object("Node", "", name)
            .unwrap_or_else(|| panic!("no node {name}"))
    }

    pub(crate) fn exists(&self, name: &str) -> bool {
        self.api.object("Node", "", name).is_some()
    }

    pub(crate) fn label(&self, name: &str, key: &str) -> Option<String> {
        self.node(name)["metadata"]["labels"][key]
            .as_str()
            .map(str::to_owned)
    }

    pub(crate) fn is_labelled(&self, name: &str, key: &str, value: &str) -> bool {
        self.label(name, key).as_deref() == Some(value)
    }

    /// `Type address` of each address in order.
    pub(crate) fn addresses(&self, name: &str) -> Vec<String> {
        let node = self.node(name);
        let addresses = node["status"]["addresses"].as_array().into_iter().flatten();
        let text_of = |it: &Value| format!("{} {}", text(&it["type"]), text(&it["address"]));
        addresses.map(text_of).collect()
    }

    /// The keys of a Node's taints in order.
    pub(crate) fn taints(&self, name: &str) -> Vec<String> {
        let node = self.node(name);
        let taints = node["spec"]["taints"].as_array().cloned().unwrap_or_default();
        taints.iter().map(|taint| text(&taint["key"])).collect()
    }

    pub(crate) fn is_initialized(&self, name: &str) -> bool {
        !self.taints(name).iter().any(|key| key == UNINITIALIZED)
    }

    /// `Type Reason: message` of each event on a Node, and who recorded it.
    pub(crate) fn events(&self, node: &str) -> Vec<(String, String)> {
        self.api
            .objects("Event")
            .into_iter()
            .filter(|event| event["involvedObject"]["name"] == node)
            .map(|event| {
                assert_eq!(event["metadata"]["namespace"], "default");
                (
                    format!(
                        "{} {}: {}",
                        text(&event["type"]),
                        text(&event["reason"]),
                        text(&event["message"])
                    ),
                    text(&event["source"]["component"]),
                )
            })
            .collect()
    }

    /// The same without who recorded them.
    pub(crate) fn texts(&self, node: &str) -> Vec<String> {
        self.events(node).into_iter().map(|(text, _)| text).collect()
    }

    /// How many events with this reason are there, for all Nodes, with their counts.
    pub(crate) fn count_events(&self, reason: &str) -> u64 {
        let events = self.api.objects("Event");
        let of_reason = events.iter().filter(|event| event["reason"] == reason);
        of_reason.map(|event| event["count"].as_u64().unwrap_or(1)).sum()
    }

    /// The controllers that do not get on with their work.
    pub(crate) fn stalled(&self) -> Vec<&'static str> {
        let checks = self.heartbeats.iter().map(|heartbeat| heartbeat.check());
        checks
            .filter_map(Result::err)
            .map(|stalled| stalled.name)
            .collect()
    }

    /// Has each write to a Node take 28 s, which is short of the client's limit.
    pub(crate) fn slow_writes(&self) {
        self.inject(node_patch(Effect::Delay(SECOND * 28)));
    }

    /// Waits for something while none of the controllers may ever look stuck. Gives the time it took.
    pub(crate) async fn without_a_stall(&self, is_so: impl Fn(&Self) -> bool) -> Duration {
        let begin = Instant::now();
        while !is_so(self) {
            assert_eq!(self.stalled(), [""; 0], "after {:?}", begin.elapsed());
            assert!(begin.elapsed() < SECOND * 7200, "never");
            tokio::time::sleep(SECOND * 30).await;
        }
        begin.elapsed()
    }

    /// The writes to Nodes so far.
    pub(crate) fn node_writes(&self) -> Vec<Exchange> {
        self.api
            .journal()
            .matching(|exchange| exchange.is_write() && exchange.resource == "nodes")
    }

    /// How many they are.
    pub(crate) fn writes(&self) -> usize {
        self.node_writes().len()
    }

    /// What the API server answered to them.
    pub(crate) fn statuses(&self) -> Vec<u16> {
        self.node_writes().iter().map(|write| write.status).collect()
    }

    /// The samples of a series, as `{labels} value`.
    pub(crate) fn series(&self, name: &str) -> Vec<String> {
        let mut registry = prometheus_client::registry::Registry::default();
        self.metrics.register(&mut registry);
        let mut page = String::new();
        prometheus_client::encoding::text::encode(&mut page, &registry).unwrap();
        let samples = page.lines().filter_map(|line| line.strip_prefix(name));
        let mut samples: Vec<String> = samples
            .filter(|rest| rest.starts_with([' ', '{']))
            .map(|rest| rest.trim_start().to_owned())
            .collect();
        samples.sort();
        samples
    }

    /// Lets time pass.
    pub(crate) async fn pass(&self, time: Duration) {
        tokio::time::sleep(time).await;
    }

    /// Waits for something, for as long as a user would: 3 s. Gives the time it took.
    pub(crate) async fn soon(&self, what: &str, is_so: impl Fn(&Self) -> bool) -> Duration {
        self.within(SECOND * 3, what, is_so).await
    }

    /// Waits for something. Gives the time it took, to a thousandth of the limit.
    pub(crate) async fn within(
        &self,
        limit: Duration,
        what: &str,
        is_so: impl Fn(&Self) -> bool,
    ) -> Duration {
        let begin = Instant::now();
        let step = (limit / 1000).max(Duration::from_millis(5));
        while !is_so(self) {
            assert!(begin.elapsed() <= limit, "not within {limit:?}: {what}");
            tokio::time::sleep(step).await;
        }
        begin.elapsed()
    }
}

/// What a patch of a Node meets.
pub(crate) fn node_patch(effect: Effect) -> Fault {
    Fault::new(effect).verb("patch").resource("nodes")
}

/// A Node that just registered: tainted, ready.
pub(crate) fn new_node(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": name},
        "spec": {"taints": [{"key": UNINITIALIZED, "value": "true", "effect": "NoSchedule"}]},
        "status": {"conditions": [{"type": "Ready", "status": "True"}]},
    })
}

/// A Node that is initialised and has this `Ready` status; `None`: it has no such condition.
pub(crate) fn node_of(name: &str, ready: Option<&str>) -> Value {
    let conditions: Vec<Value> = ready
        .map(|status| json!({"type": "Ready", "status": status}))
        .into_iter()
        .collect();
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": name},
        "spec": {"providerID": format!("fake://{name}")},
        "status": {"conditions": conditions},
    })
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
