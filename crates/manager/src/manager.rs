//! One process from its start to its end.

use std::sync::Arc;
use std::time::Duration;

use bowline_cloud_provider::{CloudProvider, ClusterFacts};
use bowline_controllers::{Controller, tell_of_unreadable};
use bowline_kube_io::{
    Cache, CacheKey, EventSink, Kube, LeaseNote, NodeCache, ServiceCache, watch_nodes, watch_services,
};
use bowline_transport::Silences;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::cluster;
use crate::config::{Config, ElectionConfig};
use crate::controllers::ControllerName;
use crate::fencing::FencingGate;
use crate::health::Health;
use crate::identities::Identities;
use crate::leadership::{Elector, Leadership};
use crate::metrics::{Metrics, gauges};
use crate::parts::{Lease, Parts};
use crate::serving::Server;
use crate::tasks::Tasks;

/// Where events about the lease come from.
const COMPONENT: &str = "cloud-controller-manager";

const ELECTION: &str = "leader election";
const MIGRATION: &str = "leader migration";
const SERVING: &str = "secure serving";
const EVENTS: &str = "events";

/// How long queued events may take to be written at the end.
const FLUSH: Duration = Duration::from_secs(1);

/// A cache that nothing was heard about for so long is old. A watch that is well tells something each half minute, and where
/// watches fail, lists do.
const BLIND: Duration = Duration::from_secs(60);

/// Everything a process consists of.
pub struct Manager {
    /// What it was told.
    pub config: Config,
    /// The API server, with [`gate`](Self::gate) as its write gate.
    pub kube: Kube,
    /// The cloud, with the same gate.
    pub provider: Arc<dyn CloudProvider>,
    /// Open while this process leads.
    pub gate: Arc<FencingGate>,
    /// The reads of the cloud that have no answer for long.
    pub silences: Silences,
    /// Who this process is.
    pub identity: Identity,
    /// The checks of the secure port.
    pub health: Arc<Health>,
    /// The series.
    pub metrics: Arc<Metrics>,
    /// Where jitter comes from: the same seed gives the same history.
    pub seed: u64,
}

/// Who a process is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// The computer's name; events carry it.
    pub host: String,
    /// The holder in the lease, `host_uuid`: different for every process.
    pub holder: String,
}

impl Identity {
    /// The identity of a process on this host, made different by a random text.
    pub fn new(host: impl Into<String>, random: &str) -> Self {
        let host = host.into();
        let holder = format!("{host}_{random}");
        Self { host, holder }
    }
}

/// How a process ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// It was told to stop and did.
    Stopped,
    /// The lease was lost.
    LeadershipLost,
    /// Something that the controllers need could not be read.
    CannotStart {
        /// What, and why.
        reason: String,
    },
    /// A part that never ends has ended.
    Failed {
        /// The part.
        task: &'static str,
    },
}

impl Manager {
    /// Runs until `shutdown`, or until something ends that must not.
    ///
    /// The secure port answers first. The caches are read at once, also on a follower, so that a new leader begins
    /// without a delay. The cloud is called only while this process leads.
    ///
    /// # Cancellation
    ///
    /// Dropping it ends everything where it is; the lease is not given up.
    pub async fn run(self, server: Option<Server>, shutdown: CancellationToken) -> End {
        let mut process = Process::start(self, server);
        let end = process.live(&shutdown).await;
        // Another replica may start where this one cannot, and need not wait until the lease runs out.
        if matches!(end, End::Stopped | End::CannotStart { .. }) {
            process.drain().await;
        }
        process.tasks.abort().await;
        end
    }
}

/// Whether a cache can be relied on. Followers are asked too, but for its first filling: nobody would notice before they
/// lead.
fn check_cache<T: CacheKey>(kind: &str, cache: &Cache<T>, leads: bool) -> Result<(), String> {
    if let Some(refusal) = cache.refusal() {
        return Err(refusal.to_string());
    }
    if leads && !cache.is_synced() {
        return Err(format!("{kind} have not been read yet"));
    }
    let silence = cache.heard().map(|heard| heard.elapsed()).unwrap_or_default();
    if silence > BLIND {
        return Err(format!(
            "{kind} have not been heard of for {} s: the API server does not show its changes",
            silence.as_secs()
        ));
    }
    Ok(())
}

