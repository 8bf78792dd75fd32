//! An API server, a cloud and controllers in one scenario, under a stopped clock.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bowline_cloud_provider::{ClusterFacts, ServiceClasses};
use bowline_controllers::metrics::ControllerMetrics;
use bowline_controllers::node::{self, NodeController, NodeSettings};
use bowline_controllers::node_ipam::ranges::{RangeFlags, Ranges};
use bowline_controllers::node_ipam::{self, NodeIpamController};
use bowline_controllers::node_lifecycle::{self, NodeLifecycleController, NodeLifecycleSettings};
use bowline_controllers::queue::Heartbeat;
use bowline_controllers::route::{self, RouteController, RouteSettings, RouteTiming};
use bowline_controllers::service::{self, ServiceController, ServiceProvider};
use bowline_controllers::{Context, Controller, tell_of_unreadable};
use bowline_kit::scenario::Complaint;
use bowline_kube_api::KubeApi;
use bowline_kube_io::{
    Body, EventSink, Kube, KubeOptions, NodeCache, ServiceCache, TokioClock, watch_nodes, watch_services,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tower::ServiceExt as _;

use super::cloud::{Cloud, Sweep};
use super::instances::TestInstances;
use super::route_table::RouteTable;

pub(super) const FINALIZER: &str = "service.kubernetes.io/load-balancer-cleanup";

pub(super) struct World {
    pub(super) api: KubeApi,
    pub(super) cloud: Arc<Cloud>,
    pub(super) metrics: ControllerMetrics,
    /// How long answers to patches of Services are on their way: watches show the change sooner.
    pub(super) answers_late: Duration,
    /// Which Services the controller serves.
    pub(super) classes: ServiceClasses,
    /// The UIDs of the Services that were added last, by name.
    pub(super) uids: BTreeMap<String, String>,
    pub(super) instances: TestInstances,
    pub(super) routes: RouteTable,
    pub(super) settings: Settings,
    /// Since when all is counted.
    pub(super) since: Instant,
    /// What the process knows.
    pub(super) nodes: Arc<NodeCache>,
    pub(super) heartbeats: Vec<Arc<Heartbeat>>,
    process: Option<Process>,
    /// What stops each controller.
    stops: Vec<Box<dyn Fn()>>,
    tasks: JoinSet<()>,
}

/// What an operator sets: `settings {"share": 0.5}`. Times are in seconds.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Settings {
    /// `--node-status-update-frequency`
    refresh: u64,
    /// Nodes that are there already have to speak for the credentials.
    witnesses: bool,
    /// Further labels follow the cloud.
    labels_follow: bool,
    /// `--node-deletion-confirmation`
    confirmation: u64,
    /// `--node-deletion-share`
    share: f64,
    /// Routes by the feature gate, instead of each ten seconds.
    watch_based: bool,
    /// `--cluster-cidr`
    cidr: String,
    /// `--node-cidr-mask-size-ipv4`
    mask: i64,
}

impl Default for Settings {
    fn default() -> Self {
        let (node, lifecycle) = (NodeSettings::default(), NodeLifecycleSettings::default());
        Self {
            refresh: node.node_status_update_frequency.as_secs(),
            witnesses: node.needs_witnesses,
            labels_follow: node.keeps_additional_labels,
            confirmation: lifecycle.node_deletion_confirmation.as_secs(),
            share: lifecycle.node_deletion_share,
            watch_based: false,
            cidr: "10.200.0.0/16,fd00::/48".to_owned(),
            mask: 0,
        }
    }
}

impl World {
    /// With nothing in it, and the controller not yet started.
    pub(super) fn new() -> Self {
        let start = "2026-01-01T00:00:00Z".parse().unwrap();
        Self {
            api: KubeApi::builder().seed(7).start_time(start).build(),
            cloud: Cloud::new(),
            metrics: ControllerMetrics::default(),
            answers_late: Duration::ZERO,
            classes: ServiceClasses::default(),
            uids: BTreeMap::new(),
            instances: TestInstances::default(),
            routes: RouteTable::default(),
            settings: Settings::default(),
            since: Instant::now(),
            nodes: Arc::new(NodeCache::new()),
            heartbeats: Vec::new(),
            process: None,
            stops: Vec::new(),
            tasks: JoinSet::new(),
        }
    }

