//! Who works here: the managers that are deployed, how their pods are, and whether two of them undo each other's work.

pub(super) mod idle;
mod said;

use std::collections::BTreeMap;

use bowline_kube_io::KubeError;
use bowline_kube_io::workloads::{Pod, PodMeta};

use super::{Check, NAMED, Outcome, Patient, not_yours};
use crate::deployed::{self, Deployed, Program, Value};
use crate::why::Cause;
use said::{LOOKED_AT, Said, missing, one_line, pod_name};

pub(super) use said::find;

topics! { pub(super) Kubernetes:
    MANAGERS = "kubernetes.managers", "a manager runs", "docs/guides/troubleshoot.md#the-manager-does-not-start";
}

/// The managers of the cluster.
pub(super) struct Found {
    /// Which there are; or why that is not known.
    pub(super) managers: Result<Vec<Deployed>, KubeError>,
    /// What is known of pods and workloads that do not run, by `kind namespace/name`.
    said: BTreeMap<String, Said>,
}

/// Who leads, as far as the lease tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Leader<'a> {
    /// The computer or pod that holds the lease; `None`: nobody does, or it is not known.
    pub(super) host: Option<&'a str>,
    /// Whether the lease may not be read.
    pub(super) is_hidden: bool,
    /// The lease, as `namespace/name`; empty if it is not known.
    pub(super) lease: &'a str,
    /// The program that renews it.
    pub(super) program: Option<Program>,
    /// Where nobody does: what shows that a process works without an election, well or in doubt.
    pub(super) unelected: Option<Outcome>,
}

const INSTALL: &str = "install the manager: docs/guides/install.md has the manifests; without one, no Node is initialised and no Service gets an address";

const INSTALL_ELSE: &str = "if no manager is meant to run outside of the cluster, install one: docs/guides/install.md has the manifests";

/// The check.
pub(super) fn check(patient: &Patient<'_>, found: Option<&Found>, leader: Leader<'_>) -> Check {
    let Some(found) = found else {
        return MANAGERS.skipped("the API server does not answer");
    };
    match &found.managers {
        Err(KubeError::Forbidden(_)) if patient.is_manager => {
            MANAGERS.skipped("the manager's role does not let it list pods: run doctor from a computer with an administrator's kubeconfig as well")
        }
        Err(error @ KubeError::Forbidden(_)) => MANAGERS.skipped(not_yours(error)),
        Err(error) => MANAGERS.skipped(format!("workloads and pods cannot be listed: {error}")),
        Ok(managers) if managers.is_empty() && leader.is_hidden => MANAGERS.skipped(
            "no DaemonSet, Deployment or pod of one is found; who holds the lease, as a process outside of the cluster may, is not known",
        ),
        Ok(managers) => judge(managers, &found.said, leader, patient.config.election.is_some()),
    }
}

/// That pods run with older credentials than those of their Secrets, if some do: variables are read when a container starts.
pub(super) fn older_credentials(found: Option<&Found>) -> Option<Cause> {
    let found = found?;
    let managers = found.managers.as_deref().ok()?;
    let mut older = managers.iter().filter_map(|it| older(it, &found.said));
    let (text, remedy) = older.next()?;
    Some(Cause::found(MANAGERS.id, Outcome::Warning, text, remedy))
}

/// What to do about such pods, as a sentence of its own.
pub(super) fn restart(found: Option<&Found>) -> Option<String> {
    let cause = older_credentials(found)?;
    Some(format!(
        "the manager's pods run with older credentials than their Secret has: {}",
        cause.remedy
    ))
}

/// The proxies by which the deployed managers go to the cloud, without passwords. `None`: there is none, or this command runs in the pod.
pub(super) fn detour(patient: &Patient<'_>, found: Option<&Found>) -> Option<String> {
    let managers = found?.managers.as_deref().ok().filter(|_| !patient.is_manager)?;
    managers.iter().find_map(proxies)
}

fn proxies(manager: &Deployed) -> Option<String> {
    let variables = manager.variables();
    let is_proxy = |name: &str| ["HTTPS_PROXY", "HTTP_PROXY"].contains(&&*name.to_ascii_uppercase());
    let proxies = variables.iter().filter(|(name, _)| is_proxy(name));
    let proxies = proxies.filter_map(|(name, value)| match value {
        Value::Literal(url) if url.is_empty() => None,
        Value::Literal(url) => Some(format!("{name}={}", without_login(url))),
        Value::At(_) | Value::OfPod => Some(name.clone()),
    });
    let proxies: Vec<String> = proxies.collect();
    (!proxies.is_empty()).then(|| format!("{} ({})", manager.object(), proxies.join(", ")))
}

