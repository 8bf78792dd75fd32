//! A cloud whose load balancers are lists of node names, with switches for everything a cloud can do to the controller.

#![expect(clippy::unwrap_used, reason = "a test ends on a surprise")]

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bowline_cloud_provider::orphans::OrphanFacts;
use bowline_cloud_provider::plan::{Answer, Impact, Lane, Note, Plan, Refusal, Step};
use bowline_cloud_provider::{
    BackgroundFacts, BackgroundWork, CloudError, Ingress, IpMode, KubeWrite, LoadBalancer, LoadBalancerPlan,
    LoadBalancerStatus, LoadBalancerStep, MadeFor, Memory, Node, Question, ReconcileKind, Reconciler, Seen,
    SeenBy, Service, ServiceFacts, ServiceKey, ServicesView, Told, WriteOutcome, facts,
};
use bowline_transport::patience::{Does, in_time};
use futures::future::ready;
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, sleep};

/// Set by the cloud on each Service whose balancer it has made.
pub(super) const MARK: &str = "cloud.example/made";

/// Set by the cloud on each Node, if it is told to.
pub(super) const INSTANCE: &str = "cloud.example/machine";

/// What is so of the cloud, for a scenario to change: `cloud {"busy_looks": 5}`.
#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Ways {
    /// Balancers show whom they were made for.
    marks: bool,
    /// Another cloud that is asked beside it cannot be read.
    other_cloud_is_down: bool,
    /// The Service of which another cloud shows something.
    elsewhere: Option<String>,
    /// An error of a write is told by the next look, and the answer is data, as where the rest is brought to a good end first.
    tells_errors_later: bool,
    /// Says *wait* for so many looks before it settles.
    pub(super) busy_looks: u32,
    /// No balancer goes: each look says *wait*.
    deletes_nothing: bool,
    /// Wants to look again a minute after it settled, so many times.
    later_looks: u32,
    /// Waits before it makes a balancer until this Node is there.
    awaited_node: Option<String>,
    /// Seconds that one write takes, by Service name; `*` are all others, which else take none.
    write_time: BTreeMap<String, u64>,
    /// Milliseconds that one read takes.
    read_time: u64,
    /// Seconds after which a call without an answer is given up, if it is not waited for without end. What it does comes all the same.
    limit: Option<u64>,
    /// The address that is published, if it is not the usual one.
    address: Option<String>,
    /// Whether the mode `Proxy` is published.
    is_proxy: bool,
    /// Has something of what is asked for held back although all else is settled: why, and what to do.
    lacks: Option<(String, String)>,
    /// Leaves a note on every plan.
    note: Option<Remark>,
    /// Leaves it only when nothing is left to do.
    notes_at_the_end: bool,
    /// Has something to refuse although the balancer is as it should be.
    refuses_a_part: bool,
    /// Says nothing of the status then.
    refuses_silently: bool,
    /// Makes no balancer without Nodes to lead to.
    refuses_without_nodes: bool,
    /// Only Nodes with this label are balanced over.
    selected_label: Option<String>,
    /// Balancers do not change with the Nodes.
    ignores_nodes: bool,
    /// Members stay until their Nodes are gone.
    keeps_members: bool,
    /// Notes on each Node which instance it is, under [`INSTANCE`].
    annotates_nodes: bool,
    /// Does without annotations on Services that may not be written.
    does_without_annotations: bool,
    /// Shows the address before anything else that comes after the creation.
    shows_early: bool,
    /// Sets the Nodes beside that.
    follows_beside: bool,
    /// Has a job under way then that never ends.
    hangs_when_shown: bool,
    /// Clears `spec.loadBalancerIP` before a balancer goes.
    clears_address: bool,
    /// Setting the nodes of a balancer takes so many steps in one wave, one after the other; none is one.
    steps_of_a_change: usize,
    /// Sets the nodes of a balancer again and again.
    never_settles: bool,
    /// All writes share one lane.
    has_one_lane: bool,
    /// Seconds from the start of the controller to the first run of the background work, if it is not a period.
    first_sweep: Option<u64>,
    /// Leaves a note on every run of the background work.
    sweep_note: Option<Remark>,
}

/// A note.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Remark {
    reason: String,
    text: String,
    /// The Service that it is about, if it is not of the plan's.
    about: Option<String>,
    /// Whether nobody can have raised it before a start.
    #[serde(default)]
    at_start: bool,
}

