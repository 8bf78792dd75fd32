//! Why a manager would not do its work, found out without changing anything.
//!
//! One function per category asks what there is to ask; what is made of the answers is pure. A failure stops only the checks
//! that have nothing to go by without it.

/// Topics of one category, a line each: name, id, what has to be so, and the page about it.
#[macro_export]
macro_rules! topics {
    ($vis:vis $category:ident: $($name:ident = $id:literal, $claim:literal, $help:literal;)*) => {
        $($vis static $name: $crate::doctor::Topic =
            $crate::doctor::Topic::new($crate::doctor::Category::$category, $id, $claim, $help);)*
    };
}

mod answers;
mod before;
mod cloud;
mod comparison;
mod explain;
mod kubernetes;
mod leadership;
mod managers;
mod nodes;
mod permissions;
mod report;
mod services;
mod writes;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bowline_cloud_provider::plan::PlanReport;
use bowline_cloud_provider::{
    CloudError, CloudProvider, ClusterFacts, ClusterUid, LoadBalancer, Node, Question, ServerVersion,
    Service, ServiceClasses, ServiceKey, ServiceList, Unanswered, ask_all,
};
use bowline_kube_io::rbac::NAMESPACE;
use bowline_kube_io::{Dates, Endpoints, Kube, KubeError, SeenEvent};
use jiff::Timestamp;
use tokio::time::{Instant, sleep, timeout};

use crate::config::{Config, Lookup};
use crate::controllers::ControllerName;
use crate::manifest;
pub use crate::outcome::Outcome;
use crate::why::{self, Known, Unserved, some_of};
use leadership::Leadership;
use managers::Found;

pub use before::examine_before;
pub use comparison::tell_last_tries;
pub use explain::{Target, explain};
pub use report::{
    Category, Check, DOCUMENTATION, Topic, render_json, render_json_of, render_short, render_text,
};

/// How long one question may take, its retries included. A person waits.
const PATIENCE: Duration = Duration::from_secs(30);

/// All that the checks of this crate look at; for links and for the page about them.
pub const TOPICS: &[&Topic] = &[
    &kubernetes::ANSWERS,
    &permissions::PERMISSIONS,
    &permissions::ACCOUNTS,
    &leadership::LEASE,
    &managers::MANAGERS,
    &kubernetes::CLOCKS,
    &writes::ADMITTED,
    &cloud::LOGIN,
    &cloud::INSTANCES,
    &cloud::LOAD_BALANCERS,
    &cloud::FITS,
    &cloud::ROUTES,
    &cloud::BILLED,
    &cloud::LEFT_BEHIND,
    &nodes::READ,
    &nodes::OWNERS,
    &nodes::INSTANCES,
    &nodes::INITIALIZED,
    &nodes::BALANCED,
    &services::READ,
    &services::SETTLED,
    &services::KEPT,
    &comparison::AS_ASKED,
    &before::cluster::ALONE,
    &before::cluster::INSTALLS,
    &before::ALLOWED,
    &before::PODS,
    &before::nodes::EXTERNAL,
    &before::nodes::VERSIONS,
    &before::nodes::PLACEMENT,
    &before::services::WANTED,
    &before::services::EXAMPLE,
    &before::services::ADDRESSES,
];

/// What is looked at.
pub struct Patient<'a> {
    /// What the manager is told.
    pub config: &'a Config,
    /// What its secure port looks up in the cluster; `None`: it serves none.
    pub lookup: Option<Lookup>,
    /// Whether the API server is asked in the manager's own name: in its pod.
    pub is_manager: bool,
    /// The API server, behind a closed gate; or why there is none to ask.
    pub kube: Result<Kube, String>,
    /// The cloud.
    pub cloud: Cloud,
    /// What time it is there.
    pub cloud_clock: Dates,
    /// Is told what is waited for.
    pub progress: Progress,
    /// Services of files that are not applied yet, by which some of the cluster are replaced.
    pub manifests: Manifests,
    /// Who this process is.
    pub holder: String,
    /// The newest version of Kubernetes that this program supports.
    pub follows: Option<ServerVersion>,
}

/// Files with Services that are not applied yet.
#[derive(Debug, Clone, Default)]
pub struct Manifests {
    /// Each file's name and contents.
    pub files: Vec<(String, Vec<u8>)>,
    /// The namespace of what names none.
    pub namespace: String,
}

