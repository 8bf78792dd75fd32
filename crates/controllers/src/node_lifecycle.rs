//! The cloud-node-lifecycle controller (`cloud-node-lifecycle-controller`): deletes the Node of an instance that is proved gone,
//! and taints the Node of one that is powered off.
//!
//! It is driven by the watch: a Node that loses `Ready` is asked for at once, then again at growing distance while the
//! answer does not change. Deletion is earned: the instance must be proved absent twice, the credentials must still see
//! the instance of a single Node that is ready, and no more than a share of the Nodes goes in any ten minutes.
//!
//! ```text
//! node_lifecycle.rs  who is asked for, and the writes that come of it
//! ledger.rs          who is a suspect, and how many of them may go              (pure)
//! ledger/suspect.rs  one suspect: what an answer means, and when it is deleted  (pure)
//! throttle.rs        how many Nodes may go in a window                          (pure)
//! taint.rs           the shutdown taint
//! ```

mod ledger;
mod taint;
mod throttle;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bowline_cloud_provider::{
    CloudError, ErrorKind, InstanceAnswer, InstanceQuery, InstanceResult, InstancesV2, Node, NodeName,
    PowerState, Purpose, Readiness,
};
use bowline_kube_io::{Change, DELETIONS, FoundNote, KubeError, LeaseNote};
use bowline_plan::EventSpec;
use futures::future::{self, BoxFuture, FutureExt as _};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use crate::controller::{Context, Controller};
use crate::credential_check::{CredentialCheck, of_cloud, questions, refusal};
use crate::events;
use crate::last_written::LastWritten;
use crate::metrics::Guard;
use crate::put_back::Part;
use crate::queue::{Working, until};
use crate::workers::{self, Work};
use ledger::{Ledger, Ruling, Seen, Verdict};
use throttle::{Moment, Throttle};

/// The shortest distance between two passes. One Node alone is asked for at once; of many that fail together, as when a
/// rack loses power, all but the first share a listing.
const GATHER: Duration = Duration::from_millis(500);

/// The canonical name, which is also the one under which its events appear.
pub const NAME: &str = "cloud-node-lifecycle-controller";

/// What an operator can set.
#[derive(Debug, Clone, PartialEq)]
pub struct NodeLifecycleSettings {
    /// `--node-monitor-period`: the first distance between two questions about one Node; it doubles up to a minute
    /// while the answer stays the same.
    pub node_monitor_period: Duration,
    /// `--node-deletion-confirmation`: how far apart two proofs of absence must be. Zero: one is enough, and with a share
    /// of zero too nothing else is asked for; see [`is_guarded`](Self::is_guarded).
    pub node_deletion_confirmation: Duration,
    /// `--node-deletion-share`: which share of the Nodes may be deleted in a window, but three at least. Zero: any
    /// number.
    pub node_deletion_share: f64,
    /// `--node-deletion-window`.
    pub node_deletion_window: Duration,
}

impl NodeLifecycleSettings {
    /// Whether more is asked for than one proof. With neither a confirmation nor a share a deletion is as the Go managers
    /// do it: at the first proof, also of a Node that has just been made, and whatever the cloud says about others. Only
    /// the UID in the request remains: it protects a Node that nobody meant.
    #[must_use]
    pub fn is_guarded(&self) -> bool {
        !self.node_deletion_confirmation.is_zero() || self.node_deletion_share > 0.0
    }

    /// Why a Node whose instance is proved gone is not deleted yet, and in how long the next one may go, by what the leader noted on its
    /// lease. The text of the event; `None`: the share is not used up.
    #[must_use]
    pub fn throttled(&self, node: &Node, noted: &FoundNote, all: &[Arc<Node>]) -> Option<(String, Duration)> {
        let now = noted.at;
        let mut throttle = Throttle::new(self.node_deletion_share, self.node_deletion_window, now);
        throttle.begin(now, Some(noted));
        let frees_at = throttle.frees_at(now).filter(|_| throttle.free(all, now) == 0)?;
        let text = events::deletion_throttled(node, throttle.recent(), self.node_deletion_window);
        Some((text, frees_at.saturating_duration_since(now)))
    }

