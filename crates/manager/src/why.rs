//! Why an object is as it is: one value, made from what the cluster shows (status, condition, events), what the cloud told and
//! what a plan would do. Pure. `explain` prints the whole of it; `doctor` and `plan` take their words from it.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use bowline_cloud_provider::plan::{Ailment, NoteKind, PlanReport, ReportedOutcome};
use bowline_cloud_provider::reasons::{NO_VALID_NODES, is_beside};
use bowline_cloud_provider::{LoadBalancer, Node, NodeSet, Service, ServiceClasses, ServiceKey, facts};
use bowline_controllers::events::EVENTS;
use bowline_controllers::route::RouteSettings;
use bowline_controllers::trouble::Trouble;
use bowline_kube_io::{Endpoints, SeenEvent};
use jiff::{SignedDuration, Timestamp};

use crate::outcome::Outcome;

pub(crate) mod addresses;
mod causes;
mod failure;
mod many;
mod members;
pub(crate) mod node;
mod remedies;
mod render;

pub use causes::CAUSES;
use causes::EVENT;
use failure::Failure;
use many::Loss;
pub(crate) use many::{of_many, some_of};
pub(crate) use node::without_node;
pub use node::{Shown, of_answer, of_node};
use remedies::of_text;
pub(crate) use remedies::{ETCD_FULL, FULL, of_api_server, remedy_of_error};
pub(crate) use render::one_line;
pub use render::{render_json, render_text};

/// What holds is told in an event about every ten minutes. One that is older than this tells of what is over.
pub(crate) const RECENT: SignedDuration = SignedDuration::from_mins(20);

/// What is told of one object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Why {
    /// `service/NAMESPACE/NAME` or `node/NAME`.
    pub object: String,
    /// How it is.
    pub is: Vec<String>,
    /// How it should be.
    pub should: Vec<String>,
    /// Why it is not so; empty if it is.
    pub causes: Vec<Cause>,
    /// What happens next, if nobody does anything.
    pub next: String,
    /// What its users lack, whatever the causes are.
    loss: Loss,
}

/// One reason why an object is not as it should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cause {
    /// What programs know it by: one of [`CAUSES`], the id of a check of `doctor`, `last-try.` with the reason of the condition
    /// `LoadBalancerReconciled`, or `event.` with the reason of an event. It stays as it is from release to release.
    pub id: Cow<'static, str>,
    /// Whether it keeps the object from its use.
    pub outcome: Outcome,
    /// The reason.
    pub text: String,
    /// The reason without what is of the moment, such as when it was tried; empty if that is the text.
    pub(crate) timeless: String,
    /// Since when it is so, in words; empty if that is not known.
    pub since: String,
    /// Who has to do what.
    pub remedy: String,
}

impl Cause {
    pub(crate) fn new(
        id: impl Into<Cow<'static, str>>,
        outcome: Outcome,
        text: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        let id = id.into();
        debug_assert!(causes::is_listed(&id), "{id}");
        Self::found(id, outcome, text, remedy)
    }

    /// One that a check of `doctor` found, which is known by the same id.
    pub(crate) fn found(
        id: impl Into<Cow<'static, str>>,
        outcome: Outcome,
        text: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self {
            id: id.into(),
            outcome,
            text: one_line(text.into()),
            timeless: String::new(),
            since: String::new(),
            remedy: remedy.into(),
        }
    }
}

/// Why no Service gets a load balancer from this manager.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unserved {
    /// The controller is switched off.
    Controller,
    /// The provider makes none, as it is configured.
    Provider,
}

impl Unserved {
    /// In words, with what says so.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Self::Controller => {
                "this manager serves no Services: --controllers switches service-lb-controller off"
            }
            Self::Provider => {
                "this manager makes no load balancers, as its cloud is configured: see the manual of the cloud"
            }
        }
    }
}

