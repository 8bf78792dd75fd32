//! Who leads: the lease, its holder and the program that renews it.

mod unelected;

use std::sync::Arc;

use bowline_cloud_provider::Node;
use bowline_kube_io::rbac::NAMESPACE;
use bowline_kube_io::{FoundNote, Kube, KubeError, PROGRAM, SeenEvent, SeenLease};
use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

use super::kubernetes::permitted;
use super::managers::{self, Found, Leader};
use super::{Check, Objects, Outcome, Patient, no_answer, not_yours, timed};
use crate::config::ElectionConfig;
use crate::deployed::{Deployed, Program, is_of_manager};
use crate::why::FULL;

topics! { pub(super) Kubernetes:
    LEASE = "kubernetes.leader", "a process leads", "docs/guides/troubleshoot.md#the-pod-that-leads";
}

/// How far another computer's clock may be ahead before it is told.
const CLOCKS: SignedDuration = SignedDuration::from_secs(5);

/// Within this time whoever leads has renewed the lease, however long it lasts: the default is every two seconds.
const RENEWED_WITHIN: SignedDuration = SignedDuration::from_secs(30);

/// How far the holder's clock may be from that of the API server.
const HOLDERS_CLOCK: SignedDuration = SignedDuration::from_secs(30);

/// The check, and who leads by it.
pub(super) struct Leadership {
    pub(super) check: Check,
    host: Option<String>,
    lease: String,
    program: Option<Program>,
    /// Whether nobody renews the lease, and it lasts on.
    is_left: bool,
    /// When the lease was renewed last that nobody holds.
    ended: Option<Timestamp>,
    /// What shows that a process works without an election: well, or in doubt.
    unelected: Option<Outcome>,
    /// What the lease says of deletions of Nodes.
    pub(super) deletions: Option<FoundNote>,
}

impl Leadership {
    /// Whether a manager in Go leads, by the lease.
    pub(super) fn is_of_go(&self) -> bool {
        self.program == Some(Program::Go)
    }

    /// Whether no process of this program leads, as far as the lease tells.
    pub(super) fn is_unled(&self) -> bool {
        self.is_of_go() || self.host.is_none() && self.check.outcome == Outcome::Failed
    }

    /// Whether a process may work without an election, or may have ended.
    pub(super) fn is_in_doubt(&self) -> bool {
        self.unelected == Some(Outcome::Warning)
    }

    /// Nobody renews a lease where nothing is written.
    pub(super) fn waits_for_etcd(&mut self) {
        if self.check.outcome == Outcome::Failed && self.host.is_none() {
            FULL.clone_into(&mut self.check.remedy);
        }
    }

    pub(super) fn leader(&self) -> Leader<'_> {
        Leader {
            host: self.host.as_deref(),
            is_hidden: self.check.outcome == Outcome::Skipped,
            lease: &self.lease,
            program: self.program,
            unelected: self.unelected,
        }
    }
}

/// What time it is for whoever judges the times of others: where the API server is, or here if it does not tell.
pub(super) fn now(kube: &Kube) -> Timestamp {
    kube.time_there().unwrap_or_else(|| kube.clock().now())
}

/// Who leads, and whether somebody leads besides, or works without leading as the events of Services tell.
pub(super) async fn check(
    patient: &Patient<'_>,
    kube: Option<&Kube>,
    objects: &Objects,
    found: Option<&Found>,
    events: &[SeenEvent],
) -> Leadership {
    let own = patient.config.election.as_ref();
    let mut leadership = own_lease(patient, kube, objects.nodes(), found).await;
    let Some(kube) = kube else {
        return leadership;
    };
    if leadership.check.outcome == Outcome::Failed && leadership.host.is_none() && !leadership.is_left {
        leadership.check = managers::idle::told(leadership.check, kube, found, &leadership.lease).await;
    }
    let namespace = own.map_or(NAMESPACE, |it| &it.namespace);
    let question = ("list", LEASES, "leases", namespace, None);
    let held = permitted(kube, question, kube.held_leases(namespace)).await;
    let name = own.map(|it| it.name.as_str());
    let managers = found
        .and_then(|it| it.managers.as_deref().ok())
        .unwrap_or_default();
    let held = held.unwrap_or_default();
    let rivals = held
        .iter()
        .filter(|it| !is_of_another_cloud(managers, namespace, name, it));
    if leadership.host.is_none() && !leadership.is_left && leadership.check.outcome != Outcome::Skipped {
        let sign = unelected::find(kube, objects, (&held, leadership.ended), events).await;
        let (check, unelected) = unelected::instead(
            leadership.check,
            sign,
            unelected::is_waited_for(objects),
            now(kube),
        );
        leadership = Leadership {
            check,
            unelected,
            ..leadership
        };
    }
    if leadership.check.outcome != Outcome::Skipped {
        leadership.check = judge_others(leadership.check, name, rivals, now(kube));
        let lease = held.iter().find(|it| Some(it.name.as_str()) == name);
        if let Some(lease) = lease.filter(|_| leadership.host.is_some()) {
            leadership.check = unelected::beside(leadership.check, lease, &held, events, now(kube));
        }
    }
    leadership
}

