//! What is said of the pods of a manager that do not run: by the kubelet, by their controller, by their log.

use std::collections::BTreeMap;

use bowline_kube_io::workloads::Pod;
use bowline_kube_io::{Kube, KubeError, SeenEvent};
use jiff::Timestamp;

use super::Found;
use crate::deployed::{self, Deployed, Value};
use crate::doctor::kubernetes::permitted;
use crate::doctor::timed;

/// What is said of a pod that does not run.
#[derive(Debug, Clone, Default)]
pub(super) struct Said {
    /// The last warning about it.
    pub(super) warning: Option<String>,
    /// The last line of its log.
    pub(super) log: Option<String>,
    /// Of a workload: what its pods need and is not there.
    pub(super) absent: Vec<String>,
    /// Of a workload: the Secrets whose keys are variables of its pods, and when each was written last.
    pub(super) written: Vec<(String, Timestamp)>,
}

/// Pods in trouble whose events and log are read.
pub(super) const LOOKED_AT: usize = 4;

/// Lines of a log that are read: what a program ends with is in the last ones.
const LINES: usize = 20;

/// Looks for the managers, and at what is said of those whose pods do not run.
pub(in crate::doctor) async fn find(kube: Option<&Kube>) -> Option<Found> {
    let kube = kube?;
    let managers = match timed(deployed::find(kube)).await {
        Some((managers, _)) => managers,
        None => Err(KubeError::Timeout),
    };
    let mut said = BTreeMap::new();
    for manager in managers.iter().flatten() {
        let unwell = manager.pods.iter().filter(|pod| !manager.is_ready(pod));
        for pod in unwell.take(LOOKED_AT) {
            said.insert(pod_name(pod), of_pod(kube, manager, pod).await);
        }
        let mut of_it = Said {
            written: written(kube, manager).await,
            ..Said::default()
        };
        if missing(manager) > 0 || manager.ready() < manager.pods.len() || manager.pods.is_empty() {
            of_it.absent = absent(kube, manager).await;
            if missing(manager) > 0 || manager.pods.is_empty() {
                of_it.warning = of_workload(kube, manager).await;
            }
        }
        said.insert(manager.object(), of_it);
    }
    Some(Found { managers, said })
}

/// How many of its pods are not there.
pub(super) fn missing(manager: &Deployed) -> u32 {
    let there = u32::try_from(manager.pods.len()).unwrap_or(u32::MAX);
    manager.wanted.unwrap_or_default().saturating_sub(there)
}

pub(super) fn pod_name(pod: &Pod) -> String {
    format!("Pod {}/{}", pod.metadata.namespace, pod.metadata.name)
}

async fn of_pod(kube: &Kube, manager: &Deployed, pod: &Pod) -> Said {
    let names = (&*pod.metadata.namespace, &*pod.metadata.name);
    let events = timed(kube.events_about("Pod", Some(names))).await;
    let status = manager.status_of(pod);
    let has_run = status.is_some_and(|it| it.restart_count > 0 || it.state.terminated.is_some());
    let log = match has_run {
        true => {
            let is_of_run_before = status.is_some_and(|it| it.state.terminated.is_none());
            let log = kube.pod_log(&pod.metadata, &manager.container.name, is_of_run_before, LINES);
            timed(log).await.and_then(|(log, _)| last_words(&log.ok()?))
        }
        false => None,
    };
    Said {
        warning: events.and_then(|(events, _)| last_warning(&events.ok()?, |_| true)),
        log,
        ..Said::default()
    }
}

/// When the Secrets were written whose keys are variables: those are read when a container starts. Files are read again.
async fn written(kube: &Kube, manager: &Deployed) -> Vec<(String, Timestamp)> {
    let of_one = manager.variables().into_iter().map(|(_, value)| value);
    let of_one = of_one.filter_map(|value| match value {
        Value::At(place) => Some(place),
        Value::Literal(_) | Value::OfPod => None,
    });
    let of_all = manager.variables_of_objects().into_iter().map(|(_, place)| place);
    let mut written: Vec<(String, Timestamp)> = Vec::new();
    for place in of_one.chain(of_all) {
        let (resource, name) = place.resource();
        if resource != "secrets" || written.iter().any(|(object, _)| *object == place.object()) {
            continue;
        }
        let namespace = &*manager.namespace;
        let question = ("get", "", resource, namespace, Some(name));
        let read = permitted(kube, question, kube.secret_written(namespace, name)).await;
        written.extend(read.flatten().map(|time| (place.object(), time)));
    }
    written
}

/// What the pods of a manager need and is not there.
async fn absent(kube: &Kube, manager: &Deployed) -> Vec<String> {
    let needs = manager.needs();
    let objects = needs.iter().map(|place| (place.resource(), place.object()));
    let account = (
        ("serviceaccounts", manager.account_name()),
        format!("ServiceAccount {}", manager.account_name()),
    );
    let mut absent = Vec::new();
    for ((resource, name), object) in objects.chain([account]) {
        let question = ("get", "", resource, &*manager.namespace, Some(name));
        let there = permitted(kube, question, kube.has(resource, &manager.namespace, name)).await;
        if there == Some(false) && !absent.contains(&object) {
            absent.push(object);
        }
    }
    absent
}

/// What keeps a workload from making its pods is said of it, or of its ReplicaSets.
async fn of_workload(kube: &Kube, manager: &Deployed) -> Option<String> {
    let names = (&*manager.namespace, &*manager.name);
    let (events, _) = timed(kube.events_about(manager.kind, Some(names))).await?;
    let own = last_warning(&events.ok()?, |_| true);
    if own.is_some() || manager.kind != "Deployment" {
        return own;
    }
    let (events, _) = timed(kube.events_about("ReplicaSet", None)).await?;
    let start = format!("{}/{}-", manager.namespace, manager.name);
    last_warning(&events.ok()?, |event| event.object.starts_with(&start))
}

fn last_warning(events: &[SeenEvent], is_of_it: impl Fn(&SeenEvent) -> bool) -> Option<String> {
    let mut last = events.iter().rev();
    let last = last.find(|event| event.is_warning && event.reason != "BackOff" && is_of_it(event))?;
    Some(format!("{}: {}", last.reason, one_line(&last.message)))
}

/// What a program ended with: the last line that tells of an error, else the last one.
pub(super) fn last_words(log: &str) -> Option<String> {
    let is_error = |line: &&str| {
        let lower = line.to_ascii_lowercase();
        line.starts_with(['E', 'F'])
            || ["error", "fatal", "panicked"]
                .iter()
                .any(|word| lower.contains(word))
    };
    let mut lines = log.lines().rev().filter(|line| !line.trim().is_empty());
    let last = lines.clone().next()?;
    Some(one_line(lines.find(is_error).unwrap_or(last)))
}

/// As much of a text as stands on a line.
pub(super) fn one_line(text: &str) -> String {
    const LONGEST: usize = 300;
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ").chars().take(LONGEST).collect()
}
