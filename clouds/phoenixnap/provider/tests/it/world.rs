//! A cluster around the provider: Services, and the service controller and the sweeper without a manager.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bowline_cloud_http::{CloudHttp, CloudHttpConfig, CredentialsFile, Secret, Transport};
use bowline_cloud_provider::plan::Note;
use bowline_cloud_provider::{
    BackgroundFacts, CloudConfig, CloudError, CloudProvider as _, ClusterFacts, Environment, Measurement,
    Service, ServiceFacts, ask_all,
};
pub(crate) use bowline_kit::Interruption;
use bowline_kit::{Run, ServiceLoop, Services, balanced_service, run_background};
use bowline_phoenixnap::{Given, Options, PhoenixNap};
use bowline_phoenixnap_client::Credentials;
use bowline_phoenixnap_sim::{NetworkSpec, PhoenixnapSim};
use jiff::Timestamp;
use tokio::time::Instant;

pub(crate) const CLUSTER: &str = "0b2f7f0e-6a58-4f0b-9a47-51f0a1c7c9d2";
pub(crate) const NETWORK: &str = "6598f7c2d2a94b6e0f1c1234";
pub(crate) const CLAIM: &str = "phoenixnap.com/ip-block-claim";

/// The account, the cluster's Services, and one process with the provider.
pub(crate) struct World {
    pub(crate) sim: PhoenixnapSim,
    pub(crate) cloud: PhoenixNap,
    holder: String,
    pub(crate) services: Services,
    /// How many Services were made.
    made: Arc<AtomicU64>,
    started: Instant,
    service_loop: ServiceLoop,
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
    provider_over(Transport::memory(sim.service()), options, None)
}

pub(crate) fn provider_over(
    transport: Transport,
    options: &Options,
    credentials: Option<CredentialsFile<Credentials>>,
) -> PhoenixNap {
    let mut config = CloudHttpConfig::new("phoenixnap", "test");
    options.configure(&mut config);
    PhoenixNap::new(CloudHttp::new(config, transport), options, credentials)
}

impl World {
    /// A network in `NLD` and no Services.
    pub(crate) fn new() -> Self {
        Self::with(USUAL)
    }

    pub(crate) fn with(variables: &[(&str, &str)]) -> Self {
        let behaviour = bowline_kit::world().behaviour();
        let sim = PhoenixnapSim::builder().seed(7).behaviour(behaviour).build();
        sim.add_network(NetworkSpec::with_id(NETWORK, "vips"));
        let cloud = provider(&sim, &options(variables));
        Self::of(sim, cloud)
    }

    /// The process ends and another one takes its place, whose client ID is what the file holds.
    pub(crate) fn restart_following(&mut self, file: &Path) {
        let credentials = CredentialsFile::open(file, |contents| {
            Ok(Credentials {
                client_id: String::from_utf8_lossy(contents).into_owned(),
                client_secret: Secret::new("Tz81-secret"),
            })
        });
        let transport = Transport::memory(self.sim.service());
        self.cloud = provider_over(transport, &options(USUAL), Some(credentials.unwrap()));
    }