/// What is known of the cluster and its manager.
#[derive(Clone, Copy)]
pub struct Known<'a> {
    /// The wall time.
    pub now: Timestamp,
    /// The Nodes; `None` if they are not known.
    pub nodes: Option<&'a [Arc<Node>]>,
    /// Which of them are balanced over; `None` if there are no load balancers.
    pub node_set: Option<NodeSet>,
    /// The load balancers, which say whose Nodes may be members; `None`: all may.
    pub load_balancer: Option<&'a dyn LoadBalancer>,
    /// Why no Service is served.
    pub unserved: Option<Unserved>,
    /// Events, the newest last; empty where they may not be read.
    pub events: &'a [SeenEvent],
    /// Which Services are served.
    pub classes: &'a ServiceClasses,
    /// All Services: two may show one address. Empty if they are not known.
    pub services: &'a [Arc<Service>],
    /// Whether no process of this program leads, so nothing is made.
    pub is_unled: bool,
    /// Whether the manager lacks permissions, as far as that is known.
    pub lacks_permissions: bool,
    /// The proxy by which the manager goes to the cloud, and this command does not; `None`: there is none.
    pub detour: Option<&'a str>,
    /// What to do about pods that run with older credentials than their Secret has; `None`: none is known to.
    pub restart: Option<&'a str>,
    /// The pods behind the Service that is asked about; `None` if they are not known.
    pub endpoints: Option<&'a Endpoints>,
    /// What pod networks and routes go by; `None`: the manager has nothing to do with them.
    pub routes: Option<&'a RouteSettings>,
}

impl Known<'_> {
    /// The Nodes that may be members for a Service, as far as its cloud goes.
    fn near(&self, service: &Service) -> Option<Vec<Arc<Node>>> {
        let is_near = |node: &&Arc<Node>| self.load_balancer.is_none_or(|it| it.may_lead_to(service, node));
        let nodes = self.nodes?.iter().filter(is_near);
        Some(nodes.cloned().collect())
    }

    /// Those of them that its selector of Nodes takes.
    fn selected(&self, service: &Service) -> Option<Vec<Arc<Node>>> {
        let nodes = self.nodes?.iter().filter(|node| self.selects(service, node));
        Some(nodes.cloned().collect())
    }

    fn selects(&self, service: &Service, node: &Node) -> bool {
        self.load_balancer.is_none_or(|it| it.selects(service, node))
    }
}

impl Why {
    pub(crate) fn new(object: String) -> Self {
        Self {
            object,
            is: Vec::new(),
            should: Vec::new(),
            causes: Vec::new(),
            next: "nothing, until the object, the Nodes or the cloud change".to_owned(),
            loss: Loss::default(),
        }
    }

    /// The worst of all causes.
    #[must_use]
    pub fn outcome(&self) -> Outcome {
        let outcomes = self.causes.iter().map(|cause| cause.outcome);
        outcomes.max().unwrap_or(Outcome::Ok)
    }

    /// Adds a cause.
    pub(crate) fn add(
        &mut self,
        id: impl Into<Cow<'static, str>>,
        outcome: Outcome,
        text: impl Into<String>,
        remedy: impl Into<String>,
    ) {
        self.causes.push(Cause::new(id, outcome, text, remedy));
    }

    /// Puts the object into commands that have places for its name.
    pub(crate) fn fill_in(&mut self) {
        let object = &self.object;
        let remedies = self.causes.iter_mut().map(|it| &mut it.remedy);
        self.is
            .iter_mut()
            .chain(remedies)
            .for_each(|text| *text = filled_in(text, object));
    }

    /// That no Node is a member is told with what keeps them out, and needs no other words that guess at that.
    fn leave_what_is_told_better(&mut self) {
        let mut causes = self.causes.iter();
        if causes.any(|it| it.id == members::NO_MEMBER && !it.text.contains(members::SELECTOR)) {
            self.causes
                .retain(|it| it.id.strip_prefix(EVENT) != Some(NO_VALID_NODES.0));
        }
    }

