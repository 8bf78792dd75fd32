//! The API server: whether it answers, and who holds the lease.

use bowline_cloud_provider::ServerVersion;
use bowline_kube_io::{Kube, KubeError, LeaseLock, LeaseRecord};
use jiff::{SignedDuration, Timestamp};

use super::{Category, Check, Topic, no_answer, timed, took};
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

/// Who leads.
pub(super) async fn lease(election: Option<&ElectionConfig>, kube: Option<&Kube>, holder: &str) -> Check {
    let Some(ElectionConfig { namespace, name, .. }) = election else {
        return LEASE.ok("there is no election: --leader-elect=false");
    };
    let Some(kube) = kube else {
        return LEASE.skipped("the API server does not answer");
    };
    let lock = LeaseLock::new(kube.clone(), namespace, name, holder);
    let place = format!("lease {namespace}/{name}");
    match timed(lock.get()).await {
        None => LEASE.failed(format!("{place}: {}", no_answer()), "look at the API server"),
        Some((Ok(record), _)) => judge_lease(&place, &record, kube.clock().now()),
        Some((Err(KubeError::NotFound(_)), _)) => LEASE.warning(
            format!("{place} is not there: no process has led yet"),
            "look whether the manager's pods run, and at their log",
        ),
        Some((Err(error @ KubeError::Forbidden(_)), _)) => LEASE.failed(
            format!("{place}: {error}"),
            "apply the manager's Role and its RoleBinding again; with another --leader-elect-resource-name, write that name into the \
             resourceNames of the Role",
        ),
        Some((Err(error), _)) => LEASE.failed(format!("{place}: {error}"), "look at the API server"),
    }
}

fn judge_lease(place: &str, record: &LeaseRecord, now: Timestamp) -> Check {
    const PODS: &str = "look whether the manager's pods run, and at their log";
    if record.is_released() {
        return LEASE.warning(format!("{place} was given up, nobody holds it"), PODS);
    }
    let holder = &record.holder;
    let Some(renewed) = record.renew_time else {
        return LEASE.warning(format!("{place}: {holder} holds it and never renewed it"), PODS);
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
    if age > SignedDuration::try_from(record.lease_duration).unwrap_or_default() + CLOCKS {
        let seen = format!("{seen}, which is longer than it lasts: nobody leads");
        return LEASE.failed(seen, format!("{PODS}; or set the clock of this computer"));
    }
    LEASE.ok(seen)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::doctor::Outcome;

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
    fn a_lease_is_judged_by_its_holder_and_its_age() {
        let now: Timestamp = "2026-01-01T00:01:00Z".parse().unwrap();
        for (holder, renewed, outcome, words) in [
            ("", None, Outcome::Warning, "was given up"),
            ("a_1", None, Outcome::Warning, "never renewed"),
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
}
