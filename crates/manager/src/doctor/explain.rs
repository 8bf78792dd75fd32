//! All that is known of a few objects: what `doctor` finds about the cluster, for these alone.

use bowline_cloud_provider::{NodeName, ServiceKey};

use super::{Cloud, Objects, Outcome, Patient, cloud, events, known, kubernetes, no_answer, objects, timed};
use crate::controllers::ControllerName;
use crate::plan::{PlanInput, plan_services};
use crate::why::{self, Cause, Why};

/// What is asked about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// A Service.
    Service(ServiceKey),
    /// A Node.
    Node(NodeName),
}

/// Tells of each target why it is as it is, in the order given. Nothing is written.
///
/// # Errors
///
/// The API server does not answer, or does not let Nodes and Services be read.
///
/// # Cancellation
///
/// May be dropped at any await.
pub async fn explain(patient: &Patient<'_>, targets: &[Target]) -> Result<Vec<Why>, String> {
    let (answer, kube, version) = kubernetes::answers(patient.kube.as_ref(), patient.follows).await;
    let Some(kube) = kube else {
        return Err(format!("{}; {}", answer.seen, answer.remedy));
    };
    let objects = objects(patient, Some(kube), version).await;
    for (kind, error) in [
        ("Nodes", objects.nodes.as_ref().and_then(|it| it.as_ref().err())),
        (
            "Services",
            objects.services.as_ref().and_then(|it| it.as_ref().err()),
        ),
    ] {
        if let Some(error) = error {
            return Err(format!("reading {kind}: {error}"));
        }
    }
    let leads = kubernetes::lease(patient, Some(kube), objects.nodes()).await;
    let is_of_node = |target: &Target| matches!(target, Target::Node(_));
    let answers = match targets.iter().any(is_of_node) {
        true => cloud::ask(&patient.cloud, objects.nodes()).await,
        false => None,
    };
    let mut all = Vec::new();
    for target in targets {
        let mut why = match target {
            Target::Service(key) => of_service(patient, &objects, key).await,
            Target::Node(name) => of_node(patient, &objects, name, answers.as_ref()).await,
        };
        if let Cloud::Refused(error) = &patient.cloud {
            let text = format!("the provider cannot be built: {error}");
            let remedy = "the manager ends at its start for that: `doctor` says more";
            why.first(
                Cause::new(Outcome::Failed, text, remedy),
                "nothing, as long as that is so",
            );
        }
        if leads.outcome == Outcome::Failed {
            let cause = Cause::new(Outcome::Failed, leads.seen.clone(), leads.remedy.clone());
            why.first(cause, "nothing that can be relied on, until one manager leads");
        }
        all.push(why);
    }
    Ok(all)
}

fn unknown(object: String, kind: &str) -> Why {
    let text = format!("there is no such {kind}");
    let mut why = Why::new(object);
    why.causes.push(Cause::new(
        Outcome::Failed,
        text,
        "look at the name and the namespace",
    ));
    why
}

async fn of_service(patient: &Patient<'_>, objects: &Objects, key: &ServiceKey) -> Why {
    let mut services = objects.services().iter();
    let Some(service) = services.find(|it| ServiceKey::of(it) == *key) else {
        return unknown(format!("service/{key}"), "Service");
    };
    let kube = patient.kube.as_ref().ok();
    let events = events(kube, Some(("Service", &key.namespace, &key.name))).await;
    let now = kube.map_or_else(Default::default, |kube| kube.clock().now());
    let known = known(patient, objects, now, &events);
    let load_balancer = patient.cloud.provider().and_then(|it| it.load_balancer());
    let is_planned = known.unserved.is_none() && why::not_served(service).is_none();
    let Some(load_balancer) = load_balancer.filter(|_| is_planned) else {
        return why::of_service(service, None, &known);
    };
    let input = PlanInput {
        services: objects.services().to_vec(),
        nodes: objects.nodes().to_vec(),
        cluster: objects.cluster.clone(),
        now,
    };
    let planned = timed(plan_services(&load_balancer, &input, std::slice::from_ref(key))).await;
    let report = planned.as_ref().and_then(|(reports, _)| reports.first());
    let mut why = why::of_service(service, report, &known);
    if report.is_none() {
        let text = format!("the cloud gives {}", no_answer());
        why.causes
            .push(Cause::new(Outcome::Failed, text, "`doctor` says what it answers"));
    }
    why
}

async fn of_node(
    patient: &Patient<'_>,
    objects: &Objects,
    name: &NodeName,
    answers: Option<&cloud::Answers>,
) -> Why {
    let Some(node) = objects.nodes().iter().find(|it| it.name == *name) else {
        return unknown(format!("node/{name}"), "Node");
    };
    let kube = patient.kube.as_ref().ok();
    let events = events(kube, Some(("Node", "", name.as_str()))).await;
    let now = kube.map_or_else(Default::default, |kube| kube.clock().now());
    let known = known(patient, objects, now, &events);
    let of_nodes = answers.iter().flat_map(|answers| &answers.of_nodes);
    let answer = of_nodes.into_iter().find(|(asked, _)| asked.name == *name);
    let near = answers.and_then(|answers| cloud::near(node, &answers.unborne));
    let mut why = why::of_node(node, answer.map(|(_, answer)| answer), near, &known);
    if node.is_uninitialized() && !patient.config.controllers.includes(ControllerName::Node) {
        let text = "this manager initialises no Nodes: --controllers switches cloud-node-controller off";
        let remedy = "whoever runs the manager switches it on, unless another one is to do it";
        why.first(
            Cause::new(Outcome::Failed, text, remedy),
            "nothing is done for Nodes here",
        );
    }
    why
}