/// The URL of a proxy without user and password.
fn without_login(url: &str) -> String {
    let (scheme, rest) = url
        .split_once("://")
        .map_or(("", url), |(scheme, rest)| (scheme, rest));
    let host = rest.rsplit_once('@').map_or(rest, |(_, host)| host);
    match scheme {
        "" => host.to_owned(),
        scheme => format!("{scheme}://{host}"),
    }
}

/// What the cloud refuses to pods with old credentials follows from that, so this fails, too.
pub(super) fn shuts_out(checks: &mut [Check]) {
    let checks = checks.iter_mut().filter(|it| *it.topic == MANAGERS);
    checks.for_each(|it| it.outcome = Outcome::Failed);
}

fn older(manager: &Deployed, said: &BTreeMap<String, Said>) -> Option<(String, String)> {
    let written = &said.get(&manager.object())?.written;
    let (secret, time) = written.iter().max_by_key(|(_, time)| *time)?;
    let is_older = |pod: &&Pod| manager.runs_since(pod).is_some_and(|since| since < *time);
    let pods: Vec<&str> = manager
        .pods
        .iter()
        .filter(is_older)
        .map(|pod| &*pod.metadata.name)
        .collect();
    if pods.is_empty() {
        return None;
    }
    let text = format!(
        "pods of {} run with older credentials than those of {secret}, which was written at {time}, after they started: {}",
        manager.object(),
        pods.join(", ")
    );
    let restart = match manager.kind {
        "Pod" => "delete the pod, or restart its container".to_owned(),
        kind => format!(
            "kubectl -n {} rollout restart {}/{}",
            manager.namespace,
            kind.to_lowercase(),
            manager.name
        ),
    };
    let remedy =
        format!("restart them, before anything is made of what the cloud answers to them: {restart}");
    Some((text, remedy))
}

/// What is wrong, the worst first, each with what to do about it.
type Faults = Vec<(Outcome, String, String)>;

fn judge(
    managers: &[Deployed],
    said: &BTreeMap<String, Said>,
    leader: Leader<'_>,
    is_elected: bool,
) -> Check {
    if managers.is_empty() {
        return match leader.host {
            None if leader.unelected == Some(Outcome::Ok) => MANAGERS.ok(
                "no DaemonSet, Deployment or pod of one is found, but a process works without an election: it runs outside of the cluster",
            ),
            None if leader.unelected.is_some() => MANAGERS.warning(
                "no DaemonSet, Deployment or pod of one is found; whether a process outside of the cluster works is not known",
                INSTALL_ELSE,
            ),
            Some(host) => MANAGERS.ok(format!(
                "no DaemonSet, Deployment or pod of one is found, but a process on {host} holds the lease: it runs outside of the cluster"
            )),
            None if !is_elected => MANAGERS.warning(
                "no DaemonSet, Deployment or pod of one is found; without an election, a process outside of the cluster cannot be seen",
                INSTALL,
            ),
            None => MANAGERS.failed(
                "there is no manager: no DaemonSet, Deployment or pod of one, and no process holds the lease",
                INSTALL,
            ),
        };
    }
    let mut lines = Vec::new();
    let mut faults: Faults = Vec::new();
    for manager in managers {
        of_one(manager, said, leader, &mut lines, &mut faults);
        let older = older(manager, said);
        faults.extend(older.map(|(text, remedy)| (Outcome::Warning, text, remedy)));
    }
    of_several(managers, leader, &mut faults);
    let is_named = of_old_pods(managers, leader, &mut faults);
    let is_known = |it: &Deployed| it.program == Program::Go && leads(it, leader);
    if leader.program == Some(Program::Go) && !is_named && !managers.iter().any(is_known) {
        let text = "the process that leads is a Go manager, by the managed fields of its lease";
        faults.push((Outcome::Warning, text.to_owned(), STOP_GO.to_owned()));
    }
    faults.sort_by_key(|(outcome, ..)| std::cmp::Reverse(*outcome));
    let names: Vec<String> = managers.iter().take(NAMED).map(short).collect();
    let Some((worst, ..)) = faults.first() else {
        return MANAGERS.ok(names.join(", ")).with(lines);
    };
    let texts: Vec<&str> = faults.iter().map(|(_, text, _)| text.as_str()).collect();
    let mut remedies: Vec<&str> = Vec::new();
    for (.., remedy) in &faults {
        if !remedies.contains(&remedy.as_str()) {
            remedies.push(remedy);
        }
    }
    let (seen, remedy) = (texts.join("; "), remedies.join(". "));
    let check = match worst {
        Outcome::Failed => MANAGERS.failed(seen, remedy),
        _ => MANAGERS.warning(seen, remedy),
    };
    check.with(lines)
}

