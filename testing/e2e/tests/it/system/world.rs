//! A cluster, a cloud, and the managers between them.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bowline_cloud_http::{CloudHttp, CloudHttpConfig, GateClosed, Transport};
use bowline_cloudscale::{Cloudscale, Options};
use bowline_cloudscale_client::Settings;
use bowline_cloudscale_sim::CloudscaleSim;
use bowline_cloudscale_sim::kit::journal::{Entry, Mark};
use bowline_kube_api::{Exchange, KubeApi};
use bowline_kube_io::{Kube, KubeOptions, TokioClock};
use bowline_manager::config::Config;
use bowline_manager::health::Health;
use bowline_manager::metrics::{BuildInfo, Metrics};
use bowline_manager::{End, FencingGate, Identity, Manager};
use jiff::Timestamp;
use prometheus_client::registry::Registry;
use serde_json::Value;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::fuse::{Fuse, Writer};

/// What the managers know the API by. Must not appear anywhere but in the `Authorization` header.
pub(crate) const TOKEN: &str = "Qv7tMz0aLk42sXbR9eYcUgH1";

pub(crate) const SECOND: Duration = Duration::from_secs(1);

/// Ends a wait that never ends, in virtual time. Longer than the longest backoff of a Service.
const DEADLINE: Duration = Duration::from_secs(1_200);

/// A cluster and a cloud on one clock.
pub(crate) struct World {
    pub(crate) sim: CloudscaleSim,
    pub(crate) api: KubeApi,
    seed: u64,
    started: u64,
    running: Vec<Process>,
    /// The number of the manager that made each write, to the cloud and to Kubernetes.
    writers: Arc<Mutex<Vec<u64>>>,
}

/// A manager that runs.
pub(crate) struct Process {
    task: JoinHandle<End>,
    stop: CancellationToken,
    pub(crate) holder: String,
}

impl Drop for Process {
    fn drop(&mut self) {
        // A task goes on without its handle, and a test may have many worlds.
        self.task.abort();
    }
}

/// What is special about a manager.
pub(crate) struct Start {
    pub(crate) config: Config,
    pub(crate) token: &'static str,
    /// Burns with writes to the cloud.
    pub(crate) cloud_fuse: Option<Fuse>,
    /// Burns with writes to Kubernetes.
    pub(crate) kube_fuse: Option<Fuse>,
}

impl Default for Start {
    fn default() -> Self {
        Self {
            config: Config::default(),
            token: TOKEN,
            cloud_fuse: None,
            kube_fuse: None,
        }
    }
}

/// Two points in time, one in each journal.
#[derive(Clone, Copy)]
pub(crate) struct Since {
    cloud: Mark,
    kube: usize,
}

impl World {
    pub(crate) fn new() -> Self {
        Self::seeded(7)
    }

    pub(crate) fn seeded(seed: u64) -> Self {
        Self::over(CloudscaleSim::builder().seed(seed).build(), seed)
    }

    pub(crate) fn over(sim: CloudscaleSim, seed: u64) -> Self {
        Self::of(sim, KubeApi::builder(), seed)
    }

    pub(crate) fn of(sim: CloudscaleSim, api: bowline_kube_api::Builder, seed: u64) -> Self {
        let start: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        Self {
            sim,
            api: api.seed(seed).start_time(start).build(),
            seed,
            started: 0,
            running: Vec::new(),
            writers: Arc::default(),
        }
    }

    /// Starts a manager as it is deployed.
    pub(crate) fn start(&mut self) {
        self.start_with(Start::default());
    }

    /// Starts one more manager.
    pub(crate) fn start_with(&mut self, start: Start) {
        self.started += 1;
        let seed = self.seed.wrapping_add(1_000 * self.started);
        let identity = Identity::new(format!("control-{}", self.started), &format!("{seed:08x}"));
        let gate = Arc::new(match start.config.election {
            Some(_) => FencingGate::closed(),
            None => FencingGate::open(),
        });
        let writer = Writer {
            number: self.started,
            all: Arc::clone(&self.writers),
        };
        let (cloud, kube) = (self.sim.service(), self.api.service());
        // One process, one death: whichever connection's fuse burns, both are cut.
        let (cloud, kube) = match (start.cloud_fuse, start.kube_fuse) {
            (Some(fuse), _) => (fuse.on(cloud, &writer), fuse.beside(kube, &writer)),
            (None, Some(fuse)) => (fuse.beside(cloud, &writer), fuse.on(kube, &writer)),
            (None, None) => {
                let fuse = Fuse::never();
                (fuse.beside(cloud, &writer), fuse.beside(kube, &writer))
            }
        };
        let kube = Kube::with_service(
            kube,
            KubeOptions {
                gate: Arc::clone(&gate) as Arc<_>,
                clock: Arc::new(TokioClock::starting_at(self.api.now())),
                ..KubeOptions::new("bowline/e2e")
            },
        );
        let manager = Manager {
            config: start.config,
            kube,
            provider: Arc::new(provider(Transport::memory(cloud), start.token, &gate, seed)),
            gate,
            health: Arc::new(Health::default()),
            metrics: Arc::new(Metrics::new(Registry::default(), &BuildInfo::default())),
            seed,
            identity: identity.clone(),
        };
        let stop = CancellationToken::new();
        self.running.push(Process {
            task: tokio::spawn(manager.run(None, stop.clone())),
            stop,
            holder: identity.holder,
        });
    }