/// A process that has started.
struct Process {
    manager: Manager,
    identities: Identities,
    tasks: Tasks,
    nodes: Arc<NodeCache>,
    services: Arc<ServiceCache>,
    events: EventSink,
    /// The leases that this process stands for or holds: the main one, and after it that of the migration. Empty
    /// without an election.
    leases: Vec<Standing>,
    /// Ends the elections and gives the leases up.
    stop_election: CancellationToken,
    controllers: Vec<Running>,
    /// A task that ended while the end of controllers was waited for, and is none of them.
    ended_beside: Option<&'static str>,
}

/// An election that this process stands for.
struct Standing {
    task: &'static str,
    leadership: watch::Receiver<Leadership>,
    note: Arc<LeaseNote>,
    has_ended: bool,
}

/// A controller that runs.
struct Running {
    name: ControllerName,
    controller: Arc<dyn Controller>,
    has_ended: bool,
}

impl Process {
    fn start(manager: Manager, server: Option<Server>) -> Self {
        let identities = Identities::new(
            &manager.kube,
            manager.config.service_accounts,
            manager.provider.service_account(),
        );
        let mut tasks = Tasks::default();
        if let Some(server) = server {
            tasks.spawn(SERVING, server.run(CancellationToken::new()));
        }
        let (nodes, services) = (Arc::new(NodeCache::new()), Arc::new(ServiceCache::new()));
        tasks.spawn(
            "node watch",
            watch_nodes(identities.informers(), Arc::clone(&nodes)),
        );
        tasks.spawn(
            "service watch",
            watch_services(identities.informers(), Arc::clone(&services)),
        );

        let probes = &manager.metrics.controllers().probes;
        gauges::show(probes, &identities.process(), &nodes, &services);

        let (events, writer) = EventSink::channel(identities.process(), manager.identity.host.as_str());
        let writer = writer.of_process(manager.identity.holder.as_str());
        tasks.spawn(EVENTS, writer.run());

        let mut process = Self {
            manager,
            identities,
            tasks,
            nodes,
            services,
            events,
            leases: Vec::new(),
            stop_election: CancellationToken::new(),
            controllers: Vec::new(),
            ended_beside: None,
        };
        if let Some(config) = process.manager.config.election.clone() {
            process.stand(&config, ELECTION, "leaderElection");
        }
        let main = process.leases.first().map(|lease| lease.leadership.clone());
        let (of_nodes, of_services) = (Arc::clone(&process.nodes), Arc::clone(&process.services));
        process.manager.health.add_readiness("caches", move || {
            let leads = main.as_ref().is_none_or(|main| main.borrow().is_leading());
            check_cache("Nodes", &of_nodes, leads)?;
            check_cache("Services", &of_services, leads)
        });
        process
    }

    /// Stands for the election of a lease from now on.
    fn stand(&mut self, config: &ElectionConfig, task: &'static str, check: &'static str) {
        let elector = Elector::new(
            config,
            &self.manager.identity.holder,
            &self.identities.election(),
            Arc::clone(&self.manager.gate),
            self.manager.metrics.series().clone(),
            self.events.recorder(COMPONENT),
            self.manager.seed,
        );
        let (leadership, note) = (elector.leadership(), elector.note());
        let (state, lease_duration) = (leadership.clone(), config.lease_duration);
        self.manager.health.add(check, move || {
            state.borrow().check(Instant::now(), lease_duration)
        });
        let stop = self.stop_election.clone();
        self.tasks.spawn(task, async move {
            elector.run(stop).await;
        });
        self.leases.push(Standing {
            task,
            leadership,
            note,
            has_ended: false,
        });
    }

    /// Lives until it is told to stop, or until something ends.
    async fn live(&mut self, shutdown: &CancellationToken) -> End {
        tokio::select! {
            biased;
            () = shutdown.cancelled() => End::Stopped,
            end = self.work() => end,
        }
    }

    /// Leads, once it may, until something ends that must not.
    async fn work(&mut self) -> End {
        if let Some(end) = self.until_leading().await {
            return end;
        }
        self.renew_caches();
        let cluster = match self.until_known().await {
            Ok(cluster) => cluster,
            Err(end) => return end,
        };
        self.tasks.spawn(
            "objects not understood",
            tell_of_unreadable(
                Arc::clone(&self.nodes),
                Arc::clone(&self.services),
                self.events.recorder(COMPONENT),
            ),
        );
        let mut is_first = true;
        loop {
            // Nothing that began in an earlier term is under way any more.
            let was_suspended = self.manager.gate.resume();
            if was_suspended || !is_first {
                self.renew_caches();
            }
            is_first = false;
            if let Some(end) = self.lead(&cluster).await {
                return end;
            }
            if let Some(end) = self.until_recovered().await {
                return end;
            }
        }
    }