fn short(manager: &Deployed) -> String {
    format!("{} is {}", manager.object(), manager.program.name())
}

/// Of several on one computer only one holds this lease.
fn leads(manager: &Deployed, leader: Leader<'_>) -> bool {
    let has_lease = leader.lease.is_empty() || manager.lease() == leader.lease;
    has_lease && leader.host.is_some_and(|host| manager.runs_on(host))
}

/// What to do about a Go manager that leads.
const STOP_GO: &str = "if Bowline is to work here, change the image of that manager to Bowline's, or stop it (`kubectl scale`, or delete its DaemonSet): \
    Bowline takes the lease over within seconds. What doctor says of steps to come is what Bowline would do";

/// Half an upgrade: pods that still have the image of another program than their workload has by now. Whether one of them leads.
fn of_old_pods(managers: &[Deployed], leader: Leader<'_>, faults: &mut Faults) -> bool {
    let mut one_leads = false;
    for manager in managers {
        for pod in &manager.pods {
            let mut containers = pod.spec.containers.iter();
            let Some(old) = containers.find(|it| it.name == manager.container.name) else {
                continue;
            };
            let program = Program::of_image(&old.image);
            let is_known = ![program, manager.program].contains(&Program::Unknown);
            if !is_known || program == manager.program {
                continue;
            }
            let is_on = leader.host.is_some_and(|host| deployed::is_on(pod, host));
            let is_leader = is_on && leads(manager, leader) && leader.program.is_none_or(|it| it == program);
            one_leads |= is_leader;
            let does = if is_leader {
                "leads, which"
            } else {
                "waits for the lease, and"
            };
            let PodMeta { namespace, name, .. } = &pod.metadata;
            let text = format!(
                "pod {name}{} {does} still has the image {}, {}: {} has {} by now",
                on_node(pod),
                old.image,
                program.name(),
                manager.object(),
                manager.container.image
            );
            let remedy = format!(
                "delete that pod, and one of the new image takes its place: kubectl -n {namespace} delete pod {name}. If it stays an old one, the \
                 rollout is held up, as by the update strategy OnDelete (kubectl rollout status)"
            );
            faults.push((Outcome::Warning, text, remedy));
        }
    }
    one_leads
}

fn of_one(
    manager: &Deployed,
    said: &BTreeMap<String, Said>,
    leader: Leader<'_>,
    lines: &mut Vec<String>,
    faults: &mut Faults,
) {
    let ready = manager.ready();
    let is_leader = leads(manager, leader);
    // The lease tells better than an image of a private registry.
    let program = match (is_leader, leader.program) {
        (true, Some(program)) if manager.program == Program::Unknown => program,
        _ => manager.program,
    };
    let leading = if is_leader { ", one of its pods leads" } else { "" };
    lines.push(format!(
        "{}: {}, image {}, {ready} of {} pods ready{leading}",
        manager.object(),
        program.name(),
        manager.container.image,
        manager.wanted.map_or_else(|| "?".to_owned(), |it| it.to_string())
    ));
    let flags = manager.flags();
    if !flags.is_empty() {
        lines.push(format!("  its flags: {}", flags.join(" ")));
    }
    if program == Program::Go && is_leader && leader.program != Some(Program::Bowline) {
        faults.push((
            Outcome::Warning,
            format!(
                "{} leads, which is a Go manager and not Bowline",
                manager.object()
            ),
            STOP_GO.to_owned(),
        ));
    }
    if manager.pods.is_empty() && missing(manager) == 0 {
        let (text, remedy) = match manager.kind {
            _ if manager.wanted.is_none() => (
                format!(
                    "{} has no pods, and nobody has worked out where they go",
                    manager.object()
                ),
                "look at kube-controller-manager, which makes them",
            ),
            "DaemonSet" => (
                format!(
                    "{} runs on no Node: none has the labels of its nodeSelector {}",
                    manager.object(),
                    selector(manager)
                ),
                "give the control plane's Nodes these labels, or take the nodeSelector out of the DaemonSet. A managed control plane has no such Nodes",
            ),
            _ => (
                format!("{} is scaled to 0", manager.object()),
                "if it is to work: kubectl scale it to 1 or more",
            ),
        };
        faults.push((Outcome::Failed, text, remedy.to_owned()));
    }
    let missing = missing(manager);
    let outcome = match ready == 0 && !is_leader {
        true => Outcome::Failed,
        false => Outcome::Warning,
    };
    if missing > 0 {
        let why = said.get(&manager.object()).and_then(|it| it.warning.as_deref());
        let text = format!("{} lacks {missing} of its pods", manager.object());
        faults.push((
            outcome,
            why.map_or_else(|| text.clone(), |why| format!("{text}: {why}")),
            match why {
                Some(why) if why.contains("serviceaccount") => format!(
                    "apply the ServiceAccount {}/{} of the manifest",
                    manager.namespace,
                    manager.account_name()
                ),
                _ => "see `kubectl describe` of it: quota, admission, or a ServiceAccount that is not there"
                    .to_owned(),
            },
        ));
    }
    if let Some(absent) = said
        .get(&manager.object())
        .map(|it| &it.absent)
        .filter(|it| !it.is_empty())
    {
        faults.push((
            outcome,
            format!("{} needs what does not exist in {}: {}", manager.object(), manager.namespace, absent.join(", ")),
            "apply all of the manifest, and make the Secret as the manual of the cloud says; or correct the name in the manifest".to_owned(),
        ));
    }
    // Whoever leads runs, whatever its kubelet says so far.
    let is_unwell =
        |pod: &&Pod| !manager.is_ready(pod) && !leader.host.is_some_and(|host| deployed::is_on(pod, host));
    let unwell = manager.pods.iter().filter(is_unwell);
    let mut told = Vec::new();
    for pod in unwell {
        let nothing = Said::default();
        let said = said.get(&pod_name(pod)).unwrap_or(&nothing);
        let (why, remedy) = trouble(manager, pod, said);
        lines.push(format!("  pod {}{}: {why}", pod.metadata.name, on_node(pod)));
        // Of many pods with one trouble it is told once.
        if !told.contains(&remedy) && told.len() < LOOKED_AT {
            faults.push((
                outcome,
                format!("pod {} is not ready: {why}", pod.metadata.name),
                remedy.clone(),
            ));
            told.push(remedy);
        }
    }
}

