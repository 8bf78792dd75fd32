//! All that is known of a few objects: what `doctor` finds about the cluster, for these alone.

use std::time::Duration;

use bowline_cloud_provider::plan::PlanReport;
use bowline_cloud_provider::{Node, NodeName, Readiness, ServiceKey};
use bowline_kube_io::{FoundNote, Kube, ObjectRef};
use bowline_transport::patience::Patience;

use super::{
    ASK_AS_ANOTHER, Check, Cloud, Objects, Outcome, Patient, Surroundings, answers, cloud, endpoints, events,
    known, kubernetes, managers, no_answer, nodes, objects, permissions, put_in, surroundings, timed, took,
    unread, writes,
};
use crate::controllers::ControllerName;
use crate::plan::{PlanInput, plan_services};
use crate::why::{self, Cause, Known, Shown, Why};

/// A call of the cloud that takes less is not worth a word.
const SLOW: Duration = Duration::from_secs(2);

/// What is asked about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// A Service.
    Service(ServiceKey),
    /// A Node.
    Node(NodeName),
}

/// Tells of each target why it is as it is, in the order given. Nothing is written. What cannot be found out is a cause itself.
///
/// # Errors
///
/// A file with Services cannot be read.
///
/// # Cancellation
///
/// May be dropped at any await.
pub async fn explain(patient: &Patient<'_>, targets: &[Target]) -> Result<Vec<Why>, String> {
    patient.progress.is_at("asking the API server");
    let (answer, kube, version) = kubernetes::answers(patient.kube.as_ref(), patient.follows).await;
    let mut objects = objects(patient, kube, version).await;
    let mut targets = targets.to_vec();
    let of_files = patient.manifests.services(objects.services())?;
    for service in &of_files {
        let target = Target::Service(ServiceKey::of(service));
        if !targets.contains(&target) {
            targets.push(target);
        }
    }
    let new: Vec<ServiceKey> = {
        let is_there = |key: &ServiceKey| objects.services().iter().any(|it| ServiceKey::of(it) == *key);
        let keys = of_files.iter().map(|service| ServiceKey::of(service));
        keys.filter(|key| !is_there(key)).collect()
    };
    if !of_files.is_empty() {
        let services = objects.services.get_or_insert_with(|| Ok(Vec::new()));
        if let Ok(services) = services {
            put_in(services, &of_files);
        }
    }
    let Surroundings {
        found,
        mut leads,
        works,
        permitted,
        ..
    } = surroundings(patient, kube, &mut objects).await;
    let is_of_node = |target: &Target| matches!(target, Target::Node(_));
    let answers = match targets.iter().any(is_of_node) {
        true => answers::ask(&patient.cloud, objects.nodes()).await,
        false => None,
    };
    let mut all = Vec::new();
    patient.progress.is_at("asking the cloud");
    let writer = match kube {
        Some(kube) => Some(permissions::as_the_manager(patient, kube, found.as_ref()).await.0),
        None => None,
    };
    let of_etcd = match &writer {
        Some(writer) if leads.is_unled() => writes::refused_by_etcd(patient, writer, &objects).await,
        _ => None,
    };
    if of_etcd.is_some() {
        leads.waits_for_etcd();
    }
    for target in &targets {
        let read = match target {
            Target::Service(_) => objects.services.as_ref().map(|it| it.as_ref().err()),
            Target::Node(_) => objects.nodes.as_ref().map(|it| it.as_ref().err()),
        };
        let mut why = match (read, target) {
            (None, _) => of_failure(target, &answer),
            (Some(Some(error)), _) => of_failure(target, &unread(patient.is_manager, &nodes::READ, error)),
            (Some(None), Target::Service(key)) => of_service(patient, &objects, key, writer.as_ref()).await,
            (Some(None), Target::Node(name)) => {
                let deletions = leads.deletions.as_ref();
                let answers = answers.as_ref();
                of_node(patient, &objects, name, answers, deletions, writer.as_ref()).await
            }
        };
        let unasked_for = match &patient.cloud {
            Cloud::Unusable(error) => Some(unasked(
                Outcome::Failed,
                error,
                "give the flags, variables and files of the manager; without them only the cluster is known",
            )),
            Cloud::Hidden(error) => Some(unasked(Outcome::Warning, error, ASK_AS_ANOTHER)),
            _ => None,
        };
        match (unasked_for, read) {
            (None, _) => {}
            (Some(cause), Some(None)) => {
                why.first(cause);
            }
            // What keeps the cluster from telling may keep the manager's flags, too.
            (Some(cause), _) => why.causes.push(cause),
        }
        if kube.is_some() {
            for check in permitted.iter().filter(|it| it.outcome == Outcome::Failed) {
                let text = format!("the manager lacks permissions: {}", check.details.join("; "));
                why.first(Cause::found(
                    check.topic.id,
                    Outcome::Failed,
                    text,
                    check.remedy.clone(),
                ));
            }
            // Pods that do not run are why nobody leads, and stand before it.
            for check in [&leads.check, &works] {
                let is_of_go = leads.is_of_go() && check.topic.id == works.topic.id;
                let is_told = is_of_go || leads.is_in_doubt();
                if check.outcome == Outcome::Failed || check.outcome == Outcome::Warning && is_told {
                    let (seen, remedy) = (check.seen.clone(), check.remedy.clone());
                    let cause = Cause::found(check.topic.id, check.outcome, seen, remedy);
                    why.first_before(
                        cause,
                        "nothing that can be relied on, until one manager of Bowline leads",
                    );
                }
            }
            if let Some(cause) = &of_etcd {
                why.causes.retain(|it| it.id != cause.id);
                why.first(cause.clone());
            }
            if let Some(cause) = managers::older_credentials(found.as_ref()) {
                why.first(cause);
            }
            if leads.check.outcome == Outcome::Skipped {
                why.is.push(format!(
                    "whether a manager leads is not known: {}",
                    leads.check.seen
                ));
            }
            let clocks = kubernetes::clocks(patient, kube);
            if clocks.outcome == Outcome::Warning {
                why.add(clocks.topic.id, Outcome::Warning, clocks.seen, clocks.remedy);
            }
        }
        // First of all: a manager that ends for it does not run, and so nobody leads.
        if let Cloud::Refused(error) = &patient.cloud {
            let remedy = cloud::remedy_of_start(error);
            let detour = objects.detour.as_deref();
            why.first(match detour.and_then(|it| why::of_here(it, error.message())) {
                Some(text) => unasked(Outcome::Warning, &text, "do what the text says"),
                None => unasked(Outcome::Failed, error.message(), remedy),
            });
        }
        if let Target::Service(key) = target
            && new.contains(key)
        {
            why.is.insert(
                0,
                "not applied yet: this is what would be made of the file".to_owned(),
            );
        }
        why.fill_in();
        all.push(why);
    }
    Ok(all)
}