    /// Leads until something ends that must not; `None`: leadership was suspended.
    async fn lead(&mut self, cluster: &Arc<ClusterFacts>) -> Option<End> {
        let suspended = self.until_suspended();
        tokio::select! {
            biased;
            end = self.control(cluster) => Some(end),
            () = suspended => None,
        }
    }

    /// Waits until the term of leadership that holds now is over. That the lease is lost is the end of its task.
    fn until_suspended(&self) -> impl Future<Output = ()> + use<> {
        let leadership = self.leases.first().map(|lease| lease.leadership.clone());
        async move {
            let Some(mut leadership) = leadership else {
                return std::future::pending().await;
            };
            let term = leadership.borrow_and_update().term();
            let is_over = |state: &Leadership| *state != Leadership::Lost && state.term() != term;
            if leadership.wait_for(is_over).await.is_err() {
                std::future::pending().await
            }
        }
    }

    /// Ends the controllers and waits until the lease is renewed. The next ones begin as after a take-over: with caches that are as
    /// new as that, and nothing remembered.
    async fn until_recovered(&mut self) -> Option<End> {
        self.stop_controllers().await;
        for one in std::mem::take(&mut self.controllers) {
            self.manager.health.remove(one.name.name());
            self.manager.metrics.series().set_ready(one.name, false);
        }
        if let Some(task) = self.ended_beside.take() {
            return Some(self.judge(task));
        }
        self.until_leading().await
    }

    /// Runs the controllers until something ends that must not.
    async fn control(&mut self, cluster: &Arc<ClusterFacts>) -> End {
        self.start_controllers(cluster, Lease::Main);
        let of_migration = self.migration_lease();
        if let Some(config) = &of_migration {
            self.stand(config, MIGRATION, "leaderMigration");
        }
        if let Some(end) = self.until_synced().await {
            return end;
        }
        if of_migration.is_some() {
            if let Some(end) = self.until_leading().await {
                return end;
            }
            self.renew_caches();
            self.start_controllers(cluster, Lease::Migration);
            if let Some(end) = self.until_synced().await {
                return end;
            }
        }
        self.until_end().await
    }

    /// The second lease, if controllers wait for one: like the first but for its name.
    fn migration_lease(&self) -> Option<ElectionConfig> {
        let config = &self.manager.config;
        let (main, migration) = (config.election.as_ref()?, config.migration.as_ref()?);
        Some(ElectionConfig {
            name: migration.lease.clone(),
            ..main.clone()
        })
    }

    /// Lets the controllers of a lease that was just won wait for caches that are as new as it is.
    ///
    /// Whoever led before may have changed anything up to that moment, and what a follower knows of it is what its watches
    /// showed: one of them may have died unnoticed. On what it showed last, a balancer of a Service that is gone would be
    /// made again, or a route be deleted that was just made.
    fn renew_caches(&self) {
        if !self.leases.is_empty() {
            self.nodes.renew();
            self.services.renew();
        }
    }

    async fn until_synced(&mut self) -> Option<End> {
        let (nodes, services) = (Arc::clone(&self.nodes), Arc::clone(&self.services));
        let synced = async move {
            nodes.synced().await;
            services.synced().await;
        };
        tokio::select! {
            biased;
            end = self.until_end() => return Some(end),
            () = synced => {}
        }
        self.show_ready();
        None
    }

    fn show_ready(&self) {
        for one in &self.controllers {
            self.manager.metrics.series().set_ready(one.name, true);
        }
    }

    /// Waits until the lease that was stood for last is held.
    async fn until_leading(&mut self) -> Option<End> {
        let mut leadership = self.leases.last()?.leadership.clone();
        tokio::select! {
            biased;
            end = self.until_end() => Some(end),
            // An error means that the sender is gone, and its task's end is what the other branch sees.
            Ok(_) = leadership.wait_for(|state| state.is_leading()) => None,
        }
    }

    /// The next end of a task; none of them ends by itself.
    async fn until_end(&mut self) -> End {
        let ended = self.tasks.next().await;
        self.end_of(ended)
    }