    /// Starts controllers as a new process would.
    pub(super) fn up(&mut self, names: &str) -> Result<(), Complaint> {
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
        let options = KubeOptions {
            clock,
            max_in_flight: 10, // as over sockets
            ..KubeOptions::new("test/1")
        };
        let kube = Kube::with_service(server, options);
        let (services, nodes) = (Arc::new(ServiceCache::new()), Arc::new(NodeCache::new()));
        let (events, writer) = EventSink::channel(kube.clone(), "test");
        let process = Process {
            kube: kube.clone(),
            services: Arc::clone(&services),
            nodes: Arc::clone(&nodes),
            events,
        };
        self.nodes = Arc::clone(&nodes);
        self.heartbeats.clear();
        self.stops.clear();
        let names = if names.is_empty() { "service" } else { names };
        self.process = Some(process);
        for name in names.split(' ') {
            self.also(name)?;
        }
        self.tasks.spawn(watch_services(kube.clone(), services));
        self.tasks.spawn(watch_nodes(kube, nodes));
        self.tasks.spawn(writer.run());
        Ok(())
    }

    /// Starts another controller in the same process.
    pub(super) fn also(&mut self, name: &str) -> Result<(), Complaint> {
        let process = self.process.as_ref().ok_or("nothing is up")?.clone();
        let set = &self.settings;
        let context = |name, component| process.context(name, component, &self.metrics);
        match name {
            "service" => {
                let provider = ServiceProvider {
                    load_balancer: Arc::<Cloud>::clone(&self.cloud),
                    background: vec![Arc::new(Sweep(Arc::clone(&self.cloud)))],
                    kube: process.kube.clone(),
                    classes: self.classes.clone(),
                    silences: Default::default(),
                };
                let ctx = context(service::NAME, service::COMPONENT);
                self.run(ServiceController::new(
                    ctx,
                    Arc::clone(&process.services),
                    provider,
                ));
            }
            "node" => {
                let settings = NodeSettings {
                    node_status_update_frequency: Duration::from_secs(set.refresh),
                    needs_witnesses: set.witnesses,
                    keeps_additional_labels: set.labels_follow,
                    ..NodeSettings::default()
                };
                let ctx = context(node::NAME, node::NAME);
                self.run(NodeController::new(
                    ctx,
                    Arc::new(self.instances.clone()),
                    settings,
                ));
            }
            "lifecycle" => {
                let settings = NodeLifecycleSettings {
                    node_deletion_confirmation: Duration::from_secs(set.confirmation),
                    node_deletion_share: set.share,
                    ..NodeLifecycleSettings::default()
                };
                let ctx = context(node_lifecycle::NAME, node_lifecycle::NAME);
                let instances = Arc::new(self.instances.clone());
                self.run(NodeLifecycleController::new(ctx, instances, &settings));
            }
            "route" => {
                let timing = match set.watch_based {
                    true => RouteTiming::WatchBased,
                    false => RouteTiming::Periodic(Duration::from_secs(10)),
                };
                let settings = RouteSettings::new(true, &set.cidr, timing);
                let ctx = context(route::NAME, route::COMPONENT);
                self.run(RouteController::new(
                    ctx,
                    Arc::new(self.routes.clone()),
                    &settings,
                ));
            }
            "ipam" => {
                let ranges = Ranges::new(&RangeFlags {
                    cluster_cidr: &set.cidr,
                    mask_ipv4: set.mask,
                    service_range: "10.200.0.0/24",
                    allocator: "RangeAllocator",
                    ..RangeFlags::default()
                });
                let ctx = context(node_ipam::NAME, node_ipam::COMPONENT);
                self.run(NodeIpamController::new(
                    ctx,
                    &ranges.map_err(|errors| format!("{errors:?}"))?,
                ));
            }
            "unreadable" => {
                let (nodes, services) = (Arc::clone(&process.nodes), Arc::clone(&process.services));
                let telling = tell_of_unreadable(nodes, services, process.events.recorder("test"));
                self.tasks.spawn(telling);
            }
            "nothing" => {}
            other => return Err(format!("no controller {other}")),
        }
        Ok(())
    }