impl Remark {
    fn note(&self) -> Note {
        let mut note = Note::warning(self.reason.clone().leak(), self.text.as_str());
        note.about.clone_from(&self.about);
        match self.at_start {
            true => note.even_at_start(),
            false => note,
        }
    }
}

#[derive(Default)]
pub(super) struct State {
    pub(super) ways: Ways,
    /// Balancers by Service UID.
    pub(super) balancers: BTreeMap<String, Vec<String>>,
    /// The Service that each was made for.
    names: BTreeMap<String, String>,
    /// Every reconcile that ended: what it was to do, how many seconds it took, and whether it failed.
    pub(super) reconciled: Vec<String>,
    /// The lists of Nodes that syncs were handed, each once.
    pub(super) nodes: Vec<Arc<[Arc<Node>]>>,
    /// Every call: when, and what.
    pub(super) calls: Vec<(Duration, String)>,
    /// Errors for the next writes; then all is well.
    pub(super) write_errors: VecDeque<CloudError>,
    /// Errors for the next reads.
    pub(super) read_errors: VecDeque<CloudError>,
    /// Runs of the background work.
    pub(super) sweeps: usize,
}

impl State {
    /// Each balancer that there is, with whom it was made for.
    fn made(&self) -> impl Iterator<Item = MadeFor> {
        let names = self
            .names
            .iter()
            .filter(|(uid, _)| self.balancers.contains_key(*uid));
        names.map(|(uid, name)| MadeFor {
            key: ServiceKey::new("default", name.as_str()),
            uid: uid.clone(),
            balancer: name.clone(),
        })
    }
}

pub(super) struct Cloud {
    begun: Instant,
    pub(super) state: Arc<Mutex<State>>,
}

impl Cloud {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self {
            begun: Instant::now(),
            state: Arc::default(),
        })
    }

    fn call(&self, what: String) {
        let at = self.begun.elapsed();
        self.state.lock().unwrap().calls.push((at, what));
    }

    pub(super) fn set(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state.lock().unwrap());
    }
}

pub(super) struct Intent {
    uid: String,
    name: String,
    is_wanted: bool,
    is_marked: bool,
    is_shown: bool,
    /// `spec.loadBalancerIP`.
    address: String,
    nodes: Vec<String>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Write {
    Create {
        name: String,
    },
    SetNodes {
        name: String,
        nodes: Vec<String>,
    },
    Delete {
        name: String,
    },
    /// In a lane that all balancers share.
    InOneLane(Box<Write>),
}

impl Write {
    fn name(&self) -> &str {
        match self {
            Self::Create { name } | Self::SetNodes { name, .. } | Self::Delete { name } => name,
            Self::InOneLane(write) => write.name(),
        }
    }

    fn nodes(&self) -> Option<Vec<String>> {
        match self {
            Self::Create { .. } => Some(Vec::new()),
            Self::SetNodes { nodes, .. } => Some(nodes.clone()),
            Self::Delete { .. } => None,
            Self::InOneLane(write) => write.nodes(),
        }
    }
}

impl Step for Write {
    fn label(&self) -> String {
        match self {
            Self::Create { name } => format!("create({name})"),
            Self::SetNodes { name, nodes } => format!("set-nodes({name}: {})", nodes.join(" ")),
            Self::Delete { name } => format!("delete({name})"),
            Self::InOneLane(write) => write.label(),
        }
    }

    fn object(&self) -> String {
        format!("balancer {}", self.name())
    }

    fn impact(&self) -> Impact {
        Impact::None
    }

    fn may_be_left(&self) -> bool {
        matches!(self, Self::Create { .. })
    }

    fn lanes(&self) -> Vec<Lane> {
        match self {
            Self::InOneLane(_) => vec![Lane::new("nimbus/all/0")],
            write => vec![Lane::new(write.name().to_owned())],
        }
    }
}

/// What the answer to a write told.
pub(super) enum Learned {
    /// The balancer leads to these Nodes now, or is gone.
    Has(Option<Vec<String>>),
    Failed(CloudError),
}

impl Told for Learned {
    fn outcome(&self) -> WriteOutcome {
        match self {
            Self::Has(_) => WriteOutcome::Taken,
            Self::Failed(_) => WriteOutcome::NotTaken,
        }
    }
}

/// What a call answers within so many seconds.
async fn within<F: Future>(limit: Option<u64>, does: Does, call: F) -> Result<F::Output, CloudError> {
    let Some(limit) = limit else {
        return Ok(call.await);
    };
    let answer = in_time(does, Duration::from_secs(limit), call).await;
    answer.map_err(|silence| CloudError::transient(format!("no answer: {silence:?}")))
}

/// Why a write failed, where the next look tells it.
#[derive(Default)]
pub(super) struct Failure(Option<CloudError>);

impl Reconciler for Cloud {
    type Facts = ServiceFacts;
    type Intent = Intent;
    type Observed = Option<Vec<String>>;
    type Remembered = Failure;
    type Step = Write;
    type Learned = Learned;

