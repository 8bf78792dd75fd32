//! A cluster around the provider: Services, and a small loop that reconciles as the service loop does.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bowline_cloud_http::{CloudHttp, CloudHttpConfig, Transport};
use bowline_cloud_provider::plan::{Answer, Lane, Note};
use bowline_cloud_provider::{
    BackgroundFacts, CloudConfig, CloudError, CloudProvider, ClusterFacts, Environment, KubeWrite,
    LoadBalancerStatus, Reconcile, Service, ServiceFacts, ServicesView, facts,
};
use bowline_phoenixnap::{Given, Options, PhoenixNap};
use bowline_phoenixnap_sim::{NetworkSpec, PhoenixnapSim};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::ServiceSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use tokio::time::Instant;

/// The most waves and waits of one run: a run that needs more never ends.
const MAX_ROUNDS: usize = 500;

pub(crate) const CLUSTER: &str = "0b2f7f0e-6a58-4f0b-9a47-51f0a1c7c9d2";
pub(crate) const NETWORK: &str = "6598f7c2d2a94b6e0f1c1234";
pub(crate) const LOCATION_ANNOTATION: &str = "phoenixnap.com/ip-location";
pub(crate) const CLAIM: &str = "phoenixnap.com/ip-block-claim";

type Services = Arc<Mutex<BTreeMap<String, Arc<Service>>>>;

/// The account, the cluster's Services, and one process with the provider.
pub(crate) struct World {
    pub(crate) sim: PhoenixnapSim,
    pub(crate) cloud: PhoenixNap,
    holder: String,
    services: Services,
    /// How many Services were made.
    made: Arc<AtomicU64>,
    started: Instant,
    /// Those of the process: two steps that share one never meet.
    lanes: Mutex<BTreeMap<Lane, Arc<tokio::sync::Mutex<()>>>>,
}

/// How a run ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Settled(LoadBalancerStatus),
    Refused(String),
    Failed(String),
    /// The process was stopped, or the patience of the test was at an end.
    Stopped,
}

/// What befalls the process during a run.
#[derive(Clone, Copy)]
pub(crate) enum Interruption {
    Never,
    /// It is stopped for good before step n + 1.
    Stop(usize),
    /// It stands still for so long before step n + 1, as under `SIGSTOP`, and knows nothing of it.
    Pause(usize, Duration),
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
            .filter_map(|entry| entry.ip.clone())
            .collect()
    }

    /// Why it was refused or failed.
    pub(crate) fn complaint(&self) -> &str {
        match &self.outcome {
            Outcome::Refused(text) | Outcome::Failed(text) => text,
            other => panic!("nothing to complain of: {other:?}"),
        }
    }

    #[track_caller]
    pub(crate) fn settled(self) -> Self {
        assert!(matches!(self.outcome, Outcome::Settled(_)), "{self:#?}");
        self
    }
}

struct View(Services);

impl ServicesView for View {
    fn services(&self) -> Vec<Arc<Service>> {
        self.0.lock().unwrap().values().cloned().collect()
    }
}

/// Load balancing on the network, blocks in `NLD`.
pub(crate) const USUAL: &[(&str, &str)] = &[
    ("PNAP_LOCATION", "NLD"),
    ("PNAP_LOAD_BALANCER", "kube-vip://6598f7c2d2a94b6e0f1c1234"),
];

pub(crate) fn options(variables: &[(&str, &str)]) -> Options {
    let credentials = [("PNAP_CLIENT_ID", "id"), ("PNAP_CLIENT_SECRET", "Tz81-secret")];
    let environment: Environment = credentials.iter().chain(variables).copied().collect();
    Options::read(&Given::default(), &environment, &CloudConfig::Absent).unwrap()
}

pub(crate) fn provider(sim: &PhoenixnapSim, options: &Options) -> PhoenixNap {
    let mut config = CloudHttpConfig::new("phoenixnap", "test");
    options.configure(&mut config);
    PhoenixNap::new(
        CloudHttp::new(config, Transport::memory(sim.service())),
        options,
        None,
    )
}