    /// Ends the oldest manager where it is, as a power cut does.
    pub(crate) async fn kill(&mut self) {
        let mut process = self.running.remove(0);
        process.task.abort();
        // An error says that it was cancelled, which is what was asked for.
        let _ = (&mut process.task).await;
    }

    /// Asks the oldest manager to stop and waits for it; says how it ended and how long that took.
    pub(crate) async fn stop(&mut self) -> (End, Duration) {
        let mut process = self.running.remove(0);
        let asked = Instant::now();
        process.stop.cancel();
        ((&mut process.task).await.expect("no panic"), asked.elapsed())
    }

    /// How the oldest manager ended by itself.
    pub(crate) async fn ended(&mut self) -> End {
        let mut process = self.running.remove(0);
        (&mut process.task).await.expect("no panic")
    }

    /// Kills the manager and starts another one, which has to wait for the end of the lease.
    pub(crate) async fn restart(&mut self) {
        self.kill().await;
        self.start();
    }

    /// The holder of each manager that was not ended by a test, oldest first.
    pub(crate) fn holders(&self) -> Vec<&str> {
        self.running
            .iter()
            .map(|process| process.holder.as_str())
            .collect()
    }

    // Time.

    /// Lets virtual time pass.
    pub(crate) async fn pass(&self, time: Duration) {
        tokio::time::sleep(time).await;
    }