    fn intent(&self, facts: &ServiceFacts) -> Result<Intent, Refusal> {
        let meta = &facts.service.metadata;
        if facts.is_wanted && facts::annotation(&facts.service, "cloud.example/broken").is_some() {
            return Err(Refusal::new("cloud.example/broken is not a number"));
        }
        let label = {
            let mut state = self.state.lock().unwrap();
            if !state.nodes.iter().any(|nodes| Arc::ptr_eq(nodes, &facts.nodes)) {
                state.nodes.push(Arc::clone(&facts.nodes));
            }
            state.ways.selected_label.clone()
        };
        let is_selected = |node: &&Arc<Node>| {
            let label = label.as_deref();
            label.is_none_or(|label| node.labels.value(label).is_some())
        };
        let nodes = facts.nodes.iter().filter(is_selected);
        Ok(Intent {
            uid: meta.uid.clone().unwrap_or_default(),
            name: meta.name.clone().unwrap_or_default(),
            is_wanted: facts.is_wanted,
            is_marked: facts::annotation(&facts.service, MARK).is_some(),
            is_shown: !facts::published_addresses(&facts.service).is_empty(),
            address: facts
                .service
                .spec
                .as_ref()
                .and_then(|spec| spec.load_balancer_ip.clone())
                .unwrap_or_default(),
            nodes: nodes.map(|node| node.name.to_string()).collect(),
        })
    }

    async fn observe(
        &self,
        intent: &Intent,
        last: Option<Self::Observed>,
        memory: &mut Memory<Failure, Write>,
    ) -> Result<Self::Observed, CloudError> {
        if let Some(error) = memory.own.0.take() {
            return Err(error);
        }
        self.call(format!(
            "{} {}",
            if last.is_some() { "poll" } else { "read" },
            intent.name
        ));
        let (time, limit) = {
            let ways = &self.state.lock().unwrap().ways;
            (Duration::from_millis(ways.read_time), ways.limit)
        };
        if !time.is_zero() {
            within(limit, Does::Read, sleep(time)).await?;
        }
        let mut state = self.state.lock().unwrap();
        match state.read_errors.pop_front() {
            Some(error) => Err(error),
            None => Ok(state.balancers.get(&intent.uid).cloned()),
        }
    }