    /// Whether what is deleted has to be noted on the lease first.
    #[must_use]
    pub fn notes_deletions(&self) -> bool {
        self.node_deletion_share > 0.0 && self.node_deletion_share < 1.0
    }

    /// Why a Node whose instance is not seen is not deleted, by what the cloud says of all Nodes: the instance of none that is ready is
    /// seen either. The text of the event; `None`: nothing holds the deletion for this.
    #[must_use]
    pub fn frozen(&self, node: &Node, answers: &[(Arc<Node>, InstanceResult)]) -> Option<String> {
        let witnesses = answers.iter().filter(|(it, _)| is_witness(it));
        let (witnesses, sightings): (Vec<_>, Vec<_>) = witnesses.cloned().unzip();
        let sightings = || of_cloud(node.platform(), &witnesses, &sightings);
        let is_proved = answers
            .iter()
            .any(|(it, answer)| it.name == node.name && matches!(answer, Ok(InstanceAnswer::Absent(_))));
        match CredentialCheck::of(sightings()) {
            CredentialCheck::Blind { missing } if self.is_guarded() => {
                let refusal = refusal(sightings());
                Some(events::deletion_frozen(node, missing, is_proved, refusal))
            }
            _ => None,
        }
    }
}

/// Whether the instance of a Node certainly runs, and its cloud is known.
fn is_witness(node: &Node) -> bool {
    node.readiness == Readiness::Ready && node.provider_id.is_some()
}

impl Default for NodeLifecycleSettings {
    fn default() -> Self {
        Self {
            node_monitor_period: Duration::from_secs(5),
            node_deletion_confirmation: Duration::from_secs(5),
            node_deletion_share: 0.2,
            node_deletion_window: Duration::from_secs(10 * 60),
        }
    }
}

/// The cloud-node-lifecycle controller.
pub struct NodeLifecycleController {
    ctx: Context,
    instances: Arc<dyn InstancesV2>,
    period: Duration,
    window: Duration,
    ledger: Mutex<Ledger>,
    /// Whether Nodes have the shutdown taint, as it was written last.
    taints: LastWritten<bool>,
    /// When the last pass with Nodes began.
    last_pass: Mutex<Option<Instant>>,
    /// Given when a Node may be due earlier than thought.
    changed: Notify,
}

impl Work for NodeLifecycleController {
    /// Nodes that are due together; none after a period in which none was, so that the number of passes shows that the controller
    /// runs.
    type Piece = Vec<NodeName>;

    async fn take(&self) -> Vec<NodeName> {
        let empty_pass = Instant::now() + self.period;
        let last = *self.last_pass.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(last) = last {
            sleep_until(last + GATHER).await;
        }
        loop {
            let (due, next) = {
                let mut ledger = self.ledger();
                (ledger.take_due(Instant::now()), ledger.next_due())
            };
            if !due.is_empty() {
                *self.last_pass.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
                return due;
            }
            tokio::select! {
                biased;
                () = self.changed.notified() => {}
                () = until(next) => {}
                () = sleep_until(empty_pass) => return due,
            }
        }
    }

    /// One pass: every Node that is due now, in one question to each cloud.
    async fn work(&self, due: Vec<NodeName>) {
        let begun = Instant::now();
        let working = &self.ctx.heartbeat.begin();
        let (back, suspects): (Vec<_>, Vec<_>) = due
            .iter()
            .filter_map(|name| self.ctx.nodes.get(name))
            .partition(|node| node.readiness == Readiness::Ready);
        let back = back.iter().map(|node| async move {
            // The kubelet reports, so the instance runs: no question.
            self.set_shutdown_taint(node, false).await;
            working.beat();
            self.ledger().rest(node, Instant::now());
        });
        let mut by_cloud: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for suspect in suspects {
            let cloud = self.instances.cloud_of(&suspect);
            by_cloud.entry(cloud).or_default().push(suspect);
        }
        let questions = by_cloud
            .into_iter()
            .map(|(cloud, suspects)| self.ask(cloud, suspects, working));
        future::join(future::join_all(back), future::join_all(questions)).await;
        self.show_held();
        let took = begun.elapsed().as_secs_f64();
        self.ctx.metrics.monitor_nodes_duration_seconds.observe(took);
    }
}

