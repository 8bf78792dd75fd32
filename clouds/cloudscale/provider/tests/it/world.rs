//! A cluster around the provider: Services, Nodes, and a small loop that reconciles as the service loop does.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bowline_cloud_http::{CloudHttp, CloudHttpConfig, Transport, Url};
use bowline_cloud_provider::plan::{Answer, Note};
use bowline_cloud_provider::{
    CloudProvider, ClusterFacts, KubeWrite, Labels, LoadBalancerStatus, Node, Reconcile, ServerVersion,
    Service, ServiceFacts, ServicesView,
};
use bowline_cloudscale::{Cloudscale, Options};
use bowline_cloudscale_client::Settings;
use bowline_cloudscale_sim::kit::journal::Entry;
use bowline_cloudscale_sim::{CloudscaleSim, ServerSpec};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ServicePort, ServiceSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

/// The most waves and waits of one run: a run that needs more never ends.
const MAX_ROUNDS: usize = 2_000;

/// The key of an annotation, by the part that differs.
pub(crate) fn key(suffix: &str) -> String {
    format!("k8s.cloudscale.ch/loadbalancer-{suffix}")
}

/// The API's time, the provider over it, and the cluster.
pub(crate) struct World {
    pub(crate) sim: CloudscaleSim,
    pub(crate) cloud: Cloudscale,
    services: Arc<Mutex<BTreeMap<String, Arc<Service>>>>,
    pub(crate) nodes: Vec<Arc<Node>>,
    pub(crate) minor: u32,
    pub(crate) cluster_name: String,
}

/// How a run ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Settled(LoadBalancerStatus),
    Refused(String),
    Failed(String),
    /// The process was stopped.
    Stopped,
}

/// One run of the loop.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) outcome: Outcome,
    /// The labels of the steps, wave by wave.
    pub(crate) waves: Vec<Vec<String>>,
    pub(crate) notes: Vec<Note>,
    pub(crate) waited: Duration,
}

impl Run {
    /// The addresses that would be published.
    pub(crate) fn addresses(&self) -> Vec<String> {
        let Outcome::Settled(status) = &self.outcome else {
            panic!("not settled: {self:#?}")
        };
        status
            .ingress
            .iter()
            .filter_map(|entry| entry.ip.clone().or(entry.hostname.clone()))
            .collect()
    }

    /// Why it was refused or failed.
    pub(crate) fn complaint(&self) -> &str {
        match &self.outcome {
            Outcome::Refused(text) | Outcome::Failed(text) => text,
            other => panic!("nothing to complain of: {other:?}"),
        }
    }

    pub(crate) fn reasons(&self) -> Vec<&str> {
        let mut reasons: Vec<&str> = self.notes.iter().map(|note| note.reason).collect();
        reasons.dedup();
        reasons
    }

    #[track_caller]
    pub(crate) fn settled(self) -> Self {
        assert!(matches!(self.outcome, Outcome::Settled(_)), "{self:#?}");
        self
    }
}

/// The other Services, as a cache shows them.
struct View(Arc<Mutex<BTreeMap<String, Arc<Service>>>>);