    pub(crate) fn of(sim: PhoenixnapSim, cloud: PhoenixNap) -> Self {
        let services = Services::default();
        Self {
            sim,
            cloud,
            holder: "one".to_owned(),
            service_loop: ServiceLoop::new(&services),
            services,
            made: Arc::default(),
            started: Instant::now(),
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
            services: self.services.clone(),
            service_loop: ServiceLoop::new(&self.services),
            made: Arc::clone(&self.made),
            started: self.started,
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
        let (_, name) = key.split_once('/').unwrap();
        // Another one each time.
        let number = self.made.fetch_add(1, Ordering::Relaxed);
        let service = balanced_service(key, &format!("uid-{name}-{number}"));
        self.services.put(key, service);
    }

    /// Whether a Service is wanted; `None` if there is no such Service.
    pub(crate) fn is_there(&self, key: &str) -> Option<bool> {
        let service = self.services.find(key)?;
        Some(service.metadata.deletion_timestamp.is_none())
    }

    /// Which one of this name it is.
    pub(crate) fn uid(&self, key: &str) -> Option<String> {
        self.services.find(key)?.metadata.uid.clone()
    }

    pub(crate) fn service(&self, key: &str) -> Arc<Service> {
        self.services.service(key)
    }

    pub(crate) fn annotate(&self, key: &str, name: &str, value: &str) {
        self.services.annotate(key, name, Some(value));
    }

    pub(crate) fn claim(&self, key: &str) -> Option<String> {
        self.services.annotation(key, CLAIM)
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

    /// Marks a Service for deletion.
    pub(crate) fn delete(&self, key: &str) {
        self.services.delete(key, Timestamp::UNIX_EPOCH);
    }

    /// The Service is gone from the cluster.
    pub(crate) fn forget(&self, key: &str) {
        self.services.forget(key);
    }

    pub(crate) fn now(&self) -> Timestamp {
        Timestamp::UNIX_EPOCH + self.started.elapsed()
    }

    fn cluster(&self) -> ClusterFacts {
        ClusterFacts {
            name: "kubernetes".to_owned(),
            uid: Some(CLUSTER.to_owned()),
            server_version: None,
            holder: self.holder.clone(),
        }
    }

    pub(crate) fn facts(&self, key: &str, now: Timestamp) -> ServiceFacts {
        self.services.facts(key, &[], self.cluster(), now)
    }

    /// Reconciles a Service until it settles, is refused or fails.
    pub(crate) async fn run(&self, key: &str) -> Run {
        self.run_with(key, Interruption::Never).await
    }

    /// The same; the process is stopped before step `limit + 1`.
    pub(crate) async fn run_steps(&self, key: &str, limit: usize) -> Run {
        self.run_with(key, Interruption::BeforeStep(limit)).await
    }

    /// The same; something befalls the process.
    pub(crate) async fn run_with(&self, key: &str, interruption: Interruption) -> Run {
        let now = self.now();
        let facts = || self.facts(key, now);
        self.service_loop
            .reconcile(&self.cloud, key, facts, interruption)
            .await
    }

    /// One run of the sweeper, with the time that it waits for.
    pub(crate) async fn sweep(&self) -> Vec<Note> {
        self.try_sweep().await.unwrap()
    }

    /// The same, which may fail.
    pub(crate) async fn try_sweep(&self) -> Result<Vec<Note>, CloudError> {
        Ok(self.run_sweeper().await?.0)
    }

    /// The series and values that a run of the sweeper has for `/metrics`.
    pub(crate) async fn measure(&self) -> Vec<String> {
        let (_, measured) = self.run_sweeper().await.unwrap();
        let shown = |it: Measurement| match it.of {
            "" => format!("{} {}", it.gauge.name, it.count),
            of => format!("{}{{{}={of}}} {}", it.gauge.name, it.gauge.label, it.count),
        };
        measured.into_iter().map(shown).collect()
    }

    /// One look at the public network.
    pub(crate) async fn watch(&self) {
        self.run_background("phoenixnap-network").await.unwrap();
    }

    async fn run_sweeper(&self) -> Result<(Vec<Note>, Vec<Measurement>), CloudError> {
        self.run_background("phoenixnap-sweeper").await
    }

    async fn run_background(&self, name: &'static str) -> Result<(Vec<Note>, Vec<Measurement>), CloudError> {
        run_background(&self.cloud, name, || self.background_facts()).await
    }

    /// What is told to somebody who asks for blocks that belong to no Service.
    pub(crate) async fn left_over(&self) -> Vec<String> {
        let questions = self.cloud.left_over(self.background_facts());
        let (told, failed) = ask_all(questions, std::future::pending).await;
        assert!(failed.is_empty(), "{failed:?}");
        told
    }

    fn background_facts(&self) -> BackgroundFacts {
        BackgroundFacts {
            services: Arc::new(self.services.clone()),
            cluster: Arc::new(self.cluster()),
            now: self.now(),
        }
    }

    /// The names of the calls while `work` ran, without tokens and the reading of the network.
    pub(crate) async fn calls_of<T>(&self, work: impl Future<Output = T>) -> (T, Vec<String>) {
        let mark = self.sim.journal().mark();
        let answer = work.await;
        let mut calls = self.sim.calls_since(mark);
        calls.retain(|call| call != "public-networks.read");
        (answer, calls)
    }
}
