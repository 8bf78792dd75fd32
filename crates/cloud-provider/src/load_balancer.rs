//! Load balancers, and everything else that is brought to a wished state by plans.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use bowline_plan::{Ailment, EventSpec, Plan, Refusal, RefusedBy, Shown, Step, StepView};
use futures::future::BoxFuture;
use jiff::Timestamp;

use crate::k8s::Service;
use crate::orphans::{Found, OrphanFacts, compare};
use crate::{
    AnnotationSpec, Asker, Begin, CloudError, ClusterFacts, Creation, ErrorKind, KubeWrite, Measurement,
    Memory, Node, Question, Reconcile, RefusalBook, Seen, ServiceFacts, ServiceKey, ServicesView, facts,
};

/// Brings one thing of the cloud to the state that Kubernetes asks for, by plans.
///
/// The five moves of a reconcile, without the last: [`intent`](Self::intent) and [`plan`](Self::plan) are pure,
/// [`observe`](Self::observe) only reads, [`apply`](Self::apply) makes one write. When they run, and when a reconcile is
/// tried again, is the caller's decision; how long the cloud is waited for is the plan's
/// ([`Answer::Wait`](bowline_plan::Answer::Wait)). Within one call a provider may wait, for a bounded time, where its requests
/// do: for its budget, a retry of the HTTP stack, a list that several reconciles share, or the answer to a job that the write
/// began. It spawns nothing.
///
/// # Rules that the callers lean on
///
/// - *Repeatable*: a reconcile that stops after any step is finished by the next one, without duplicates or orphans.
/// - *Settled means nothing to do*: after applying until settled, planning again settles at once.
/// - *Deterministic*: the same intent and observation give the same steps in the same order.
/// - *Predictable*: [`predict`](Self::predict) changes the observation as the real write would, ids aside.
pub trait Reconciler: Send + Sync + 'static {
    /// What Kubernetes says.
    type Facts: Clone + Send + Sync;
    /// What is asked for, parsed and checked as a whole.
    type Intent: Send + Sync;
    /// What the cloud says, as far as this reconcile needs it: facts only.
    type Observed: Send + Sync;
    /// What a reconcile remembers of itself beyond what every one does ([`Memory`]).
    type Remembered: Default + Send + Sync;
    /// One write to the cloud, as data.
    type Step: Step + Clone + PartialEq + Send + Sync + 'static;
    /// What the answer to a write told.
    type Learned: Told;

    /// Reads what is asked for. Pure.
    ///
    /// # Errors
    ///
    /// Everything that is wrong with what is asked, in one text: it ends the reconcile before it costs a call.
    fn intent(&self, facts: &Self::Facts) -> Result<Self::Intent, Refusal>;

    /// Reads what the plan needs.
    ///
    /// `last` is `None` at the beginning and at the end of a reconcile: everything is read from the cloud. It is the last
    /// observation while the plan says *wait*: then it is enough to look at what is being waited for, and what still holds is
    /// moved into the new one.
    ///
    /// `memory` is the reconcile's own; this look is counted in it already.
    ///
    /// # Errors
    ///
    /// Any failure but a proven "not found". An observation is complete or it is an error.
    ///
    /// # Cancellation
    ///
    /// May be dropped at any await.
    fn observe(
        &self,
        intent: &Self::Intent,
        last: Option<Self::Observed>,
        memory: &mut Memory<Self::Remembered, Self::Step>,
    ) -> impl Future<Output = Result<Self::Observed, CloudError>> + Send;

    /// Reads again at the end of a reconcile that wrote: everything that its own writes may have left in doubt.
    ///
    /// The answers of its own writes are observations, so what they say need not be read again; the default reads
    /// everything.
    ///
    /// # Errors
    ///
    /// As [`observe`](Self::observe).
    ///
    /// # Cancellation
    ///
    /// May be dropped at any await.
    fn verify(
        &self,
        intent: &Self::Intent,
        last: Self::Observed,
        memory: &mut Memory<Self::Remembered, Self::Step>,
    ) -> impl Future<Output = Result<Self::Observed, CloudError>> + Send {
        let _ = last;
        self.observe(intent, None, memory)
    }

    /// Decides what comes next. Pure: no IO, no clock.
    fn plan(&self, intent: &Self::Intent, seen: &SeenBy<Self>) -> LoadBalancerPlan<Self::Step>;

    /// Where refusals are remembered, who asks, and for what: see [`Asker::of`]. `None`: refusals are not remembered beyond the reconcile.
    fn book(&self, facts: &Self::Facts) -> Option<(&RefusalBook<Self::Step>, Asker)> {
        let _ = facts;
        None
    }

    /// Whether two steps ask the cloud for the same, so that the refusal of one is that of the other. Pure.
    fn is_same_request(&self, a: &Self::Step, b: &Self::Step) -> bool {
        a == b
    }

    /// The refusal that a failed write is; `None` if it is none, but a failure that ends the reconcile: the cloud is busy, throttles, or
    /// gave no answer, or the step is of several calls and may be half done. Pure.
    ///
    /// By default a definite refusal, where nothing was changed and the same would be refused again, and the failure of a
    /// [removal](Step::removes). A failure that is told as a refusal [by failure](RefusedBy::is_failure) holds up nothing else, and is tried
    /// again after five minutes at the latest.
    fn refusal_of(&self, seen: &SeenBy<Self>, step: &Self::Step, error: &CloudError) -> Option<Refusal> {
        let is_left = step.removes() && error.can_wait();
        let _ = seen;
        (is_left || error.is_definite()).then(|| {
            let why = format!("error during {}: {error}", step.label());
            let by = match error.kind() {
                _ if is_left => error.failed_by(),
                ErrorKind::Denied => RefusedBy::Denial,
                _ => RefusedBy::Cloud,
            };
            Refusal::new(why)
                .of_limit(error.kind() == ErrorKind::Exhausted)
                .by(by)
        })
    }

    /// What a step creates. What was sent is looked for before it is sent again. `None` by default, as for changes and deletions, which are
    /// the same twice, and for clouds where something else tells what was sent. Pure.
    fn creation(&self, step: &Self::Step) -> Option<Creation> {
        let _ = step;
        None
    }

    /// Whether the observation has what a creation made, by the number in [`Told::made`]. Then it is looked for no more, and if it is gone
    /// later, it was deleted. Pure.
    fn shows(&self, observed: &Self::Observed, made: u128) -> bool {
        let _ = (observed, made);
        false
    }

    /// Is told that a wave of the plan is about to be written, to keep for other reconciles what may be lost. A plan that is only
    /// shown is told of to nobody.
    fn before_wave(&self, intent: &Self::Intent, seen: &SeenBy<Self>) {
        let _ = (intent, seen);
    }

    /// Is told that a reconcile settled, so that what was kept of failures before may go.
    fn settled(&self, intent: &Self::Intent) {
        let _ = intent;
    }

    /// Is told that a step waits for its lanes, until what is returned is dropped. Whoever writes the same object meanwhile may take the
    /// change along; the step looks whether it is made by then. Nothing by default.
    fn queued(&self, step: &Self::Step) -> Option<Box<dyn Send>> {
        let _ = step;
        None
    }

    /// Makes the write. Steps that share a lane never run at the same time.
    ///
    /// Work that never plans a step has no use for this method and those after it that have to do with writes, and leaves their defaults.
    ///
    /// # Errors
    ///
    /// The write failed or its answer was lost. The caller observes anew before anything is tried again.
    ///
    /// # Cancellation
    ///
    /// Dropped only when the process ends; the next one observes what came of it.
    fn apply(
        &self,
        intent: &Self::Intent,
        seen: &SeenBy<Self>,
        step: &Self::Step,
    ) -> impl Future<Output = Result<Self::Learned, CloudError>> + Send {
        let _ = (intent, seen);
        std::future::ready(Err(CloudError::other(format!(
            "{} was planned by work that makes no writes",
            step.label()
        ))))
    }

    /// Adds what a write's answer told to the observation, and to the memory what no read would tell. Pure.
    fn learn(&self, seen: &mut SeenBy<Self>, step: &Self::Step, learned: Self::Learned) {
        let _ = (seen, step, learned);
    }

    /// Changes the observation as applying the step would. Pure; ids are made up by [`Memory::made_up`].
    fn predict(&self, seen: &mut SeenBy<Self>, step: &Self::Step) {
        let _ = (seen, step);
    }

    /// Which members do not answer, as the observation tells. Pure.
    fn ailments(&self, intent: &Self::Intent, observed: &Self::Observed) -> Vec<Ailment> {
        let _ = (intent, observed);
        Vec::new()
    }

    /// What the load balancer is like, for a person, as the observation tells. Pure.
    fn shown(&self, intent: &Self::Intent, observed: &Self::Observed) -> Shown {
        let _ = (intent, observed);
        Shown::default()
    }

    /// What a run of background work counts of what it has read anyway, for `/metrics`. Pure.
    ///
    /// Asked at the end of a run that had its way. The values are shown until the end of the next run, and no longer than
    /// this process does the work: one that follows, or whose run failed, knows nothing and shows nothing.
    fn measure(&self, intent: &Self::Intent, seen: &SeenBy<Self>) -> Vec<Measurement> {
        let _ = (intent, seen);
        Vec::new()
    }
}

