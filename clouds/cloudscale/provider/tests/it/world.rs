//! A cluster around the provider: Services, Nodes, and the service controller without a manager.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use bowline_cloud_http::{CloudHttp, CloudHttpConfig, Transport, Url};
use bowline_cloud_provider::k8s::ServicePort;
use bowline_cloud_provider::{ClusterFacts, Node, ServerVersion, Service, ServiceFacts};
use bowline_cloudscale::{Cloudscale, Options};
use bowline_cloudscale_client::Settings;
use bowline_cloudscale_sim::kit::journal::Entry;
use bowline_cloudscale_sim::{CloudscaleSim, ServerSpec};
pub(crate) use bowline_kit::Run;
use bowline_kit::{Interruption, ServiceLoop, Services, balanced_service};
use jiff::Timestamp;
use tokio::time::Instant;

/// In seconds.
pub(crate) const HALF_AN_HOUR: i64 = 1800;

/// The key of an annotation, by the part that differs.
pub(crate) fn key(suffix: &str) -> String {
    format!("k8s.cloudscale.ch/loadbalancer-{suffix}")
}

/// The API's time, the provider over it, and the cluster.
pub(crate) struct World {
    pub(crate) sim: CloudscaleSim,
    pub(crate) cloud: Cloudscale,
    pub(crate) services: Services,
    service_loop: ServiceLoop,
    pub(crate) nodes: Vec<Arc<Node>>,
    /// The wall time, in seconds, without what has passed since `started`.
    now: AtomicI64,
    started: Instant,
    pub(crate) minor: u32,
    pub(crate) cluster_name: String,
}

/// A provider over a simulator.
pub(crate) fn provider(sim: &CloudscaleSim) -> Cloudscale {
    let settings = Settings::from_env(|name| {
        (name == "CLOUDSCALE_ACCESS_TOKEN").then(|| "Qv7tMz0aLk42sXbR9eYcU".to_owned())
    })
    .unwrap();
    let mut config = CloudHttpConfig::new("cloudscale", "test");
    settings.configure(&mut config);
    let http = CloudHttp::new(config, Transport::memory(sim.service()));
    assert_eq!(settings.url, Url::parse("https://api.cloudscale.ch/").unwrap());
    Cloudscale::new(http, &settings, Options::default())
}

impl World {
    pub(crate) fn new() -> Self {
        Self::over(
            CloudscaleSim::builder()
                .seed(7)
                .behaviour(bowline_kit::world().behaviour())
                .build(),
        )
    }

    pub(crate) fn over(sim: CloudscaleSim) -> Self {
        let cloud = provider(&sim);
        let services = Services::default();
        Self {
            sim,
            cloud,
            service_loop: ServiceLoop::new(&services),
            services,
            nodes: Vec::new(),
            now: AtomicI64::new(0),
            started: Instant::now(),
            minor: 35,
            cluster_name: "kubernetes".into(),
        }
    }

    /// A world with nodes `n1`, `n2`, ... and a Service `web` of two ports.
    pub(crate) fn with_nodes(count: usize) -> Self {
        let mut world = Self::new();
        for index in 1..=count {
            world.add_node(&format!("n{index}"));
        }
        world.put(service(
            "web",
            &[("web", "TCP", 8080, 31200), ("admin", "TCP", 9000, 31201)],
        ));
        world
    }

    /// A process that starts anew: nothing is remembered.
    pub(crate) fn restart(&mut self) {
        self.cloud = provider(&self.sim);
    }

    /// A node with a server of its name.
    pub(crate) fn add_node(&mut self, name: &str) -> uuid::Uuid {
        self.add_server_node(ServerSpec::new(name))
    }

    pub(crate) fn add_server_node(&mut self, spec: ServerSpec) -> uuid::Uuid {
        let name = spec.name.clone();
        let server = self.sim.add_server(spec);
        self.nodes.push(Arc::new(Node {
            provider_id: Some(format!("cloudscale://{server}").into()),
            ..Node::named(&name)
        }));
        server
    }

