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
use futures::future::ready;
use tokio::time::Instant;

/// Set by the cloud on each Service whose balancer it has made.
pub(super) const MARK: &str = "cloud.example/made";

/// Set by the cloud on each Node, if it is told to.
pub(super) const INSTANCE: &str = "cloud.example/machine";

#[derive(Default)]
pub(super) struct State {
    /// Balancers by Service UID.
    pub(super) balancers: BTreeMap<String, Vec<String>>,
    /// Whether balancers show whom they were made for; then the names, by UID.
    pub(super) marks: Option<BTreeMap<String, String>>,
    /// The Service, and its UID, of which another cloud shows something.
    pub(super) elsewhere: Option<(String, String)>,
    /// What another cloud answers that is asked beside it; `None`: there is none.
    pub(super) other_cloud: Option<CloudError>,
    /// Every reconcile that ended: what it was to do, how many seconds it took, and whether it failed.
    pub(super) reconciled: Vec<(&'static str, u64, bool)>,
    /// The Nodes that each sync was handed.
    pub(super) nodes: Vec<Arc<[Arc<Node>]>>,
    /// Every call: when, and what.
    pub(super) calls: Vec<(Duration, String)>,
    /// Errors for the next writes; then all is well.
    pub(super) write_errors: VecDeque<CloudError>,
    /// An error of a write is told by the next look, and the answer is data, as where the rest is brought to a good end first.
    pub(super) tells_errors_later: bool,
    /// Errors for the next reads.
    pub(super) read_errors: VecDeque<CloudError>,
    /// Says *wait* for so many looks before it settles.
    pub(super) busy_looks: u32,
    /// No balancer goes: each look says *wait*.
    pub(super) deletes_nothing: bool,
    /// Wants to look again a minute after it settled, so many times.
    pub(super) later_looks: u32,
    /// Waits before it makes a balancer until this Node is there.
    pub(super) awaited_node: Option<String>,
    /// Time that one write takes, by Service name; others take none.
    pub(super) write_time: BTreeMap<String, Duration>,
    /// Time that one read takes.
    pub(super) read_time: Duration,
    /// The address that is published, if it is not the usual one.
    pub(super) address: Option<&'static str>,
    /// The mode that is published.
    pub(super) ip_mode: Option<IpMode>,
    /// Has something of what is asked for held back although all else is settled.
    pub(super) lacks: Option<Refusal>,
    /// Leaves a note on every plan.
    pub(super) note: Option<Note>,
    /// Leaves it only when nothing is left to do.
    pub(super) notes_at_the_end: bool,
    /// Has something to refuse although the balancer is as it should be.
    pub(super) refuses_a_part: bool,
    /// Says nothing of the status then.
    pub(super) refuses_silently: bool,
    /// Makes no balancer without Nodes to lead to.
    pub(super) refuses_without_nodes: bool,
    /// Only Nodes with this label are balanced over.
    pub(super) selected_label: Option<&'static str>,
    /// Balancers do not change with the Nodes.
    pub(super) ignores_nodes: bool,
    /// Members stay until their Nodes are gone.
    pub(super) keeps_members: bool,
    /// Notes on each Node which instance it is, under [`INSTANCE`].
    pub(super) annotates_nodes: bool,
    /// Does without annotations on Services that may not be written.
    pub(super) does_without_annotations: bool,
    /// Shows the address before anything else that comes after the creation.
    pub(super) shows_early: bool,
    /// Sets the Nodes beside that.
    pub(super) follows_beside: bool,
    /// Has a job under way then that never ends.
    pub(super) hangs_when_shown: bool,
    /// Clears `spec.loadBalancerIP` before a balancer goes.
    pub(super) clears_address: bool,
    /// Setting the nodes of a balancer takes so many steps in one wave, one after the other; none is one.
    pub(super) steps_of_a_change: usize,
    /// Sets the nodes of a balancer again and again.
    pub(super) never_settles: bool,
    /// All writes share one lane.
    pub(super) has_one_lane: bool,
    /// Runs of the background work.
    pub(super) sweeps: usize,
    /// Time from the start of the controller to the first of them, if it is not a period.
    pub(super) first_sweep: Option<Duration>,
    /// Leaves a note on every run of the background work.
    pub(super) sweep_note: Option<Note>,
}

pub(super) struct Cloud {
    begun: Instant,
    pub(super) state: Mutex<State>,
}

impl Cloud {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self {
            begun: Instant::now(),
            state: Mutex::default(),
        })
    }

    fn call(&self, what: String) {
        let at = self.begun.elapsed();
        self.state.lock().unwrap().calls.push((at, what));
    }

    /// The calls that begin with this word.
    pub(super) fn calls(&self, verb: &str) -> Vec<(Duration, String)> {
        self.state
            .lock()
            .unwrap()
            .calls
            .iter()
            .filter(|(_, call)| call.starts_with(verb))
            .cloned()
            .collect()
    }

    pub(super) fn set(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state.lock().unwrap());
    }

    pub(super) fn balancer(&self, uid: &str) -> Option<Vec<String>> {
        self.state.lock().unwrap().balancers.get(uid).cloned()
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
            state.nodes.push(Arc::clone(&facts.nodes));
            state.selected_label
        };
        let is_selected = |node: &&Arc<Node>| label.is_none_or(|label| node.labels.value(label).is_some());
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
        let time = self.state.lock().unwrap().read_time;
        if !time.is_zero() {
            tokio::time::sleep(time).await;
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
        let address = state.address.unwrap_or("198.51.100.7");
        let status = |ip_mode| LoadBalancerStatus {
            ingress: vec![Ingress::address(address, ip_mode)],
        };
        let (steps, has_one_lane) = (state.steps_of_a_change.max(1), state.has_one_lane);
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
            (true, None) if state.awaited_node.as_ref().is_some_and(is_awaited) => Answer::Wait {
                after: Duration::from_secs(2),
                reason: "no node tells where".into(),
            },
            (true, None) if state.refuses_without_nodes && intent.nodes.is_empty() => {
                Answer::Refused(Refusal::new("there is no node to lead to"))
            }
            (true, None) => one(LoadBalancerStep::Cloud(Write::Create { name })),
            (false, None) => Answer::Settled(LoadBalancerStatus::empty()),
            (false, Some(_)) if state.deletes_nothing => Answer::Wait {
                after: Duration::from_secs(5),
                reason: "balancer is being deleted".into(),
            },
            (_, Some(_)) if state.busy_looks > 0 => {
                state.busy_looks -= 1;
                Answer::Wait {
                    after: Duration::from_secs(1),
                    reason: "balancer is being built".into(),
                }
            }
            (false, Some(_)) if state.clears_address && !intent.address.is_empty() => {
                one(LoadBalancerStep::Kube(KubeWrite::SetLoadBalancerIp {
                    seen: intent.address.clone(),
                    ip: String::new(),
                    annotations: Vec::new(),
                }))
            }
            (false, Some(_)) => one(LoadBalancerStep::Cloud(Write::Delete { name })),
            (true, Some(nodes)) if state.shows_early && !intent.is_shown => {
                let publish = LoadBalancerStep::Kube(KubeWrite::PublishStatus(status(state.ip_mode)));
                let follows = state.follows_beside && *nodes != intent.nodes;
                let nodes = intent.nodes.clone();
                let follow = follows.then_some(LoadBalancerStep::Cloud(Write::SetNodes { name, nodes }));
                all(std::iter::once(publish).chain(follow).collect())
            }
            (true, Some(nodes)) if state.never_settles || !state.ignores_nodes && *nodes != intent.nodes => {
                one(LoadBalancerStep::Cloud(Write::SetNodes {
                    name,
                    nodes: intent.nodes.clone(),
                }))
            }
            (true, Some(_)) if state.hangs_when_shown && intent.is_shown => Answer::Wait {
                after: Duration::from_secs(2),
                reason: "a job".into(),
            },
            (true, Some(_)) if !intent.is_marked => one(LoadBalancerStep::Kube(KubeWrite::AnnotateService(
                vec![(MARK.into(), Some("yes".into()))],
            ))),
            (true, Some(_)) => Answer::Settled(status(state.ip_mode)),
        };
        if let Answer::Settled(status) = &answer
            && intent.is_wanted
            && state.refuses_a_part
        {
            let refusal = Refusal::new("there is no such address").with_remedy("take it off");
            let refused = Plan::new(Answer::Refused(refusal));
            return match state.refuses_silently {
                true => refused,
                false => refused.publishing(status.clone()),
            };
        }
        let is_settled = matches!(answer, Answer::Settled(_)) && state.later_looks > 0;
        state.later_looks -= u32::from(is_settled);
        let is_noted = !state.notes_at_the_end || matches!(answer, Answer::Settled(_));
        let notes = state.note.clone().filter(|_| is_noted).into_iter().collect();
        Plan {
            lacks: state.lacks.clone(),
            again: is_settled.then_some(Duration::from_secs(60)),
            ..Plan::new(answer).with_notes(notes)
        }
    }

    async fn apply(&self, intent: &Intent, _: &SeenBy<Self>, step: &Write) -> Result<Learned, CloudError> {
        self.call(step.label());
        let time = self.state.lock().unwrap().write_time.get(step.name()).copied();
        if let Some(time) = time {
            tokio::time::sleep(time).await;
        }
        let mut state = self.state.lock().unwrap();
        match state.write_errors.pop_front() {
            Some(error) if state.tells_errors_later => return Ok(Learned::Failed(error)),
            Some(error) => return Err(error),
            None => {}
        }
        let now = step.nodes();
        if let Some(marks) = &mut state.marks {
            marks.insert(intent.uid.clone(), intent.name.clone());
        }
        match &now {
            Some(nodes) => state.balancers.insert(intent.uid.clone(), nodes.clone()),
            None => state.balancers.remove(&intent.uid),
        };
        Ok(Learned::Has(now))
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
        !self.state.lock().unwrap().ignores_nodes
    }

    fn drains(&self, _: &Service) -> bool {
        !self.state.lock().unwrap().keeps_members
    }

    fn selects_nodes_by_label(&self, _: &Service) -> bool {
        self.state.lock().unwrap().selected_label.is_some()
    }

    fn node_annotations(&self, node: &Node) -> BTreeMap<String, String> {
        let is_wanted = self.state.lock().unwrap().annotates_nodes;
        let instance = node.provider_id.as_ref().filter(|_| is_wanted);
        instance
            .map(|instance| (INSTANCE.to_owned(), instance.to_string()))
            .into_iter()
            .collect()
    }

    fn needs_annotations(&self) -> bool {
        !self.state.lock().unwrap().does_without_annotations
    }

    fn event_component(&self) -> Option<&'static str> {
        Some("cloud-provider-test")
    }

    fn load_balancer_name(&self, facts: &ServiceFacts) -> String {
        facts.key().to_string()
    }

    fn reconciled(&self, _: &ServiceKey, kind: ReconcileKind, took: Duration, has_failed: bool) {
        let ended = (kind.as_str(), took.as_secs(), has_failed);
        self.state.lock().unwrap().reconciled.push(ended);
    }

    fn left_elsewhere<'a>(&'a self, _: &'a OrphanFacts) -> Vec<Question<'a, MadeFor>> {
        let elsewhere = self.state.lock().unwrap().elsewhere.clone();
        let question = elsewhere.map(|(name, uid)| {
            let made = MadeFor {
                key: ServiceKey::new("default", name.as_str()),
                uid,
                balancer: name,
            };
            Question::new(ready(Ok(vec![made]))).to(Some("other"))
        });
        question.into_iter().collect()
    }

    fn made_for<'a>(&'a self, _: &'a dyn ServicesView) -> Vec<Question<'a, MadeFor>> {
        let other = self.state.lock().unwrap().other_cloud.clone();
        let other = other.map(|error| Question::new(ready(Err(error))).to(Some("other")));
        let own = Question::new(async {
            let mut state = self.state.lock().unwrap();
            if state.marks.is_some()
                && let Some(error) = state.read_errors.pop_front()
            {
                return Err(error);
            }
            let marks = state.marks.iter().flatten();
            let shown = marks.filter(|(uid, _)| state.balancers.contains_key(*uid));
            let made = shown.map(|(uid, name)| MadeFor {
                key: ServiceKey::new("default", name.as_str()),
                uid: uid.clone(),
                balancer: name.clone(),
            });
            Ok(made.collect())
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
        let note = self.0.state.lock().unwrap().sweep_note.clone();
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
        let first = self.0.state.lock().unwrap().first_sweep;
        first.unwrap_or_else(|| self.period())
    }
}