/// What the answer to a write told, as far as it is asked of all clouds. Pure.
pub trait Told: Send + 'static {
    /// Whether the cloud took the write. An answer that is data may tell of a refusal, or that nothing was sent, because the rest has
    /// to be brought to a good end first.
    fn outcome(&self) -> WriteOutcome {
        WriteOutcome::Taken
    }

    /// The refusal in an answer that is data.
    fn refused(&self) -> Option<&Refusal> {
        None
    }

    /// The ID of what the write created, as a number; for providers that say what a step [creates](Reconciler::creation).
    fn made(&self) -> Option<u128> {
        None
    }

    /// Whether an answer that a write was taken ends what was refused of the same before: not if a job was begun that may still be
    /// refused.
    fn ends_refusal(&self) -> bool {
        true
    }

    /// Whether no further step of the wave is to begin, because the answer changes what is right: a quota is met, or the cloud is
    /// busy. Steps under way are waited for, and the next plan has the rest.
    fn ends_wave(&self) -> bool {
        false
    }
}

impl Told for () {}

impl Told for WriteOutcome {
    fn outcome(&self) -> WriteOutcome {
        *self
    }
}

/// Of work that goes on after a failure: the next look tells what came of it.
impl<E: Send + 'static> Told for Result<(), E> {
    fn outcome(&self) -> WriteOutcome {
        match self {
            Ok(()) => WriteOutcome::Taken,
            Err(_) => WriteOutcome::Unknown,
        }
    }
}

