//! A cluster, a cloud, and the managers between them, in one process under a stopped clock.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bowline_cloud_http::{Silences, Transport};
use bowline_cloud_kit::{CloudService, Fault};
use bowline_kube_api::KubeApi;
use bowline_kube_io::{Kube, KubeMetrics, KubeOptions, TokioClock};
use bowline_manager::config::Config;
use bowline_manager::health::Health;
use bowline_manager::metrics::{BuildInfo, Metrics};
use bowline_manager::{End, FencingGate, Identity, Manager};
use jiff::Timestamp;
use prometheus_client::registry::Registry;
use tokio::task::{AbortHandle, JoinHandle};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::fuse::{self, Fuse, Writer};
use super::under_test::{CloudUnderTest, Seat, Wish};

mod claims;
mod journals;
mod objects;

pub use journals::Since;
pub use objects::{AUTOSCALER, EXCLUDED, FINALIZER, SHUTDOWN, UNINITIALIZED, service, tainted_node, web};

/// One second of virtual time.
pub const SECOND: Duration = Duration::from_secs(1);

/// Ends a wait that never ends, in virtual time. Longer than the longest backoff of a Service.
const DEADLINE: Duration = Duration::from_secs(1_200);

/// A cluster and a cloud on one clock.
pub struct World<C> {
    /// The simulator.
    pub sim: C,
    /// The API server.
    pub api: KubeApi,
    cloud: CloudService,
    seed: u64,
    started: u64,
    running: Vec<Process>,
    companion: Option<AbortHandle>,
    /// The number of the manager that made each write, to the cloud and to Kubernetes.
    writers: Arc<Mutex<Vec<u64>>>,
}

/// A manager that runs.
struct Process {
    task: JoinHandle<End>,
    stop: CancellationToken,
    holder: String,
    metrics: Arc<Metrics>,
}

impl Drop for Process {
    fn drop(&mut self) {
        // A task goes on without its handle, and a test may have many worlds.
        self.task.abort();
    }
}

impl<C> Drop for World<C> {
    fn drop(&mut self) {
        if let Some(companion) = &self.companion {
            companion.abort();
        }
    }
}

/// What is special about a manager.
pub struct Start {
    /// What it is told. By default no routes are kept: their controller lists them by the clock, whatever else happens, which
    /// would be in every count of calls.
    pub config: Config,
    /// Burns with writes to the cloud.
    pub cloud_fuse: Option<Fuse>,
    /// Burns with writes to Kubernetes.
    pub kube_fuse: Option<Fuse>,
}

impl Default for Start {
    fn default() -> Self {
        let mut config = Config::default();
        config.settings.routes.is_wanted = false;
        Self {
            config,
            cloud_fuse: None,
            kube_fuse: None,
        }
    }
}

impl Start {
    /// A manager without a lease, for hours in which there is no other one: the renewals would cost more than all else.
    #[must_use]
    pub fn alone() -> Self {
        let mut start = Self::default();
        start.config.election = None;
        start
    }
}

impl<C: CloudUnderTest> Default for World<C> {
    fn default() -> Self {
        Self::new()
    }
}

impl<C: CloudUnderTest> World<C> {
    /// A world with the seed that most scenarios have.
    #[must_use]
    pub fn new() -> Self {
        Self::seeded(7)
    }

    /// A world from a seed.
    #[must_use]
    pub fn seeded(seed: u64) -> Self {
        Self::over(C::new(seed), seed)
    }

    /// A world around a simulator.
    #[must_use]
    pub fn over(sim: C, seed: u64) -> Self {
        Self::of(sim, KubeApi::builder(), seed)
    }

    /// A world around a simulator and an API server.
    ///
    /// # Panics
    ///
    /// Never: the start time is a constant.
    #[must_use]
    pub fn of(sim: C, api: bowline_kube_api::Builder, seed: u64) -> Self {
        let start: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let api = api.seed(seed).start_time(start).build();
        let companion = sim.companion(&api).map(|run| tokio::spawn(run).abort_handle());
        Self {
            cloud: sim.service(),
            sim,
            api,
            seed,
            started: 0,
            running: Vec::new(),
            companion,
            writers: Arc::default(),
        }
    }

