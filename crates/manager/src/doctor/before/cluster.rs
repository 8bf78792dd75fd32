//! The cluster before the installation: who works there already, and who may install.

use bowline_kube_io::rbac::{NAMESPACE, Question};
use bowline_kube_io::workloads::Workload;
use bowline_kube_io::{Kube, KubeError, SeenLease};

use crate::deployed::{Deployed, Program};
use crate::doctor::kubernetes::permitted;
use crate::doctor::managers::Found;
use crate::doctor::permissions::{self, ACCOUNT, PERMISSIONS};
use crate::doctor::{Check, Outcome, Patient, leadership, no_answer, some_lines, timed};

topics! { pub(in crate::doctor) Kubernetes:
    ALONE = "kubernetes.other-managers", "no other manager works here", "docs/guides/several-managers.md";
    INSTALLS = "kubernetes.install", "whoever asks may apply the manifests", "docs/guides/install.md";
}

/// Programs that give Services of type LoadBalancer their addresses: a part of the image's name, and what people call it.
const BALANCERS: [(&str, &str); 5] = [
    ("metallb", "MetalLB"),
    ("klipper-lb", "the ServiceLB of k3s"),
    ("purelb", "PureLB"),
    ("openelb", "OpenELB"),
    ("cilium/operator", "Cilium (if its LB IPAM is on)"),
];

/// What is found, each with what to do about it.
type Faults = Vec<(Outcome, String, String)>;

/// Whether somebody else would write what the manager writes.
pub(super) async fn alone(patient: &Patient<'_>, kube: Option<&Kube>, found: Option<&Found>) -> Check {
    let (Some(kube), Some(found)) = (kube, found) else {
        return ALONE.skipped("the API server does not answer");
    };
    let deployed = match &found.managers {
        Ok(deployed) => deployed,
        Err(error) => return ALONE.skipped(format!("workloads and pods cannot be listed: {error}")),
    };
    let question = ("list", "coordination.k8s.io", "leases", NAMESPACE, None);
    let held = permitted(kube, question, kube.held_leases(NAMESPACE)).await;
    let workloads = timed(kube.workloads()).await;
    let workloads = workloads.and_then(|(all, _)| all.ok());
    let mut faults = Faults::new();
    for manager in deployed {
        of_deployed(patient, manager, &mut faults);
    }
    of_leases(kube, deployed, &held.unwrap_or_default(), &mut faults);
    let workloads = workloads.unwrap_or_default();
    of_balancers(&workloads, &mut faults);
    of_port(&workloads, deployed, &mut faults);
    judge(faults)
}

fn judge(mut faults: Faults) -> Check {
    faults.sort_by_key(|(outcome, ..)| std::cmp::Reverse(*outcome));
    let Some((worst, ..)) = faults.first() else {
        return ALONE.ok("none is deployed, and none holds a lease");
    };
    let texts: Vec<&str> = faults.iter().map(|(_, text, _)| text.as_str()).collect();
    let mut remedies: Vec<&str> = faults.iter().map(|(.., remedy)| remedy.as_str()).collect();
    remedies.dedup();
    let (seen, remedy) = (texts.join("; "), remedies.join(". "));
    match worst {
        Outcome::Failed => ALONE.failed(seen, remedy),
        _ => ALONE.warning(seen, remedy),
    }
}

fn of_deployed(patient: &Patient<'_>, manager: &Deployed, faults: &mut Faults) {
    let own = patient.cloud.provider().map(|it| it.name());
    let (object, image) = (manager.object(), &manager.container.image);
    let cloud = manager.provider();
    let of = cloud.as_deref().unwrap_or("an unknown cloud");
    let what = format!("{object} is a manager of {of}, image {image}");
    if manager.program == Program::Bowline {
        let remedy = "run `doctor` without --pre: it looks at the manager that is there";
        faults.push((Outcome::Warning, what, remedy.to_owned()));
    } else if own.is_some() && cloud.as_deref() == own {
        let remedy = "to replace it, change the image in its own manifest, as the guide for this cloud says (docs/guides); do not install a second manager beside it";
        faults.push((Outcome::Warning, what, remedy.to_owned()));
    } else if patient.config.election.as_ref().is_some_and(|it| {
        !manager.is_without_election() && manager.lease() == format!("{}/{}", it.namespace, it.name)
    }) {
        faults.push((
            Outcome::Failed,
            format!(
                "{what}; it uses the lease {}, as this manager would, so only one of the two would work",
                manager.lease()
            ),
            "delete it, or give one of them a lease of its own with --leader-elect-resource-name".to_owned(),
        ));
    } else {
        let remedy = "delete it, or make sure that each manager leaves the other's Nodes and Services alone";
        faults.push((Outcome::Warning, what, remedy.to_owned()));
    }
}

