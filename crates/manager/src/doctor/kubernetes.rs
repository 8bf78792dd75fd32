//! The API server: whether it answers, and who holds the lease.

use std::sync::Arc;

use bowline_cloud_provider::{Node, ServerVersion};
use bowline_kube_io::rbac::{NAMESPACE, Question};
use bowline_kube_io::{Kube, KubeError, LeaseLock, LeaseRecord, SeenLease};
use jiff::{SignedDuration, Timestamp};

use super::{Category, Check, Outcome, Patient, Topic, no_answer, timed, took};
use crate::config::ElectionConfig;

pub(super) static ANSWERS: Topic = Topic::new(
    Category::Kubernetes,
    "the API server answers",
    "docs/runbooks/BowlineKubernetesFailing.md",
);

pub(super) static LEASE: Topic = Topic::new(
    Category::Kubernetes,
    "a process leads",
    "docs/guides/troubleshoot.md#the-pod-that-leads",
);

/// How many minor versions of Kubernetes before the newest are supported, as long as Kubernetes' own support goes.
const OLDER: u32 = 2;

/// How far another computer's clock may be ahead before it is told.
const CLOCKS: SignedDuration = SignedDuration::from_secs(5);

/// Whether the API server answers; and if so, the API server and its version.
pub(super) async fn answers<'a>(
    kube: Result<&'a Kube, &'a String>,
    newest: Option<ServerVersion>,
) -> (Check, Option<&'a Kube>, Option<ServerVersion>) {
    let kube = match kube {
        Ok(kube) => kube,
        Err(reason) => {
            let remedy = "correct what the text names; --kubeconfig, $KUBECONFIG or the ServiceAccount of a pod say where the API server is and who asks";
            return (ANSWERS.failed(reason, remedy), None, None);
        }
    };
    let host = kube.host();
    let unreached = |error: &dyn std::fmt::Display| {
        let remedy = "look at the address, at the certificate authority of the kubeconfig, at the network and at the API server itself";
        ANSWERS.failed(format!("{host}: {error}"), remedy)
    };
    let (answer, time) = match timed(kube.server_version()).await {
        None => return (unreached(&no_answer()), None, None),
        Some(answered) => answered,
    };
    match answer {
        Ok(version) => (
            judge_version(host, version, newest, &took(time)),
            Some(kube),
            Some(version),
        ),
        Err(error @ KubeError::Unauthorized(_)) => {
            let remedy = "the token or certificate is not known to this API server: renew the kubeconfig, or look at the pod's \
                          ServiceAccount";
            (ANSWERS.failed(format!("{host}: {error}"), remedy), None, None)
        }
        // It answers, and others tell what it refuses.
        Err(error @ KubeError::Forbidden(_)) => {
            let remedy = "let this user read /version, as every cluster does by itself";
            (
                ANSWERS.warning(format!("{host}: {error}"), remedy),
                Some(kube),
                None,
            )
        }
        Err(error) => (unreached(&error), None, None),
    }
}

fn judge_version(host: &str, version: ServerVersion, newest: Option<ServerVersion>, took: &str) -> Check {
    let ServerVersion { major, minor } = version;
    let seen = format!("{host}, version {major}.{minor}, in {took}");
    let Some(newest) = newest else {
        return ANSWERS.ok(seen);
    };
    let oldest = ServerVersion {
        minor: newest.minor.saturating_sub(OLDER),
        ..newest
    };
    if version < oldest || newest < version {
        let remedy = format!(
            "supported are {}.{} to {}.{}; look for a release for this one",
            oldest.major, oldest.minor, newest.major, newest.minor
        );
        return ANSWERS.warning(seen, remedy);
    }
    ANSWERS.ok(seen)
}

/// Who leads, and whether somebody leads besides.
pub(super) async fn lease(patient: &Patient<'_>, kube: Option<&Kube>, nodes: &[Arc<Node>]) -> Check {
    let own = patient.config.election.as_ref().map(|it| it.name.as_str());
    let check = own_lease(patient, kube, nodes).await;
    let Some(kube) = kube else {
        return check;
    };
    let namespace = patient
        .config
        .election
        .as_ref()
        .map_or(NAMESPACE, |it| &it.namespace);
    let question = ("list", LEASES, "leases", namespace, None);
    let held = permitted(kube, question, kube.held_leases(namespace)).await;
    judge_others(check, own, &held.unwrap_or_default(), kube.clock().now())
}