    /// Lets everything happen until the condition holds; says how long that took.
    pub(crate) async fn until(&self, what: &str, condition: impl Fn(&Self) -> bool) -> Duration {
        let begun = Instant::now();
        while !condition(self) {
            assert!(
                begun.elapsed() < DEADLINE,
                "never: {what}; events:\n{}",
                self.all_events().join("\n")
            );
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        begun.elapsed()
    }

    /// Lets everything happen until nobody has asked anybody for anything for three seconds, the lease left aside.
    pub(crate) async fn rest(&self) {
        let begun = Instant::now();
        let mut seen = self.since();
        let mut quiet = 0;
        while quiet < 30 {
            assert!(begun.elapsed() < DEADLINE, "no rest");
            tokio::time::sleep(Duration::from_millis(100)).await;
            let is_quiet = self.calls(seen).is_empty() && self.kube_requests(seen).is_empty();
            quiet = if is_quiet { quiet + 1 } else { 0 };
            seen = self.since();
        }
    }

    // Journals.

    /// Now, in both journals.
    pub(crate) fn since(&self) -> Since {
        Since {
            cloud: self.sim.journal().mark(),
            kube: self.kube_len(),
        }
    }

    /// What the cloud was asked for.
    pub(crate) fn calls(&self, since: Since) -> Vec<Entry> {
        self.sim.journal().since(since.cloud)
    }

    /// The same in short, counted: `GET load-balancers/:id`.
    pub(crate) fn tally(&self, since: Since) -> BTreeMap<String, usize> {
        let mut tally = BTreeMap::new();
        for call in self.calls(since) {
            *tally.entry(in_short(&call)).or_default() += 1;
        }
        tally
    }

    /// What was changed in the cloud, in short, in order.
    pub(crate) fn writes(&self, since: Since) -> Vec<String> {
        let calls = self.calls(since);
        calls.iter().filter(|call| call.write).map(in_short).collect()
    }

    /// Reads and writes.
    pub(crate) fn counts(&self, since: Since) -> (usize, usize) {
        let calls = self.calls(since);
        let writes = calls.iter().filter(|call| call.write).count();
        (calls.len() - writes, writes)
    }

    /// How many requests the API server has seen. Counted in place: a long history would take long to copy.
    fn kube_len(&self) -> usize {
        let count = Cell::new(0);
        self.api.journal().matching(|_| {
            count.set(count.get() + 1);
            false
        });
        count.get()
    }

    /// Every request to the API server but those for the lease and watches that are opened again.
    fn kube_requests(&self, since: Since) -> Vec<Exchange> {
        let index = Cell::new(0);
        self.api.journal().matching(|request| {
            index.set(index.get() + 1);
            index.get() > since.kube && request.resource != "leases" && request.verb != "watch"
        })
    }

    /// What was written to Kubernetes, the lease left aside: `patch services/status default/web`.
    pub(crate) fn kube_writes(&self, since: Since) -> Vec<String> {
        self.kube_requests(since)
            .iter()
            .filter(|request| request.is_write())
            .map(|request| {
                let resource = match request.subresource.as_str() {
                    "" => request.resource.clone(),
                    sub => format!("{}/{sub}", request.resource),
                };
                // The name of an event is made up; what it is about is said by the events themselves.
                match resource.as_str() {
                    "events" => format!("{} events", request.verb),
                    _ => format!("{} {resource} {}", request.verb, request.name),
                }
            })
            .collect()
    }

    /// The same without events.
    pub(crate) fn object_writes(&self, since: Since) -> Vec<String> {
        let mut writes = self.kube_writes(since);
        writes.retain(|write| !write.ends_with(" events"));
        writes
    }

    // Objects.

    pub(crate) fn service(&self, name: &str) -> Option<Value> {
        self.api.object("Service", "default", name)
    }

    pub(crate) fn node(&self, name: &str) -> Option<Value> {
        self.api.object("Node", "", name)
    }

    pub(crate) fn server(&self, name: &str) -> Uuid {
        let servers = self.sim.servers();
        servers
            .iter()
            .find(|server| server.name == name)
            .expect("a server of this name")
            .uuid
    }

    /// The addresses in a Service's status.
    pub(crate) fn addresses(&self, name: &str) -> Vec<String> {
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

    /// An annotation of a Service by the end of its key.
    pub(crate) fn annotation(&self, name: &str, suffix: &str) -> Option<String> {
        let key = format!("k8s.cloudscale.ch/loadbalancer-{suffix}");
        let service = self.service(name)?;
        Some(service["metadata"]["annotations"][key].as_str()?.to_owned())
    }

    /// All events as `object reason: message`, oldest first, those of the lease left aside.
    pub(crate) fn all_events(&self) -> Vec<String> {
        let mut events: Vec<(u64, String)> = self
            .api
            .objects("Event")
            .iter()
            .filter(|event| event["reason"] != "LeaderElection")
            .map(|event| {
                let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
                let version = text(&event["metadata"]["resourceVersion"]);
                let line = format!(
                    "{} {}: {}",
                    text(&event["involvedObject"]["name"]),
                    text(&event["reason"]),
                    text(&event["message"])
                );
                (version.parse().unwrap(), line)
            })
            .collect();
        events.sort();
        events.into_iter().map(|(_, line)| line).collect()
    }

    /// The events on one object as `reason: message`.
    pub(crate) fn events(&self, object: &str) -> Vec<String> {
        let prefix = format!("{object} ");
        self.all_events()
            .iter()
            .filter_map(|line| line.strip_prefix(&prefix))
            .map(str::to_owned)
            .collect()
    }

    /// The reasons of the events on one object.
    pub(crate) fn reasons(&self, object: &str) -> Vec<String> {
        self.events(object)
            .iter()
            .map(|line| line.split(':').next().unwrap_or_default().to_owned())
            .collect()
    }

    /// Asserts that the cloud has no duplicate, no orphan, and never saw two writes to one balancer at once.
    #[track_caller]
    pub(crate) fn assert_sound(&self) {
        assert_eq!(self.sim.check_invariants(), Vec::<String>::new());
    }

    /// Asserts that each manager made all its writes, events included, before the next one made its first.
    #[track_caller]
    pub(crate) fn assert_one_writer(&self) {
        let writers = self.writers.lock().unwrap();
        assert!(writers.is_sorted(), "{writers:?}");
        assert!(!writers.is_empty());
    }

    /// Asserts that a secret is in nothing that was written or stored anywhere.
    #[track_caller]
    pub(crate) fn assert_hidden(&self, secret: &str) {
        for exchange in self.api.journal().all() {
            assert!(!format!("{exchange:?}").contains(secret), "{exchange:?}");
        }
        for entry in self.sim.journal().entries() {
            assert!(!format!("{entry:?}").contains(secret), "{entry:?}");
        }
        for kind in bowline_kube_api::KINDS {
            for object in self.api.objects(kind.kind) {
                assert!(!object.to_string().contains(secret), "{object}");
            }
        }
    }
}

/// The provider as the binary builds it, over another transport.
fn provider(transport: Transport, token: &'static str, gate: &Arc<FencingGate>, seed: u64) -> Cloudscale {
    let settings =
        Settings::from_env(|name| (name == "CLOUDSCALE_ACCESS_TOKEN").then(|| token.to_owned())).unwrap();
    let mut config = CloudHttpConfig::new("cloudscale", "bowline/e2e");
    settings.configure(&mut config);
    let gate = Arc::clone(gate);
    config.seed = seed;
    config.gate = Arc::new(move || match gate.is_open() {
        true => Ok(()),
        false => Err(GateClosed::new("not the leader")),
    });
    Cloudscale::new(CloudHttp::new(config, transport), &settings, Options::default())
}

/// A call without the names of things: `POST load-balancers/pools/:id/members`.
pub(crate) fn in_short(call: &Entry) -> String {
    let path: Vec<&str> = call
        .path
        .trim_matches('/')
        .split('/')
        .skip(1) // the version of the API
        .map(|part| match part {
            part if Uuid::parse_str(part).is_ok() => ":id",
            part if part.contains(['.', ':']) => ":address",
            part => part,
        })
        .collect();
    format!("{} {}", call.method, path.join("/"))
}