    /// The cloud's API: its journal, its faults, its latency.
    #[must_use]
    pub fn cloud(&self) -> &CloudService {
        &self.cloud
    }

    /// A client of the API server that is nobody's.
    #[must_use]
    pub fn kube(&self) -> Kube {
        Kube::with_service(self.api.service(), KubeOptions::new("bowline/conformance"))
    }

    // Processes.

    /// Starts a manager as it is deployed.
    pub fn start(&mut self) {
        self.start_with(Start::default());
    }

    /// Starts one more manager.
    ///
    /// # Panics
    ///
    /// Where the provider cannot be built.
    pub fn start_with(&mut self, start: Start) {
        self.started += 1;
        let seed = self.seed.wrapping_add(1_000 * self.started);
        let identity = Identity::new(format!("control-{}", self.started), &format!("{seed:08x}"));
        let clock = Arc::new(TokioClock::starting_at(self.api.now()));
        let gate = Arc::new(match start.config.election {
            Some(_) => FencingGate::closed(clock.clone()),
            None => FencingGate::open(),
        });
        let writer = Writer {
            number: self.started,
            all: Arc::clone(&self.writers),
        };
        let (cloud, kube) = (self.cloud.clone(), self.api.service());
        let (there, here) = (fuse::End::Cloud(self.cloud.clone()), fuse::End::Kube);
        // One process, one death: whichever connection's fuse burns, both are cut.
        let (cloud, kube) = match (start.cloud_fuse, start.kube_fuse) {
            (Some(fuse), _) => (fuse.on(cloud, there, &writer), fuse.beside(kube, here, &writer)),
            (None, Some(fuse)) => (fuse.beside(cloud, there, &writer), fuse.on(kube, here, &writer)),
            (None, None) => {
                let fuse = Fuse::never();
                (
                    fuse.beside(cloud, there, &writer),
                    fuse.beside(kube, here, &writer),
                )
            }
        };
        let mut registry = Registry::default();
        let of_cloud = bowline_cloud_http::Metrics::default();
        of_cloud.register(&mut registry);
        let kube = Kube::with_service(
            kube,
            KubeOptions {
                gate: Arc::clone(&gate) as Arc<_>,
                clock,
                metrics: KubeMetrics::registered(&mut registry),
                ..KubeOptions::new("bowline/conformance")
            },
        );
        let seat = Seat {
            transport: Transport::memory(cloud),
            gate: Arc::<FencingGate>::clone(&gate),
            seed,
            metrics: of_cloud,
            silences: Silences::default(),
        };
        let silences = seat.silences.clone();
        let metrics = Arc::new(Metrics::new(registry, &BuildInfo::default()));
        let manager = Manager {
            config: start.config,
            kube,
            provider: self.sim.provider(seat),
            gate,
            silences,
            health: Arc::new(Health::default()),
            metrics: Arc::clone(&metrics),
            seed,
            identity: identity.clone(),
        };
        let stop = CancellationToken::new();
        self.running.push(Process {
            task: tokio::spawn(manager.run(None, stop.clone())),
            stop,
            holder: identity.holder,
            metrics,
        });
    }

    /// The series of each manager that was not ended by a test, oldest first. They are what `/metrics` shows.
    #[must_use]
    pub fn metrics(&self) -> Vec<Arc<Metrics>> {
        let all = self.running.iter();
        all.map(|process| Arc::clone(&process.metrics)).collect()
    }

    /// A provider without a manager.
    #[must_use]
    pub fn provider(&self) -> Arc<dyn bowline_cloud_provider::CloudProvider> {
        self.sim.provider(Seat {
            transport: Transport::memory(self.cloud.clone()),
            gate: Arc::new(bowline_cloud_http::OpenGate),
            seed: self.seed,
            metrics: bowline_cloud_http::Metrics::default(),
            silences: Silences::default(),
        })
    }