async fn own_lease(patient: &Patient<'_>, kube: Option<&Kube>, nodes: &[Arc<Node>]) -> Check {
    let Some(ElectionConfig { namespace, name, .. }) = &patient.config.election else {
        return LEASE.ok("there is no election: --leader-elect=false");
    };
    let Some(kube) = kube else {
        return LEASE.skipped("the API server does not answer");
    };
    let lock = LeaseLock::new(kube.clone(), namespace, name, &patient.holder);
    let place = format!("lease {namespace}/{name}");
    match timed(lock.get()).await {
        None => LEASE.failed(format!("{place}: {}", no_answer()), "look at the API server"),
        Some((Ok(record), _)) => {
            let check = judge_lease(&place, &record, kube.clock().now());
            match check.outcome {
                Outcome::Ok => {
                    let host = host(&record.holder);
                    let is_ours = is_ours(host, patient, nodes);
                    let is_pod = match is_ours {
                        // Without the Nodes it may be one of them.
                        None if !patient.is_manager => {
                            let is_pod = permitted(
                                kube,
                                ("get", "", "pods", namespace, Some(host)),
                                kube.has_pod(namespace, host),
                            )
                            .await;
                            is_pod.filter(|is_pod| *is_pod || !nodes.is_empty())
                        }
                        _ => is_ours,
                    };
                    judge_holder(check, namespace, host, is_pod)
                }
                _ => check,
            }
        }
        Some((Err(KubeError::NotFound(_)), _)) => {
            LEASE.failed(format!("{place} is not there: no process has led yet"), PODS)
        }
        Some((Err(error @ KubeError::Forbidden(_)), _)) => LEASE.failed(
            format!("{place}: {error}"),
            "apply the manager's Role and its RoleBinding again; with another --leader-elect-resource-name, write that name into the \
             resourceNames of the Role",
        ),
        Some((Err(error), _)) => LEASE.failed(format!("{place}: {error}"), "look at the API server"),
    }
}

const PODS: &str = "look whether the manager's pods run, and at their log";

/// The API group of leases.
const LEASES: &str = "coordination.k8s.io";

/// What the lease is called that two managers share while controllers move from one to the other.
const OF_MIGRATION: &str = "cloud-provider-extraction-migration";

fn is_in_force(record: &LeaseRecord, now: Timestamp) -> bool {
    let lasts = SignedDuration::try_from(record.lease_duration).unwrap_or_default() + CLOCKS;
    record
        .renew_time
        .is_some_and(|renewed| now.duration_since(renewed) <= lasts)
}

/// Whether a cloud controller manager may well be called so: the name of a lease, or of the program that renews it.
fn is_of_manager(name: &str) -> bool {
    let is_word = |words: &str| name.split(['-', '.', '_']).any(|word| word == words);
    name.contains("cloud-controller-manager") || name.contains("cloud-provider") || is_word("ccm")
}

/// What others hold besides: two managers undo each other's work, and each of them believes that it leads.
fn judge_others(check: Check, own: Option<&str>, held: &[SeenLease], now: Timestamp) -> Check {
    let in_force = |it: &&SeenLease| is_in_force(&it.record, now);
    let is_manager =
        |it: &&SeenLease| is_of_manager(&it.name) || it.writer.as_deref().is_some_and(is_of_manager);
    let by = |it: &SeenLease| {
        it.writer
            .as_ref()
            .map_or(String::new(), |by| format!(", written by {by}"))
    };
    let others = held
        .iter()
        .filter(|it| Some(it.name.as_str()) != own && it.name != OF_MIGRATION);
    let others: Vec<String> = others
        .filter(in_force)
        .filter(is_manager)
        .map(|it| format!("lease {}: {}{}", it.name, it.record.holder, by(it)))
        .collect();
    let own = held.iter().find(|it| Some(it.name.as_str()) == own);
    let check = match own.map(by) {
        Some(by) if !by.is_empty() => Check {
            seen: check.seen + &by,
            ..check
        },
        _ => check,
    };
    if others.is_empty() {
        return check;
    }
    let seen = match check.outcome {
        Outcome::Ok if own.is_none() => format!("{}; another manager leads", check.seen),
        Outcome::Ok => format!("{}; another manager leads besides", check.seen),
        _ => format!("{}; another manager leads", check.seen),
    };
    let remedy = "leave one of them: stop the other, or give this one the other's lease with --leader-elect-resource-name. Two managers undo each \
                  other's work";
    LEASE.failed(seen, remedy).with(others)
}