async fn own_lease(
    patient: &Patient<'_>,
    kube: Option<&Kube>,
    nodes: &[Arc<Node>],
    found: Option<&Found>,
) -> Leadership {
    let election = patient.config.election.as_ref();
    let own = election.map(|it| format!("{}/{}", it.namespace, it.name));
    let own = own.unwrap_or_default();
    let nobody = |check| Leadership {
        check,
        host: None,
        lease: own.clone(),
        program: None,
        is_left: false,
        ended: None,
        unelected: None,
        deletions: None,
    };
    let Some(ElectionConfig { namespace, name, .. }) = election else {
        return nobody(LEASE.ok("there is no election: --leader-elect=false"));
    };
    let Some(kube) = kube else {
        return nobody(LEASE.skipped("the API server does not answer"));
    };
    let place = format!("lease {own}");
    let lease = match timed(kube.shown_lease(namespace, name)).await {
        None => {
            return nobody(LEASE.failed(format!("{place}: {}", no_answer()), "look at the API server"));
        }
        Some((Ok(lease), _)) => lease,
        Some((Err(KubeError::NotFound(_)), _)) => {
            return nobody(LEASE.failed(format!("{place} is not there: no process has led yet"), PODS));
        }
        Some((Err(error @ KubeError::Forbidden(_)), _)) if !patient.is_manager => {
            return nobody(LEASE.skipped(format!("{place}: {}", not_yours(&error))));
        }
        Some((Err(error @ KubeError::Forbidden(_)), _)) => {
            return nobody(LEASE.failed(
                format!("{place}: {error}"),
                "apply the manager's Role and its RoleBinding again; with another --leader-elect-resource-name, write that name into the \
                 resourceNames of the Role",
            ));
        }
        Some((Err(error), _)) => {
            return nobody(LEASE.failed(format!("{place}: {error}"), "look at the API server"));
        }
    };
    let check = judge_lease(&place, &lease, now(kube), kube.clock().now());
    if check.outcome == Outcome::Failed {
        return Leadership {
            ended: renewed(&lease),
            ..nobody(check)
        };
    }
    let host = host(&lease.record.holder).to_owned();
    let managers = found.and_then(|it| it.managers.as_ref().ok());
    let on_host = managers
        .map_or(&[][..], |it| it)
        .iter()
        .filter(|it| it.runs_on(&host));
    // Several may share a computer.
    let deployed = on_host
        .clone()
        .find(|it| it.lease() == own)
        .or(on_host.clone().next());
    let is_ours = match deployed {
        Some(_) => Some(true),
        None => is_ours(&host, patient, nodes),
    };
    let is_pod = match is_ours {
        // Without the Nodes it may be one of them.
        None if !patient.is_manager => {
            let question = ("get", "", "pods", namespace.as_str(), Some(host.as_str()));
            let is_pod = permitted(kube, question, kube.has("pods", namespace, &host)).await;
            is_pod.filter(|is_pod| *is_pod || !nodes.is_empty())
        }
        _ => is_ours,
    };
    let program = match lease.writer.as_deref() {
        Some(PROGRAM) => Some(Program::Bowline),
        Some(writer) if is_of_manager(writer) => Some(Program::Go),
        _ => None,
    };
    let mut check = judge_holder(check, &lease, namespace, &host, is_pod, now(kube));
    if check.outcome == Outcome::Failed {
        return Leadership {
            is_left: true,
            ..nobody(check)
        };
    }
    let known = deployed.map(|it| it.program).filter(|it| *it != Program::Unknown);
    if let Some(program) = program.or(known) {
        check.seen.push_str(&format!(", by {}", program.name()));
    }
    if let (None, Some(writer)) = (program, &lease.writer) {
        check.seen.push_str(&format!(", written by {writer}"));
    }
    if let Some(deployed) = deployed {
        let of = if deployed.kind == "Pod" { "" } else { "a pod of " };
        let place = format!(", in {of}{}", deployed.object());
        check.seen.push_str(&place);
    }
    Leadership {
        check,
        host: Some(host),
        lease: own,
        program,
        is_left: false,
        ended: None,
        unelected: None,
        deletions: lease.record.deletions.clone().map(|note| FoundNote {
            note,
            is_complete: lease.record.is_note_complete(),
            at: Instant::now(),
            // The times of the note are by the holder's clock.
            wall: lease.record.renew_time.unwrap_or_else(|| now(kube)),
        }),
    }
}

