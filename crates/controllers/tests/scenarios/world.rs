//! An API server, a cloud and the service controller in one scenario, under a stopped clock.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bowline_cloud_provider::{ClusterFacts, ServiceClasses};
use bowline_controllers::metrics::ControllerMetrics;
use bowline_controllers::queue::Heartbeat;
use bowline_controllers::service::{COMPONENT, NAME, ServiceController, ServiceProvider};
use bowline_controllers::{Context, Controller};
use bowline_kube_api::{Exchange, KubeApi};
use bowline_kube_io::{
    Body, EventSink, Kube, KubeOptions, NodeCache, ServiceCache, TokioClock, watch_nodes, watch_services,
};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tower::ServiceExt as _;

use super::cloud::{Cloud, Sweep};

pub(super) const FINALIZER: &str = "service.kubernetes.io/load-balancer-cleanup";

pub(super) struct World {
    pub(super) api: KubeApi,
    pub(super) cloud: Arc<Cloud>,
    metrics: ControllerMetrics,
    /// How long answers to patches of Services are on their way: watches show the change sooner.
    pub(super) answers_late: Duration,
    /// Which Services the controller serves.
    pub(super) classes: ServiceClasses,
    /// The UIDs of the Services that were added last, by name.
    pub(super) uids: BTreeMap<String, String>,
    heartbeat: Option<Arc<Heartbeat>>,
    tasks: JoinSet<()>,
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
            heartbeat: None,
            tasks: JoinSet::new(),
        }
    }

    /// Starts the controller as a new process would.
    pub(super) fn up(&mut self) {
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
    pub(super) async fn down(&mut self) {
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
        self.put_service(service);
    }

    /// What a scenario can see.
    pub(super) fn see(&self, name: &str) -> Value {
        let cloud = || self.cloud.state.lock().unwrap();
        match name {
            "uid" => json!(self.uids),
            "balancers" => json!(
                cloud()
                    .balancers
                    .iter()
                    .map(|(uid, nodes)| (uid, nodes.join(" ")))
                    .collect::<BTreeMap<_, _>>()
            ),
            "balancer" => {
                let cloud = cloud();
                let of = |uid| cloud.balancers.get(uid).map(|nodes| nodes.join(" "));
                json!(
                    self.uids
                        .iter()
                        .map(|(name, uid)| (name, of(uid)))
                        .collect::<BTreeMap<_, _>>()
                )
            }
            "asked" => json!(cloud().calls.iter().map(|(_, call)| call).collect::<Vec<_>>()),
            "at" => {
                let mut seconds = BTreeMap::<&str, Vec<u64>>::new();
                let cloud = cloud();
                for (at, call) in &cloud.calls {
                    let verb = call.split([' ', '(']).next().unwrap_or_default();
                    seconds.entry(verb).or_default().push(at.as_secs());
                }
                json!(seconds)
            }
            "members" => json!(cloud().balancers.values().map(Vec::len).collect::<Vec<_>>()),
            "reconciled" => json!(cloud().reconciled),
            "node_lists" => json!(cloud().nodes.len()),
            "sweeps" => json!(cloud().sweeps),
            "busy_looks" => json!(cloud().ways.busy_looks),
            "service" => self.by_name("Service", Value::clone),
            "node" => self.by_name("Node", Value::clone),
            "address" => self.by_name("Service", |it| {
                it["status"]["loadBalancer"]["ingress"][0]["ip"].clone()
            }),
            "addressed" => {
                let addresses = self.see("address");
                let some = addresses
                    .as_object()
                    .into_iter()
                    .flatten()
                    .filter(|(_, it)| !it.is_null());
                json!(some.map(|(name, _)| name).collect::<Vec<_>>())
            }
            "annotations" => self.by_name("Service", |it| it["metadata"]["annotations"].clone()),
            "conditions" => self.by_name("Service", conditions),
            "finalizer" => self.by_name("Service", |it| {
                json!(it["metadata"]["finalizers"].to_string().contains(FINALIZER))
            }),
            "events" => self.events(|mine| json!(mine)),
            "reasons" => self.events(|mine| {
                let reasons = mine.iter().map(|event| event["reason"].as_str().unwrap());
                json!(reasons.collect::<Vec<_>>().join(" "))
            }),
            "told" => {
                let mut told = BTreeMap::<String, u64>::new();
                for event in self.api.objects("Event") {
                    let reason = event["reason"].as_str().unwrap().to_owned();
                    *told.entry(reason).or_default() += event["count"].as_u64().unwrap();
                }
                json!(told)
            }
            "requests" => json!(self.api.journal().all().iter().map(shown).collect::<Vec<_>>()),
            "written" => json!(self.api.journal().writes().iter().map(shown).collect::<Vec<_>>()),
            "stalled" => {
                let stalled = self.heartbeat.as_ref().and_then(|it| it.check().err());
                json!(stalled.map(|stalled| stalled.name))
            }
            "series" => json!(self.series()),
            "unsettled" => json!(self.unsettled()),
            _ => Value::Null,
        }
    }

    fn by_name(&self, kind: &str, part: impl Fn(&Value) -> Value) -> Value {
        let objects = self.api.objects(kind);
        let named = objects
            .iter()
            .map(|it| (it["metadata"]["name"].as_str().unwrap().to_owned(), part(it)));
        Value::Object(named.collect())
    }

    /// The events on each object, in order.
    fn events(&self, part: impl Fn(&[Value]) -> Value) -> Value {
        let mut events = self.api.objects("Event");
        let version = |it: &Value| {
            it["metadata"]["resourceVersion"]
                .as_str()
                .unwrap()
                .parse::<u64>()
                .unwrap()
        };
        events.sort_by_key(version);
        let mut of = BTreeMap::<String, Vec<Value>>::new();
        for event in events {
            let name = event["involvedObject"]["name"].as_str().unwrap().to_owned();
            of.entry(name).or_default().push(event);
        }
        let parts = of.iter().map(|(name, mine)| (name.clone(), part(mine)));
        Value::Object(parts.collect())
    }

    /// The lines of the series, with round brackets around their labels.
    fn series(&self) -> Vec<String> {
        let mut registry = prometheus_client::registry::Registry::default();
        self.metrics.register(&mut registry);
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
        let round = |line: &str| line.replace('{', "(").replace('}', ")");
        text.lines()
            .filter(|line| !line.starts_with('#'))
            .map(round)
            .collect()
    }

    /// `REASON COUNT AGE` of the Services that are shown as not settled, with the age of the oldest in whole seconds.
    fn unsettled(&self) -> Vec<String> {
        let series = self.series();
        let values = |name: &str| -> Vec<(String, u64)> {
            let start = format!("{name}(reason=\"");
            let lines = series.iter().filter_map(|line| line.strip_prefix(&start));
            let values = lines.map(|line| {
                let (reason, value) = line.split_once("\") ").unwrap();
                (reason.to_owned(), value.parse::<f64>().unwrap() as u64)
            });
            values.collect()
        };
        let oldest = values("load_balancers_unsettled_oldest_seconds");
        let counts = values("load_balancers_unsettled").into_iter().zip(oldest);
        let some = counts.filter(|((_, count), (_, oldest))| (*count, *oldest) != (0, 0));
        some.map(|((reason, count), (of, oldest))| {
            assert_eq!(reason, of);
            format!("{reason} {count} {oldest}")
        })
        .collect()
    }
}

/// The conditions of a Service by type.
fn conditions(service: &Value) -> Value {
    let all = service["status"]["conditions"].as_array().into_iter().flatten();
    let named = all.map(|it| (it["type"].as_str().unwrap().to_owned(), it.clone()));
    Value::Object(named.collect())
}

/// `VERB RESOURCE[/SUBRESOURCE] STATUS`, with `rehearsed` where nothing is to be written.
fn shown(exchange: &Exchange) -> String {
    let part = match exchange.subresource.as_str() {
        "" => String::new(),
        part => format!("/{part}"),
    };
    let rehearsed = if exchange.query.contains("dryRun") {
        " rehearsed"
    } else {
        ""
    };
    let (verb, resource, status) = (&exchange.verb, &exchange.resource, exchange.status);
    format!("{verb} {resource}{part} {status}{rehearsed}")
}