impl Controller for NodeLifecycleController {
    fn context(&self) -> &Context {
        &self.ctx
    }

    /// # Cancellation
    ///
    /// Dropped at any await. Every write stands by itself. Proofs are kept in memory only: the next leader begins with
    /// none, so a stop makes a deletion later, never earlier.
    fn run(self: Arc<Self>) -> BoxFuture<'static, ()> {
        async move {
            let work = async {
                self.ctx.nodes.synced().await;
                let found = self.ctx.note.as_ref().and_then(|note| note.found());
                self.ledger().begin(Instant::now(), found.as_ref());
                workers::run(&*self, usize::MAX, future::pending()).await;
            };
            self.ctx.until_written(work).await;
        }
        .boxed()
    }
}

impl NodeLifecycleController {
    /// Builds the controller and subscribes it to the Nodes. Nothing is asked or written before [`run`](Controller::run).
    #[must_use]
    pub fn new(ctx: Context, instances: Arc<dyn InstancesV2>, settings: &NodeLifecycleSettings) -> Arc<Self> {
        let controller = Arc::new(Self {
            instances,
            period: settings.node_monitor_period,
            window: settings.node_deletion_window,
            ledger: Mutex::new(Ledger::new(settings, Instant::now())),
            taints: LastWritten::of(Part::ShutdownTaint),
            last_pass: Mutex::default(),
            changed: Notify::new(),
            ctx: ctx.with_own_writes(),
        });
        let nodes = &controller.ctx.nodes;
        nodes.subscribe_weakly(&controller, Self::on_node);
        controller
    }

    fn on_node(&self, change: &Change<Node>) {
        let is_due = {
            let mut ledger = self.ledger();
            match change {
                Change::Added(node) | Change::Updated { new: node, .. } => ledger.watch(node, Instant::now()),
                Change::Deleted(node) => {
                    ledger.forget(node);
                    self.taints.forget(&node.name);
                    false
                }
            }
        };
        self.show_held();
        if is_due {
            self.changed.notify_one();
        }
    }

    /// Asks a cloud for suspects and does what follows from the answers.
    async fn ask(&self, cloud: Option<usize>, suspects: Vec<Arc<Node>>, working: &Working) {
        let asked = Instant::now();
        // Where a deletion may come of it, the same question also finds out whether the answer can be believed.
        let mut witnesses = if self.ledger().may_confirm(&suspects, asked) {
            self.witnesses(cloud)
        } else {
            Vec::new()
        };
        let (mut answers, mut sightings) = self.answers(&suspects, &witnesses).await;
        working.beat();
        if witnesses.is_empty() && self.is_unproved(&suspects, &answers) {
            witnesses = self.witnesses(cloud);
            if !witnesses.is_empty() {
                (answers, sightings) = self.answers(&suspects, &witnesses).await;
                working.beat();
            }
        }
        let is_sighted = !witnesses.is_empty();
        let mut verdicts = self.judge(&suspects, answers, asked);
        let doomed = verdicts.split_off_doomed();
        future::join(self.write_taints(&verdicts, working), async {
            if doomed.is_empty() {
                return;
            }
            let (witnesses, sightings) = match is_sighted {
                true => (witnesses, sightings),
                false => self.sight(cloud).await,
            };
            working.beat();
            self.delete_all(doomed, (&witnesses, &sightings), working).await;
        })
        .await;
    }

    /// What the cloud says of suspects, and of witnesses.
    async fn answers(
        &self,
        suspects: &[Arc<Node>],
        witnesses: &[Arc<Node>],
    ) -> (Vec<InstanceResult>, Vec<InstanceResult>) {
        let queries = questions(suspects, Purpose::Existence);
        let queries: Vec<InstanceQuery> = queries
            .chain(questions(witnesses, Purpose::CredentialCheck))
            .collect();
        let mut answers = self.instances.instances(&queries).await;
        let sightings = answers.split_off(suspects.len().min(answers.len()));
        (answers, sightings)
    }