impl Manifests {
    /// The Services of all files, as the API server would keep them.
    ///
    /// # Errors
    ///
    /// Which file cannot be read, and why.
    pub fn services(&self, known: &[Arc<Service>]) -> Result<Vec<Arc<Service>>, String> {
        let mut all = Vec::new();
        for (name, contents) in &self.files {
            let services = manifest::services(contents, &self.namespace, known);
            all.extend(services.map_err(|error| format!("{name}: {error}"))?);
        }
        Ok(all)
    }
}

/// Puts Services in the place of those of the same name, or beside them.
pub fn put_in(services: &mut Vec<Arc<Service>>, more: &[Arc<Service>]) {
    for service in more {
        let key = ServiceKey::of(service);
        services.retain(|it| ServiceKey::of(it) != key);
        services.push(Arc::clone(service));
    }
}

/// What a command waits for, in words. Clones share it.
#[derive(Debug, Clone)]
pub struct Progress(Arc<Mutex<&'static str>>);

impl Default for Progress {
    fn default() -> Self {
        Self(Arc::new(Mutex::new("asking the API server and the cloud")))
    }
}

impl Progress {
    /// From now on it is at this.
    pub fn is_at(&self, what: &'static str) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = what;
    }

    /// What it is at.
    #[must_use]
    pub fn at(&self) -> &'static str {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What became of the provider.
pub enum Cloud {
    /// It was built, in this time; some clouds have been asked for something by then.
    Built(Arc<dyn CloudProvider>, Duration),
    /// The same, of several clouds without these, which refused.
    Partly(Arc<dyn CloudProvider>, Duration, Vec<Refused>),
    /// The cloud refused, or could not be asked.
    Refused(CloudError),
    /// The configuration cannot be used, for this reason.
    Unusable(String),
    /// Whoever asks may not read what the manager is told.
    Hidden(String),
}

/// One of several clouds, which refuses what is asked of it first.
#[derive(Debug, Clone)]
pub struct Refused {
    /// Its name.
    pub cloud: String,
    /// What it answered.
    pub why: String,
}

impl std::fmt::Display for Refused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.cloud, self.why)
    }
}

impl Cloud {
    /// A provider that was built in this time without the clouds that refused, if it is let in. That is found out once, because every other
    /// question would wait for the same.
    pub async fn signed_in(
        provider: Arc<dyn CloudProvider>,
        time: Duration,
        mut refused: Vec<Refused>,
    ) -> Self {
        let (_, shut_out) = ask_each(provider.sign_in()).await;
        for Unanswered { cloud, why } in shut_out {
            let Some(cloud) = cloud.map(str::to_owned) else {
                return Self::Refused(why);
            };
            let why = why.to_string();
            refused.push(Refused { cloud, why });
        }
        match refused.is_empty() {
            true => Self::Built(provider, time),
            false => Self::Partly(provider, time, refused),
        }
    }

    /// The provider, and which of several clouds it is without; or why there is none.
    ///
    /// # Errors
    ///
    /// In words.
    pub fn usable(self) -> Result<(Arc<dyn CloudProvider>, Vec<Refused>), String> {
        match self {
            Self::Built(provider, _) => Ok((provider, Vec::new())),
            Self::Partly(provider, _, refused) => Ok((provider, refused)),
            Self::Refused(why) => Err(why.to_string()),
            Self::Unusable(why) | Self::Hidden(why) => Err(why),
        }
    }

    fn provider(&self) -> Option<&dyn CloudProvider> {
        match self {
            Self::Built(provider, _) | Self::Partly(provider, ..) => Some(&**provider),
            Self::Refused(_) | Self::Unusable(_) | Self::Hidden(_) => None,
        }
    }

    fn refused(&self) -> &[Refused] {
        match self {
            Self::Partly(_, _, refused) => refused,
            Self::Built(..) | Self::Refused(_) | Self::Unusable(_) | Self::Hidden(_) => &[],
        }
    }

    /// Whether an error is no more than what a cloud that refuses answers to everything: it begins with the name of that cloud.
    fn is_of_refused(&self, error: &CloudError) -> bool {
        let rest = |refused: &Refused| error.message().strip_prefix(refused.cloud.as_str());
        let mut all = self.refused().iter().filter_map(rest);
        all.any(|rest| rest.starts_with(": "))
    }
}

/// What was read from the API server.
struct Objects {
    nodes: Option<Result<Vec<Arc<Node>>, KubeError>>,
    services: Option<Result<Vec<Arc<Service>>, KubeError>>,
    cluster: Arc<ClusterFacts>,
    /// Which Services are served.
    classes: ServiceClasses,
    /// Whether no process of this program leads; known when the lease is read.
    is_unled: bool,
    /// Whether the manager lacks permissions, as far as that is known.
    lacks_permissions: bool,
    /// The proxy by which the manager goes to the cloud, and this command does not.
    detour: Option<String>,
    /// What to do about pods that run with older credentials than their Secret has.
    restart: Option<String>,
}