fn selector(manager: &Deployed) -> String {
    let labels = manager.spec.node_selector.iter();
    let labels: Vec<String> = labels.map(|(key, value)| format!("{key}={value}")).collect();
    labels.join(",")
}

fn on_node(pod: &Pod) -> String {
    match &*pod.spec.node_name {
        "" => String::new(),
        node => format!(" on {node}"),
    }
}

/// Why a pod does not run, and what to do.
fn trouble(manager: &Deployed, pod: &Pod, said: &Said) -> (String, String) {
    let with = |text: String, more: &Option<String>| match more {
        Some(more) => format!("{text}; {more}"),
        None => text,
    };
    let status = manager.status_of(pod);
    let waiting = status.and_then(|it| it.state.waiting.as_ref());
    let reason = waiting.map_or("", |it| &*it.reason);
    if pod.metadata.deletion_timestamp.is_some() {
        return ("being deleted".to_owned(), "wait until it is gone".to_owned());
    }
    let scheduled = pod.status.conditions.iter().find(|it| it.kind == "PodScheduled");
    if let Some(condition) = scheduled.filter(|it| it.status == "False") {
        return (
            format!("pending, no Node takes it: {}", one_line(&condition.message)),
            "have a Node take it: its tolerations have to name the taints that the text names (the manifests tolerate \
             node.cloudprovider.kubernetes.io/uninitialized, which all Nodes have before a manager works), its nodeSelector labels that Nodes have"
                .to_owned(),
        );
    }
    let ended = status.and_then(|it| it.state.terminated.as_ref().or(it.last_state.terminated.as_ref()));
    match reason {
        "ImagePullBackOff" | "ErrImagePull" | "InvalidImageName" | "ErrImageNeverPull" => (
            with(
                format!("{reason} of {}: {}", manager.container.image, one_line(waiting.map_or("", |it| &it.message))),
                &said.warning,
            ),
            "correct the image's name and tag in the manifest, or give the pod credentials for the registry (imagePullSecrets)".to_owned(),
        ),
        "CreateContainerConfigError" | "CreateContainerError" | "RunContainerError" | "StartError" => (
            with(format!("{reason}: {}", one_line(waiting.map_or("", |it| &it.message))), &said.warning),
            "make the Secret or ConfigMap, or the key of it, that the text names; if it names none, look at the container's command".to_owned(),
        ),
        _ if reason == "CrashLoopBackOff" || ended.is_some() => {
            let restarts = status.map_or(0, |it| it.restart_count);
            let how = ended.map_or(String::new(), |it| {
                let message = one_line(&it.message);
                let message = if message.is_empty() { String::new() } else { format!(": {message}") };
                format!(", it ended with exit code {}{}{message}", it.exit_code, match &*it.reason {
                    "" | "Error" | "Completed" => String::new(),
                    reason => format!(" ({reason})"),
                })
            });
            let state = if reason.is_empty() { "ended" } else { reason };
            let log = said.log.as_ref().map(|log| format!("its log ends with: {log}"));
            let remedy = match ended {
                Some(it) if it.reason == "OOMKilled" => "raise the container's memory limit".to_owned(),
                _ => format!(
                    "follow what it ended with; all of it: kubectl -n {} logs {} --previous",
                    pod.metadata.namespace, pod.metadata.name
                ),
            };
            (with(format!("{state}, {restarts} restarts{how}"), &log), remedy)
        }
        _ if said.warning.is_some() => (
            with(pod.status.phase.clone(), &said.warning),
            "do what the text names: a Secret or ConfigMap that is missing, a probe that fails, a volume that cannot be mounted".to_owned(),
        ),
        "ContainerCreating" | "PodInitializing" => (
            reason.to_owned(),
            format!(
                "if it stays: kubectl -n {} describe pod {}. Mostly a Secret or ConfigMap is missing: it needs {}",
                pod.metadata.namespace,
                pod.metadata.name,
                needs(manager)
            ),
        ),
        _ => {
            let phase = match &*pod.status.phase {
                "" => "unknown",
                phase => phase,
            };
            (
                format!("{phase}, and not ready {}", one_line(&pod.status.message)).trim_end().to_owned(),
                format!(
                    "if it stays: kubectl -n {} describe pod {}, and its log",
                    pod.metadata.namespace, pod.metadata.name
                ),
            )
        }
    }
}