/// With something that only its provider asks for.
impl<L: Told, T: Send + 'static> Told for (L, T) {
    fn outcome(&self) -> WriteOutcome {
        self.0.outcome()
    }

    fn refused(&self) -> Option<&Refusal> {
        self.0.refused()
    }

    fn made(&self) -> Option<u128> {
        self.0.made()
    }

    fn ends_refusal(&self) -> bool {
        self.0.ends_refusal()
    }

    fn ends_wave(&self) -> bool {
        self.0.ends_wave()
    }
}

/// What became of a write that has an answer. One that failed without has none: it is an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteOutcome {
    /// The cloud made the change or has begun it, or it was there already.
    Taken,
    /// It was refused, or not sent because something is not as was thought. What comes next is for the plan to say.
    NotTaken,
    /// It was sent, or may have been, and nobody knows what came of it: the answer was lost, or did not come. The next look tells.
    Unknown,
    /// The cloud is at work on what the step changes: the same step comes again until it is taken, and all of that is one action.
    PutOff,
}

impl WriteOutcome {
    /// In words.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Taken => "taken",
            Self::NotTaken => "not taken",
            Self::Unknown => "unknown",
            Self::PutOff => "put off",
        }
    }
}

/// What a reconcile of this kind has seen.
pub type SeenBy<R> =
    Seen<<R as Reconciler>::Observed, <R as Reconciler>::Remembered, <R as Reconciler>::Step>;