    /// A provider of a process that ends with the fuse.
    #[must_use]
    pub fn provider_until(&self, fuse: &Fuse) -> Arc<dyn bowline_cloud_provider::CloudProvider> {
        let writer = Writer {
            number: 0,
            all: Arc::default(),
        };
        let end = fuse::End::Cloud(self.cloud.clone());
        self.sim.provider(Seat {
            transport: Transport::memory(fuse.on(self.cloud.clone(), end, &writer)),
            gate: Arc::new(bowline_cloud_http::OpenGate),
            seed: self.seed,
            metrics: bowline_cloud_http::Metrics::default(),
            silences: Silences::default(),
        })
    }

    /// Ends the oldest manager where it is, as a power cut does.
    pub async fn kill(&mut self) {
        let mut process = self.running.remove(0);
        process.task.abort();
        // An error says that it was cancelled, which is what was asked for.
        let _ = (&mut process.task).await;
    }

    /// Asks the oldest manager to stop and waits for it; says how it ended and how long that took.
    ///
    /// # Panics
    ///
    /// Where it panicked.
    pub async fn stop(&mut self) -> (End, Duration) {
        let mut process = self.running.remove(0);
        let asked = Instant::now();
        process.stop.cancel();
        ((&mut process.task).await.unwrap(), asked.elapsed())
    }

    /// How the oldest manager ended by itself.
    ///
    /// # Panics
    ///
    /// Where it panicked.
    pub async fn ended(&mut self) -> End {
        let mut process = self.running.remove(0);
        (&mut process.task).await.unwrap()
    }

    /// Kills the manager and starts another one, which has to wait for the end of the lease.
    pub async fn restart(&mut self) {
        self.kill().await;
        self.start();
    }

    /// The holder of each manager that was not ended by a test, oldest first.
    #[must_use]
    pub fn holders(&self) -> Vec<&str> {
        self.running
            .iter()
            .map(|process| process.holder.as_str())
            .collect()
    }

    // Time.

    /// Lets virtual time pass.
    pub async fn pass(&self, time: Duration) {
        tokio::time::sleep(time).await;
    }

    /// Asks for [`web`] and waits until one of its writes meets this; whether one does before it has an address.
    pub(super) async fn meets_while_created(&self, fault: Fault) -> bool {
        let fault = self.cloud().faults().add(fault);
        self.ask(web(), Wish::Plain);
        let is_met = |world: &Self| world.cloud().faults().struck(fault) > 0;
        let is_over = |world: &Self| is_met(world) || !world.addresses("web").is_empty();
        self.until("a call meets it", is_over).await;
        is_met(self)
    }

    /// Lets everything happen until the condition holds; says how long that took.
    ///
    /// # Panics
    ///
    /// Where that never is.
    pub async fn until(&self, what: &str, condition: impl Fn(&Self) -> bool) -> Duration {
        let begun = Instant::now();
        while !condition(self) {
            assert!(
                begun.elapsed() < DEADLINE,
                "never: {what}; events:\n{}",
                self.all_events().join("\n")
            );
            // Fine steps where seconds are measured, coarse ones where minutes are.
            let step = if begun.elapsed() < SECOND * 20 { 10 } else { 250 };
            tokio::time::sleep(Duration::from_millis(step)).await;
        }
        begun.elapsed()
    }

    /// Lets everything happen until nobody has asked anybody for anything for three seconds, the lease left aside, and
    /// nothing is left to be taken away.
    ///
    /// # Panics
    ///
    /// Where that never is.
    pub async fn rest(&self) {
        let begun = Instant::now();
        let mut seen = self.since();
        let mut quiet = 0;
        while quiet < 30 || self.sim.is_at_work() {
            assert!(begun.elapsed() < DEADLINE, "no rest");
            tokio::time::sleep(Duration::from_millis(100)).await;
            let is_quiet = self.calls(seen).is_empty() && self.kube_requests(seen).is_empty();
            quiet = if is_quiet { quiet + 1 } else { 0 };
            seen = self.since();
        }
    }
}