impl Objects {
    /// The Services, with what is served of them.
    fn list(&self) -> ServiceList {
        ServiceList {
            services: self.services().to_vec(),
            classes: self.classes.clone(),
        }
    }

    fn nodes(&self) -> &[Arc<Node>] {
        self.nodes
            .as_ref()
            .and_then(|it| it.as_deref().ok())
            .unwrap_or_default()
    }

    fn are_services_read(&self) -> bool {
        matches!(self.services, Some(Ok(_)))
    }

    fn services(&self) -> &[Arc<Service>] {
        self.services
            .as_ref()
            .and_then(|it| it.as_deref().ok())
            .unwrap_or_default()
    }
}

/// Makes all checks, in the order in which they are told. Nothing is written, to the cloud or to Kubernetes.
///
/// # Cancellation
///
/// May be dropped at any await.
pub async fn examine(patient: &Patient<'_>) -> Vec<Check> {
    let mut checks = Vec::new();
    let progress = &patient.progress;
    progress.is_at("asking the API server");
    let (answer, kube, version) = kubernetes::answers(patient.kube.as_ref(), patient.follows).await;
    checks.push(answer);
    let provider = patient.cloud.provider();
    let mut objects = objects(patient, kube, version).await;
    let Surroundings {
        found,
        events,
        leads: mut leadership,
        works,
        permitted,
    } = surroundings(patient, kube, &mut objects).await;
    if let Cloud::Refused(error) = &patient.cloud {
        // First of all: a manager that ends for it does not run, and so nobody leads.
        checks.splice(0..0, cloud::refused(error, objects.detour.as_deref()));
    }
    let place_of_clocks = checks.len();
    checks.extend(permitted);
    // A cause before what follows from it: a manager that may not, or does not run, does not lead.
    let admitted = writes::check(patient, kube, &objects, found.as_ref()).await;
    if writes::are_for_etcd(&admitted) {
        leadership.waits_for_etcd();
        checks.extend([admitted, works, leadership.check]);
    } else {
        checks.extend([works, leadership.check, admitted]);
    }
    let deletions = leadership.deletions;
    progress.is_at("asking the cloud about instances and load balancers");
    let answers = answers::ask(&patient.cloud, objects.nodes()).await;
    checks.extend(cloud::checks(patient, answers.as_ref(), &objects).await);
    checks.extend(cloud::billed(patient, kube, &objects, answers.as_ref()).await);
    checks.extend(cloud::left_behind(patient, kube, &objects, answers.as_ref()).await);
    checks.insert(place_of_clocks, kubernetes::clocks(patient, kube));
    let now = kube.map(|kube| kube.clock().now());
    let runs = |name| patient.config.controllers.includes(name);
    let initialises = runs(ControllerName::Node);
    checks.extend(nodes::checks(
        patient.is_manager,
        objects.nodes.as_ref(),
        answers.as_ref(),
        now,
        initialises,
        |node, all| {
            nodes::throttled(
                &patient.config.settings.node_lifecycle,
                node,
                deletions.as_ref()?,
                all,
            )
        },
    ));
    let is_read = checks
        .iter()
        .any(|check| *check.topic == cloud::LOAD_BALANCERS && check.outcome == Outcome::Ok);
    let unserved = unserved(patient);
    progress.is_at("making plans of Services");
    let is_compared = is_read && unserved.is_none() && objects.are_services_read();
    let plans = match is_compared {
        true => comparison::plans(&patient.cloud, &objects, now, &events).await,
        false => None,
    };
    let load_balancer = provider.and_then(CloudProvider::load_balancer);
    let known = now.map(|now| known(patient, &objects, now, &events, load_balancer.as_deref()));
    let planned = plans.as_deref().unwrap_or_default();
    checks.push(nodes::left_out(
        plans.as_deref(),
        unserved.is_some(),
        objects.nodes(),
        now,
    ));
    let behind = behind(kube, &objects, planned).await;
    checks.extend(services::checks(
        patient.is_manager,
        objects.services.as_ref(),
        planned,
        known.as_ref(),
        &behind,
    ));
    if objects.restart.is_some() && objects.services().iter().any(|it| why::is_shut_out(it)) {
        managers::shuts_out(&mut checks);
    }
    let compared = known.as_ref().map(|known| (known, &behind));
    checks.push(comparison::check(
        plans.as_deref(),
        &objects,
        unserved,
        is_compared,
        compared,
    ));
    checks
}