/// The load balancers of a cloud: one per Service of type `LoadBalancer`.
pub trait LoadBalancer: Begin<ServiceFacts> {
    /// Which Nodes are balanced over.
    fn node_set(&self) -> NodeSet {
        NodeSet::Stable
    }

    /// Whether a member goes as soon as its Node is drained, is being maintained or shuts down, and not only with the Node. Not where
    /// the removal of one member cuts the connections of others. A Service may say otherwise.
    fn drains(&self, service: &Service) -> bool {
        let _ = service;
        true
    }

    /// Whether the Nodes of a Service that are about to go are handed on, with what drains them: their members may stay for the
    /// connections that they have. If not, such Nodes are left out.
    fn keeps_drained(&self) -> bool {
        false
    }

    /// What the table of this cloud's events says of a reason.
    fn event(&self, reason: &str) -> Option<&'static EventSpec> {
        let _ = reason;
        None
    }

    /// Whether `spec.loadBalancerSourceRanges` of a Service decides who may connect.
    fn heeds_source_ranges(&self, service: &Service) -> bool {
        let _ = service;
        true
    }

    /// Whether a Node that is balanced over may be a member for this Service, as far as its cloud goes: where several clouds or managers
    /// have Nodes in the cluster, those of others are no members.
    fn may_lead_to(&self, service: &Service, node: &Node) -> bool {
        let _ = (service, node);
        true
    }

    /// Whether the Service's own choice among the Nodes, or that of the cloud's configuration, takes this one. One that cannot be read
    /// leaves nobody out: the plan says what is wrong with it.
    fn selects(&self, service: &Service, node: &Node) -> bool {
        let _ = (service, node);
        true
    }

    /// Whether the members are addresses, so that a Node that is no instance of the cloud may be one.
    fn takes_addresses(&self) -> bool {
        false
    }

    /// Whether a balancer changes with the Nodes. If not, a change of Nodes causes no reconcile and so no call: the update
    /// is said to have been made.
    fn follows_nodes(&self) -> bool {
        true
    }

    /// What is noted on a Node that is balanced over: annotations that it lacks, or has with another value, are written
    /// whenever Nodes are handed to a sync or an update of a Service. None is ever removed. Pure.
    fn node_annotations(&self, node: &Node) -> BTreeMap<String, String> {
        let _ = node;
        BTreeMap::new()
    }

    /// Whether a balancer has to wait for what is written on its Service. If not, and the API server forbids to write it, the
    /// reconcile goes on as if it had been written; the next one does not know of it.
    fn needs_annotations(&self) -> bool {
        true
    }

    /// The component in whose name the notes of plans are recorded as events, where the Go manager has one of its own for
    /// them. `None`: the controller's.
    fn event_component(&self) -> Option<&'static str> {
        None
    }

    /// The annotations of Services that this cloud reads and writes.
    fn annotations(&self) -> &'static [AnnotationSpec] {
        &[]
    }

    /// The name of a Service's balancer, for people.
    fn load_balancer_name(&self, facts: &ServiceFacts) -> String;

    /// The Services of this cluster that the cloud shows balancers of, as marks tell that were set when these were made.
    ///
    /// Only what such marks prove: the cluster, and the Service's name and UID. So that its balancer is not left behind, who
    /// asks then finds out by name which Service has vanished. What another Service lays claim to by now is left out. A cloud
    /// whose objects bear no such marks shows nothing.
    fn made_for<'a>(&'a self, services: &'a dyn ServicesView) -> Vec<Question<'a, MadeFor>> {
        let _ = services;
        Vec::new()
    }

    /// The living Services of which one of several clouds shows something that they do not ask of it, one question a cloud: it goes when
    /// they are looked at next. Each cloud is asked until it has answered once.
    fn left_elsewhere<'a>(&'a self, facts: &'a OrphanFacts) -> Vec<Question<'a, MadeFor>> {
        let _ = facts;
        Vec::new()
    }

    /// All that the cloud has and that bears marks or names such as managers give, and whose it is. A cloud without any shows nothing.
    ///
    /// # Errors
    ///
    /// The cloud could not be read, or not all of it.
    ///
    /// # Cancellation
    ///
    /// May be dropped at any await.
    fn marked<'a>(&'a self, facts: &'a OrphanFacts) -> BoxFuture<'a, Result<Vec<Found>, CloudError>> {
        let _ = facts;
        Box::pin(std::future::ready(Ok(Vec::new())))
    }

    /// The same, each object judged beside all others of its cloud; see [`compare`](crate::orphans::compare).
    fn surveyed<'a>(&'a self, facts: &'a OrphanFacts) -> Vec<Question<'a, Found>> {
        vec![Question::new(async {
            let mut found = self.marked(facts).await?;
            compare(&mut found, facts);
            Ok(found)
        })]
    }

    /// Begins to remove what nobody asks for any more: all that was made for its owner. Anything else stays, as when a Service goes.
    ///
    /// # Errors
    ///
    /// It cannot be removed by itself.
    fn begin_removal(
        self: Arc<Self>,
        orphan: &Found,
        facts: &OrphanFacts,
    ) -> Result<Box<dyn Reconcile<ServiceFacts>>, Refusal> {
        self.begin(facts.removal(&orphan.owner)?)
    }

    /// Is told how a reconcile of a Service's balancer ended, for series under names of the provider's own. One that was
    /// overtaken by a change is not told of; the one that follows is.
    fn reconciled(&self, service: &ServiceKey, kind: ReconcileKind, took: Duration, has_failed: bool) {
        let _ = (service, kind, took, has_failed);
    }

    /// A load balancer or something else was given back: what was refused for want of room may find some. For providers that
    /// keep a [book](crate::RefusalBook).
    fn room_was_made(&self) {}

    /// Labels of Nodes whose change alters who is balanced over for this Service, beyond the node set itself; all of
    /// them if true.
    fn selects_nodes_by_label(&self, service: &Service) -> bool {
        let _ = service;
        false
    }
}