const PODS: &str = "see the log of the manager's pods, and what `doctor` says of them";

/// The API group of leases.
const LEASES: &str = "coordination.k8s.io";

/// What the lease is called that two managers share while controllers move from one to the other.
const OF_MIGRATION: &str = "cloud-provider-extraction-migration";

/// When it was renewed last: by the clock of the API server if that tells, else by the holder's.
fn renewed(lease: &SeenLease) -> Option<Timestamp> {
    let renewed = lease.record.renew_time?;
    Some(lease.written.unwrap_or(renewed))
}

fn is_in_force(lease: &SeenLease, now: Timestamp) -> bool {
    let lasts = SignedDuration::try_from(lease.record.lease_duration).unwrap_or_default() + CLOCKS;
    renewed(lease).is_some_and(|renewed| now.duration_since(renewed) <= lasts)
}

/// Whether a lease is that of a deployed manager for another cloud than the one that has the lease `own`.
fn is_of_another_cloud(managers: &[Deployed], namespace: &str, own: Option<&str>, lease: &SeenLease) -> bool {
    let with = |name: &str| {
        let lease = format!("{namespace}/{name}");
        managers.iter().filter(move |it| it.lease() == lease)
    };
    let Some(own) = own.map(with) else {
        return false;
    };
    let mut others = with(&lease.name).peekable();
    others.peek().is_some()
        && own.clone().next().is_some()
        && others.all(|other| own.clone().all(|own| own.is_apart_from(other)))
}

/// Those of these leases by which a cloud controller manager leads now.
pub(super) fn managers_of<'a>(
    held: impl IntoIterator<Item = &'a SeenLease>,
    now: Timestamp,
) -> impl Iterator<Item = &'a SeenLease> {
    let is_manager =
        |it: &&SeenLease| is_of_manager(&it.name) || it.writer.as_deref().is_some_and(is_of_manager);
    held.into_iter()
        .filter(move |it| is_in_force(it, now))
        .filter(is_manager)
}