    fn run<T: Controller>(&mut self, controller: Arc<T>) {
        self.heartbeats.push(Arc::clone(controller.heartbeat()));
        self.tasks.spawn(Arc::clone(&controller).run());
        self.stops.push(Box::new(move || controller.stop()));
    }

    /// Tells the controllers to stop, and waits until one has.
    pub(super) async fn stop_gently(&mut self) {
        self.stops.iter().for_each(|stop| stop());
        self.tasks.join_next().await.unwrap().unwrap();
    }

    /// Ends the process in the middle of whatever it does.
    pub(super) async fn down(&mut self) {
        self.process = None;
        self.stops.clear();
        self.tasks.shutdown().await;
    }

    pub(super) fn node(&self, name: &str) -> Option<Value> {
        self.api.object("Node", "", name)
    }

    pub(super) fn service(&self, name: &str) -> Option<Value> {
        self.api.object("Service", "default", name)
    }

    /// Writes a Service as a person would.
    pub(super) fn put_service(&self, mut service: Value) {
        if service["spec"]["type"] != "LoadBalancer" {
            service["status"]["loadBalancer"] = json!({}); // as the API server does; elsewhere the status stays
        }
        self.api.apply_json(service).unwrap();
    }

    /// Creates a Service of type LoadBalancer with one port, and further fields of the spec.
    pub(super) fn add_service(&mut self, name: &str, spec: &Value) {
        let mut object = json!({
            "kind": "Service", "apiVersion": "v1", "metadata": { "name": name, "namespace": "default" },
            "spec": { "type": "LoadBalancer", "ports": [{ "name": "http", "port": 80 }] },
        });
        json_patch::merge(&mut object["spec"], spec);
        let made = self.api.apply_json(object).unwrap();
        let uid = made["metadata"]["uid"].as_str().unwrap();
        self.uids.insert(name.to_owned(), uid.to_owned());
    }

    /// Sets an annotation of a Service, or takes it off.
    pub(super) fn annotate(&self, name: &str, key: &str, value: Option<&str>) {
        let mut service = self.service(name).unwrap();
        json_patch::merge(
            &mut service,
            &json!({ "metadata": { "annotations": { key: value } } }),
        );
        self.put_service(service);
    }

    pub(super) fn strip_finalizer(&self, name: &str) {
        let mut service = self.service(name).unwrap();
        service["metadata"]["finalizers"] = json!([]);
        let is_going = !service["metadata"]["deletionTimestamp"].is_null();
        let stripped = self.api.apply_json(service);
        assert!(is_going || stripped.is_ok(), "{stripped:?}"); // one that is being deleted is gone by that
    }
}

/// What the controllers of a process share.
#[derive(Clone)]
struct Process {
    kube: Kube,
    services: Arc<ServiceCache>,
    nodes: Arc<NodeCache>,
    events: EventSink,
}

impl Process {
    fn context(&self, name: &'static str, component: &'static str, metrics: &ControllerMetrics) -> Context {
        let cluster = Arc::new(ClusterFacts {
            name: "nimbus".into(),
            uid: None,
            server_version: None,
            holder: "test".into(),
        });
        let (kube, nodes) = (self.kube.clone(), Arc::clone(&self.nodes));
        Context::new(
            name,
            kube,
            nodes,
            cluster,
            self.events.recorder(component),
            metrics.clone(),
            1,
        )
    }
}