/// Who works in the cluster, and what the manager may do there.
struct Surroundings {
    found: Option<Found>,
    /// The events of all Services.
    events: Vec<SeenEvent>,
    leads: Leadership,
    works: Check,
    permitted: Vec<Check>,
}

/// Finds these out, and what follows from them for all objects.
async fn surroundings(patient: &Patient<'_>, kube: Option<&Kube>, objects: &mut Objects) -> Surroundings {
    patient.progress.is_at("looking for the managers of the cluster");
    let found = managers::find(kube).await;
    let events = events(kube, None).await;
    let leads = leadership::check(patient, kube, objects, found.as_ref(), &events).await;
    objects.is_unled = leads.is_unled();
    objects.restart = managers::restart(found.as_ref());
    objects.detour = managers::detour(patient, found.as_ref());
    let works = managers::check(patient, found.as_ref(), leads.leader());
    patient.progress.is_at("asking for the manager's permissions");
    let permitted = permissions::check(patient, kube, patient.cloud.provider(), found.as_ref()).await;
    objects.lacks_permissions = permitted.iter().any(|it| it.outcome == Outcome::Failed);
    Surroundings {
        found,
        events,
        leads,
        works,
        permitted,
    }
}

/// The pods behind the Services of plans, by `namespace/name`.
type Behind = BTreeMap<String, Endpoints>;

async fn behind(kube: Option<&Kube>, objects: &Objects, plans: &[PlanReport]) -> Behind {
    let mut all = Behind::new();
    for service in objects.services() {
        let key = ServiceKey::of(service);
        let name = key.to_string();
        if plans.iter().any(|plan| plan.object == name)
            && let Some(endpoints) = endpoints(kube, &key).await
        {
            all.insert(name, endpoints);
        }
    }
    all
}

/// Why no Service is served.
fn unserved(patient: &Patient<'_>) -> Option<Unserved> {
    let provider = patient.cloud.provider();
    if !patient.config.controllers.includes(ControllerName::Service) {
        return Some(Unserved::Controller);
    }
    provider
        .is_some_and(|it| it.load_balancer().is_none())
        .then_some(Unserved::Provider)
}

fn known<'a>(
    patient: &'a Patient<'_>,
    objects: &'a Objects,
    now: Timestamp,
    events: &'a [SeenEvent],
    load_balancer: Option<&'a dyn LoadBalancer>,
) -> Known<'a> {
    Known {
        now,
        nodes: objects.nodes.as_ref().and_then(|it| it.as_deref().ok()),
        // Where nobody has members, none may be one.
        node_set: load_balancer
            .filter(|it| it.follows_nodes())
            .map(LoadBalancer::node_set),
        load_balancer,
        unserved: unserved(patient),
        events,
        classes: &objects.classes,
        endpoints: None,
        routes: gives_networks(patient).then_some(&patient.config.settings.routes),
        services: objects.services(),
        is_unled: objects.is_unled,
        restart: objects.restart.as_deref(),
        lacks_permissions: objects.lacks_permissions,
        detour: objects.detour.as_deref(),
    }
}

/// Whether pod networks or routes are the manager's.
fn gives_networks(patient: &Patient<'_>) -> bool {
    let config = patient.config;
    patient.cloud.provider().is_some_and(|provider| {
        config.makes_routes() && provider.routes().is_some() || config.gives_node_networks(provider)
    })
}

/// The events of all Services, or those of the one object; none where they may not be read.
async fn events(kube: Option<&Kube>, one: Option<(&str, &str, &str)>) -> Vec<SeenEvent> {
    let Some(kube) = kube else {
        return Vec::new();
    };
    let (kind, named) = one.map_or(("Service", None), |(kind, namespace, name)| {
        (kind, Some((namespace, name)))
    });
    let question = ("list", "", "events", "", None);
    let read = kubernetes::permitted(kube, question, kube.events_about(kind, named));
    read.await.unwrap_or_default()
}

/// The pods behind a Service; `None` where they may not be read, or are not known.
async fn endpoints(kube: Option<&Kube>, key: &ServiceKey) -> Option<Endpoints> {
    let kube = kube?;
    let question = (
        "list",
        "discovery.k8s.io",
        "endpointslices",
        &*key.namespace,
        None,
    );
    let read = kube.endpoints(&key.namespace, &key.name);
    kubernetes::permitted(kube, question, read).await.flatten()
}