    fn plan(&self, intent: &Intent, seen: &SeenBy<Self>) -> LoadBalancerPlan<Write> {
        let mut state = self.state.lock().unwrap();
        let name = intent.name.clone();
        let address = state.ways.address.as_deref().unwrap_or("198.51.100.7");
        let ip_mode = state.ways.is_proxy.then_some(IpMode::Proxy);
        let status = LoadBalancerStatus {
            ingress: vec![Ingress::address(address, ip_mode)],
        };
        let (steps, has_one_lane) = (state.ways.steps_of_a_change.max(1), state.ways.has_one_lane);
        let all = |steps| Answer::apply_or(steps, || Answer::Settled(LoadBalancerStatus::empty()));
        let one = |step| {
            let steps = match step {
                LoadBalancerStep::Cloud(write) if has_one_lane => {
                    vec![LoadBalancerStep::Cloud(Write::InOneLane(Box::new(write)))]
                }
                LoadBalancerStep::Cloud(write @ Write::SetNodes { .. }) => {
                    vec![LoadBalancerStep::Cloud(write); steps]
                }
                step => vec![step],
            };
            all(steps)
        };
        let is_awaited = |node: &String| !intent.nodes.contains(node);
        let answer = match (intent.is_wanted, &seen.observed) {
            _ if seen.memory.own.0.is_some() => Answer::LookAgain {
                reason: "a write failed".into(),
            },
            (true, None) if state.ways.awaited_node.as_ref().is_some_and(is_awaited) => Answer::Wait {
                after: Duration::from_secs(2),
                reason: "no node tells where".into(),
            },
            (true, None) if state.ways.refuses_without_nodes && intent.nodes.is_empty() => {
                Answer::Refused(Refusal::new("there is no node to lead to"))
            }
            (true, None) => one(LoadBalancerStep::Cloud(Write::Create { name })),
            (false, None) => Answer::Settled(LoadBalancerStatus::empty()),
            (false, Some(_)) if state.ways.deletes_nothing => Answer::Wait {
                after: Duration::from_secs(5),
                reason: "balancer is being deleted".into(),
            },
            (_, Some(_)) if state.ways.busy_looks > 0 => {
                state.ways.busy_looks -= 1;
                Answer::Wait {
                    after: Duration::from_secs(1),
                    reason: "balancer is being built".into(),
                }
            }
            (false, Some(_)) if state.ways.clears_address && !intent.address.is_empty() => {
                one(LoadBalancerStep::Kube(KubeWrite::SetLoadBalancerIp {
                    seen: intent.address.clone(),
                    ip: String::new(),
                    annotations: Vec::new(),
                }))
            }
            (false, Some(_)) => one(LoadBalancerStep::Cloud(Write::Delete { name })),
            (true, Some(nodes)) if state.ways.shows_early && !intent.is_shown => {
                let publish = LoadBalancerStep::Kube(KubeWrite::PublishStatus(status));
                let follows = state.ways.follows_beside && *nodes != intent.nodes;
                let nodes = intent.nodes.clone();
                let follow = follows.then_some(LoadBalancerStep::Cloud(Write::SetNodes { name, nodes }));
                all(std::iter::once(publish).chain(follow).collect())
            }
            (true, Some(nodes))
                if state.ways.never_settles || !state.ways.ignores_nodes && *nodes != intent.nodes =>
            {
                one(LoadBalancerStep::Cloud(Write::SetNodes {
                    name,
                    nodes: intent.nodes.clone(),
                }))
            }
            (true, Some(_)) if state.ways.hangs_when_shown && intent.is_shown => Answer::Wait {
                after: Duration::from_secs(2),
                reason: "a job".into(),
            },
            (true, Some(_)) if !intent.is_marked => one(LoadBalancerStep::Kube(KubeWrite::AnnotateService(
                vec![(MARK.into(), Some("yes".into()))],
            ))),
            (true, Some(_)) => Answer::Settled(status),
        };
        if let Answer::Settled(status) = &answer
            && intent.is_wanted
            && state.ways.refuses_a_part
        {
            let refusal = Refusal::new("there is no such address").with_remedy("take it off");
            let refused = Plan::new(Answer::Refused(refusal));
            return match state.ways.refuses_silently {
                true => refused,
                false => refused.publishing(status.clone()),
            };
        }
        let is_settled = matches!(answer, Answer::Settled(_)) && state.ways.later_looks > 0;
        state.ways.later_looks -= u32::from(is_settled);
        let is_noted = !state.ways.notes_at_the_end || matches!(answer, Answer::Settled(_));
        let note = state.ways.note.as_ref().filter(|_| is_noted);
        let notes = note.map(Remark::note).into_iter().collect();
        let lacks = state.ways.lacks.clone();
        Plan {
            lacks: lacks.map(|(reason, remedy)| Refusal::new(reason).with_remedy(remedy)),
            again: is_settled.then_some(Duration::from_secs(60)),
            ..Plan::new(answer).with_notes(notes)
        }
    }

    async fn apply(&self, intent: &Intent, _: &SeenBy<Self>, step: &Write) -> Result<Learned, CloudError> {
        self.call(step.label());
        let (time, limit) = {
            let ways = &self.state.lock().unwrap().ways;
            let time = ways.write_time.get(step.name()).or(ways.write_time.get("*"));
            (time.copied(), ways.limit)
        };
        let (state, uid, name, now) = (
            Arc::clone(&self.state),
            intent.uid.clone(),
            intent.name.clone(),
            step.nodes(),
        );
        let made = async move {
            if let Some(time) = time {
                sleep(Duration::from_secs(time)).await;
            }
            let mut state = state.lock().unwrap();
            match state.write_errors.pop_front() {
                Some(error) if state.ways.tells_errors_later => return Ok(Learned::Failed(error)),
                Some(error) => return Err(error),
                None => {}
            }
            state.names.insert(uid.clone(), name);
            match &now {
                Some(nodes) => state.balancers.insert(uid, nodes.clone()),
                None => state.balancers.remove(&uid),
            };
            Ok(Learned::Has(now))
        };
        match limit {
            None => made.await,
            Some(_) => within(limit, Does::Write, tokio::spawn(made)).await?.unwrap(),
        }
    }