    /// Whether the cloud does not know an instance, for the first time, and nothing proves that it is gone: some clouds prove that only
    /// beside an instance that they show, which a process may not have asked for yet.
    fn is_unproved(&self, suspects: &[Arc<Node>], answers: &[InstanceResult]) -> bool {
        let ledger = self.ledger();
        let is_unproved = |(node, answer): (&Arc<Node>, &InstanceResult)| {
            let is_missing = answer
                .as_ref()
                .is_err_and(|error| error.kind() == ErrorKind::NotFound);
            is_missing && ledger.is_news(node, Seen::Unseen)
        };
        ledger.is_guarded() && suspects.iter().zip(answers).any(is_unproved)
    }

    /// Hands each answer to the ledger. One about a Node that has changed meanwhile counts for nothing.
    fn judge(&self, suspects: &[Arc<Node>], answers: Vec<InstanceResult>, asked: Instant) -> Verdicts {
        let now = self.now();
        let mut answers = answers.into_iter();
        let mut verdicts = Verdicts::default();
        let mut unknown = Unknown::default();
        for suspect in suspects {
            let answer = answers.next();
            self.count(answer.as_ref());
            let seen = match &answer {
                Some(Ok(InstanceAnswer::Present(instance))) => match instance.power {
                    PowerState::On => Seen::Running,
                    PowerState::Off => Seen::Off,
                },
                Some(Ok(InstanceAnswer::Absent(proof))) => {
                    tracing::debug!(controller = NAME, node = %suspect.name, %proof, "Instance proved absent");
                    Seen::Absent
                }
                Some(Ok(InstanceAnswer::Foreign)) => Seen::Foreign,
                Some(Err(error)) => match error.kind() {
                    ErrorKind::NotFound | ErrorKind::Denied | ErrorKind::Unauthenticated => Seen::Unseen,
                    _ => Seen::Unknown {
                        after: error.retry_after(),
                    },
                },
                None => Seen::Unknown { after: None },
            };
            if let Some(Err(error)) = answer {
                tracing::debug!(controller = NAME, node = %suspect.name, err = %error, "Nothing known of the instance of a node that is not ready");
                // One that waits for its cloud has an event of its own where the cloud is why.
                if self.ledger().is_news(suspect, seen) && !suspect.is_uninitialized() {
                    unknown.add(suspect, error);
                }
            }
            let Some(node) = self.still_suspect(suspect) else {
                continue;
            };
            // Whoever set the label wants it to stay, whatever becomes of its instance.
            let seen = match seen {
                Seen::Absent if node.is_excluded_from_lifecycle() => Seen::Foreign,
                seen => seen,
            };
            match self.ledger().judge(&node, asked, now, seen) {
                Verdict::Nothing => {}
                Verdict::SetTaint(present) => verdicts.taints.push((node, present)),
                Verdict::Gone | Verdict::Doubt => verdicts.doomed.push(node),
            }
        }
        unknown.log();
        verdicts
    }

    /// Counts an answer by the questions of upstream that it settles: existence, and power where there is an instance. What
    /// witnesses say is not counted, nor what no cloud was asked.
    fn count(&self, answer: Option<&InstanceResult>) {
        let (exists, shutdown) = match answer {
            Some(Ok(InstanceAnswer::Present(_))) => ("success", Some("success")),
            Some(Ok(InstanceAnswer::Absent(_))) => ("instance_not_found", None),
            Some(Ok(InstanceAnswer::Foreign)) => return,
            Some(Err(error)) => match error.kind() {
                ErrorKind::NotFound => ("instance_not_found", None),
                ErrorKind::NotSupported => ("not_implemented", None),
                _ => ("error", None),
            },
            None => ("error", None),
        };
        let metrics = &self.ctx.metrics;
        metrics.instance_asked("instance_exists", exists);
        if let Some(result) = shutdown {
            metrics.instance_asked("instance_shutdown", result);
        }
    }