/// What plans go by and the cluster shows.
async fn objects(patient: &Patient<'_>, kube: Option<&Kube>, version: Option<ServerVersion>) -> Objects {
    let mut objects = Objects {
        nodes: None,
        services: None,
        cluster: cluster(patient, None, None),
        classes: patient.config.service_classes.clone(),
        is_unled: false,
        restart: None,
        lacks_permissions: false,
        detour: None,
    };
    let Some(kube) = kube else {
        return objects;
    };
    objects.nodes = Some(listed(kube.list_nodes()).await);
    objects.services = Some(listed(kube.list_services()).await);
    let uid = match patient.cloud.provider().map(CloudProvider::cluster_uid) {
        Some(ClusterUid::Required) => kube.namespace_uid(NAMESPACE).await.ok(),
        Some(ClusterUid::Unused) | None => None,
    };
    objects.cluster = cluster(patient, uid, version);
    objects
}

fn cluster(
    patient: &Patient<'_>,
    uid: Option<String>,
    server_version: Option<ServerVersion>,
) -> Arc<ClusterFacts> {
    Arc::new(ClusterFacts {
        name: patient.config.cluster_name.clone(),
        uid,
        server_version,
        holder: patient.holder.clone(),
    })
}

/// The answer, and how long it took; `None` if there was none in time.
async fn timed<T>(question: impl Future<Output = T>) -> Option<(T, Duration)> {
    let begun = Instant::now();
    let answer = timeout(PATIENCE, question).await.ok()?;
    Some((answer, begun.elapsed()))
}

/// What the clouds told in time, and what became of those that did not.
async fn ask_each<T>(questions: Vec<Question<'_, T>>) -> (Vec<T>, Vec<Unanswered>) {
    ask_all(questions, too_late).await
}

/// What becomes of a question that has no answer in time.
async fn too_late() -> CloudError {
    sleep(PATIENCE).await;
    CloudError::transient(no_answer())
}

/// A list of objects, whose pages are asked for again and again, within the time for one question.
async fn listed<T>(list: impl Future<Output = Result<T, KubeError>>) -> Result<T, KubeError> {
    timed(list)
        .await
        .map_or(Err(KubeError::Timeout), |(answer, _)| answer)
}

/// What is said of a question that has no answer in time.
fn no_answer() -> String {
    format!("no answer within {} s", PATIENCE.as_secs())
}

/// What is said of what the API server does not let be read. What a person may not read is no fault of the manager.
fn unread(is_manager: bool, topic: &'static Topic, error: &KubeError) -> Check {
    match error {
        KubeError::Forbidden(_) if !is_manager => topic.skipped(not_yours(error)),
        KubeError::Forbidden(_) => topic.failed(
            error.to_string(),
            "apply the manager's ClusterRole, its Role and their bindings again",
        ),
        _ => topic.failed(error.to_string(), "look at the API server"),
    }
}

/// Who may read what whoever asks may not.
const ASK_AS_ANOTHER: &str = "ask with an administrator's kubeconfig, or in the manager's pod";

/// What is said where it is whoever asks that may not. What the manager would lose without that right is beside the point.
fn not_yours(error: &KubeError) -> String {
    let text = error.to_string();
    let refusal = text.split("; allow it to this user").next().unwrap_or_default();
    format!("you may not read this, so {ASK_AS_ANOTHER}: {refusal}")
}

/// A time as people read it.
fn took(time: Duration) -> String {
    match time.as_millis() {
        millis @ ..1_000 => format!("{millis} ms"),
        millis => format!("{}.{} s", millis / 1_000, millis % 1_000 / 100),
    }
}

/// How many lines are told; the rest is counted.
const NAMED: usize = 10;

/// The first lines and how many more there are.
fn some_lines(lines: Vec<String>) -> Vec<String> {
    let rest = lines.len().saturating_sub(NAMED);
    let more = (rest > 0).then(|| format!("and {rest} more"));
    lines.into_iter().take(NAMED).chain(more).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_lines_are_told_and_the_rest_is_counted() {
        let names = |count: usize| (1..=count).map(|index| format!("n{index}"));
        assert_eq!(some_lines(names(12).collect()).len(), 11);
        assert_eq!(some_lines(names(12).collect())[10], "and 2 more");
        assert_eq!(some_lines(names(3).collect()).len(), 3);
    }

    #[test]
    fn a_time_is_told_in_milliseconds_or_seconds() {
        for (millis, text) in [(7, "7 ms"), (999, "999 ms"), (1_000, "1.0 s"), (12_340, "12.3 s")] {
            assert_eq!(took(Duration::from_millis(millis)), text);
        }
    }

    #[test]
    fn a_topic_is_named_once() {
        let mut names: Vec<_> = TOPICS.iter().map(|topic| (topic.category, topic.name)).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), TOPICS.len());
    }
}