fn unasked(outcome: Outcome, text: &str, remedy: impl Into<String>) -> Cause {
    let text = format!("the cloud is not asked: {text}");
    Cause::found(cloud::LOGIN.id, outcome, text, remedy)
}

/// Nothing can be said of the object itself, because of what was found about the API server.
fn of_failure(target: &Target, found: &Check) -> Why {
    let mut why = Why::new(match target {
        Target::Service(key) => format!("service/{key}"),
        Target::Node(name) => format!("node/{name}"),
    });
    why.is.push("not known: the cluster does not tell".to_owned());
    let (outcome, remedy) = match found.outcome {
        Outcome::Skipped => (Outcome::Warning, ASK_AS_ANOTHER),
        _ => (Outcome::Failed, &*found.remedy),
    };
    why.add("kubernetes.unread", outcome, &*found.seen, remedy);
    let next = match found.outcome {
        Outcome::Skipped => "nothing can be told to whoever may not read it",
        _ => "nothing can be told, until the API server answers",
    };
    next.clone_into(&mut why.next);
    why
}

fn unknown(object: String, kind: &str) -> Why {
    let text = format!("there is no such {kind}");
    let remedy = match kind {
        "Service" => {
            "look at the name and the namespace, and at what was said to whoever applied it: a quota (services.loadbalancers) or a policy may have \
             refused it"
        }
        _ => "look at the name",
    };
    let mut why = Why::new(object);
    why.add("object.missing", Outcome::Failed, text, remedy);
    why
}