/// Who leads and is no pod: a process outside of the cluster, or one that k3s or RKE2 has built in.
fn of_leases(kube: &Kube, deployed: &[Deployed], held: &[SeenLease], faults: &mut Faults) {
    for lease in leadership::managers_of(held, leadership::now(kube)) {
        let host = leadership::host(&lease.record.holder);
        let is_deployed = deployed
            .iter()
            .any(|it| it.runs_on(host) || it.lease() == format!("{NAMESPACE}/{}", lease.name));
        if is_deployed {
            continue;
        }
        let by = lease.writer.as_deref().unwrap_or("an unknown program");
        faults.push((
            Outcome::Failed,
            format!(
                "a manager that is no DaemonSet, Deployment or pod leads: {} holds the lease {NAMESPACE}/{}, written by {by}",
                lease.record.holder, lease.name
            ),
            "stop it: k3s and RKE2 have one built in, which --disable-cloud-controller switches off".to_owned(),
        ));
    }
}

/// What else gives addresses to Services.
fn of_balancers(workloads: &[Workload], faults: &mut Faults) {
    for (part, name) in BALANCERS {
        let is_of = |workload: &&Workload| workload.pod.containers.iter().any(|it| it.image.contains(part));
        if let Some(workload) = workloads.iter().find(is_of) {
            let place = format!("{} {}/{}", workload.kind, workload.namespace, workload.name);
            faults.push((
                Outcome::Warning,
                format!("{name} gives addresses to Services, too: {place}"),
                "let it serve a class of its own (spec.loadBalancerClass), or remove it, if this manager is to serve Services".to_owned(),
            ));
        }
    }
}

/// The port that the manager listens on if no flag says otherwise, in the host's network.
const PORT: &str = "10258";

/// Who names that port of the host's network for itself. What is no pod is not seen from here.
fn of_port(workloads: &[Workload], managers: &[Deployed], faults: &mut Faults) {
    let names_it = |word: &String| word.split(['=', ':']).next_back() == Some(PORT);
    let is_on = |it: &&Workload| {
        let mut containers = it.pod.containers.iter();
        let is_manager = managers
            .iter()
            .any(|manager| manager.name == it.name && manager.namespace == it.namespace);
        it.pod.host_network
            && !is_manager
            && containers.any(|it| it.command.iter().chain(&it.args).any(names_it))
    };
    for workload in workloads.iter().filter(is_on) {
        let place = format!("{} {}/{}", workload.kind, workload.namespace, workload.name);
        faults.push((
            Outcome::Warning,
            format!("{place} names port {PORT} of the host's network, which the manager listens on, too"),
            "give one of them another port: --secure-port for the manager".to_owned(),
        ));
    }
}

/// What the ServiceAccount of the manifests may do, if it is there already.
pub(super) async fn permissions(patient: &Patient<'_>, kube: Option<&Kube>, found: Option<&Found>) -> Check {
    let Some(kube) = kube else {
        return PERMISSIONS.skipped("the API server does not answer");
    };
    let is_deployed = found.is_some_and(|it| it.managers.as_ref().is_ok_and(|all| !all.is_empty()));
    match timed(kube.has("serviceaccounts", NAMESPACE, ACCOUNT)).await {
        Some((Ok(false), _)) if !is_deployed => PERMISSIONS.skipped(format!(
            "the ServiceAccount {NAMESPACE}/{ACCOUNT} and its role come with the manifests"
        )),
        Some((Ok(_), _)) => {
            let checks = permissions::check(patient, Some(kube), patient.cloud.provider(), found).await;
            let worst = checks.into_iter().max_by_key(|check| rank(check.outcome));
            worst.unwrap_or_else(|| PERMISSIONS.skipped(no_answer()))
        }
        Some((Err(error), _)) => PERMISSIONS.skipped(format!("ServiceAccounts are not read: {error}")),
        None => PERMISSIONS.skipped(no_answer()),
    }
}