    /// What keeps every object from being worked on stands before all else.
    pub(crate) fn first(&mut self, cause: Cause) {
        self.causes.insert(0, cause);
    }

    /// The same, and this is what happens next.
    pub(crate) fn first_before(&mut self, cause: Cause, next: &str) {
        self.first(cause);
        next.clone_into(&mut self.next);
    }
}

/// A text in which commands have places for the name of this object, `service/NAMESPACE/NAME` or `node/NAME`, with the name in them.
pub(crate) fn filled_in(text: &str, object: &str) -> String {
    let (kind, key) = object.split_once('/').unwrap_or_default();
    let (namespace, name) = key.split_once('/').unwrap_or(("NAMESPACE", key));
    let text = text.replace("-n NAMESPACE", &format!("-n {namespace}"));
    text.replace(&format!(" {kind} NAME"), &format!(" {kind} {name}"))
}

/// Why a Service is not for this manager, by its type or class; `None`: it is, or something has to be removed for it.
#[must_use]
pub fn not_served(service: &Service, classes: &ServiceClasses) -> Option<String> {
    if classes.concern(service) {
        return None;
    }
    if classes.leaves_to_others(service) {
        return Some(match facts::class(service) {
            Some(class) => {
                format!("its spec.loadBalancerClass is {class:?}, and this manager serves {classes}")
            }
            None => format!("it has no spec.loadBalancerClass, and this manager serves {classes}"),
        });
    }
    if facts::needs_cleanup(service) {
        return Some(format!(
            "it has the finalizer of a load balancer and no spec.loadBalancerClass any more, and this manager serves {classes}"
        ));
    }
    let kind = service.spec.as_ref().and_then(|spec| spec.type_.as_deref());
    Some(format!(
        "its type is {}, and a load balancer is made for type LoadBalancer",
        kind.unwrap_or("ClusterIP")
    ))
}

/// What to do about a Service that asks another controller.
pub(crate) const OF_ANOTHER: &str = "see whether the controller that is to serve it runs. To have this manager serve it, give the manager \
    --load-balancer-class with that class, or leave the flag out where there is no class; or change the class: to type ClusterIP first, and then to LoadBalancer with a class that this manager serves";

/// Whether something is wrong with a Service by what it shows, or its load balancer is to be removed.
#[must_use]
pub fn is_troubled(service: &Service, classes: &ServiceClasses) -> bool {
    let is_unwell = || facts::published_addresses(service).is_empty() || facts::trouble(service).is_some();
    let has_to_go = facts::needs_cleanup(service) && classes.concern(service);
    has_to_go || classes.is_wanted(service) && is_unwell()
}

/// Whether the cloud did not take the manager's credentials for a Service.
pub(crate) fn is_shut_out(service: &Service) -> bool {
    let trouble = facts::trouble(service);
    trouble.is_some_and(|it| Trouble::read(&it.message).is_unauthenticated())
}

/// Events that say that the last try failed.
const FAILED: [&str; 3] = [
    "SyncLoadBalancerFailed",
    "UpdateLoadBalancerFailed",
    "DeleteLoadBalancerFailed",
];

/// Events that say that it did not.
const DONE: [&str; 3] = [
    "EnsuredLoadBalancer",
    "UpdatedLoadBalancer",
    "DeletedLoadBalancer",
];

/// The event that says what the count of members says.
const NO_NODES: &str = "UnAvailableLoadBalancer";

/// What came of the manager's last try, if it failed; for a plan, which knows nothing of that by itself.
#[must_use]
pub fn last_try(service: &Service, known: &Known<'_>) -> Option<String> {
    let Some(failure) = Failure::of(service, known) else {
        return is_unheard_of(service, known).then(|| UNHEARD.to_owned());
    };
    let says = || failure.says(known.now);
    (!failure.is_wait()).then(|| says().trim_start_matches("the last try ").to_owned())
}

/// What is said where nothing tells of a try that must have been made.
const UNHEARD: &str = "not known: the Service has neither an address nor a condition, and no event of it is left. Where its status may not be \
    written, nothing shows the cause: `explain` tries that write";