impl World {
    /// A network in `NLD` and no Services.
    pub(crate) fn new() -> Self {
        Self::with(USUAL)
    }

    pub(crate) fn with(variables: &[(&str, &str)]) -> Self {
        let sim = PhoenixnapSim::builder().seed(7).build();
        sim.add_network(NetworkSpec::new("vips").id(NETWORK));
        let cloud = provider(&sim, &options(variables));
        Self {
            sim,
            cloud,
            holder: "one".to_owned(),
            services: Services::default(),
            made: Arc::default(),
            started: Instant::now(),
            lanes: Mutex::default(),
        }
    }

    /// With a Service `shop/checkout`.
    pub(crate) fn with_service() -> Self {
        let world = Self::new();
        world.add("shop/checkout");
        world
    }

    /// Another process on the same cluster and account.
    pub(crate) fn other_process(&self, holder: &str) -> Self {
        Self {
            sim: self.sim.clone(),
            cloud: provider(&self.sim, &options(USUAL)),
            holder: holder.to_owned(),
            services: Arc::clone(&self.services),
            made: Arc::clone(&self.made),
            started: self.started,
            lanes: Mutex::default(),
        }
    }

    /// The process ends and another one takes its place.
    pub(crate) fn restart(&mut self) {
        self.restart_with(USUAL);
    }

    pub(crate) fn restart_with(&mut self, variables: &[(&str, &str)]) {
        self.cloud = provider(&self.sim, &options(variables));
        self.holder.push('+');
    }

    pub(crate) fn add(&self, key: &str) {
        let (namespace, name) = key.split_once('/').unwrap();
        let mut service = Service::default();
        service.metadata.namespace = Some(namespace.to_owned());
        service.metadata.name = Some(name.to_owned());
        // Another one each time.
        let number = self.made.fetch_add(1, Ordering::Relaxed);
        service.metadata.uid = Some(format!("uid-{name}-{number}"));
        service.spec = Some(ServiceSpec {
            type_: Some("LoadBalancer".to_owned()),
            ..ServiceSpec::default()
        });
        self.services
            .lock()
            .unwrap()
            .insert(key.to_owned(), Arc::new(service));
    }

    /// Whether a Service is wanted; none if there is no such Service.
    pub(crate) fn is_there(&self, key: &str) -> Option<bool> {
        let services = self.services.lock().unwrap();
        Some(services.get(key)?.metadata.deletion_timestamp.is_none())
    }

    /// Which one of this name it is.
    pub(crate) fn uid(&self, key: &str) -> Option<String> {
        self.services.lock().unwrap().get(key)?.metadata.uid.clone()
    }

    pub(crate) fn service(&self, key: &str) -> Arc<Service> {
        Arc::clone(&self.services.lock().unwrap()[key])
    }

    pub(crate) fn edit(&self, key: &str, change: impl FnOnce(&mut Service)) {
        let mut services = self.services.lock().unwrap();
        let mut service = (*services[key]).clone();
        change(&mut service);
        services.insert(key.to_owned(), Arc::new(service));
    }

    pub(crate) fn annotate(&self, key: &str, name: &str, value: &str) {
        self.edit(key, |service| {
            let annotations = service.metadata.annotations.get_or_insert_default();
            annotations.insert(name.to_owned(), value.to_owned());
        });
    }

    pub(crate) fn claim(&self, key: &str) -> Option<String> {
        self.service(key)
            .metadata
            .annotations
            .as_ref()?
            .get(CLAIM)
            .cloned()
    }

    pub(crate) fn field(&self, key: &str) -> String {
        let service = self.service(key);
        service
            .spec
            .as_ref()
            .unwrap()
            .load_balancer_ip
            .clone()
            .unwrap_or_default()
    }