/// What a reconcile of a Service's balancer is to do, in upstream's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ReconcileKind {
    /// Bring it to the state that the Service asks for.
    Ensure,
    /// Bring it up to date because Nodes changed, and nothing else.
    Update,
    /// Remove it.
    Delete,
}

impl ReconcileKind {
    /// The word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ensure => "ensure",
            Self::Update => "update",
            Self::Delete => "delete",
        }
    }
}

/// The Service that a balancer was made for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MadeFor {
    /// Its name then.
    pub key: ServiceKey,
    /// Its UID.
    pub uid: String,
    /// The balancer, as people find it in the cloud.
    pub balancer: String,
}

/// Work of a provider that belongs to no single Service, such as sweeping what was marked for deletion. Runs on the
/// leader only, from the same queue as the Services.
pub trait BackgroundWork: Begin<BackgroundFacts> {
    /// A name for the queue, for logs and metrics.
    fn name(&self) -> &'static str;

    /// Time from the end of one run to the start of the next. A run also begins whenever the balancer of a Service was
    /// removed.
    fn period(&self) -> Duration;

    /// Time from the start of the controller to the first run.
    fn first(&self) -> Duration {
        self.period()
    }

    /// Whether the runs since the last question gave back anything that others may be waiting for.
    fn has_made_room(&self) -> bool {
        false
    }
}