/// What others hold besides: two managers undo each other's work, and each of them believes that it leads.
fn judge_others<'a>(
    check: Check,
    own: Option<&str>,
    held: impl IntoIterator<Item = &'a SeenLease>,
    now: Timestamp,
) -> Check {
    let by = |it: &SeenLease| {
        it.writer
            .as_ref()
            .map_or(String::new(), |by| format!(", written by {by}"))
    };
    let others: Vec<String> = managers_of(held, now)
        .filter(|it| Some(it.name.as_str()) != own && it.name != OF_MIGRATION)
        .map(|it| format!("lease {}: {}{}", it.name, it.record.holder, by(it)))
        .collect();
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

/// `now` is by the API server's clock, `here` by that of this computer.
fn judge_lease(place: &str, lease: &SeenLease, now: Timestamp, here: Timestamp) -> Check {
    let record = &lease.record;
    if record.is_released() {
        return LEASE.failed(format!("{place} was given up, nobody holds it"), PODS);
    }
    let holder = &record.holder;
    let (Some(said), Some(renewed)) = (record.renew_time, renewed(lease)) else {
        return LEASE.failed(format!("{place}: {holder} holds it and never renewed it"), PODS);
    };
    let age = now.duration_since(renewed);
    if age < -CLOCKS {
        let seen = format!("{place}: {holder} renewed it {} s in the future", -age.as_secs());
        return LEASE.warning(
            seen,
            "set the clocks of the two computers: the holder's, and the API server's",
        );
    }
    let seen = format!("{place}: {holder}, renewed {} s ago", age.as_secs().max(0));
    let by_here = here.duration_since(renewed);
    if !is_in_force(lease, now) && is_in_force(lease, here) && by_here >= -CLOCKS {
        return LEASE.warning(
            format!(
                "{seen} by the clock of the API server, and {} s ago by that of this computer",
                by_here.as_secs().max(0)
            ),
            "one of the two clocks is wrong, see `the clocks agree`: set it (chrony or systemd-timesyncd)",
        );
    }
    if !is_in_force(lease, now) {
        let seen = format!("{seen}, which is longer than it lasts: nobody leads");
        return LEASE.failed(seen, PODS);
    }
    let difference = said.duration_since(renewed);
    if difference.abs() > HOLDERS_CLOCK {
        let way = if difference.is_negative() {
            "behind"
        } else {
            "ahead of"
        };
        return LEASE.warning(
            format!("{seen}; the holder's clock is {} s {way} the API server's", difference.abs().as_secs()),
            "set the clock of the node that holds the lease (chrony or systemd-timesyncd): certificates, tokens and signed requests depend on it, \
             and the times of events are wrong",
        );
    }
    LEASE.ok(seen)
}

/// The name of the computer in a holder's: that of its pod, or of the node on the host's network. A random part follows.
pub(super) fn host(holder: &str) -> &str {
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

/// Who renews a lease may be somebody else than the manager, which then waits for ever.
fn judge_holder(
    check: Check,
    lease: &SeenLease,
    namespace: &str,
    host: &str,
    is_ours: Option<bool>,
    now: Timestamp,
) -> Check {
    let is_left = renewed(lease).is_none_or(|renewed| now.duration_since(renewed) > RENEWED_WITHIN);
    match is_ours {
        Some(true) => check,
        Some(false) if is_left => LEASE.failed(
            format!(
                "{}, and it lasts for {} s; `{host}` is neither a Node nor a pod of the manager in {namespace}: nobody renews it, and nobody leads",
                check.seen,
                lease.record.lease_duration.as_secs()
            ),
            format!(
                "it is of a backup, or its holder is gone: kubectl -n {namespace} delete lease {}, and a manager that runs takes it within seconds",
                lease.name
            ),
        ),
        None => check.with(vec![format!(
            "`{host}` has to be a pod of the manager, or the node of one on the host's network"
        )]),
        Some(false) => LEASE.warning(
            format!(
                "{}, which lasts for {} s; `{host}` is neither a Node nor a pod of the manager in {namespace}",
                check.seen,
                lease.record.lease_duration.as_secs()
            ),
            format!(
                "somebody has renewed it a moment ago (the managed fields of the lease {} name the program). A manager outside of the cluster is fine. \
                 If it is another program, end that, or give this manager a lease of its own with --leader-elect-resource-name",
                lease.name
            ),
        ),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use bowline_kube_io::LeaseRecord;

    use super::*;

    #[test]
    fn a_holder_is_known_by_its_node_or_by_a_pod_that_is_called_alike() {
        let config = crate::config::Config::default();
        let of = |holder: &str, is_manager| Patient {
            config: &config,
            lookup: None,
            is_manager,
            kube: Err(String::new()),
            cloud: super::super::Cloud::Unusable(String::new()),
            cloud_clock: Default::default(),
            progress: Default::default(),
            manifests: Default::default(),
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
        let lease = SeenLease {
            name: "ccm".to_owned(),
            record: LeaseRecord {
                lease_duration: Duration::from_secs(86_400),
                ..LeaseRecord::default()
            },
            writer: None,
            written: None,
        };
        let now: Timestamp = "2026-01-01T00:01:00Z".parse().unwrap();
        let judged = |is_ours, age| {
            let mut lease = lease.clone();
            lease.record.renew_time = Some(now - SignedDuration::from_secs(age));
            judge_holder(well.clone(), &lease, "s", "thief", is_ours, now)
        };
        assert_eq!(judged(Some(true), 45), well);
        let unknown = judged(None, 45);
        assert_eq!((unknown.outcome, unknown.details.len()), (Outcome::Ok, 1));
        // It came back with a backup, and lasts for a day.
        let left = judged(Some(false), 45);
        assert_eq!(left.outcome, Outcome::Failed);
        assert!(
            left.remedy.contains("kubectl -n s delete lease ccm, and"),
            "{left:?}"
        );
        let other = judged(Some(false), 1);
        assert_eq!(other.outcome, Outcome::Warning);
        let seen = "thief_1, renewed 1 s ago, which lasts for 86400 s; `thief` is neither";
        assert!(other.seen.contains(seen), "{}", other.seen);
        assert!(
            other.remedy.contains("a moment ago") && !other.remedy.contains("delete lease"),
            "{other:?}"
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
            let lease = SeenLease {
                name: "c".to_owned(),
                record: LeaseRecord {
                    holder: holder.to_owned(),
                    lease_duration: Duration::from_secs(15),
                    renew_time: renewed.map(|time| time.parse().unwrap()),
                    ..LeaseRecord::default()
                },
                writer: None,
                written: None,
            };
            let check = judge_lease("lease s/c", &lease, now, now);
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
            written: None,
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
        assert_eq!(judged(&quiet), LEASE.ok("it is held"));
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

    #[test]
    fn a_manager_of_another_cloud_with_a_lease_of_its_own_is_no_rival() {
        use super::super::managers::tests::manager;

        let lease = |name: &str| SeenLease {
            name: name.to_owned(),
            record: LeaseRecord::default(),
            writer: None,
            written: None,
        };
        let ours = manager(
            "ours",
            Program::Bowline,
            &["--leader-elect-resource-name=ours"],
            &[],
        );
        for (flags, is_rival) in [
            (
                &[
                    "--leader-elect-resource-name=theirs",
                    "--cloud-provider=openstack",
                ][..],
                false,
            ),
            (&["--leader-elect-resource-name=theirs"], true),
            (
                &[
                    "--leader-elect-resource-name=theirs",
                    "--cloud-provider=openstack,cloudscale",
                ],
                true,
            ),
            (
                &[
                    "--leader-elect-resource-name=others",
                    "--cloud-provider=openstack",
                ],
                true,
            ),
        ] {
            let managers = [ours.clone(), manager("theirs", Program::Bowline, flags, &[])];
            let is_apart = |own| is_of_another_cloud(&managers, NAMESPACE, own, &lease("theirs"));
            assert_eq!(is_apart(Some("ours")), !is_rival, "{flags:?}");
            assert!(!is_apart(None) && !is_apart(Some("elsewhere")));
        }
    }

    #[test]
    fn a_holder_whose_clock_is_wrong_leads_all_the_same_and_is_told() {
        let lease = SeenLease {
            name: "c".to_owned(),
            record: LeaseRecord {
                holder: "a_1".to_owned(),
                lease_duration: Duration::from_secs(15),
                renew_time: "2026-01-01T00:00:00Z".parse().ok(),
                ..LeaseRecord::default()
            },
            writer: Some(PROGRAM.to_owned()),
            written: "2026-01-01T00:05:00Z".parse().ok(),
        };
        let at = |time: &str| time.parse::<Timestamp>().unwrap();
        let now = at("2026-01-01T00:05:03Z");
        let check = judge_lease("lease s/c", &lease, now, now);
        assert_eq!(check.outcome, Outcome::Warning, "{check:?}");
        assert!(
            check.seen.contains("clock is 300 s behind the API server's"),
            "{check:?}"
        );
        let now = at("2026-01-01T00:06:00Z");
        let old = judge_lease("lease s/c", &lease, now, now);
        assert_eq!(old.outcome, Outcome::Failed, "{old:?}");
    }

    #[test]
    fn a_clock_of_the_api_server_that_is_ahead_does_not_read_as_nobody_leads() {
        let renewed = "2026-01-01T00:00:00Z".parse().ok();
        let lease = SeenLease {
            name: "c".to_owned(),
            record: LeaseRecord {
                holder: "a_1".to_owned(),
                lease_duration: Duration::from_secs(15),
                renew_time: renewed,
                ..LeaseRecord::default()
            },
            writer: Some(PROGRAM.to_owned()),
            written: renewed,
        };
        let at = |time: &str| time.parse::<Timestamp>().unwrap();
        let ahead = at("2026-01-01T00:11:01Z");
        let check = judge_lease("lease s/c", &lease, ahead, at("2026-01-01T00:00:01Z"));
        assert_eq!(check.outcome, Outcome::Warning, "{check:?}");
        assert!(
            check
                .seen
                .contains("661 s ago by the clock of the API server, and 1 s"),
            "{check:?}"
        );
        let old = judge_lease("lease s/c", &lease, ahead, at("2025-12-31T23:00:00Z"));
        assert_eq!(
            old.outcome,
            Outcome::Failed,
            "a clock behind proves nothing: {old:?}"
        );
    }
}