impl ServicesView for View {
    fn services(&self) -> Vec<Arc<Service>> {
        self.0.lock().unwrap().values().cloned().collect()
    }
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
        Self::over(CloudscaleSim::builder().seed(7).build())
    }

    pub(crate) fn over(sim: CloudscaleSim) -> Self {
        let cloud = provider(&sim);
        Self {
            sim,
            cloud,
            services: Arc::default(),
            nodes: Vec::new(),
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

    pub(crate) fn label_node(&mut self, name: &str, labels: &[(&str, &str)]) {
        for node in &mut self.nodes {
            if node.name.as_str() == name {
                Arc::make_mut(node).labels = labels.iter().copied().collect::<Labels>();
            }
        }
    }

    pub(crate) fn put(&self, service: Service) {
        let name = service.metadata.name.clone().unwrap();
        self.services.lock().unwrap().insert(name, Arc::new(service));
    }

    pub(crate) fn service(&self, name: &str) -> Arc<Service> {
        Arc::clone(&self.services.lock().unwrap()[name])
    }

    pub(crate) fn edit(&self, name: &str, change: impl FnOnce(&mut Service)) {
        let mut services = self.services.lock().unwrap();
        change(Arc::make_mut(services.get_mut(name).unwrap()));
    }

    /// Sets an annotation by the end of its key.
    pub(crate) fn annotate(&self, name: &str, suffix: &str, value: &str) {
        self.edit(name, |service| {
            service
                .metadata
                .annotations
                .get_or_insert_default()
                .insert(key(suffix), value.to_owned());
        });
    }

    pub(crate) fn remove_annotation(&self, name: &str, suffix: &str) {
        self.edit(name, |service| {
            service
                .metadata
                .annotations
                .get_or_insert_default()
                .remove(&key(suffix));
        });
    }

    pub(crate) fn annotation(&self, name: &str, suffix: &str) -> Option<String> {
        self.service(name)
            .metadata
            .annotations
            .as_ref()?
            .get(&key(suffix))
            .cloned()
    }

    /// Marks a Service for deletion.
    pub(crate) fn delete(&self, name: &str) {
        self.edit(name, |service| {
            service.metadata.deletion_timestamp = Some(Time(Timestamp::UNIX_EPOCH))
        });
    }

    pub(crate) fn facts(&self, name: &str) -> ServiceFacts {
        let service = self.service(name);
        let is_wanted = service.metadata.deletion_timestamp.is_none();
        ServiceFacts {
            nodes: if is_wanted {
                self.nodes.clone().into()
            } else {
                Arc::from([])
            },
            service,
            is_wanted,
            services: Arc::new(View(Arc::clone(&self.services))),
            cluster: Arc::new(ClusterFacts {
                name: self.cluster_name.clone(),
                uid: None,
                server_version: Some(ServerVersion {
                    major: 1,
                    minor: self.minor,
                }),
                holder: "test".into(),
            }),
            now: Timestamp::UNIX_EPOCH,
        }
    }

    /// Reconciles a Service until it settles, is refused or fails.
    pub(crate) async fn run(&self, name: &str) -> Run {
        self.run_steps(name, usize::MAX).await
    }

    /// The same; the process is stopped before step `limit + 1`.
    pub(crate) async fn run_steps(&self, name: &str, limit: usize) -> Run {
        let mut run = Run {
            outcome: Outcome::Stopped,
            waves: Vec::new(),
            notes: Vec::new(),
            waited: Duration::ZERO,
        };
        let mut session = match self.cloud.load_balancer().unwrap().begin(self.facts(name)) {
            Ok(session) => session,
            Err(refusal) => {
                run.outcome = Outcome::Refused(refusal.to_string());
                return run;
            }
        };
        run.outcome = self
            .drive(name, &mut *session, limit, &mut run)
            .await
            .unwrap_or_else(Outcome::Failed);
        run
    }

    async fn drive(
        &self,
        name: &str,
        session: &mut dyn Reconcile<ServiceFacts>,
        limit: usize,
        run: &mut Run,
    ) -> Result<Outcome, String> {
        let mut steps_left = limit;
        let mut is_unverified = false;
        session.observe().await.map_err(|error| error.to_string())?;
        for _ in 0..MAX_ROUNDS {
            let plan = session.plan().unwrap();
            run.notes.extend(
                plan.notes
                    .into_iter()
                    .filter(|note| !run.notes.contains(note))
                    .collect::<Vec<_>>(),
            );
            match plan.answer {
                Answer::Settled(status) if !is_unverified => return Ok(Outcome::Settled(status)),
                Answer::Settled(_) => {
                    session.verify().await.map_err(|error| error.to_string())?;
                    is_unverified = false;
                }
                Answer::Refused(refusal) => return Ok(Outcome::Refused(refusal.to_string())),
                Answer::Wait { .. } if steps_left == 0 => return Ok(Outcome::Stopped),
                Answer::Wait { after, .. } => {
                    tokio::time::sleep(after).await;
                    run.waited += after;
                    session.observe().await.map_err(|error| error.to_string())?;
                }
                Answer::Apply(wave) => {
                    run.waves.push(Vec::new());
                    for step in wave.into_steps() {
                        if steps_left == 0 {
                            return Ok(Outcome::Stopped);
                        }
                        steps_left -= 1;
                        let label = step.view().label.clone();
                        run.waves.last_mut().unwrap().push(label.clone());
                        if let Some(write) = step.kube_write() {
                            self.write(name, write);
                            session
                                .refresh(self.facts(name))
                                .map_err(|refusal| refusal.to_string())?;
                        } else {
                            is_unverified = true;
                            let learned = session.apply(&step).await;
                            let learned =
                                learned.map_err(|error| format!("error during {label}: {error}"))?;
                            session.learn(&step, learned);
                        }
                    }
                }
            }
        }
        panic!("{name} never settles: {run:#?}");
    }

    fn write(&self, name: &str, write: &KubeWrite) {
        self.edit(name, |service| write.predict(service));
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

/// Writes in short: method and the kind of thing.
pub(crate) fn in_short(writes: &[Entry]) -> Vec<String> {
    writes
        .iter()
        .map(|entry| {
            let kinds = [
                "members",
                "health-monitors",
                "listeners",
                "pools",
                "floating-ips",
                "load-balancers",
            ];
            let kind = kinds
                .iter()
                .find(|kind| entry.path.contains(&format!("/{kind}")))
                .unwrap();
            format!("{} {kind}", entry.method)
        })
        .collect()
}

/// A Service of type LoadBalancer with ports of (name, protocol, port, node port).
pub(crate) fn service(name: &str, ports: &[(&str, &str, i32, i32)]) -> Service {
    let mut service = Service::default();
    service.metadata.name = Some(name.to_owned());
    service.metadata.namespace = Some("default".to_owned());
    service.metadata.uid = Some(format!("uid-{name}"));
    service.spec = Some(ServiceSpec {
        type_: Some("LoadBalancer".to_owned()),
        ports: Some(ports.iter().map(|port| service_port(*port)).collect()),
        ..ServiceSpec::default()
    });
    service
}

pub(crate) fn service_port((name, protocol, port, node_port): (&str, &str, i32, i32)) -> ServicePort {
    ServicePort {
        name: Some(name.to_owned()).filter(|name| !name.is_empty()),
        protocol: Some(protocol.to_owned()),
        port,
        node_port: Some(node_port),
        ..ServicePort::default()
    }
}