/// Within this time a manager that leads has tried, and told of it.
const TRIED_WITHIN: SignedDuration = SignedDuration::from_mins(5);

fn is_unheard_of(service: &Service, known: &Known<'_>) -> bool {
    let created = service.metadata.creation_timestamp;
    let is_old = created.is_some_and(|created| known.now.duration_since(created) > TRIED_WITHIN);
    let shows_nothing = facts::published_addresses(service).is_empty() && facts::trouble(service).is_none();
    is_old && shows_nothing && known.classes.is_wanted(service)
}

/// A Service, as far as a plan of it was made.
#[must_use]
pub fn of_service(service: &Service, report: Option<&PlanReport>, known: &Known<'_>) -> Why {
    let mut why = Why::new(format!("service/{}", ServiceKey::of(service)));
    let addresses = facts::published_addresses(service);
    why.is.push(match addresses.is_empty() {
        true => "no address".to_owned(),
        false => format!("address {}", addresses.join(", ")),
    });
    why.loss = Loss::of(service, known.now);
    if let Some(since) = &service.metadata.deletion_timestamp {
        why.is
            .push(format!("being deleted for {}", span(known.now, *since)));
    }
    members::of_finalizers(&mut why, service, known);
    if let Some(because) = not_served(service, known.classes) {
        why.should.push(format!("not for this manager: {because}"));
        "nothing: this manager leaves it alone".clone_into(&mut why.next);
        if known.classes.leaves_to_others(service) && addresses.is_empty() {
            let remedy = OF_ANOTHER;
            why.add("service.of-another-class", Outcome::Warning, because, remedy);
        }
        return why;
    }
    if let Some(unserved) = known.unserved {
        let remedy = "whoever runs the manager changes its configuration, if Services are to be served";
        why.add("service.unserved", Outcome::Failed, unserved.text(), remedy);
        "nothing: no Service is served".clone_into(&mut why.next);
        return why;
    }
    let near = known.near(service);
    let others = known.nodes.map_or(0, <[_]>::len) - near.as_ref().map_or(0, Vec::len);
    let known = &Known {
        nodes: near.as_deref(),
        ..*known
    };
    if known.classes.is_wanted(service) {
        members::of_sources(&mut why, service, known);
        members::of_nodes(&mut why, service, known);
        members::of_others(&mut why, others);
    }
    let selected = known.selected(service);
    let known = &Known {
        nodes: selected.as_deref(),
        ..*known
    };
    if known.classes.is_wanted(service) {
        members::of_endpoints(&mut why, service, known);
    }
    let failure = Failure::of(service, known);
    // An event tells of a moment, and what has settled since then needs no word.
    let failure = failure.filter(|it| it.since.is_some() || !report.is_some_and(PlanReport::is_idle));
    let (left, failure) = match failure.as_ref().and_then(Failure::left) {
        Some(left) => (Some(left), None),
        None => (None, failure),
    };
    if let Some(failure) = &failure {
        let outcome = if failure.is_wait() {
            Outcome::Warning
        } else {
            Outcome::Failed
        };
        // The cloud takes the credentials of this command, which has just asked it.
        let is_answered = report.is_some_and(|it| !matches!(it.outcome, ReportedOutcome::Failed { .. }));
        let is_over = is_answered && failure.may_be_over(report);
        let restart = known
            .restart
            .filter(|_| failure.is_unauthenticated() && is_answered);
        let remedy = match failure.is_unauthenticated() && is_answered {
            true if restart.is_some() => restart.unwrap_or_default(),
            true => TAKEN_BY_NOW,
            false => &failure.remedy(known.now),
        };
        let mut cause = Cause::new(failure.id(), outcome, failure.says(known.now), remedy);
        cause.timeless = failure.text.to_string();
        cause.since = failure
            .since
            .map_or(String::new(), |since| format!("for {}", span(known.now, since)));
        why.causes.push(cause);
        let next = match is_over {
            true if restart.is_some() => {
                "the manager tries again by itself, in vain until its pods are restarted"
            }
            true => {
                "the cloud answers this command now. The manager tries again by itself, within 5 min of its last try, and at once when the Service changes"
            }
            false => &failure.next(),
        };
        next.clone_into(&mut why.next);
    }
    let key = ServiceKey::of(service).to_string();
    if let Some(report) = report {
        let tells_more = |it: &SeenEvent| {
            !FAILED.contains(&&*it.reason) && *it.reason != *NO_NODES && !is_beside(&it.reason)
        };
        let is_warned = known.warnings(&key).any(tells_more);
        of_report(&mut why, report, failure.as_ref(), is_warned, known);
        members::of_zone(&mut why, report.shown.zone.as_deref(), known);
    }
    if known.classes.is_wanted(service) {
        addresses::of_addresses(&mut why, service, report, known);
        addresses::of_before(&mut why, service, known);
    }
    known.tell_unled(&mut why, addresses::DIFFERS);
    known.tell_unled(&mut why, addresses::UNPUBLISHED);
    let noted = report.into_iter().flat_map(|report| &report.notes);
    let noted: Vec<&str> = noted.map(|note| note.reason).collect();
    let is_told = |it: &SeenEvent| {
        let reason = &*it.reason;
        FAILED.contains(&reason) || noted.contains(&reason) || reason == NO_NODES || is_beside(reason)
    };
    let beside = known
        .warnings(&key)
        .filter(|it| is_beside(&it.reason) && !noted.contains(&&*it.reason));
    why.is.extend(beside.map(|it| it.message.clone()));
    why.causes.extend(
        known
            .warnings(&key)
            .filter(|it| !is_told(it))
            .map(|it| known.cause(it)),
    );
    why.leave_what_is_told_better();
    why.put_in_order();
    why.causes.extend(left);
    why
}