/// What Kubernetes says to background work.
#[derive(Clone)]
pub struct BackgroundFacts {
    /// All Services of the cluster.
    pub services: Arc<dyn crate::ServicesView>,
    /// The cluster.
    pub cluster: Arc<ClusterFacts>,
    /// The wall time at which the facts were gathered.
    pub now: Timestamp,
}

/// Which Nodes a provider balances over. Nodes that are being deleted, that carry the exclusion label or the cluster
/// autoscaler's taint are never among them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NodeSet {
    /// All others, ready or not: the balancer's own health checks decide.
    Stable,
    /// Only those that are ready: the balancer has no health checks.
    Ready,
    /// Of several clouds some take the one and some the other: all are handed over, and whether a Node is ready counts as well.
    Both,
}

/// A plan whose steps may also be writes to Kubernetes, and which settles on a status.
pub type LoadBalancerPlan<C> = Plan<LoadBalancerStep<C>, LoadBalancerStatus>;

/// A step of a plan: a write to the cloud or one to Kubernetes, in one order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LoadBalancerStep<C> {
    /// A write to the cloud.
    Cloud(C),
    /// A write to Kubernetes.
    Kube(KubeWrite),
}

impl<C: Step> LoadBalancerStep<C> {
    /// What is to be shown of the step.
    #[must_use]
    pub fn view(&self) -> StepView {
        match self {
            Self::Cloud(step) => StepView::of(step),
            Self::Kube(write) => StepView::of(write),
        }
    }
}

/// What the Service's status is to show: `status.loadBalancer.ingress`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LoadBalancerStatus {
    /// The entries in order.
    pub ingress: Vec<Ingress>,
}

impl LoadBalancerStatus {
    /// No address at all.
    #[must_use]
    pub fn empty() -> Self {
        Self::default()
    }
}

/// One way into the balancer.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Ingress {
    /// The address.
    pub ip: Option<String>,
    /// The host name.
    pub hostname: Option<String>,
    /// How nodes treat traffic to the address; only together with `ip`.
    pub ip_mode: Option<IpMode>,
    /// State of single ports.
    pub ports: Vec<IngressPort>,
}

impl Ingress {
    /// An address, with how nodes treat traffic to it, if that is to be told.
    #[must_use]
    pub fn address(ip: impl Into<String>, ip_mode: Option<IpMode>) -> Self {
        Self {
            ip: Some(ip.into()),
            ip_mode,
            ..Self::default()
        }
    }

    /// A host name that this annotation asks for.
    ///
    /// # Errors
    ///
    /// When the API server takes no such name in a status. The balancer serves all the same.
    pub fn asked_for(annotation: &str, name: &str) -> Result<Self, Refusal> {
        if facts::is_hostname(name) {
            return Ok(Self::hostname(name));
        }
        let refusal = Refusal::new(format!(
            "annotation {annotation} is `{name}`, which the API server takes in no status"
        ));
        Err(refusal.with_remedy("set a DNS name in lower case, such as www.example.org"))
    }

    /// A host name.
    #[must_use]
    pub fn hostname(name: impl Into<String>) -> Self {
        Self {
            hostname: Some(name.into()),
            ..Self::default()
        }
    }
}

/// `ipMode` of an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum IpMode {
    /// Nodes take the address for their own and short-cut traffic to it. The API server's default.
    Vip,
    /// Traffic from inside the cluster also goes through the balancer.
    Proxy,
}

impl IpMode {
    /// The value as the API writes it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Vip => "VIP",
            Self::Proxy => "Proxy",
        }
    }
}

/// State of one port of an ingress.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IngressPort {
    /// The Service's port.
    pub port: u16,
    /// `TCP`, `UDP` or `SCTP`.
    pub protocol: String,
    /// What is wrong with it.
    pub error: Option<String>,
}