    pub(crate) fn set_field(&self, key: &str, address: &str) {
        self.edit(key, |service| {
            service.spec.as_mut().unwrap().load_balancer_ip = Some(address.to_owned());
        });
    }

    /// Marks a Service for deletion.
    pub(crate) fn delete(&self, key: &str) {
        self.edit(key, |service| {
            service.metadata.deletion_timestamp = Some(Time(Timestamp::UNIX_EPOCH));
        });
    }

    /// The Service is gone from the cluster.
    pub(crate) fn forget(&self, key: &str) {
        self.services.lock().unwrap().remove(key);
    }

    fn now(&self) -> Timestamp {
        Timestamp::UNIX_EPOCH + self.started.elapsed()
    }

    fn cluster(&self) -> Arc<ClusterFacts> {
        Arc::new(ClusterFacts {
            name: "kubernetes".to_owned(),
            uid: Some(CLUSTER.to_owned()),
            server_version: None,
            holder: self.holder.clone(),
        })
    }

    pub(crate) fn facts(&self, key: &str, now: Timestamp) -> ServiceFacts {
        let service = self.service(key);
        ServiceFacts {
            is_wanted: facts::wants_load_balancer(&service) && service.metadata.deletion_timestamp.is_none(),
            service,
            nodes: Arc::from([]),
            services: Arc::new(View(Arc::clone(&self.services))),
            cluster: self.cluster(),
            now,
        }
    }

    /// Reconciles a Service until it settles, is refused or fails.
    pub(crate) async fn run(&self, key: &str) -> Run {
        self.run_with(key, Interruption::Never).await
    }

    /// The same; the process is stopped before step `limit + 1`.
    pub(crate) async fn run_steps(&self, key: &str, limit: usize) -> Run {
        self.run_with(key, Interruption::Stop(limit)).await
    }

    /// The same; something befalls the process.
    pub(crate) async fn run_with(&self, key: &str, interruption: Interruption) -> Run {
        let now = self.now();
        let balancers = self.cloud.load_balancer().unwrap();
        let mut run = Run {
            outcome: Outcome::Stopped,
            waves: Vec::new(),
            notes: Vec::new(),
            waited: Duration::ZERO,
        };
        match balancers.begin(self.facts(key, now)) {
            Ok(mut session) => {
                let driven = self.drive(key, now, &mut *session, interruption, &mut run).await;
                run.outcome = driven.unwrap_or_else(Outcome::Failed);
            }
            Err(refusal) => run.outcome = Outcome::Refused(refusal.to_string()),
        }
        run
    }

    async fn drive(
        &self,
        key: &str,
        now: Timestamp,
        session: &mut dyn Reconcile<ServiceFacts>,
        interruption: Interruption,
        run: &mut Run,
    ) -> Result<Outcome, String> {
        let mut is_unverified = false;
        session.observe().await.map_err(|error| error.to_string())?;
        for _ in 0..MAX_ROUNDS {
            let plan = session.plan().unwrap();
            run.notes.extend(plan.notes);
            match plan.answer {
                Answer::Settled(status) if !is_unverified => return Ok(Outcome::Settled(status)),
                Answer::Settled(_) => {
                    session.verify().await.map_err(|error| error.to_string())?;
                    is_unverified = false;
                }
                Answer::Refused(refusal) => return Ok(Outcome::Refused(refusal.to_string())),
                Answer::Wait { after, .. } => {
                    tokio::time::sleep(after).await;
                    run.waited += after;
                    session.observe().await.map_err(|error| error.to_string())?;
                }
                Answer::Apply(wave) => {
                    run.waves.push(Vec::new());
                    let mut wrote_kube = false;
                    for step in wave.into_steps() {
                        let made: usize = run.waves.iter().map(Vec::len).sum();
                        match interruption {
                            Interruption::Stop(after) if made == after => return Ok(Outcome::Stopped),
                            Interruption::Pause(after, time) if made == after => {
                                tokio::time::sleep(time).await;
                            }
                            _ => {}
                        }
                        let label = step.view().label.clone();
                        run.waves.last_mut().unwrap().push(label.clone());
                        if let Some(write) = step.kube_write() {
                            if !wrote_kube {
                                self.check_version(key, session)?;
                            }
                            self.write(key, write);
                            wrote_kube = true;
                        } else {
                            is_unverified = true;
                            let _held = self.hold(&step.view().lanes).await;
                            let learned = session.apply(&step).await;
                            let learned =
                                learned.map_err(|error| format!("error during {label}: {error}"))?;
                            session.learn(&step, learned);
                        }
                    }
                    if wrote_kube && self.is_there(key).is_none() {
                        return Err("gone".to_owned());
                    }
                    if wrote_kube {
                        session
                            .refresh(self.facts(key, now))
                            .map_err(|refusal| refusal.to_string())?;
                    }
                }
            }
        }
        panic!("{key} never settles: {run:#?}");
    }