    async fn write_taints(&self, verdicts: &Verdicts, working: &Working) {
        let writes = verdicts.taints.iter().map(|(node, present)| async {
            self.ledger().writing(node);
            self.set_shutdown_taint(node, *present).await;
            self.ledger().written(node, Instant::now());
            working.beat();
        });
        future::join_all(writes).await;
    }

    /// Asks for the witnesses alone, where the question about the suspects did not include them.
    async fn sight(&self, cloud: Option<usize>) -> (Vec<Arc<Node>>, Vec<InstanceResult>) {
        if !self.ledger().is_guarded() {
            return Default::default();
        }
        let witnesses = self.witnesses(cloud);
        let queries: Vec<InstanceQuery> = questions(&witnesses, Purpose::CredentialCheck).collect();
        let sightings = match queries.is_empty() {
            true => Vec::new(),
            false => self.instances.instances(&queries).await,
        };
        (witnesses, sightings)
    }

    /// The Nodes whose instances certainly run: ready, and of this cloud. Those that do not name their cloud may be of this one, and
    /// are asked for where there are no others. Those of other clouds say nothing of it, and would have it wait for these.
    fn witnesses(&self, cloud: Option<usize>) -> Vec<Arc<Node>> {
        let mut nodes = self.ctx.nodes.all();
        nodes.retain(|node| is_witness(node));
        let of = |node: &Arc<Node>| self.instances.cloud_of(node);
        if cloud.is_some() {
            let near = nodes.iter().any(|node| of(node) == cloud).then_some(cloud);
            nodes.retain(|node| of(node) == near.flatten());
        }
        nodes
    }

    /// Each cloud is believed by what it shows of its own Nodes.
    async fn delete_all(
        &self,
        doomed: Vec<Arc<Node>>,
        (witnesses, sightings): (&[Arc<Node>], &[InstanceResult]),
        working: &Working,
    ) {
        let doomed: Vec<Arc<Node>> = doomed
            .iter()
            .filter_map(|node| self.still_suspect(node))
            .collect();
        let (rulings, noted) = {
            let all = self.ctx.nodes.all();
            let check = |node: &Node| {
                let sightings = of_cloud(node.platform(), witnesses, sightings);
                CredentialCheck::of(sightings)
            };
            let now = self.now();
            let mut ledger = self.ledger();
            let rulings = ledger.rule(&doomed, check, &all, now.instant);
            // What is asked for last is written, so it is asked for while nobody else can add to the ledger.
            let noted = self.ctx.note.as_deref().and_then(|lease| {
                let is_any = rulings
                    .iter()
                    .any(|(_, ruling)| matches!(ruling, Ruling::Delete { .. }));
                let note = is_any.then(|| ledger.note(now)).flatten()?;
                Some((lease, lease.ask(note)))
            });
            (rulings, noted)
        };
        let deletions = rulings.into_iter().map(|(node, ruling)| async move {
            match ruling {
                Ruling::Delete { is_news } => {
                    if self.may_begin(&node, noted).await {
                        self.delete(&node, is_news).await;
                    }
                }
                Ruling::Frozen {
                    ready,
                    is_proved,
                    begins,
                    is_news,
                } => {
                    if begins {
                        self.ctx.metrics.guard_tripped(Guard::NodeDeletionFrozen);
                    }
                    if is_news {
                        let refusal = refusal(of_cloud(node.platform(), witnesses, sightings));
                        let text = events::deletion_frozen(&node, ready, is_proved, refusal);
                        self.warn(&node, &events::NODE_DELETION_FROZEN, text);
                    }
                }
                Ruling::Throttled {
                    recent,
                    begins,
                    is_news,
                } => {
                    if begins {
                        self.ctx.metrics.guard_tripped(Guard::NodeDeletionThrottled);
                    }
                    if is_news {
                        let text = events::deletion_throttled(&node, recent, self.window);
                        self.warn(&node, &events::NODE_DELETION_THROTTLED, text);
                    }
                }
                Ruling::Wait => {}
            }
            working.beat();
        });
        future::join_all(deletions).await;
    }