fn judge_lease(place: &str, record: &LeaseRecord, now: Timestamp) -> Check {
    if record.is_released() {
        return LEASE.failed(format!("{place} was given up, nobody holds it"), PODS);
    }
    let holder = &record.holder;
    let Some(renewed) = record.renew_time else {
        return LEASE.failed(format!("{place}: {holder} holds it and never renewed it"), PODS);
    };
    let age = now.duration_since(renewed);
    if age < -CLOCKS {
        let seen = format!("{place}: {holder} renewed it {} s in the future", -age.as_secs());
        return LEASE.warning(
            seen,
            "set the clocks of the two computers: this one's and the holder's",
        );
    }
    let seen = format!("{place}: {holder}, renewed {} s ago", age.as_secs().max(0));
    if !is_in_force(record, now) {
        let seen = format!("{seen}, which is longer than it lasts: nobody leads");
        return LEASE.failed(seen, format!("{PODS}; or set the clock of this computer"));
    }
    LEASE.ok(seen)
}

/// The name of the computer in a holder's: that of its pod, or of the node on the host's network. A random part follows.
fn host(holder: &str) -> &str {
    holder.rsplit_once('_').map_or(holder, |(host, _)| host)
}

/// Whether a manager may well run there: on a Node, or in a pod that is called as this one but for the random parts. `None`: it is
/// not known.
fn is_ours(host: &str, patient: &Patient<'_>, nodes: &[Arc<Node>]) -> Option<bool> {
    let first = |name: &str| name.split('.').next().unwrap_or_default().to_ascii_lowercase();
    let is_node = |host: &str| nodes.iter().any(|node| first(node.name.as_str()) == first(host));
    if is_node(host) {
        return Some(true);
    }
    if nodes.is_empty() || !patient.is_manager {
        return None;
    }
    let own = self::host(&patient.holder);
    // A pod that has the host's network knows no other names than those of Nodes.
    if is_node(own) {
        return Some(false);
    }
    // It may also be the name of a computer whose Node is called otherwise.
    let workload = workload(own)?;
    Some(host.starts_with(workload))
}

/// A pod's name without what a Deployment puts behind its own, which is more than a DaemonSet does.
fn workload(pod: &str) -> Option<&str> {
    pod.rsplitn(3, '-').nth(2)
}

/// Verb, API group, resource, namespace (empty: all), and name of what is read.
pub(super) type Asked<'a> = (&'static str, &'static str, &'static str, &'a str, Option<&'a str>);

/// Read only where it may be: a person may mostly, and the manager may not. `None` also if the answer fails.
pub(super) async fn permitted<T>(
    kube: &Kube,
    (verb, group, resource, namespace, name): Asked<'_>,
    read: impl Future<Output = Result<T, KubeError>>,
) -> Option<T> {
    let question = Question {
        verb,
        group,
        resource,
        namespace: Some(namespace).filter(|it| !it.is_empty()).map(str::to_owned),
        name: name.map(str::to_owned),
        rules: Vec::new(),
    };
    let answer = timed(async {
        match kube.may(&question).await {
            Ok(true) => read.await.ok(),
            _ => None,
        }
    });
    answer.await.and_then(|(answer, _)| answer)
}