    fn learn(&self, seen: &mut SeenBy<Self>, _: &Write, learned: Learned) {
        match learned {
            Learned::Has(nodes) => seen.observed = nodes,
            Learned::Failed(error) => seen.memory.own.0 = Some(error),
        }
    }

    fn predict(&self, seen: &mut SeenBy<Self>, step: &Write) {
        seen.observed = step.nodes();
    }
}

impl LoadBalancer for Cloud {
    fn follows_nodes(&self) -> bool {
        !self.state.lock().unwrap().ways.ignores_nodes
    }

    fn drains(&self, _: &Service) -> bool {
        !self.state.lock().unwrap().ways.keeps_members
    }

    fn selects_nodes_by_label(&self, _: &Service) -> bool {
        self.state.lock().unwrap().ways.selected_label.is_some()
    }

    fn node_annotations(&self, node: &Node) -> BTreeMap<String, String> {
        let is_wanted = self.state.lock().unwrap().ways.annotates_nodes;
        let instance = node.provider_id.as_ref().filter(|_| is_wanted);
        instance
            .map(|instance| (INSTANCE.to_owned(), instance.to_string()))
            .into_iter()
            .collect()
    }

    fn needs_annotations(&self) -> bool {
        !self.state.lock().unwrap().ways.does_without_annotations
    }

    fn event_component(&self) -> Option<&'static str> {
        Some("cloud-provider-test")
    }

    fn load_balancer_name(&self, facts: &ServiceFacts) -> String {
        facts.key().to_string()
    }

    fn reconciled(&self, _: &ServiceKey, kind: ReconcileKind, took: Duration, has_failed: bool) {
        let how = if has_failed { "failed" } else { "done" };
        let ended = format!("{} {} s {how}", kind.as_str(), took.as_secs());
        self.state.lock().unwrap().reconciled.push(ended);
    }

    fn left_elsewhere<'a>(&'a self, _: &'a OrphanFacts) -> Vec<Question<'a, MadeFor>> {
        let state = self.state.lock().unwrap();
        let is_elsewhere = |name: &str| state.ways.elsewhere.as_deref() == Some(name);
        let made = state.made().find(|made| is_elsewhere(&made.balancer));
        let question = made.map(|made| Question::new(ready(Ok(vec![made]))).to(Some("other")));
        question.into_iter().collect()
    }

    fn made_for<'a>(&'a self, _: &'a dyn ServicesView) -> Vec<Question<'a, MadeFor>> {
        let is_down = self.state.lock().unwrap().ways.other_cloud_is_down;
        let other = is_down.then(|| {
            let error = CloudError::transient("maintenance");
            Question::new(ready(Err(error))).to(Some("other"))
        });
        let own = Question::new(async {
            let mut state = self.state.lock().unwrap();
            if !state.ways.marks {
                return Ok(Vec::new());
            }
            match state.read_errors.pop_front() {
                Some(error) => Err(error),
                None => Ok(state.made().collect()),
            }
        });
        other.into_iter().chain([own]).collect()
    }
}

/// Work of the cloud in the background: looks, and perhaps has something to say.
pub(super) struct Sweep(pub(super) Arc<Cloud>);

impl Reconciler for Sweep {
    type Facts = BackgroundFacts;
    type Intent = ();
    type Observed = ();
    type Remembered = ();
    type Step = Write;
    type Learned = ();

    fn intent(&self, _: &BackgroundFacts) -> Result<(), Refusal> {
        Ok(())
    }

    async fn observe(&self, (): &(), _: Option<()>, _: &mut Memory<(), Write>) -> Result<(), CloudError> {
        self.0.state.lock().unwrap().sweeps += 1;
        Ok(())
    }

    fn plan(&self, (): &(), _: &Seen<(), (), Write>) -> LoadBalancerPlan<Write> {
        let note = self
            .0
            .state
            .lock()
            .unwrap()
            .ways
            .sweep_note
            .as_ref()
            .map(Remark::note);
        Plan::new(Answer::Settled(LoadBalancerStatus::empty())).with_notes(note.into_iter().collect())
    }
}

impl BackgroundWork for Sweep {
    fn name(&self) -> &'static str {
        "sweep"
    }

    fn period(&self) -> Duration {
        Duration::from_secs(30)
    }

    fn first(&self) -> Duration {
        let first = self.0.state.lock().unwrap().ways.first_sweep;
        first.map_or_else(|| self.period(), Duration::from_secs)
    }
}
