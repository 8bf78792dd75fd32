//! An API server, a cloud and the service controller in one test, under a stopped clock.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test ends on a surprise"
)]

use std::sync::Arc;
use std::time::Duration;

use bowline_cloud_provider::{CloudError, ClusterFacts, ServiceClasses};
use bowline_controllers::metrics::ControllerMetrics;
use bowline_controllers::queue::Heartbeat;
use bowline_controllers::service::{COMPONENT, NAME, ServiceController, ServiceProvider};
use bowline_controllers::{Context, Controller};
use bowline_kube_api::{Fault, KubeApi};
use bowline_kube_io::{
    Body, EventSink, Kube, KubeOptions, NodeCache, ServiceCache, TokioClock, watch_nodes, watch_services,
};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tower::ServiceExt as _;

use super::cloud::{Cloud, State, Sweep};

/// Ends the test if it takes longer than this, in virtual time.
const DEADLINE: Duration = Duration::from_secs(600);

/// What is said of a Service that gets its balancer.
pub(super) const MADE: [&str; 2] = ["EnsuringLoadBalancer", "EnsuredLoadBalancer"];

pub(super) struct World {
    pub(super) api: KubeApi,
    pub(super) cloud: Arc<Cloud>,
    pub(super) metrics: ControllerMetrics,
    /// How long answers to patches of Services are on their way: watches show the change sooner.
    pub(super) answers_late: Duration,
    /// Which Services the controller serves.
    pub(super) classes: ServiceClasses,
    heartbeat: Option<Arc<Heartbeat>>,
    tasks: JoinSet<()>,
}

impl World {
    /// With these Nodes, and the controller not yet started.
    pub(super) fn new(nodes: &[&str]) -> Self {
        let start = "2026-01-01T00:00:00Z".parse().unwrap();
        let api = KubeApi::builder().seed(7).start_time(start).build();
        let world = Self {
            api,
            cloud: Cloud::new(),
            metrics: ControllerMetrics::default(),
            answers_late: Duration::ZERO,
            classes: ServiceClasses::default(),
            heartbeat: None,
            tasks: JoinSet::new(),
        };
        for node in nodes {
            world.add_node(node);
        }
        world
    }

    /// With these Nodes, and the controller running.
    pub(super) async fn running(nodes: &[&str]) -> Self {
        let mut world = Self::new(nodes);
        world.start();
        world
    }

    /// With these Nodes, and the Service `web` served, whose UID is given too.
    pub(super) async fn serving(nodes: &[&str]) -> (Self, String) {
        let world = Self::running(nodes).await;
        let uid = world.add_service("web");
        world.settled("web").await;
        (world, uid)
    }

    /// The same with a cloud of another kind.
    pub(super) fn new_with(nodes: &[&str], change: impl FnOnce(&mut State)) -> Self {
        let mut world = Self::new(nodes);
        world.cloud.set(change);
        world.start();
        world
    }

    /// Starts the controller as a new process would.
    pub(super) fn start(&mut self) {
        let clock = Arc::new(TokioClock::starting_at(self.api.now()));
        let (api, late) = (self.api.service(), self.answers_late);
        let server = tower::service_fn(move |request: http::Request<Body>| {
            let is_late =
                request.method() == http::Method::PATCH && request.uri().path().contains("/services/");
            let answer = api.clone().oneshot(request);
            async move {
                let answer = answer.await;
                if is_late && !late.is_zero() {
                    tokio::time::sleep(late).await;
                }
                answer
            }
        });
        let kube = Kube::with_service(
            server,
            KubeOptions {
                clock,
                ..KubeOptions::new("test/1")
            },
        );
        let (services, nodes) = (Arc::new(ServiceCache::new()), Arc::new(NodeCache::new()));
        let (events, writer) = EventSink::channel(kube.clone(), "test");
        let cluster = Arc::new(ClusterFacts {
            name: "kubernetes".into(),
            uid: None,
            server_version: None,
            holder: "test".into(),
        });
        let recorder = events.recorder(COMPONENT);
        let ctx = Context::new(
            NAME,
            kube.clone(),
            Arc::clone(&nodes),
            cluster,
            recorder,
            self.metrics.clone(),
            1,
        );
        let provider = ServiceProvider {
            load_balancer: Arc::<Cloud>::clone(&self.cloud),
            background: vec![Arc::new(Sweep(Arc::clone(&self.cloud)))],
            kube: kube.clone(),
            classes: self.classes.clone(),
        };
        let controller = ServiceController::new(ctx, Arc::clone(&services), provider);
        self.tasks.spawn(watch_services(kube.clone(), services));
        self.tasks.spawn(watch_nodes(kube, nodes));
        self.tasks.spawn(writer.run());
        self.heartbeat = Some(Arc::clone(controller.heartbeat()));
        self.tasks.spawn(controller.run());
    }