fn rank(outcome: Outcome) -> u8 {
    match outcome {
        Outcome::Skipped => 0,
        Outcome::Ok => 1,
        Outcome::Warning => 2,
        Outcome::Failed => 3,
    }
}

/// What the manifests consist of: API group, resource, and whether it is in a namespace.
const MANIFEST: [(&str, &str, bool); 8] = [
    ("rbac.authorization.k8s.io", "clusterroles", false),
    ("rbac.authorization.k8s.io", "clusterrolebindings", false),
    ("rbac.authorization.k8s.io", "roles", true),
    ("rbac.authorization.k8s.io", "rolebindings", true),
    ("", "serviceaccounts", true),
    ("", "secrets", true),
    ("apps", "daemonsets", true),
    ("apps", "deployments", true),
];

/// Whether the user of the kubeconfig may install.
pub(super) async fn installs(kube: Option<&Kube>) -> Check {
    let Some(kube) = kube else {
        return INSTALLS.skipped("the API server does not answer");
    };
    let questions = MANIFEST.map(|(group, resource, is_local)| Question {
        verb: "create",
        group,
        resource,
        namespace: is_local.then(|| NAMESPACE.to_owned()),
        name: None,
        rules: Vec::new(),
    });
    let ask = async {
        let mut missing = Vec::new();
        for question in questions {
            if !kube.may(&question).await? {
                missing.push(question.to_string());
            }
        }
        Ok::<_, KubeError>(missing)
    };
    match timed(ask).await {
        None => INSTALLS.warning(no_answer(), "look at the API server"),
        Some((Err(error), _)) => INSTALLS.warning(error.to_string(), "look at the API server"),
        Some((Ok(missing), _)) if missing.is_empty() => INSTALLS.ok("all objects in them"),
        Some((Ok(missing), _)) => INSTALLS
            .warning(
                format!(
                    "{} of {} kinds of objects may not be created",
                    missing.len(),
                    MANIFEST.len()
                ),
                "use an administrator's kubeconfig for the installation",
            )
            .with(some_lines(missing)),
    }
}

#[cfg(test)]
mod tests {
    use bowline_kube_io::workloads::{Container, PodSpec};

    use super::*;

    #[test]
    fn what_else_gives_addresses_is_named_and_the_worst_counts() {
        let workload = |name: &str, image: &str| Workload {
            kind: "DaemonSet",
            namespace: "lb".to_owned(),
            name: name.to_owned(),
            pod: PodSpec {
                containers: vec![Container {
                    image: image.to_owned(),
                    ..Container::default()
                }],
                ..PodSpec::default()
            },
            ..Workload::default()
        };
        let mut faults = Faults::new();
        of_balancers(&[workload("web", "nginx")], &mut faults);
        assert_eq!(judge(faults.clone()).outcome, Outcome::Ok);
        of_balancers(
            &[workload("speaker", "quay.io/metallb/speaker:v0.15")],
            &mut faults,
        );
        let check = judge(faults.clone());
        assert_eq!(check.outcome, Outcome::Warning);
        assert_eq!(
            check.seen,
            "MetalLB gives addresses to Services, too: DaemonSet lb/speaker"
        );
        let mut on_host = workload("agent", "agent:1");
        on_host.pod.containers[0].args = vec!["--listen=0.0.0.0:10258".to_owned()];
        let mut ports = Faults::new();
        of_port(std::slice::from_ref(&on_host), &[], &mut ports);
        assert_eq!(ports, [], "a port of the pod's own network");
        on_host.pod.host_network = true;
        of_port(&[on_host], &[], &mut ports);
        assert!(
            ports[0].1.starts_with("DaemonSet lb/agent names port 10258"),
            "{ports:?}"
        );
        faults.push((Outcome::Failed, "two".to_owned(), "stop one".to_owned()));
        let check = judge(faults);
        assert_eq!(check.outcome, Outcome::Failed);
        assert!(check.seen.starts_with("two; MetalLB"), "{check:?}");
    }
}