/// `writer`: the API server as the manager meets it.
async fn of_service(
    patient: &Patient<'_>,
    objects: &Objects,
    key: &ServiceKey,
    writer: Option<&Kube>,
) -> Why {
    let mut services = objects.services().iter();
    let Some(service) = services.find(|it| ServiceKey::of(it) == *key) else {
        return unknown(format!("service/{key}"), "Service");
    };
    let kube = patient.kube.as_ref().ok();
    let events = events(kube, Some(("Service", &key.namespace, &key.name))).await;
    let now = kube.map_or_else(Default::default, |kube| kube.clock().now());
    let endpoints = endpoints(kube, key).await;
    let load_balancer = patient.cloud.provider().and_then(|it| it.load_balancer());
    let known = known(patient, objects, now, &events, load_balancer.as_deref());
    let known = Known {
        endpoints: endpoints.as_ref(),
        ..known
    };
    let is_planned = known.unserved.is_none() && why::not_served(service, &objects.classes).is_none();
    let Some(load_balancer) = load_balancer.as_ref().filter(|_| is_planned) else {
        return why::of_service(service, None, &known);
    };
    let input = PlanInput {
        services: objects.list(),
        nodes: objects.nodes().to_vec(),
        cluster: objects.cluster.clone(),
        now,
    };
    let patience = Patience::default();
    let planned = timed(patience.with(plan_services(load_balancer, &input, std::slice::from_ref(key)))).await;
    let report = planned.as_ref().and_then(|(reports, _)| reports.first());
    let mut why = why::of_service(service, report, &known);
    if let Some(longest) = patience.took().answered.filter(|it| *it >= SLOW) {
        why.is.push(format!(
            "calls to the cloud take up to {}, as asked now",
            took(longest)
        ));
    }
    if report.is_none() {
        let text = format!("the cloud gives {}", no_answer());
        why.add(
            "cloud.no-answer",
            Outcome::Failed,
            text,
            "`doctor` says what it answers",
        );
    }
    let is_as_it_is = report.is_some_and(PlanReport::is_idle) && !why::is_troubled(service, &objects.classes);
    if !is_as_it_is
        && let Some(writer) = writer
        && let Some(cause) = writes::refused(writer, service).await
    {
        why.first_before(
            cause,
            "the manager tries again by itself, in vain until its writes are admitted",
        );
    }
    why
}

async fn of_node(
    patient: &Patient<'_>,
    objects: &Objects,
    name: &NodeName,
    answers: Option<&answers::Answers>,
    deletions: Option<&FoundNote>,
    writer: Option<&Kube>,
) -> Why {
    let Some(node) = objects.nodes().iter().find(|it| it.name == *name) else {
        let mut why = unknown(format!("node/{name}"), "Node");
        if let Some(namesake) = answers::by_name(&patient.cloud, name).await {
            why.causes = vec![why::without_node(&namesake)];
        }
        return why;
    };
    let kube = patient.kube.as_ref().ok();
    let events = events(kube, Some(("Node", "", name.as_str()))).await;
    let now = kube.map_or_else(Default::default, |kube| kube.clock().now());
    let load_balancer = patient.cloud.provider().and_then(|it| it.load_balancer());
    let known = known(patient, objects, now, &events, load_balancer.as_deref());
    let shown = answers.map(|answers| answers.shown(node)).unwrap_or_default();
    let lifecycle = &patient.config.settings.node_lifecycle;
    let frozen = answers.and_then(|answers| lifecycle.frozen(node, &answers.of_nodes));
    let shown = Shown {
        frozen: frozen.filter(|_| node.readiness != Readiness::Ready),
        throttled: deletions.and_then(|noted| nodes::throttled(lifecycle, node, noted, objects.nodes())),
        tainted_by: tainted_by(kube, node).await,
        ..shown
    };
    let is_to_go = nodes::is_to_go(node, shown.answer);
    let mut why = why::of_node(node, &shown, &known);
    if let (true, Some(writer)) = (is_to_go, writer)
        && let Some(cause) = writes::refused_of_lease(patient, writer).await
    {
        why.hold_deletion();
        why.first_before(
            cause,
            "the manager tries again by itself, in vain until its lease keeps the note",
        );
    }
    if node.is_uninitialized() && !patient.config.controllers.includes(ControllerName::Node) {
        let text = "this manager initialises no Nodes: --controllers switches cloud-node-controller off";
        let remedy = "whoever runs the manager switches it on, unless another one is to do it";
        why.first_before(
            Cause::new("node.controller-off", Outcome::Failed, text, remedy),
            "nothing is done for Nodes here",
        );
    }
    if node.is_uninitialized()
        && let Some(writer) = writer
        && let Some(cause) = writes::refused_of_node(writer, node).await
    {
        why.first_before(
            cause,
            "the manager tries again by itself, in vain until its writes are admitted",
        );
    }
    why
}

/// The program that wrote the taints of a Node last that waits, as its managed fields tell.
async fn tainted_by(kube: Option<&Kube>, node: &Node) -> Option<String> {
    let kube = kube.filter(|_| node.is_uninitialized())?;
    let taints = ["f:spec", "f:taints"].map(str::to_owned).to_vec();
    let writer = timed(kube.other_writer(&ObjectRef::from(node), &[taints])).await;
    writer.and_then(|(writer, _)| writer.ok()?)
}