    /// Ends the process in the middle of whatever it does.
    pub(super) async fn stop(&mut self) {
        self.tasks.shutdown().await;
    }

    /// The name of the controller, if it does not get on with its work.
    pub(super) fn stalled(&self) -> Option<&'static str> {
        let stalled = self.heartbeat.as_ref()?.check().err()?;
        Some(stalled.name)
    }

    /// The series of the controllers, as text.
    pub(super) fn page(&self) -> String {
        let mut registry = prometheus_client::registry::Registry::default();
        self.metrics.register(&mut registry);
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
        text
    }

    pub(super) fn add_node(&self, name: &str) {
        let id = format!("fake://{name}");
        self.apply(json!({ "kind": "Node", "apiVersion": "v1", "metadata": { "name": name }, "spec": { "providerID": id } }));
    }

    pub(super) fn node(&self, name: &str) -> Value {
        self.api.object("Node", "", name).expect("the node is there")
    }

    /// Changes a Node in place.
    pub(super) fn edit_node(&self, name: &str, change: impl FnOnce(&mut Value)) {
        let mut node = self.node(name);
        change(&mut node);
        self.apply(node);
    }

    pub(super) fn delete_node(&self, name: &str) {
        assert!(self.api.delete("Node", "", name));
    }

    /// Gives the cloud other ways.
    pub(super) fn set(&self, change: impl FnOnce(&mut State)) {
        self.cloud.set(change);
    }

    /// Has each write for a Service take this time.
    pub(super) fn slow(&self, service: &str, time: Duration) {
        self.set(|cloud| cloud.write_time.extend([(service.to_owned(), time)]));
    }

    /// Has the next writes to the cloud fail.
    pub(super) fn fail(&self, times: usize, error: CloudError) {
        self.set(|cloud| cloud.write_errors.extend(vec![error; times]));
    }

    /// How many calls to the cloud began with this word.
    pub(super) fn calls(&self, verb: &str) -> usize {
        self.cloud.calls(verb).len()
    }

    /// The seconds at which the cloud had the calls that begin with this word.
    pub(super) fn seconds_of(&self, verb: &str) -> Vec<u64> {
        let calls = self.cloud.calls(verb);
        calls.iter().map(|(at, _)| at.as_secs()).collect()
    }

    /// The Nodes that the balancer of this UID leads to.
    pub(super) fn balancer(&self, uid: &str) -> Option<Vec<String>> {
        self.cloud.balancer(uid)
    }

    pub(super) fn inject(&self, fault: Fault) {
        self.api.faults().inject(fault);
    }

    pub(super) fn apply(&self, object: Value) -> Value {
        self.api.apply_json(object).expect("a valid object")
    }

    /// Creates a Service of type LoadBalancer with one port; returns its UID.
    pub(super) fn add_service(&self, name: &str) -> String {
        self.add(name, json!({}))
    }

    /// The same with further fields of the spec.
    pub(super) fn add(&self, name: &str, spec: Value) -> String {
        let mut object = json!({
            "kind": "Service", "apiVersion": "v1", "metadata": { "name": name, "namespace": "default" },
            "spec": { "type": "LoadBalancer", "ports": [{ "name": "http", "port": 80 }] },
        });
        for (key, value) in spec.as_object().unwrap() {
            object["spec"][key] = value.clone();
        }
        self.apply(object)["metadata"]["uid"].as_str().unwrap().to_owned()
    }

    pub(super) fn service(&self, name: &str) -> Option<Value> {
        self.api.object("Service", "default", name)
    }

    /// Changes a Service in place.
    pub(super) fn edit(&self, name: &str, change: impl FnOnce(&mut Value)) {
        let mut service = self.service(name).expect("the service is there");
        change(&mut service);
        if service["spec"]["type"] != "LoadBalancer" {
            service["status"]["loadBalancer"] = json!({}); // as the API server does; elsewhere the status stays
        }
        self.apply(service);
    }

    pub(super) fn delete(&self, name: &str) {
        assert!(self.api.delete("Service", "default", name));
    }

    pub(super) fn strip_finalizer(&self, name: &str) {
        self.edit(name, |service| service["metadata"]["finalizers"] = json!([]));
    }

    pub(super) fn annotation(&self, name: &str, key: &str) -> Value {
        self.service(name).expect("the service is there")["metadata"]["annotations"][key].clone()
    }

    pub(super) fn annotate(&self, name: &str, key: &str, value: &str) {
        self.edit(name, |service| {
            service["metadata"]["annotations"][key] = json!(value)
        });
    }

    pub(super) fn address(&self, name: &str) -> Option<String> {
        Some(
            self.service(name)?["status"]["loadBalancer"]["ingress"][0]["ip"]
                .as_str()?
                .to_owned(),
        )
    }

    pub(super) fn has_finalizer(&self, name: &str) -> bool {
        let finalizers = self
            .service(name)
            .map(|service| service["metadata"]["finalizers"].clone());
        finalizers.is_some_and(|list| list.to_string().contains("load-balancer-cleanup"))
    }

    /// All events on a Service in order: reason and message.
    pub(super) fn events(&self, name: &str) -> Vec<(String, String)> {
        let mut events: Vec<Value> = self
            .api
            .objects("Event")
            .into_iter()
            .filter(|e| e["involvedObject"]["name"] == name)
            .collect();
        events.sort_by_key(|e| {
            e["metadata"]["resourceVersion"]
                .as_str()
                .unwrap()
                .parse::<u64>()
                .unwrap()
        });
        let text = |e: &Value, field: &str| e[field].as_str().unwrap_or_default().to_owned();
        events
            .iter()
            .map(|e| (text(e, "reason"), text(e, "message")))
            .collect()
    }

    pub(super) fn reasons(&self, name: &str) -> Vec<String> {
        self.events(name).into_iter().map(|(reason, _)| reason).collect()
    }

    /// Whether something was said of a Service.
    pub(super) fn is_told(&self, name: &str, reason: &str) -> bool {
        self.reasons(name).iter().any(|told| told == reason)
    }

    /// The message of the first event on a Service with this reason.
    pub(super) fn message(&self, name: &str, reason: &str) -> String {
        let mut events = self.events(name).into_iter();
        let told = events.find(|(told, _)| told == reason);
        told.unwrap_or_else(|| panic!("no {reason} on {name}")).1
    }

    /// The first event with this reason, on whichever object.
    pub(super) fn event(&self, reason: &str) -> Value {
        let mut events = self.api.objects("Event").into_iter();
        events.find(|event| event["reason"] == reason).unwrap()
    }

    /// How often something was said, on whichever object.
    pub(super) fn count(&self, reason: &str) -> u64 {
        let events = self.api.objects("Event");
        let events = events.iter().filter(|event| event["reason"] == reason);
        events.map(|event| event["count"].as_u64().unwrap()).sum()
    }

    /// How many writes to Services were based on what was out of date.
    pub(super) fn conflicts(&self) -> usize {
        let journal = self.api.journal();
        let conflicts =
            journal.matching(|exchange| exchange.resource == "services" && exchange.status == 409);
        conflicts.len()
    }

    /// Lets everything happen until the condition holds.
    pub(super) async fn until(&self, what: &str, condition: impl Fn(&Self) -> bool) {
        let wait = async {
            while !condition(self) {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        assert!(
            tokio::time::timeout(DEADLINE, wait).await.is_ok(),
            "never: {what}"
        );
    }

    /// Waits until a Service is gone.
    pub(super) async fn gone(&self, name: &str) {
        self.until("the service is gone", |w| w.service(name).is_none())
            .await;
    }

    /// Waits until the balancer of this UID is gone.
    pub(super) async fn removed(&self, uid: &str) {
        self.until("the balancer is gone", |w| w.balancer(uid).is_none())
            .await;
    }

    /// Waits until the balancer of this UID leads to these Nodes.
    pub(super) async fn leads_to(&self, uid: &str, nodes: &[&str]) {
        self.until("the balancer leads there", |w| {
            w.balancer(uid).is_some_and(|is| is == nodes)
        })
        .await;
    }

    /// Waits until the cloud has had a call that begins with this word.
    pub(super) async fn called(&self, verb: &str) {
        self.until("the cloud is called", |w| w.calls(verb) > 0).await;
    }

    /// Waits until a Service has its address.
    pub(super) async fn addressed(&self, name: &str) {
        self.until("the service has its address", |w| w.address(name).is_some())
            .await;
    }

    /// Lets virtual time pass.
    pub(super) async fn pass(&self, time: Duration) {
        tokio::time::sleep(time).await;
    }

    /// A Service that has its address and whose sync is over.
    pub(super) async fn settled(&self, name: &str) {
        self.addressed(name).await;
        self.pass(Duration::from_secs(1)).await;
    }
}