    /// Takes the lanes of a step, in name order as the service loop does.
    async fn hold(&self, lanes: &[Lane]) -> Vec<tokio::sync::OwnedMutexGuard<()>> {
        let mut held = Vec::new();
        for lane in lanes.iter().collect::<std::collections::BTreeSet<_>>() {
            let lane = Arc::clone(self.lanes.lock().unwrap().entry(lane.clone()).or_default());
            held.push(lane.lock_owned().await);
        }
        held
    }

    /// A write to Kubernetes is made only on the Service that the plan was made from, as by its resource version.
    fn check_version(&self, key: &str, session: &dyn Reconcile<ServiceFacts>) -> Result<(), String> {
        match self.services.lock().unwrap().get(key) {
            Some(service) if Arc::ptr_eq(&session.facts().service, service) => Ok(()),
            Some(_) => Err("conflict".to_owned()),
            None => Err("gone".to_owned()),
        }
    }

    fn write(&self, key: &str, write: &KubeWrite) {
        self.edit(key, |service| write.predict(service));
    }

    /// One run of the sweeper, with the time that it waits for.
    pub(crate) async fn sweep(&self) -> Vec<Note> {
        self.try_sweep().await.unwrap()
    }

    /// The same, which may fail.
    pub(crate) async fn try_sweep(&self) -> Result<Vec<Note>, CloudError> {
        let work = self.cloud.background_work().remove(0);
        let mut session = work
            .begin(BackgroundFacts {
                services: Arc::new(View(Arc::clone(&self.services))),
                cluster: self.cluster(),
                now: self.now(),
            })
            .unwrap();
        session.observe().await?;
        for _ in 0..MAX_ROUNDS {
            let plan = session.plan().unwrap();
            match plan.answer {
                Answer::Apply(wave) => {
                    for step in wave.into_steps() {
                        let learned = session.apply(&step).await?;
                        session.learn(&step, learned);
                    }
                }
                Answer::Wait { after, .. } => {
                    tokio::time::sleep(after).await;
                    session.observe().await?;
                }
                Answer::Settled(_) => return Ok(plan.notes),
                Answer::Refused(refusal) => panic!("{refusal}"),
            }
        }
        panic!("the sweeper never ends");
    }

    /// The names of the calls while `work` ran, without tokens and the reading of the network.
    pub(crate) async fn calls_of<T>(&self, work: impl Future<Output = T>) -> (T, Vec<String>) {
        let mark = self.sim.journal().mark();
        let answer = work.await;
        let mut calls = self.sim.calls_since(mark);
        calls.retain(|call| call != "public-networks.read");
        (answer, calls)
    }

    /// Nothing is bought twice and no two writes met.
    #[track_caller]
    pub(crate) fn check(&self, what: &str) {
        assert_eq!(self.sim.check_invariants(), Vec::<String>::new(), "{what}");
    }
}