/// What to do where the cloud refuses the manager's credentials and takes those of this command, and no pod is known to have older ones.
const TAKEN_BY_NOW: &str = "the cloud takes the credentials that this command has: if the manager has the same by now, nobody has to do anything. If \
    it stays, its pods run with older ones: whoever runs the manager restarts them (kubectl rollout restart); see \
    docs/guides/rotate-credentials.md";

/// What to do about an address that is not in the status.
const UNPUBLISHED: &str = "whoever owns the Service sees who takes the address out of its status, such as a GitOps tool, a restore or a script \
    (kubectl -n NAMESPACE get service NAME -o yaml --show-managed-fields), and has that leave the status alone. What somebody takes out again and again, the \
    manager writes again after up to five minutes only";

/// What to do about members that are down.
const UNANSWERED: &str = "whoever owns the Service looks whether its pods are ready (kubectl get endpointslices); whoever runs the cluster, whether the node port \
    answers on the Nodes, and what is between them and the load balancer: firewalls, security groups, network policies";

/// `is_warned`: the manager told of something that may still hold.
fn of_report(
    why: &mut Why,
    report: &PlanReport,
    failure: Option<&Failure<'_>>,
    is_warned: bool,
    known: &Known<'_>,
) {
    let is_told = |text: &str| failure.is_some_and(|it| it.text.contains(text));
    let headline = report.headline();
    why.should.push(match &report.outcome {
        ReportedOutcome::Settled { publishes } if !publishes.is_empty() => {
            format!("{headline}; publishes {}", publishes.join(", "))
        }
        _ if report.is_idle() => "as it is".to_owned(),
        _ => headline.clone(),
    });
    why.should
        .extend(report.in_words().into_iter().map(|words| format!("  {words}")));
    // What the manager tried was refused before this: what a prediction meets behind it follows from that, or is not so at all.
    let is_beyond = failure.is_some_and(|it| !it.is_wait()) && report.has_changes();
    match &report.outcome {
        ReportedOutcome::Refused { refusal } if is_beyond && !is_told(&refusal.reason) => {}
        ReportedOutcome::Refused { refusal } => {
            let remedy = refusal.remedy.as_deref();
            match why.causes.last_mut().filter(|_| is_told(&refusal.reason)) {
                Some(cause) => {
                    if let Some(remedy) = remedy {
                        remedy.clone_into(&mut cause.remedy);
                    }
                }
                None => {
                    let remedy = remedy.unwrap_or("whoever owns the Service changes what the text names");
                    let text = format!("not possible as it is asked for: {}", refusal.reason);
                    why.add("service.refused", Outcome::Failed, text, remedy);
                }
            }
        }
        ReportedOutcome::Failed { error } if let Some(text) = known.of_here(error) => why.is.push(text),
        ReportedOutcome::Failed { error } if !is_told(error) => {
            let text = format!("no plan could be made: {error}");
            let remedy = of_text(error).unwrap_or(Cow::Borrowed(
                "follow the text; if it names nothing, look at the cloud's own status page",
            ));
            why.add("service.no-plan", Outcome::Failed, text, remedy);
        }
        // What it waits for is told, and for how long.
        ReportedOutcome::Waiting { .. } if failure.is_some() => {}
        // Somebody else holds the deletion, and there is nothing left to do here.
        ReportedOutcome::Settled { .. }
            if !report.has_changes()
                && why
                    .causes
                    .iter()
                    .any(|it| it.id == "service.finalizer-of-another") => {}
        ReportedOutcome::Waiting { reason } if !is_told(reason) => {
            let (text, remedy) = (
                format!("the cloud is busy: {reason}"),
                "nobody has to do anything, unless it stays",
            );
            why.add("cloud.busy", Outcome::Warning, text, remedy);
            "the manager looks again by itself".clone_into(&mut why.next);
        }
        ReportedOutcome::Settled { publishes }
            if !report.has_changes() && !publishes.is_empty() && failure.is_none() =>
        {
            let text = format!(
                "the load balancer is there, and the Service does not show its address {}",
                publishes.join(", ")
            );
            why.add(addresses::UNPUBLISHED, Outcome::Warning, text, UNPUBLISHED);
            "a manager that leads writes the address, at once or after up to five minutes"
                .clone_into(&mut why.next);
        }
        ReportedOutcome::Settled { .. } if !report.is_idle() && failure.is_none() => {
            // A plan made here does not know what the manager was refused.
            let (remedy, next) = match is_warned {
                true => (
                    "follow the warnings below: what the cloud refused is tried again from time to time only",
                    "a manager that leads makes what the cloud does not refuse",
                ),
                false => (
                    "a manager that leads makes this by itself when it looks next: after up to ten minutes, or at once when the Service changes, as \
                     by any annotation",
                    "a manager that leads makes these steps",
                ),
            };
            let text = format!("the load balancer is not as the Service asks: {headline}");
            why.add(addresses::DIFFERS, Outcome::Warning, text, remedy);
            next.clone_into(&mut why.next);
        }
        _ => {}
    }
    why.is.extend(report.shown.members.iter().cloned());
    for Ailment {
        text,
        is_total,
        remedy,
        ..
    } in &report.ailments
    {
        let remedy = if remedy.is_empty() { UNANSWERED } else { remedy };
        // The condition says the same.
        if let Some(cause) = why.causes.iter_mut().find(|it| it.text.contains(text)) {
            remedy.clone_into(&mut cause.remedy);
            continue;
        }
        let outcome = if *is_total {
            Outcome::Failed
        } else {
            Outcome::Warning
        };
        why.add("service.members-down", outcome, text, remedy);
    }
    for note in report.notes.iter().filter(|note| note.kind == NoteKind::Warning) {
        if is_beside(note.reason) {
            if !why.is.contains(&note.text) {
                why.is.push(note.text.clone());
            }
            continue;
        }
        if is_beyond && !known.warnings(&report.object).any(|it| it.reason == note.reason) {
            continue;
        }
        let text = format!("{}: {}", note.reason, note.text);
        why.add(
            format!("{EVENT}{}", note.reason),
            Outcome::Warning,
            text,
            known.remedy_of(note.reason),
        );
    }
}