    /// What follows from the end of a task; without one, no task is left.
    fn end_of(&self, ended: Option<&'static str>) -> End {
        match ended {
            Some(task) => self.judge(task),
            None => End::Failed { task: EVENTS },
        }
    }

    fn judge(&self, task: &'static str) -> End {
        let lease = self.leases.iter().find(|lease| lease.task == task);
        if lease.is_some_and(|lease| *lease.leadership.borrow() == Leadership::Lost) {
            return End::LeadershipLost;
        }
        tracing::error!(task, "A task ended unexpectedly");
        End::Failed { task }
    }

    /// The facts about the cluster, unless a task ends while they are read.
    async fn until_known(&mut self) -> Result<Arc<ClusterFacts>, End> {
        let kube = self.identities.process();
        let manager = &self.manager;
        let (name, holder) = (&manager.config.cluster_name, &manager.identity.holder);
        let facts = cluster::facts(&kube, name, holder, &*manager.provider);
        let ended = tokio::select! {
            biased;
            task = self.tasks.next() => task,
            facts = facts => return facts.map_err(|reason| End::CannotStart { reason }),
        };
        Err(self.end_of(ended))
    }

    /// Starts the controllers of a lease that is held now.
    fn start_controllers(&mut self, cluster: &Arc<ClusterFacts>, lease: Lease) {
        let manager = &self.manager;
        let standing = match lease {
            Lease::Main => self.leases.first(),
            Lease::Migration => self.leases.last(),
        };
        let parts = Parts {
            note: standing.map(|lease| &lease.note),
            config: &manager.config,
            identities: &self.identities,
            provider: &*manager.provider,
            silences: &manager.silences,
            nodes: &self.nodes,
            services: &self.services,
            cluster,
            events: &self.events,
            metrics: &manager.metrics,
            seed: manager.seed,
        };
        for (name, controller) in parts.controllers(lease) {
            self.tasks.spawn(name.name(), Arc::clone(&controller).run());
            let heartbeat = Arc::clone(controller.heartbeat());
            manager.health.add(name.name(), move || {
                heartbeat.check().map_err(|stalled| stalled.to_string())
            });
            manager.metrics.series().set_running(name);
            manager.metrics.series().set_ready(name, false);
            self.controllers.push(Running {
                name,
                controller,
                has_ended: false,
            });
            tracing::info!(controller = name.name(), "Controller started");
        }
    }

    /// Ends in order: no new work, running writes to their end, events out, lease given up. Each of them has its time;
    /// all together stay below ten seconds.
    async fn drain(&mut self) {
        tracing::info!("Stopping");
        self.stop_controllers().await;
        let left = self.events.drain(FLUSH).await;
        if left > 0 {
            tracing::warn!(events = left, "Events could not be written in time");
        }
        self.stop_election.cancel();
        while self.leases.iter().any(|lease| !lease.has_ended) {
            self.note_next_end().await;
        }
    }

    /// Lets no work begin, and waits until what is under way has ended, for a time.
    async fn stop_controllers(&mut self) {
        for one in &self.controllers {
            one.controller.stop();
        }
        let drained = tokio::time::timeout(self.manager.config.drain, self.until_controllers_stopped()).await;
        if drained.is_err() {
            let left: Vec<&str> = self.unfinished().map(ControllerName::name).collect();
            tracing::warn!(
                controllers = left.join(","),
                "Work did not end in time, whoever leads next finishes it"
            );
        }
        // None of them may begin a write after the release.
        for name in self.unfinished() {
            self.tasks.cancel(name.name());
        }
        self.until_controllers_stopped().await;
    }

    async fn until_controllers_stopped(&mut self) {
        while self.unfinished().next().is_some() {
            self.note_next_end().await;
        }
    }

    async fn note_next_end(&mut self) {
        let Some(finished) = self.tasks.next().await else {
            // Nothing runs any more, so there is nothing to wait for.
            self.leases.clear();
            self.controllers.clear();
            return;
        };
        for lease in &mut self.leases {
            lease.has_ended |= lease.task == finished;
        }
        for one in &mut self.controllers {
            one.has_ended |= one.name.name() == finished;
        }
        if !self.controllers.iter().any(|one| one.name.name() == finished) {
            self.ended_beside = Some(finished);
        }
    }

    /// Controllers that were asked to stop and have not yet.
    fn unfinished(&self) -> impl Iterator<Item = ControllerName> {
        self.controllers
            .iter()
            .filter(|one| !one.has_ended)
            .map(|one| one.name)
    }
}