    /// Whether the next leader will know of this deletion, and the Node is still to be deleted.
    async fn may_begin(&self, node: &Node, noted: Option<(&LeaseNote, u64)>) -> bool {
        let Some((lease, asked)) = noted else {
            return true;
        };
        if !lease.held(asked).await {
            let text = format!(
                "Failed deleting node {}: the lease of leader election does not keep the annotation {DELETIONS}. Look for an admission webhook or a policy that takes annotations off leases or denies them",
                node.name
            );
            if self.ledger().deletion_failed(node, &text, false, Instant::now()) {
                self.warn(node, &events::DELETING_NODE_FAILED, text);
            }
            return false;
        }
        let is_suspect = self.still_suspect(node).is_some();
        if !is_suspect {
            self.ledger().not_deleted(node);
        }
        is_suspect
    }

    async fn delete(&self, node: &Node, is_news: bool) {
        if is_news {
            let name = &node.name;
            let text = format!("Deleting node {name} because it does not exist in the cloud provider");
            self.ctx.event(node, events::DELETING_NODE.note(text));
        }
        let result = self.ctx.kube.delete_node(node).await;
        let mut ledger = self.ledger();
        match result {
            Ok(()) => {
                ledger.deleted(node);
                tracing::info!(controller = NAME, node = %node.name, "Node deleted: its instance is gone");
            }
            // It went without us.
            Err(KubeError::NotFound(_)) => ledger.not_deleted(node),
            // Another Node has the name now, which the watch brings; or somebody else's write came between.
            Err(KubeError::Conflict(_) | KubeError::GateClosed) => {
                ledger.deletion_failed(node, "", false, Instant::now());
            }
            Err(error) => {
                let text = format!("Failed deleting node {}: {error}", node.name);
                let is_news = ledger.deletion_failed(node, &text, error.may_be_made(), Instant::now());
                drop(ledger);
                if is_news {
                    self.warn(node, &events::DELETING_NODE_FAILED, text);
                }
            }
        }
    }

    fn warn(&self, node: &Node, event: &EventSpec, text: String) {
        tracing::warn!(controller = NAME, node = %node.name, reason = event.reason, "{text}");
        self.ctx.event(node, event.note(text));
    }

    /// The Node as it is now, if it is still the one that was asked for and still not ready. The ledger knows that too,
    /// but hears of a change a moment after the cache has it: a deletion is worth both looks.
    fn still_suspect(&self, asked: &Node) -> Option<Arc<Node>> {
        self.ctx
            .nodes
            .get(&asked.name)
            .filter(|node| node.uid == asked.uid && node.readiness != Readiness::Ready && !node.deleting)
    }

    fn show_held(&self) {
        let held = self.ledger().held();
        let gauge = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        self.ctx.metrics.node_deletions_frozen.set(gauge(held.frozen));
        self.ctx
            .metrics
            .node_deletions_throttled
            .set(gauge(held.throttled));
    }

    fn now(&self) -> Moment {
        Moment {
            instant: Instant::now(),
            wall: self.ctx.kube.clock().now(),
        }
    }

    fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What follows from the answers of one round.
#[derive(Default)]
struct Verdicts {
    /// Nodes to taint, or to free from the taint.
    taints: Vec<(Arc<Node>, bool)>,
    /// Nodes to delete, if the answer is credible and their turn has come; and those whose instances are not seen, if only to
    /// tell so.
    doomed: Vec<Arc<Node>>,
}

impl Verdicts {
    fn split_off_doomed(&mut self) -> Vec<Arc<Node>> {
        std::mem::take(&mut self.doomed)
    }
}

/// Nodes of whose instances nothing is known any more, for one line of the log: when a cloud fails, it may be all of them.
#[derive(Default)]
struct Unknown {
    count: usize,
    first: Option<(NodeName, CloudError)>,
}

impl Unknown {
    fn add(&mut self, node: &Node, error: CloudError) {
        self.count += 1;
        self.first.get_or_insert_with(|| (node.name.clone(), error));
    }

    fn log(self) {
        if let Some((node, error)) = self.first {
            tracing::warn!(controller = NAME, %node, nodes = self.count, err = %error, "Nothing is known of the instances of nodes that are not ready; the nodes are kept, and asked for again");
        }
    }
}