impl<'a> Known<'a> {
    /// What only waits for a manager that leads waits for more than that where none does, or with credentials that the cloud refuses.
    fn tell_unled(&self, why: &mut Why, id: &str) {
        let hinders = self.is_unled.then_some(UNLED).or(self.restart);
        if let Some(remedy) = hinders.or(self.lacks_permissions.then_some(FORBIDDEN)) {
            let causes = why.causes.iter_mut().filter(|it| it.id == id);
            causes.for_each(|it| remedy.clone_into(&mut it.remedy));
        }
    }

    /// What is said of a failure that only tells that the cloud is not reached from here.
    pub(crate) fn of_here(&self, error: &str) -> Option<String> {
        self.detour.and_then(|detour| of_here(detour, error))
    }

    fn is_recent(&self, event: &SeenEvent) -> bool {
        self.now.duration_since(event.last) < RECENT
    }

    /// The warnings about an object that may still hold, one of each reason.
    fn warnings(&self, object: &str) -> impl Iterator<Item = &'a SeenEvent> {
        let mut last = BTreeMap::new();
        for event in self.events {
            if event.is_warning && event.object == object && self.is_recent(event) {
                last.insert(&*event.reason, event);
            }
        }
        last.into_values()
    }

    /// What the tables of events say to do about one: that of the cloud, or that of the controllers.
    fn remedy_of(&self, reason: &str) -> &'static str {
        let of_cloud = self.load_balancer.and_then(|it| it.event(reason));
        of_cloud.map_or_else(|| remedy_of(reason), |it| it.remedy)
    }

    /// What a warning tells, with what the table of events has about it.
    fn cause(&self, event: &SeenEvent) -> Cause {
        let of_event = || Cow::Borrowed(self.remedy_of(&event.reason));
        let remedy = of_text(&event.message).unwrap_or_else(of_event);
        let text = format!(
            "{}, {} ago: {}",
            event.reason,
            span(self.now, event.last),
            event.message
        );
        let mut cause = Cause::new(format!("{EVENT}{}", event.reason), Outcome::Warning, text, remedy);
        cause.timeless = format!("{}: {}", event.reason, event.message);
        cause
    }
}