fn needs(manager: &Deployed) -> String {
    let needs = manager.needs();
    match needs.is_empty() {
        true => "none".to_owned(),
        false => needs
            .iter()
            .map(deployed::Place::object)
            .collect::<Vec<_>>()
            .join(", "),
    }
}

/// Two that work at once undo each other's work.
fn of_several(managers: &[Deployed], leader: Leader<'_>, faults: &mut Faults) {
    let works = |it: &&Deployed| !it.pods.is_empty();
    let active: Vec<&Deployed> = managers.iter().filter(works).collect();
    for manager in active
        .iter()
        .filter(|it| it.is_without_election() && it.pods.len() > 1)
    {
        faults.push((
            Outcome::Failed,
            format!(
                "{} has {} pods and --leader-elect=false: all of them work at once",
                manager.object(),
                manager.pods.len()
            ),
            "take --leader-elect=false out of its flags, or leave it one pod".to_owned(),
        ));
    }
    for (index, one) in active.iter().enumerate() {
        for other in &active[index + 1..] {
            of_two(one, other, leader, faults);
        }
    }
}

fn of_two(one: &Deployed, other: &Deployed, leader: Leader<'_>, faults: &mut Faults) {
    let both = format!("{} and {}", short(one), short(other));
    let is_unbound = one.is_without_election() || other.is_without_election();
    let is_shared = !is_unbound && one.lease() == other.lease();
    if one.is_apart_from(other) {
        if is_shared {
            faults.push((
                Outcome::Failed,
                format!(
                    "{both}: they are for different clouds and share the lease {}, so only one of them works",
                    one.lease()
                ),
                "give one of them a lease of its own: --leader-elect-resource-name".to_owned(),
            ));
        }
        return;
    }
    if is_shared {
        let leading = match (leads(one, leader), leads(other, leader)) {
            (true, false) => format!("; now {} leads", one.object()),
            (false, true) => format!("; now {} leads", other.object()),
            _ => String::new(),
        };
        faults.push((
            Outcome::Warning,
            format!(
                "two managers share the lease {}, and whichever takes it works: {both}{leading}",
                one.lease()
            ),
            "delete the one that is not to work".to_owned(),
        ));
        return;
    }
    let why = match is_unbound {
        true => "one of them runs without an election (--leader-elect=false)".to_owned(),
        false => format!("their leases are {} and {}", one.lease(), other.lease()),
    };
    faults.push((
        Outcome::Failed,
        format!("two managers work at once and undo each other's work: {both}; {why}"),
        "delete one of them, or have both use one lease: the same --leader-elect-resource-name and --leader-elect-resource-namespace, and no --leader-elect=false".to_owned(),
    ));
}

#[cfg(test)]
pub(super) mod tests;
