//! The API server: whether it answers, and whether the clocks agree.

use bowline_cloud_provider::ServerVersion;
use bowline_kube_io::rbac::Question;
use bowline_kube_io::{Clock as _, Kube, KubeError, SystemClock};
use jiff::{SignedDuration, Timestamp};

use super::{Check, Patient, no_answer, timed, took};
use crate::why::of_api_server;

topics! { pub(super) Kubernetes:
    ANSWERS = "kubernetes.api-server", "the API server answers", "docs/runbooks/BowlineKubernetesFailing.md";
    CLOCKS = "kubernetes.clocks", "the clocks agree", "docs/runbooks/BowlineClockWrong.md";
}

/// How far clocks may differ before it is told.
const DIFFERENCE: SignedDuration = SignedDuration::from_secs(30);

/// How many minor versions of Kubernetes before the newest are supported, as long as Kubernetes' own support goes.
const OLDER: u32 = 2;

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
        let text = error.to_string();
        ANSWERS.failed(format!("{host}: {text}"), of_api_server(&text))
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
        Err(error @ KubeError::Throttled { .. }) => {
            let remedy = "see what asks the API server so often (its priority levels and audit log), and try again; what stands below lacks what \
                          it did not answer";
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

/// Compares the clock of this computer with those of the API server and of the cloud, as their answers tell.
pub(super) fn clocks(patient: &Patient<'_>, kube: Option<&Kube>) -> Check {
    let here = match kube {
        Some(kube) => kube.clock().now(),
        None => SystemClock.now(),
    };
    let there = [
        ("the API server", kube.and_then(Kube::time_there)),
        ("the cloud", patient.cloud_clock.now()),
    ];
    judge_clocks(here, &there)
}

fn judge_clocks(here: Timestamp, there: &[(&str, Option<Timestamp>)]) -> Check {
    let differences: Vec<(&str, SignedDuration)> = there
        .iter()
        .filter_map(|(whose, time)| Some((*whose, here.duration_since((*time)?))))
        .collect();
    if differences.is_empty() {
        return CLOCKS.skipped("not compared: no answer tells the time of its server");
    }
    let is_off = |(_, difference): &&(&str, SignedDuration)| difference.abs() > DIFFERENCE;
    let off: Vec<String> = differences
        .iter()
        .filter(is_off)
        .map(|(whose, difference)| {
            let way = if difference.is_negative() {
                "behind"
            } else {
                "ahead of"
            };
            format!(
                "this computer's clock is {} s {way} that of {whose}",
                difference.abs().as_secs()
            )
        })
        .collect();
    if off.is_empty() {
        let names: Vec<&str> = differences.iter().map(|(whose, _)| *whose).collect();
        return CLOCKS.ok(format!(
            "within {} s, with {}",
            DIFFERENCE.as_secs(),
            names.join(" and ")
        ));
    }
    let whose = match off.len() == differences.len() {
        // Two that agree are believed.
        true => "this computer",
        false if differences[0].1.abs() > DIFFERENCE => "the API server",
        false => "the cloud, if it is yours to set: else tell its operator",
    };
    CLOCKS.warning(
        off.join("; "),
        format!(
            "set the clock of {whose}. Certificates, tokens and signed requests are refused with a wrong clock, leases run out too early or too late, \
             and events bear wrong times"
        ),
    )
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

#[cfg(test)]
mod tests {
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
    fn an_api_server_that_is_not_reached_has_the_remedy_of_the_way() {
        for (text, remedy) in [
            (
                "invalid peer certificate: certificate expired",
                "kubeadm certs renew",
            ),
            (
                "invalid peer certificate: UnknownIssuer",
                "certificate-authority-data",
            ),
            ("cannot connect: proxy 10.0.0.1:3128: refused", "NO_PROXY"),
            ("connection refused", "at the network"),
        ] {
            assert!(of_api_server(text).contains(remedy), "{text}");
        }
    }

    #[test]
    fn a_clock_that_is_off_is_told_and_two_that_agree_are_believed() {
        let at = |time: &str| time.parse::<Timestamp>().ok();
        let here = at("2026-01-01T00:10:00Z").unwrap();
        let (well, off) = (at("2026-01-01T00:09:50Z"), at("2026-01-01T00:00:00Z"));
        for (kube, cloud, outcome, whose) in [
            (well, well, Outcome::Ok, ""),
            (well, None, Outcome::Ok, ""),
            (None, None, Outcome::Skipped, ""),
            (off, off, Outcome::Warning, "set the clock of this computer"),
            (off, well, Outcome::Warning, "set the clock of the API server"),
            (well, off, Outcome::Warning, "set the clock of the cloud"),
            (off, None, Outcome::Warning, "set the clock of this computer"),
        ] {
            let check = judge_clocks(here, &[("the API server", kube), ("the cloud", cloud)]);
            assert_eq!(check.outcome, outcome, "{check:?}");
            assert!(check.remedy.starts_with(whose), "{check:?}");
        }
        let check = judge_clocks(here, &[("the API server", off)]);
        assert_eq!(
            check.seen,
            "this computer's clock is 600 s ahead of that of the API server"
        );
    }
}