/// What to do about what waits for a manager that has its permissions.
const FORBIDDEN: &str =
    "the manager lacks permissions, which may be why: `doctor` lists them; with them it makes this by itself";

/// What is said of a failure that only tells that the cloud is not reached from here, where the manager goes through a proxy.
pub(crate) fn of_here(detour: &str, error: &str) -> Option<String> {
    let is_unreached = error.contains("cannot connect: ") || error.contains("no answer");
    let is_of_proxy = error.contains("proxy ");
    (is_unreached && !is_of_proxy).then(|| {
        format!(
            "the cloud is not reached from here, and the manager goes through the proxy of {detour}: run this in its pod, or with that \
             variable: {error}"
        )
    })
}

/// What to do about what waits for a manager that leads.
const UNLED: &str = "nobody makes it before a process of Bowline leads: `doctor` says who does, in `a process leads` and `a manager runs`";

/// What the table of the controllers' events says to do about one.
pub(crate) fn remedy_of(reason: &str) -> &'static str {
    let known = EVENTS.iter().find(|it| it.reason == reason);
    known.map_or("follow the text", |it| it.remedy)
}

/// How long ago something was, as people say it.
pub(crate) fn span(now: Timestamp, then: Timestamp) -> String {
    match now.duration_since(then).as_secs().max(0) {
        seconds @ 0..120 => format!("{seconds} s"),
        seconds @ 120..7_200 => format!("{} min", seconds / 60),
        seconds @ 7_200..172_800 => format!("{} h", seconds / 3_600),
        seconds => format!("{} days", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests;