/// Who renews a lease may be somebody else than the manager, which then waits for ever.
fn judge_holder(check: Check, namespace: &str, host: &str, is_ours: Option<bool>) -> Check {
    match is_ours {
        Some(true) => check,
        None => check.with(vec![format!(
            "`{host}` has to be a pod of the manager, or the node of one on the host's network"
        )]),
        Some(false) => LEASE.warning(
            format!("{}; `{host}` is neither a Node nor a pod of the manager in {namespace}", check.seen),
            "unless it is the hostname of a node that runs the manager, somebody else renews the lease, and no manager works meanwhile: find out who writes it (the managed fields of the lease name the program) and \
             end that, or give this manager a lease of its own with --leader-elect-resource-name",
        ),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_version_that_is_not_supported_is_told() {
        let of = |minor| ServerVersion { major: 1, minor };
        for (minor, outcome) in [
            (34, Outcome::Warning),
            (35, Outcome::Ok),
            (37, Outcome::Ok),
            (38, Outcome::Warning),
        ] {
            let check = judge_version("k:6443", of(minor), Some(of(37)), "4 ms");
            assert_eq!(check.outcome, outcome, "{minor}");
            assert_eq!(check.seen, format!("k:6443, version 1.{minor}, in 4 ms"));
        }
    }

    #[test]
    fn a_holder_is_known_by_its_node_or_by_a_pod_that_is_called_alike() {
        let config = crate::config::Config::default();
        let of = |holder: &str, is_manager| Patient {
            config: &config,
            lookup: None,
            is_manager,
            kube: Err(String::new()),
            cloud: super::super::Cloud::Unknown,
            holder: holder.to_owned(),
            follows: None,
        };
        let nodes = [Arc::new(Node::named("control-1"))];
        let (on_host, in_pod) = (of("control-1_u", true), of("ccm-5d4f8-x2x9k_u", true));
        for (host, patient, is_known) in [
            ("control-1", &on_host, Some(true)),
            ("Control-1.example.com", &on_host, Some(true)),
            ("thief", &on_host, Some(false)),
            ("ccm-77aa8-bbbbb", &in_pod, Some(true)),
            ("thief", &in_pod, Some(false)),
            ("thief", &of("laptop_u", false), None),
            ("beta", &of("alpha_u", true), None),
        ] {
            assert_eq!(is_ours(host, patient, &nodes), is_known, "{host}");
            assert_eq!(is_ours(host, patient, &[]), None, "Nodes are not known");
        }
        assert_eq!(host("a_b_6d0c"), "a_b");
        let well = LEASE.ok("lease s/c: thief_1, renewed 1 s ago");
        assert_eq!(judge_holder(well.clone(), "s", "thief", Some(true)), well);
        let unknown = judge_holder(well.clone(), "s", "thief", None);
        assert_eq!((unknown.outcome, unknown.details.len()), (Outcome::Ok, 1));
        let other = judge_holder(well, "s", "thief", Some(false));
        assert_eq!(other.outcome, Outcome::Warning);
        assert!(
            other
                .seen
                .contains("thief_1, renewed 1 s ago; `thief` is neither"),
            "{}",
            other.seen
        );
    }

    #[test]
    fn a_lease_is_judged_by_its_holder_and_its_age() {
        let now: Timestamp = "2026-01-01T00:01:00Z".parse().unwrap();
        for (holder, renewed, outcome, words) in [
            ("", None, Outcome::Failed, "was given up"),
            ("a_1", None, Outcome::Failed, "never renewed"),
            (
                "a_1",
                Some("2026-01-01T00:00:58Z"),
                Outcome::Ok,
                "a_1, renewed 2 s ago",
            ),
            (
                "a_1",
                Some("2026-01-01T00:00:40Z"),
                Outcome::Ok,
                "renewed 20 s ago",
            ),
            (
                "a_1",
                Some("2026-01-01T00:00:39Z"),
                Outcome::Failed,
                "nobody leads",
            ),
            (
                "a_1",
                Some("2026-01-01T00:01:05Z"),
                Outcome::Ok,
                "renewed 0 s ago",
            ),
            (
                "a_1",
                Some("2026-01-01T00:01:07Z"),
                Outcome::Warning,
                "7 s in the future",
            ),
        ] {
            let record = LeaseRecord {
                holder: holder.to_owned(),
                lease_duration: Duration::from_secs(15),
                renew_time: renewed.map(|time| time.parse().unwrap()),
                ..LeaseRecord::default()
            };
            let check = judge_lease("lease s/c", &record, now);
            assert_eq!(check.outcome, outcome, "{renewed:?}");
            assert!(check.seen.contains(words), "{}", check.seen);
        }
    }

    #[test]
    fn a_second_manager_is_told_by_its_lease_or_by_the_program_that_writes_it() {
        let now: Timestamp = "2026-01-01T00:01:00Z".parse().unwrap();
        let lease = |name: &str, writer: Option<&str>, renewed: &str| SeenLease {
            name: name.to_owned(),
            record: LeaseRecord {
                holder: format!("{name}-holder"),
                lease_duration: Duration::from_secs(15),
                renew_time: Some(renewed.parse().unwrap()),
                ..LeaseRecord::default()
            },
            writer: writer.map(str::to_owned),
        };
        const NEW: &str = "2026-01-01T00:00:58Z";
        const OLD: &str = "2026-01-01T00:00:30Z";
        let judged = |held: &[SeenLease]| judge_others(LEASE.ok("it is held"), Some("ours"), held, now);
        let quiet = [
            lease("ours", Some("cloud-controller-manager"), NEW),
            lease("kube-scheduler", Some("kube-scheduler"), NEW),
            lease(OF_MIGRATION, Some("kube-controller-manager"), NEW),
            lease("cloud-controller-manager", None, OLD),
        ];
        assert_eq!(
            judged(&quiet),
            LEASE.ok("it is held, written by cloud-controller-manager")
        );
        for (other, line) in [
            (
                lease("cloud-controller-manager", None, NEW),
                "lease cloud-controller-manager: cloud-controller-manager-holder",
            ),
            (
                lease("x", Some("cloudstack-ccm"), NEW),
                "lease x: x-holder, written by cloudstack-ccm",
            ),
        ] {
            let check = judged(&[other]);
            assert_eq!(check.outcome, Outcome::Failed);
            assert_eq!(check.details, [line]);
        }
    }
}