    pub(crate) fn remove_node(&mut self, name: &str) {
        self.nodes.retain(|node| node.name.as_str() != name);
    }

    pub(crate) fn put(&self, service: Service) {
        let name = service.metadata.name.clone().unwrap();
        self.services.put(&name, service);
    }

    pub(crate) fn edit(&self, name: &str, change: impl FnOnce(&mut Service)) {
        self.services.edit(name, change);
    }

    /// Sets an annotation by the end of its key.
    pub(crate) fn annotate(&self, name: &str, suffix: &str, value: &str) {
        self.services.annotate(name, &key(suffix), Some(value));
    }

    pub(crate) fn remove_annotation(&self, name: &str, suffix: &str) {
        self.services.annotate(name, &key(suffix), None);
    }

    pub(crate) fn annotation(&self, name: &str, suffix: &str) -> Option<String> {
        self.services.annotation(name, &key(suffix))
    }

    /// Marks a Service for deletion.
    pub(crate) fn delete(&self, name: &str) {
        self.services.delete(name, Timestamp::UNIX_EPOCH);
    }

    /// A Service that is gone at once, as one without a finalizer.
    pub(crate) fn forget(&self, name: &str) {
        self.services.forget(name);
    }

    pub(crate) fn facts(&self, name: &str) -> ServiceFacts {
        let cluster = ClusterFacts {
            name: self.cluster_name.clone(),
            uid: None,
            server_version: Some(ServerVersion {
                major: 1,
                minor: self.minor,
            }),
            holder: "test".into(),
        };
        let now = Timestamp::from_second(self.now.load(Ordering::Relaxed)).unwrap() + self.started.elapsed();
        self.services.facts(name, &self.nodes, cluster, now)
    }

    /// Reconciles a Service until it settles, is refused or fails, half an hour after the last time: nothing is held back any more.
    pub(crate) async fn run(&self, name: &str) -> Run {
        self.run_with(name, Interruption::Never).await
    }

    pub(crate) fn pass(&self, seconds: i64) {
        self.now.fetch_add(seconds, Ordering::Relaxed);
    }

    /// The same; the process is stopped after so many steps.
    pub(crate) async fn run_steps(&self, name: &str, limit: usize) -> Run {
        self.run_with(name, Interruption::AfterStep(limit)).await
    }

    pub(crate) async fn run_with(&self, name: &str, interruption: Interruption) -> Run {
        self.pass(HALF_AN_HOUR);
        let facts = || self.facts(name);
        self.service_loop
            .reconcile(&self.cloud, name, facts, interruption)
            .await
    }

    /// The writes that arrived while `work` ran.
    pub(crate) async fn writes_of<T>(&self, work: impl Future<Output = T>) -> (T, Vec<Entry>) {
        let mark = self.sim.journal().mark();
        let answer = work.await;
        (
            answer,
            self.sim
                .journal()
                .since(mark)
                .into_iter()
                .filter(|entry| entry.write)
                .collect(),
        )
    }

    /// How many reads and writes arrived while `work` ran.
    pub(crate) async fn calls_of<T>(&self, work: impl Future<Output = T>) -> (T, usize, usize) {
        let mark = self.sim.journal().mark();
        let answer = work.await;
        let entries = self.sim.journal().since(mark);
        let writes = entries.iter().filter(|entry| entry.write).count();
        (answer, entries.len() - writes, writes)
    }
}

/// A Service of type LoadBalancer with ports of (name, protocol, port, node port).
pub(crate) fn service(name: &str, ports: &[(&str, &str, i32, i32)]) -> Service {
    let mut service = balanced_service(&format!("default/{name}"), &format!("uid-{name}"));
    service.spec.as_mut().unwrap().ports = Some(ports.iter().map(|port| service_port(*port)).collect());
    service
}

pub(crate) fn service_port((name, protocol, port, node_port): (&str, &str, i32, i32)) -> ServicePort {
    ServicePort {
        name: Some(name.to_owned()).filter(|name| !name.is_empty()),
        ..bowline_kit::service_port(protocol, port, node_port)
    }
}
